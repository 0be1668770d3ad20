"""The guest's end of the wire to the test: runs the programs that it is told to, and says what they say and how they end.

One JSON object a line on the first virtio serial port. From the test: `{id, command, env, cwd, input}` starts a program,
`{id, signal, group}` sends it a signal. To the test: `{ready}` once, then `{id, out|err}` as it is said, `{id, status}` at its end.
"""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

_PORTS = Path("/dev")
#: What a program is told of the surroundings, whoever started the guest.
_SURROUNDINGS = ("PATH", "HOME", "LANG")


class Wire:
    """Lines to and from the test."""

    def __init__(self) -> None:
        (port,) = _PORTS.glob("vport*p1")
        self._stream = port.open("r+b", buffering=0)
        self._one_at_a_time = threading.Lock()

    def say(self, **message: Any) -> None:
        """Send one message; whole, whatever others say at the same time."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        with self._one_at_a_time:
            while data:
                data = data[self._stream.write(data) :]

    def messages(self) -> Any:
        """What the test says, until it is gone."""
        rest = b""
        while data := self._stream.read(65536):
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)


class Job:
    """One program."""

    def __init__(self, wire: Wire, message: dict[str, Any]) -> None:
        self._wire = wire
        self._id = message["id"]
        self._process = subprocess.Popen(
            message["command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: os.environ[name] for name in _SURROUNDINGS} | message["env"],
            cwd=message["cwd"],
            start_new_session=True,
        )
        threading.Thread(target=self._see_through, args=(message["input"],)).start()

    def signal(self, number: int, *, group: bool) -> None:
        """To the program, or to all that it has started, too."""
        if self._process.poll() is None:
            (os.killpg if group else os.kill)(self._process.pid, number)

    def _see_through(self, typed: str) -> None:
        streams = {"out": self._process.stdout, "err": self._process.stderr}
        readers = [
            threading.Thread(target=self._pass_on, args=item)
            for item in streams.items()
        ]
        for reader in readers:
            reader.start()
        try:
            self._process.stdin.write(typed.encode())
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it ended without a look at it
        status = self._process.wait()
        # What it left behind may hold its output open for ever.
        for reader in readers:
            reader.join(2)
        self._wire.say(id=self._id, status=status)

    def _pass_on(self, name: str, stream: IO[bytes]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := os.read(stream.fileno(), 65536):
            if text := decoder.decode(data):
                self._wire.say(id=self._id, **{name: text})


def main() -> int:
    """Serve until the test hangs up, which ends the guest."""
    wire = Wire()
    jobs: dict[int, Job] = {}
    wire.say(ready=float(Path("/proc/uptime").read_text().split()[0]))
    for message in wire.messages():
        if "signal" in message:
            job = jobs[message["id"]]
            job.signal(message["signal"], group=message["group"])
            continue
        try:
            jobs[message["id"]] = Job(wire, message)
        except OSError as error:
            wire.say(id=message["id"], err=f"{error}\n")
            wire.say(id=message["id"], status=127)
    return 0


if __name__ == "__main__":
    sys.exit(main())
