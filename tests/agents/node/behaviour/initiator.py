"""Real initiators, libiscsi's: whether one may log in, what it sees, and a session that stays open."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agents.protocol.access import Chap
from tests.processes import WITH_US, eventually

#: How a target says no; anything else is a fault of the test.
_REFUSED = (
    "Target not found",
    "Authentication failure",
    "Authorization failure",
    "Target not found(515)",
)
PATIENCE = 30.0


@dataclass(frozen=True)
class Unit:
    """One LUN behind a portal of this machine."""

    port: int
    iqn: str
    lun: int

    def url(self, chap: Chap | None = None) -> str:
        """How libiscsi's tools want it."""
        who = f"{chap.username}%{chap.secret}@" if chap else ""
        return f"iscsi://{who}127.0.0.1:{self.port}/{self.iqn}/{self.lun}"

    def options(self, initiator: str, chap: Chap | None = None) -> str:
        """How QEMU wants it."""
        words = {
            "driver": "iscsi",
            "transport": "tcp",
            "portal": f"127.0.0.1:{self.port}",
            "target": self.iqn,
            "lun": str(self.lun),
            "initiator-name": initiator,
        }
        if chap:
            words |= {"user": chap.username, "password": chap.secret}
        return ",".join(f"{key}={value}" for key, value in words.items())


class Session:
    """A session that is open until it is closed."""

    def __init__(self, unit: Unit, initiator: str, chap: Chap | None = None) -> None:
        self.initiator = initiator
        self._process = subprocess.Popen(
            [
                *WITH_US,
                *("qemu-io", "--discard", "unmap"),
                *("--image-opts", unit.options(initiator, chap)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @property
    def running(self) -> bool:
        """Whether the initiator itself is still there."""
        return self._process.poll() is None

    def begins(self, command: str) -> None:
        """Have it do something over its session."""
        assert self._process.stdin
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()

    def does(self, command: str, answer: str) -> None:
        """Have it do something, and be answered so."""
        self.begins(command)
        assert self._process.stdout
        said = b""
        while answer.encode() not in said:
            more = self._process.stdout.readline()
            assert more, said
            assert b"failed" not in more, more
            said += more

    def reads(self) -> None:
        """Read: it is alive, not only listed."""
        self.does("read 0 4096", "read 4096/4096")

    def writes(self, byte: int, offset: int = 0) -> None:
        """Write 4 KiB of one byte, down to the disk."""
        self.does(f"write -f -P {byte} {offset} 4096", "wrote 4096/4096")

    def discards(self, offset: int, length: int) -> None:
        """Tell the target that space is free."""
        self.does(f"discard {offset} {length}", f"discard {length}/{length}")

    def cut(self) -> None:
        """Be gone without a word, as a machine whose power is cut."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Log out."""
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.write(b"quit\n")
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()


@contextlib.contextmanager
def session(
    unit: Unit,
    initiator: str,
    listed: Callable[[], object],
    chap: Chap | None = None,
) -> Iterator[Session]:
    """A session for the length of the block, from when the target lists it."""
    held = Session(unit, initiator, chap)
    try:
        eventually(listed, PATIENCE)
        yield held
    finally:
        held.close()


def may_log_in(unit: Unit, initiator: str, chap: Chap | None = None) -> bool:
    """Whether an initiator of that name, with that CHAP or none, gets at the LUN; refused is not broken."""
    done = _tool("iscsi-inq", "-i", initiator, unit.url(chap))
    refused = any(words in done.stderr for words in _REFUSED)
    assert refused is (done.returncode != 0), done.stderr
    return not refused


def serial(unit: Unit, initiator: str) -> str:
    """The unit's serial number."""
    said = _well("iscsi-inq", "-i", initiator, "-e", "1", "-c", "128", unit.url())
    found = re.search(r"Unit Serial Number:\[(.*)\]", said)
    assert found, said
    return found[1].strip()


@dataclass(frozen=True)
class Capacity:
    """What a unit says of its size."""

    size: int
    block: int
    thin: bool


def capacity(unit: Unit, initiator: str) -> Capacity:
    """Ask the unit."""
    said = _well("iscsi-readcapacity16", "-i", initiator, unit.url())
    numbers = {
        key: int(value) for key, value in re.findall(r"([A-Za-z _]+):(\d+)", said)
    }
    block = numbers["LOGICAL BLOCK LENGTH IN BYTES"]
    last = numbers["RETURNED LOGICAL BLOCK ADDRESS"]
    return Capacity((last + 1) * block, block, numbers["LBPME"] == 1)


def _well(*command: str) -> str:
    done = _tool(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _tool(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        env={**os.environ, "LC_ALL": "C"},
    )
