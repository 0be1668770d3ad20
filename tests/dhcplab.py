"""A real dnsmasq and DHCP clients in a network namespace of their own; it goes when its process goes.

As a program (inside `unshare --net`) this is the far end: it sets up the link, runs dnsmasq and answers
one JSON line on stdout for each on stdin. When stdin ends, all of it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

needs_dnsmasq = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dnsmasq") or not shutil.which("unshare"),
    reason="needs root, dnsmasq and unshare",
)


class Offer(NamedTuple):
    """An answer to a DISCOVER."""

    ip: str
    hostname: str | None


class Lab:
    """The near end. `hosts` is the file that dnsmasq reads; `seen` where it sees it, if elsewhere."""

    def __init__(self, folder: Path, content: bytes, seen: Path | None = None) -> None:
        self.hosts = folder / "dhcp-hosts.conf"
        self.hosts.write_bytes(content)
        self.pidfile = folder / "dnsmasq.pid"
        self.log = folder / "dnsmasq.log"
        setup = {
            "hosts": str(seen or self.hosts),
            "bind": str(self.hosts) if seen else None,
            "pidfile": str(self.pidfile),
            "log": str(self.log),
            "leases": str(folder / "dnsmasq.leases"),
        }
        self._process = subprocess.Popen(
            ["unshare", "--net", "--mount", sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid: int = self._ask(setup)["pid"]

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def discover(self, *macs: str, wait: float = 1.0) -> dict[str, Offer | None]:
        """What each of `macs` is offered; None for no offer."""
        answer = self._ask({"discover": macs, "wait": wait})
        return {mac: Offer(*answer[mac]) if mac in answer else None for mac in macs}

    def reads(self) -> int:
        """How often dnsmasq has read its hosts file."""
        return self.log.read_text(errors="replace").count(": read ")

    def serve(self, content: bytes) -> None:
        """Write the file in place and make dnsmasq read it, by a plain signal."""
        before = self.reads()
        self.hosts.write_bytes(content)
        os.kill(self.pid, signal.SIGHUP)
        self.wait_read(before + 1)

    def wait_read(self, count: int, limit: float = 3.0) -> None:
        """Wait until dnsmasq has read its file `count` times."""
        end = time.monotonic() + limit
        while self.reads() < count:
            assert time.monotonic() < end, self.log.read_text(errors="replace")
            time.sleep(0.005)


def _dnsmasq(setup: dict[str, str]) -> subprocess.Popen[bytes]:
    if setup["bind"]:
        Path(setup["hosts"]).touch()
        subprocess.run(["mount", "--bind", setup["bind"], setup["hosts"]], check=True)
    for words in (
        "link set lo up",
        "link add s0 type veth peer name c0",
        "addr add 10.77.0.1/16 dev s0",
        "link set s0 up",
        "link set c0 up",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    with open(setup["log"], "wb") as log:
        process = subprocess.Popen(
            [
                "dnsmasq",
                "--keep-in-foreground",
                "--user=root",
                "--group=root",
                "--port=0",
                "--conf-file=/dev/null",
                "--no-ping",
                "--interface=s0",
                "--dhcp-range=10.77.0.10,10.77.255.250,255.255.0.0,1h",
                "--dhcp-lease-max=5000",
                "--log-facility=-",
                f"--dhcp-hostsfile={setup['hosts']}",
                f"--dhcp-leasefile={setup['leases']}",
                f"--pid-file={setup['pidfile']}",
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    end = time.monotonic() + 5
    while b": read " not in Path(setup["log"]).read_bytes():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(Path(setup["log"]).read_text(errors="replace"))
        time.sleep(0.01)
    return process


def _request(mac: bytes, xid: int) -> bytes:
    options = b"\x35\x01\x01" + b"\x37\x04\x01\x03\x0c\x0f" + b"\xff"
    bootp = struct.pack(
        "!BBBBIHH4s4s4s4s16s192s4s",
        *(1, 1, 6, 0, xid, 0, 0x8000, b"", b"", b"", b"", mac, b"", b"c\x82Sc"),
    )
    body = (bootp + options).ljust(300, b"\0")
    udp = struct.pack("!HHHH", 68, 67, 8 + len(body), 0) + body
    head = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(4), b"\xff" * 4),
    )
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:]
    # The frame comes from one card for all; dnsmasq goes by the address inside.
    return b"\xff" * 6 + bytes.fromhex("525400fffffe") + b"\x08\x00" + head + udp


def _answer(frame: bytes) -> tuple[int, list[str | None]] | None:
    if frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[34:36] != b"\x00\x43":
        return None
    bootp = frame[42:]
    xid = struct.unpack("!I", bootp[4:8])[0]
    ip = socket.inet_ntoa(bootp[16:20])
    at, name = 240, None
    while at < len(bootp) and bootp[at] != 255:
        if bootp[at]:
            length = bootp[at + 1]
            if bootp[at] == 12:
                name = bootp[at + 2 : at + 2 + length].decode()
            at += length + 1
        at += 1
    return xid, [ip, name]


def _discover(wire: socket.socket, macs: list[str], wait: float) -> dict[str, Any]:
    offers: dict[str, Any] = {}
    for start in range(0, len(macs), 50):
        some = macs[start : start + 50]
        for xid, mac in enumerate(some, start + 1):
            wire.send(_request(bytes.fromhex(mac.replace(":", "")), xid))
        end = time.monotonic() + wait
        missing = set(some)
        while missing and (left := end - time.monotonic()) > 0:
            wire.settimeout(left)
            try:
                answer = _answer(wire.recv(4096))
            except TimeoutError:
                break
            if answer and start < answer[0] <= start + len(some):
                mac = macs[answer[0] - 1]
                offers[mac] = answer[1]
                missing.discard(mac)
    return offers


def main() -> None:
    """The far end."""
    process = _dnsmasq(json.loads(sys.stdin.readline()))
    try:
        sys.stdout.write(json.dumps({"pid": process.pid}) + "\n")
        sys.stdout.flush()
        with socket.socket(
            socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)
        ) as wire:
            wire.bind(("c0", 0x0800))
            for line in sys.stdin:
                asked = json.loads(line)
                found = _discover(wire, asked["discover"], asked["wait"])
                sys.stdout.write(json.dumps(found) + "\n")
                sys.stdout.flush()
    finally:
        process.terminate()
        process.wait(5)


if __name__ == "__main__":
    main()
