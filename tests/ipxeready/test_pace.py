"""What a thread waits for: a request that stops half-way, or drips, ends; one that comes slowly does not."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready import pace
from ipxeready.pace import PacedUnreader
from tests.served import Service

Pair = tuple[socket.socket, PacedUnreader]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The caller's end of a connection, and what reads the other."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield theirs, PacedUnreader(ours)


@contextlib.contextmanager
def dripping(sock: socket.socket, seconds: float) -> Iterator[None]:
    """One byte every so often, for the length of the block."""
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(seconds):
            with contextlib.suppress(OSError):
                sock.send(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_request_that_stops_half_way_ends(pair: Pair) -> None:
    sock, unreader = pair
    unreader.begin(0.2)
    sock.sendall(b"GET /boot-")
    assert unreader.chunk() == b"GET /boot-"
    begin = time.monotonic()
    with pytest.raises(ConnectionResetError):
        unreader.chunk()
    assert time.monotonic() - begin < 2


def test_one_that_drips_ends_although_something_comes_all_the_time(pair: Pair) -> None:
    sock, unreader = pair
    unreader.begin(0.3)
    with dripping(sock, 0.02), pytest.raises(ConnectionResetError):
        unreader.read(1 << 20)


def test_one_that_comes_slowly_and_steadily_is_read_to_its_end(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sock, unreader = pair
    monkeypatch.setattr(pace, "PACE", 10)  # 50 bytes a second come
    unreader.begin(0.5)
    with dripping(sock, 0.02):
        assert unreader.read(50) == b"x" * 50  # twice the patience


def test_what_has_come_buys_no_long_silence(pair: Pair) -> None:
    sock, unreader = pair
    unreader.begin(0.2)
    sock.sendall(b"x" * 100_000)
    unreader.read(100_000)
    begin = time.monotonic()
    with pytest.raises(ConnectionResetError):
        unreader.chunk()
    assert time.monotonic() - begin < 2


def test_our_own_slowness_is_nobodys_fault(pair: Pair) -> None:
    sock, unreader = pair
    unreader.begin(0.2)
    sock.sendall(b"one")
    assert unreader.chunk() == b"one"
    time.sleep(0.4)
    sock.sendall(b"two")
    assert unreader.chunk() == b"two"


def test_what_is_read_for_its_senders_sake_only_has_its_own_end(pair: Pair) -> None:
    _, unreader = pair
    unreader.begin(60)
    unreader.hurry(0.1)
    begin = time.monotonic()
    with pytest.raises(ConnectionResetError):
        unreader.chunk()
    assert time.monotonic() - begin < 2


def test_machines_that_were_switched_off_while_they_asked_keep_no_thread(
    tmp_path: Path,
) -> None:
    service = Service(tmp_path / "root", IPXE_SERVE_THREADS="1")
    service.start()
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                sock = stack.enter_context(
                    socket.create_connection(("127.0.0.1", service.port))
                )
                sock.sendall(b"GET /boot-vars?mac=52:54:00")
            # The one thread is theirs, for three seconds each.
            assert service.get("/boot-vars").status == 200
    finally:
        service.end()
