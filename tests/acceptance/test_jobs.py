"""A slow copy as a job: the service is killed or stopped in the middle, the node too; nobody waits, nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.room import Room, read_files, room
from tests.agents.node.node_lab import BASE, TOKEN
from tests.agents.node.test_node_serve import Agent, agent
from tests.processes import eventually

MASTER = "debian_tpl_v1.img"
SIZE = 64 << 20
DISK = {"type": "master", "os": "debian", "name": MASTER, "disk_agent": "slow"}
PATH = "/workers/pc1/luns/disk"
NAMES = ("pc1", "pc2", "pc3")
BATCH = {
    "type": "master",
    "os": "debian",
    "name": MASTER,
    "targets": [{"worker_id": name, "agent": "slow"} for name in NAMES],
}
ASYNC = {"Prefer": "respond-async"}


class Site:
    """A service, and a node whose disk takes its time over a copy."""

    def __init__(self, service: Room, node: Agent, folder: Path) -> None:
        self.service = service
        self.node = node
        self.folder = folder

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> Any:
        """The body of an answer that is no refusal."""
        answer = self.service.ask(method, path, body, **more)
        assert answer.status in (200, 201, 202), answer
        return answer.body

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/jobs/{job_id}")
        return found

    def ended(self, job_id: str, seconds: float = 90) -> dict[str, Any]:
        eventually(lambda: self.job(job_id)["ended"], seconds)
        return self.job(job_id)

    def copying(self, job_id: str) -> dict[str, Any]:
        """The job once the node has a job of its own for it, and is some way."""
        eventually(lambda: self.job(job_id)["done"] > 0, 60)
        return self.job(job_id)

    def disks(self) -> dict[str, str]:
        """The status of each disk in the ledger."""
        workers = read_files(self.service.root).workers
        return {
            name: disk.get("status", "there")
            for name, record in workers.items()
            for disk in record.get("disks") or []
        }

    def images(self) -> set[str]:
        """The images in the node's folder without the master, half ones and those put aside too."""
        names = {path.name for path in self.folder.rglob("*")} - {MASTER}
        return {name for name in names if ".img" in name or name.endswith(".part")}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with _site(tmp_path) as found:
        yield found


@contextlib.contextmanager
def _site(tmp_path: Path, **environ: str) -> Iterator[Site]:
    folder = tmp_path / "root" / "images"
    folder.mkdir(parents=True)
    (folder / MASTER).write_bytes(os.urandom(SIZE))
    root = tmp_path / "control" / "root"
    root.parent.mkdir()
    given = {"IPXE_SERVE_WORKERS": "2", **environ}
    with agent(tmp_path, None, slow=True) as node, room(root, **given) as service:
        url = f"http://127.0.0.1:{node.port}"
        body = {"id": "slow", "base_url": url, "token": TOKEN}
        assert service.ask("POST", "/agents", body).status == 201
        for at, name in enumerate(NAMES):
            mac = f"52:54:00:00:00:{at:02x}"
            made = service.ask("POST", "/workers", {"worker_id": name, "mac": mac})
            assert made.status == 201
        yield Site(service, node, folder)


@pytest.mark.case(65)
@pytest.mark.parametrize("kill", [True, False])
def test_a_copy_outlives_the_service_and_its_job_is_finished_by_the_next(
    site: Site, kill: bool
) -> None:
    started = time.monotonic()
    job = site.ask("POST", PATH, DISK, **ASYNC)
    assert time.monotonic() - started < 5
    job = site.copying(job["id"])
    assert (job["state"], job["unit"], job["total"]) == ("running", "bytes", SIZE)
    assert 0 < job["done"] < SIZE
    assert job["about"]["node_job"]
    if kill:
        site.service.kill()
    else:
        started = time.monotonic()
        site.service.process.terminate()
        assert site.service.process.wait(30) == 0
        # Not for the length of a copy.
        assert time.monotonic() - started < 15
    site.service.start()
    now = site.job(job["id"])
    assert now["state"] == "running"
    assert site.disks() == {"pc1": "creating"}
    # Who asks again, however often, gets the job that there is.
    assert site.ask("POST", PATH, DISK, **ASYNC)["id"] == job["id"]
    eventually(lambda: site.job(job["id"])["done"] > job["done"], 30)
    done = site.ended(job["id"])
    assert (done["state"], done["done"]) == ("done", SIZE), done
    assert done["result"] == site.ask("GET", "/workers/pc1")
    assert site.disks() == {"pc1": "there"}
    copy = site.folder / "pc1.debian.img"
    assert copy.read_bytes() == (site.folder / MASTER).read_bytes()
    assert len(site.node.call("GET", "/lun")[1]) == 1


@pytest.mark.case(65)
@pytest.mark.parametrize("restart", [False, True])
def test_a_copy_is_cancelled_and_nothing_is_left_of_it(
    site: Site, restart: bool
) -> None:
    job = site.copying(site.ask("POST", PATH, DISK, **ASYNC)["id"])
    if restart:
        site.service.kill()
        site.service.start()
    assert site.ask("DELETE", f"/jobs/{job['id']}")["cancelling"] is True
    job = site.ended(job["id"])
    assert (job["state"], job["cancelling"]) == ("cancelled", False), job
    eventually(lambda: not site.disks(), 20)
    assert site.images() == set()
    assert site.node.call("GET", "/lun") == (200, [])
    # The name is free again.
    again = site.ask("POST", PATH, DISK, **ASYNC)
    assert again["id"] != job["id"]
    site.copying(again["id"])


@pytest.mark.case(65)
def test_a_batch_outlives_the_service_and_is_told_item_by_item(site: Site) -> None:
    job = site.ask("POST", "/workers/luns/disk/batch", BATCH, **ASYNC)
    assert job["total"] == 3
    eventually(lambda: site.node.call("GET", "/capabilities")[1]["making"], 30)
    eventually(lambda: site.job(job["id"])["about"].get("begun"), 20)
    site.service.kill()
    site.service.start()
    now = site.job(job["id"])
    assert now["state"] == "running"
    again = site.ask("POST", "/workers/luns/disk/batch", BATCH, **ASYNC)
    assert again["id"] == job["id"]
    done = site.ended(job["id"])
    assert done["state"] == "done"
    # Two at a time are asked of a node: the third had been reserved only.
    made = {each["worker_id"] for each in done["result"]["succeeded"]}
    lost = {each["worker_id"] for each in done["result"]["failed"]}
    assert made | lost == set(NAMES)
    assert made
    assert site.disks() == dict.fromkeys(made, "there")
    assert site.images() == {f"{name}.debian.img" for name in made}
    workers = read_files(site.service.root).workers
    assert {n for n in NAMES if workers[n].get("default_os") == "debian"} == made
    # The same again does the rest.
    site.ask("POST", "/workers/luns/disk/batch", BATCH, **ASYNC)
    eventually(lambda: site.disks() == dict.fromkeys(NAMES, "there"), 90)


@pytest.mark.case(65)
def test_a_reset_outlives_the_service(site: Site) -> None:
    path = f"{PATH}/debian/reset"
    image = site.folder / "pc1.debian.img"
    image.write_bytes(b"used".ljust(1 << 20, b"\0"))
    kept = {"type": "existing", "os": "debian", "name": image.name}
    site.ask("POST", PATH, {**kept, "disk_agent": "slow"})
    job = site.copying(site.ask("POST", path, {"master": MASTER}, **ASYNC)["id"])
    site.service.kill()
    site.service.start()
    assert site.job(job["id"])["state"] == "running"
    done = site.ended(job["id"])
    assert done["state"] == "done", done
    assert done["result"] == site.ask("GET", "/workers/pc1")
    source = done["result"]["disks"][0]["source"]
    assert source == {"type": "master", "name": MASTER}
    assert image.read_bytes() == (site.folder / MASTER).read_bytes()


@pytest.mark.case(65)
def test_a_copy_whose_node_is_killed_fails_and_is_cleaned_up(
    site: Site, tmp_path: Path
) -> None:
    job = site.copying(site.ask("POST", PATH, DISK, **ASYNC)["id"])
    site.node.kill()
    time.sleep(1)
    assert site.job(job["id"])["state"] == "running"
    with agent(tmp_path, None, port=site.node.port):
        done = site.ended(job["id"])
        assert done["state"] == "failed", done
        assert "restarted" in str(done["error"]["detail"])
        assert site.disks() == {}
        assert site.images() == set()


def test_a_disk_that_is_left_over_is_settled_without_a_restart(
    tmp_path: Path,
) -> None:
    """Its caller waited, the node went away for good before the answer, and comes back without it."""
    with _site(tmp_path, IPXE_CP_AGENT_TIMEOUT="1") as site:
        root = site.service.root
        path = root / "state/workers.yml"
        text = path.read_text()
        entry = (
            "    disks:\n    - agent: slow\n"
            f"      iqn: {BASE}:pc1.debian\n      filename: pc1.debian.img\n"
            "      backing: ''\n      os: debian\n"
            "      source: {type: empty, size: 1048576}\n      status: creating\n"
        )
        head, mark, rest = text.partition("  pc1:\n")
        assert mark
        lines = rest.split("\n")
        kept = [line for line in lines if line.strip() != "disks: []"]
        block = "\n".join(kept).replace(
            "    hostname: pc1\n", f"    hostname: pc1\n{entry}", 1
        )
        path.write_text(head + mark + block)
        assert site.ask("GET", "/workers/pc1")["disks"][0]["status"] == "creating"
        eventually(lambda: "pc1" not in site.disks(), 30)
        line = read_files(root).operations[-1]
        assert (line["op"], line["status"], line["user"]) == (
            "worker.disk.create",
            "rollback",
            "system",
        )
