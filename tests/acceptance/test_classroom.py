"""A classroom is switched on: 200 unknown machines at once, while somebody registers others."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.room import Answer, read_files, room

MACHINES = 200
TWICE = 40


@pytest.mark.case(85)
@pytest.mark.case(102)
def test_two_hundred_machines_at_once_make_two_hundred_workers(tmp_path: Path) -> None:
    log = tmp_path / "reloads"
    script = tmp_path / "reload.sh"
    script.write_text(f"#!/bin/sh\necho run >> {log}\n")
    script.chmod(0o755)
    macs = [f"52:54:00:00:{n // 256:02x}:{n % 256:02x}" for n in range(MACHINES)]
    asking = [*macs, *macs[:TWICE]]
    random.shuffle(asking)
    with room(
        tmp_path / "root",
        IPXE_SERVE_WORKERS="4",
        IPXE_CP_DNSMASQ_RELOAD=f"command:{script}",
    ) as service:
        ready = threading.Barrier(60)

        def boot(at: int, mac: str) -> Answer:
            if at < 60:
                ready.wait(30)
            return service.boot(mac)

        def create(number: int) -> Answer:
            mac = f"52:54:01:00:00:{number:02x}"
            return service.ask(
                "POST", "/workers", {"worker_id": f"pc-{number}", "mac": mac}
            )

        with ThreadPoolExecutor(70) as pool:
            boots = [pool.submit(boot, at, mac) for at, mac in enumerate(asking)]
            made = [pool.submit(create, number) for number in range(10)]
            answers = [future.result() for future in boots]
            records = [future.result() for future in made]
        assert [answer.status for answer in answers] == [200] * len(asking)
        assert [record.status for record in records] == [201] * 10
        names: dict[str, str] = {}
        for mac, answer in zip(asking, answers, strict=True):
            lines = answer.body.splitlines()
            assert lines[0] == "#!ipxe"
            assert lines[3:] == [
                "set menu-default reboot",
                "set menu-timeout 1000",
            ] or (lines[-2:] == ["set menu-default reboot", "set menu-timeout 1000"])
            name = next(
                line.removeprefix("set hostname ")
                for line in lines
                if line.startswith("set hostname ")
            )
            assert names.setdefault(mac, name) == name
        listed = service.ask("GET", "/workers").body
        assert len(listed) == MACHINES + 10
        assert all(record["mac"] for record in listed)
    files = read_files(tmp_path / "root")
    numbered = {f"worker-{n:02d}" for n in range(1, MACHINES + 1)}
    assert set(names.values()) == numbered
    assert set(files.workers) == numbered | {f"pc-{n}" for n in range(10)}
    assert len(files.bound) == MACHINES + 10
    assert {mac: files.bound[mac] for mac in macs} == names
    done = [line for line in files.operations if line["op"] == "auto_register"]
    assert sorted(line["mac"] for line in done) == sorted(macs)
    assert len([o for o in files.operations if o["op"] == "create_worker"]) == 10
    runs = len(log.read_text().splitlines())
    sys.stdout.write(f"{MACHINES + 10} new bindings, {runs} reloads\n")
    assert 0 < runs < MACHINES / 2
