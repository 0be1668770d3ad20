"""A dnsmasq on given options, and firmware that asks it, in a network namespace of their own.

Run as a program (inside `unshare --net`) this is the far end: it sets up the link, starts dnsmasq and answers one JSON
line on stdout for each on stdin. When stdin ends, all of it ends; when we are killed, the kernel ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

needs_dnsmasq = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dnsmasq") or not shutil.which("unshare"),
    reason="needs root, dnsmasq and unshare",
)

INTERFACE = "s0"
SERVER = "192.0.2.1"
RANGE = "192.0.2.100,192.0.2.200,255.255.255.0,1h"
PREFIX6 = "fd77:7a17:b007::"
_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_CLIENT_ARCH, _USER_CLASS, _HOSTNAME, _ROUTER = 93, 77, 12, 3
_IPXE = 175


class Wire:
    """The near end: dnsmasq runs on `command` while this is open."""

    def __init__(
        self, command: list[str], log: Path, *, addressed: bool = True
    ) -> None:
        self._process = subprocess.Popen(
            [*_WITH_US, "unshare", "--net", sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        setup = {"command": command, "log": str(log), "addressed": addressed}
        assert self._ask(setup) == {"up": True}, log.read_text(errors="replace")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline() or "{}"))

    def boot(
        self, arch: int, *, ipxe: bool = False, hostname: str = ""
    ) -> dict[str, Any]:
        """What firmware of `arch` is offered: file, server, router, ipxe options; {} for no offer."""
        return self._ask({"arch": arch, "ipxe": ipxe, "hostname": hostname})

    def advertisement(self) -> dict[str, Any]:
        """The router advertisement that answers a solicitation; {} for none."""
        return self._ask({"solicit": True})


def _discover(arch: int, ipxe: bool, hostname: str, xid: int) -> bytes:
    def option(code: int, data: bytes) -> bytes:
        return bytes([code, len(data)]) + data

    vendor = f"PXEClient:Arch:{arch:05d}:UNDI:002001".encode()
    options = option(53, b"\x01") + option(60, vendor)
    options += option(55, bytes([1, _ROUTER, _HOSTNAME, 43, 60, 66, 67, _IPXE]))
    options += option(_CLIENT_ARCH, struct.pack("!H", arch))
    options += option(_USER_CLASS, b"iPXE") if ipxe else b""
    options += option(_HOSTNAME, hostname.encode()) if hostname else b""
    mac = bytes.fromhex("5254007a") + xid.to_bytes(2, "big")
    bootp = struct.pack(
        "!BBBBIHH16s16s192s4s",
        *(1, 1, 6, 0, xid, 0, 0x8000, b"", mac, b"", b"c\x82Sc"),
    )
    return bootp + options + b"\xff"


def _offer(packet: bytes) -> dict[str, Any]:
    options: dict[int, bytes] = {}
    at = 240
    while at < len(packet) and packet[at] != 255:
        if packet[at]:
            length = packet[at + 1]
            options[packet[at]] = packet[at + 2 : at + 2 + length]
            at += length + 1
        at += 1
    named = options.get(67, packet[108:236]).rstrip(b"\0").decode()
    return {
        "file": named,
        "server": socket.inet_ntoa(packet[20:24]),
        "router": socket.inet_ntoa(options[_ROUTER][:4])
        if _ROUTER in options
        else None,
        "hostname": options.get(_HOSTNAME, b"").decode(),
        "ipxe": options.get(_IPXE, b"").hex(),
    }


def _frame(body: bytes) -> bytes:
    """A broadcast from a machine without an address, as an Ethernet frame."""
    udp = struct.pack("!HHHH", 68, 67, 8 + len(body), 0) + body
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0),
        *(bytes(4), b"\xff" * 4),
    )
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~total & 0xFFFF) + ip[12:]
    return b"\xff" * 6 + bytes.fromhex("5254007affff") + b"\x08\x00" + ip + udp


def _ask_dhcp(question: dict[str, Any], xid: int) -> dict[str, Any]:
    body = _discover(question["arch"], question["ipxe"], question["hostname"], xid)
    # The server's address is local here too: an ordinary socket would send from it.
    ipv4 = socket.htons(0x0800)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, ipv4) as wire:
        wire.bind(("c0", 0x0800))
        wire.settimeout(6)  # without no-ping it looks first whether the address is free
        wire.send(_frame(body))
        with contextlib.suppress(TimeoutError):
            while True:
                frame = wire.recv(4096)
                to_client = frame[23] == socket.IPPROTO_UDP and frame[36:38] == b"\0D"
                if to_client and frame[46:50] == struct.pack("!I", xid):
                    return _offer(frame[42:])
    return {}


def _ask_advertisement() -> dict[str, Any]:
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"c0")
        wire.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        wire.settimeout(0.5)
        index = socket.if_nametoindex("c0")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            with contextlib.suppress(
                OSError
            ):  # no link-local address in the first moment
                wire.sendto(bytes([133, 0, 0, 0, 0, 0, 0, 0]), ("ff02::2", 0, 0, index))
            with contextlib.suppress(TimeoutError):
                packet = wire.recv(2048)
                if packet[0] == 134:
                    return {"lifetime": struct.unpack("!H", packet[6:8])[0]}
    return {}


def _set_up(addressed: bool) -> None:
    lines = [
        "link set lo up",
        f"link add {INTERFACE} type veth peer name c0",
        f"addr add {SERVER}/24 dev {INTERFACE}",
        f"link set {INTERFACE} up",
        "link set c0 up",
    ]
    if addressed:
        lines.insert(3, f"addr add {PREFIX6}1/64 dev {INTERFACE} nodad")
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True)


def main() -> None:
    """The far end."""
    setup = json.loads(sys.stdin.readline())
    _set_up(setup["addressed"])
    root = {"--user=root", "--group=root"} - set(setup["command"])
    with Path(setup["log"]).open("wb") as log:
        process = subprocess.Popen(
            [*_WITH_US, *setup["command"], *root],
            stdout=log,
            stderr=log,
            env={**os.environ, "LC_ALL": "C"},
        )
    try:
        end = time.monotonic() + 5
        while b"DHCP, IP range" not in Path(setup["log"]).read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                return
            time.sleep(0.01)
        sys.stdout.write('{"up": true}\n')
        sys.stdout.flush()
        for xid, line in enumerate(sys.stdin, 1):
            question = json.loads(line)
            if "solicit" in question:
                found = _ask_advertisement()
            else:
                found = _ask_dhcp(question, xid)
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()
    finally:
        process.terminate()
        process.wait(5)


if __name__ == "__main__":
    main()
