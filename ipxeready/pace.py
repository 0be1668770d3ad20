"""How long a thread waits for what a caller sends: one that stops half-way, such as a machine switched off, must not keep it."""

from __future__ import annotations

import errno
import time
from typing import Any, Final

from django.http import HttpRequest
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers import gthread

#: Seconds of waiting that the head of a request may cost, which comes in one piece, and those that its body may.
HEAD: Final = 3.0
BODY: Final = 10.0
#: Bytes that give it another second, up to that.
PACE: Final = 4096


class PacedUnreader(SocketUnreader):
    """What a connection sends. Only waiting counts: a body that we take slowly ourselves is nobody's fault."""

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self._most = self._left = HEAD
        self._until: float | None = None

    def begin(self, patience: float) -> None:
        """Another request, or its body."""
        self._most = self._left = patience
        self._until = None

    def hurry(self, seconds: float) -> None:
        """What is still to come of this request is not waited for any longer than that."""
        self._until = time.monotonic() + seconds

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next bytes; ConnectionResetError when they are too long in coming."""
        begin = time.monotonic()
        left = self._left
        if self._until is not None:
            left = min(left, self._until - begin)
        before = self.sock.gettimeout()
        if before is not None and before < left:  # gunicorn's own limit of a drain
            found: bytes = super().chunk(size_hint)
            return found
        if left <= 0:
            raise self._late()
        self.sock.settimeout(left)
        try:
            found = super().chunk(size_hint)
        except TimeoutError:
            raise self._late() from None
        finally:
            self.sock.settimeout(before)
        left = self._left - (time.monotonic() - begin)
        self._left = min(left + len(found) / PACE, self._most)
        return found

    @staticmethod
    def _late() -> ConnectionResetError:
        # As if the caller had gone, which is what it amounts to: gunicorn and Django know what to do then.
        return ConnectionResetError(errno.ECONNRESET, "the request stopped half-way")


class PacedWorker(gthread.ThreadWorker):
    """gunicorn's worker with threads, which alone would wait for ever for the rest of a request."""

    def handle(self, conn: Any) -> Any:
        """One request of a connection."""
        if not conn.initialized:
            # As its parent, which would wait once more: a connection on which nothing comes costs no thread.
            if not conn.wait_for_data(gthread.DEFAULT_WORKER_DATA_TIMEOUT):
                return gthread._DEFER
            conn.sock.setblocking(True)
            conn.init()
            conn.parser.unreader = PacedUnreader(conn.sock)
        conn.parser.unreader.begin(HEAD)
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        """The request, of which the head is there."""
        conn.parser.unreader.begin(BODY)
        return super().handle_request(req, conn)


def hurry(request: HttpRequest, seconds: float) -> None:
    """What is left of the body is read for its sender's sake only: not for longer than that."""
    reader = getattr(request.META.get("wsgi.input"), "reader", None)
    unreader = getattr(reader, "unreader", None)
    if isinstance(unreader, PacedUnreader):
        unreader.hurry(seconds)
