"""A service in a process group of its own, and many callers at once."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from ipxeready.conf import REPOSITORY
from tests.processes import WITH_US
from tests.served import Service

TOKEN = "token-of-the-acceptance"


class Answer(NamedTuple):
    """What came back; status 0 when nothing did."""

    status: int
    body: Any


class Room(Service):
    """`manage.py serve` with its whole family in one process group, so that a kill gets all of it."""

    def __init__(self, root: Path, **environ: str) -> None:
        super().__init__(root, IPXE_CP_TOKEN=TOKEN, **environ)
        self.log = root.parent / "serve.log"

    def popen(self) -> subprocess.Popen[Any]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*WITH_US, sys.executable, "manage.py", "serve"],
                cwd=REPOSITORY,
                env=self.environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start(self) -> None:
        self.process = self.popen()
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get("/healthz").status == 200:
                    return
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.03)

    def kill(self) -> None:
        """SIGKILL to every process of the service at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        end = time.monotonic() + 10
        while _alive(self.process.pid):
            assert time.monotonic() < end
            time.sleep(0.005)

    def end(self) -> None:
        if self.process is not None:
            self.kill()

    def ask(self, method: str, path: str, body: Any = None, **more: str) -> Answer:
        """One request with the token (and more headers); firmware's answers as text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            **more,
        }
        data = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            raw = answer.read()
            if answer.getheader("Content-Type", "").startswith("application/json"):
                return Answer(answer.status, json.loads(raw))
            return Answer(answer.status, raw.decode())
        except (OSError, http.client.HTTPException, ValueError):
            return Answer(0, None)
        finally:
            connection.close()

    def boot(self, mac: str) -> Answer:
        """What a machine asks."""
        return self.ask("GET", f"/boot-vars?mac={quote(mac)}")


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def room(root: Path, **environ: str) -> Iterator[Room]:
    """A service for the length of a block."""
    service = Room(root, **environ)
    try:
        service.start()
        yield service
    finally:
        service.end()


class Files(NamedTuple):
    """What the files say, past the product."""

    workers: dict[str, Any]
    #: hostname by MAC
    bound: dict[str, str]
    operations: list[dict[str, Any]]


def read_files(root: Path) -> Files:
    """Parse every file; a duplicate or a torn line fails."""
    workers = yaml.safe_load((root / "state/workers.yml").read_bytes())["workers"]
    json.loads((root / "state/settings.json").read_bytes())
    lines = [
        line.split(",")
        for line in (root / "dnsmasq/dhcp-hosts.conf").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert all(len(line) == 2 for line in lines), lines
    for column in (0, 1):
        twice = [k for k, n in Counter(line[column] for line in lines).items() if n > 1]
        assert not twice, twice
    text = (root / "state/operations.jsonl").read_text()
    assert not text or text.endswith("\n")
    operations = [json.loads(line) for line in text.splitlines()]
    ids = [line["id"] for line in operations]
    assert ids == sorted(set(ids))
    return Files(workers or {}, dict(map(tuple, lines)), operations)  # type: ignore[arg-type]
