"""A small HTTP load: several processes, keep-alive connections each, one request in flight on each connection."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

#: Seconds after which a load ends, whatever has not been answered.
LIMIT = 30.0


@dataclass
class Result:
    """What came back. `seconds` from the first request to the last answer."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    #: The first answer that was not as it should be, if any.
    wrong: str = ""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times) / self.seconds if self.seconds else 0.0

    def percentile(self, part: float) -> float:
        """Milliseconds within which this part of the answers came."""
        ordered = sorted(self.times)
        if not ordered:
            return float("nan")
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


def request(path: str) -> bytes:
    """The bytes of one GET, as plain as firmware's."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def run(
    port: int,
    paths: Sequence[str],
    *,
    number: int,
    processes: int = 2,
    connections: int = 4,
    holds: bytes = b"",
) -> Result:
    """`number` GETs in all, taking `paths` in turn; each answer must be 200 and hold `holds`."""
    runners = []
    context = multiprocessing.get_context("fork")
    for at in range(processes):
        mine, theirs = context.Pipe()
        share = [request(path) for path in paths[at::processes] or paths]
        many = number // processes + (at < number % processes)
        process = context.Process(
            target=_runner,
            args=(theirs, port, share, many, min(connections, many), holds),
            daemon=True,
        )
        process.start()
        runners.append((process, mine))
    total = Result()
    begun: list[float] = []
    ended: list[float] = []
    for process, pipe in runners:
        begin, end, times, wrong = pipe.recv()
        process.join()
        begun.append(begin)
        ended.append(end)
        total.times += times
        total.wrong = total.wrong or wrong
    total.seconds = max(ended) - min(begun)
    return total


def _runner(
    pipe: Connection,
    port: int,
    requests: list[bytes],
    number: int,
    connections: int,
    holds: bytes,
) -> None:
    chooser = selectors.EpollSelector()
    times: list[float] = []
    wrong = ""
    sent = 0
    begin = time.perf_counter()
    for _ in range(connections):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chooser.register(sock, selectors.EVENT_READ, [time.perf_counter(), b""])
        sock.sendall(requests[sent % len(requests)])
        sent += 1
    while len(times) < number and not wrong and time.perf_counter() - begin < LIMIT:
        for key, _ in chooser.select(1.0):
            sock, state = key.fileobj, key.data
            assert isinstance(sock, socket.socket)
            data = sock.recv(65536)
            text = state[1] + data
            if data and not _whole(text):
                state[1] = text
                continue
            now = time.perf_counter()
            if not text.startswith(b"HTTP/1.1 200 ") or holds not in text:
                wrong = text[:300].decode("latin-1") or "the connection was closed"
                break
            times.append(now - state[0])
            if sent < number:
                state[0], state[1] = now, b""
                sock.sendall(requests[sent % len(requests)])
                sent += 1
    end = time.perf_counter()
    for key in list(chooser.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    pipe.send((begin, end, times, wrong))


def _whole(text: bytes) -> bool:
    """Whether the answer is complete."""
    head, gap, body = text.partition(b"\r\n\r\n")
    if not gap:
        return False
    at = head.lower().find(b"content-length:")
    if at < 0:
        return text.endswith(b"0\r\n\r\n")
    return len(body) >= int(head[at + 15 :].split(b"\r\n", 1)[0])
