"""The one lock of the state folder: flock between processes, a re-entrant lock between threads, a time limit that names the holder."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ipxeready.errors import Unavailable
from ipxeready.said import said


class StateLock:
    """Excludes every other writer on this host; the file itself is never unlinked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._fd: int | None = None

    def holder(self) -> str:
        """What the present or last holder wrote about itself."""
        try:
            return self.path.read_text(errors="replace").strip() or "unknown"
        except OSError:
            return "unknown"

    @property
    def mine(self) -> bool:
        """Whether the calling thread holds it."""
        if not self._threads.acquire(blocking=False):
            return False
        try:
            return self._depth > 0
        finally:
            self._threads.release()

    def acquire(self, what: str, timeout: float) -> bool:
        """Take the lock within `timeout` seconds (0: only if free); False when that fails."""
        end = time.monotonic() + timeout
        got = (
            self._threads.acquire(timeout=timeout)
            if timeout > 0
            else self._threads.acquire(blocking=False)
        )
        if not got:
            return False
        if self._depth:
            self._depth += 1
            return True
        try:
            fd = self._flock(end)
        except BaseException:
            self._threads.release()
            raise
        if fd is None:
            self._threads.release()
            return False
        self._fd = fd
        self._depth = 1
        note = f"{what}, pid {os.getpid()}, since {time.strftime('%H:%M:%S')}\n"
        # A full or read-only disk must not keep anybody from the lock.
        with suppress(OSError):
            os.pwrite(fd, note.encode(), 0)
            os.ftruncate(fd, len(note.encode()))
        return True

    def _flock(self, end: float) -> int | None:
        # A descriptor of its own each time: flock belongs to the open file,
        # and one that was inherited by a child must not be shared with it.
        fd = self._open()
        pause = 0.0005
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= end:
                        os.close(fd)
                        return None
                    time.sleep(pause)
                    pause = min(pause * 2, 0.01)
                    continue
                if self._is_the_file(fd):
                    return fd
                # Somebody removed the name: those who come now lock another file.
                fd, old = self._open(), fd
                os.close(old)
        except BaseException:
            os.close(fd)
            raise

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            # A read-only disk still lets readers take turns.
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)

    def _is_the_file(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Give back one level."""
        self._depth -= 1
        if self._depth == 0 and self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self._threads.release()

    @contextmanager
    def held(self, what: str, timeout: float = 10.0) -> Iterator[None]:
        """Hold the lock; Unavailable names the holder when `timeout` seconds were not enough."""
        try:
            got = self.acquire(what, timeout)
        except OSError as error:
            raise Unavailable(
                said(
                    "the lock {path} cannot be taken: {error}. Nothing was changed; make the "
                    "folder writable or make room, then try again.",
                    path=self.path,
                    error=error.strerror or error,
                ),
                code="state.unwritable",
            ) from error
        if not got:
            raise Unavailable(
                said(
                    "the state folder is busy: held by {holder}. Nothing was changed; try again "
                    "in a moment.",
                    holder=self.holder(),
                ),
                code="state.busy",
            )
        try:
            yield
        finally:
            self.release()


_locks: dict[Path, StateLock] = {}
_guard = threading.Lock()


def state_lock(path: Path) -> StateLock:
    """The one StateLock object of this process for that lock file."""
    with _guard:
        return _locks.setdefault(path, StateLock(path))
