"""Counters that all processes share: one sparse file of fixed size, found by a keyed hash, so that nothing grows and nothing in it is readable."""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Counters; two keys that fall on one place push each other out, which a guesser cannot aim at without the key of the hash.
PLACES: Final = 65_536
#: Hash of the account, hash of the address, kind, count, time.
_RECORD: Final = struct.Struct("<6s6sB3xId")


@dataclass(frozen=True)
class Key:
    """What is counted: a kind, and whom it is about; empty texts are nobody in particular."""

    kind: int
    account: str = ""
    address: str = ""


@dataclass(frozen=True)
class Count:
    """How often, and when the last time was (seconds since 1970)."""

    number: int = 0
    last: float = 0.0


class Counters:
    """The file, opened for each use: it is for what happens now and then, such as a wrong password."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = hashlib.sha256(key).digest()
        self._memory: int | None = None

    @contextmanager
    def held(self) -> Iterator[Open]:
        """All counters for this caller alone."""
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield Open(fd, self._hash)
        finally:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except OSError:
            # A disk that takes no writes must keep nobody out: this process counts for itself.
            if self._memory is None:
                self._memory = os.memfd_create("counters", os.MFD_CLOEXEC)
            return os.dup(self._memory)

    def _hash(self, text: str, size: int) -> bytes:
        made = hashlib.blake2b(
            text.encode(errors="surrogatepass"), digest_size=size, key=self._key
        )
        return made.digest()


class Open:
    """The counters while they are held."""

    def __init__(self, fd: int, hashed: Callable[[str, int], bytes]) -> None:
        self._fd = fd
        self._hashed = hashed

    def get(self, key: Key) -> Count:
        """The counter of `key`; zero when nothing was counted, or others have pushed it out."""
        place, mark = self._place(key)
        found = os.pread(self._fd, _RECORD.size, place)
        if len(found) < _RECORD.size:
            return Count()
        *there, number, last = _RECORD.unpack(found)
        return Count(number, last) if tuple(there) == mark else Count()

    def put(self, key: Key, count: Count) -> None:
        """Set it; a full disk leaves it as it was."""
        place, mark = self._place(key)
        packed = _RECORD.pack(*mark, min(count.number, 2**32 - 1), count.last)
        try:
            os.pwrite(self._fd, packed, place)
        except OSError:
            return

    def clear(self, kinds: set[int], account: str = "", address: str = "") -> int:
        """Set to nothing those of `kinds` that are about this account and this address, where given; how many."""
        wanted = self._mark(account), self._mark(address)
        gone = 0
        size = os.fstat(self._fd).st_size
        content = os.pread(self._fd, size, 0)
        for at in range(0, size - size % _RECORD.size, _RECORD.size):
            who, where, kind, number, _last = _RECORD.unpack_from(content, at)
            if not number or kind not in kinds:
                continue
            if (account and who != wanted[0]) or (address and where != wanted[1]):
                continue
            os.pwrite(self._fd, bytes(_RECORD.size), at)
            gone += 1
        return gone

    def _place(self, key: Key) -> tuple[int, tuple[bytes, bytes, int]]:
        whole = self._hashed(f"{key.kind}\0{key.account}\0{key.address}", 4)
        at = int.from_bytes(whole, "little") % PLACES
        mark = (self._mark(key.account), self._mark(key.address), key.kind)
        return at * _RECORD.size, mark

    def _mark(self, text: str) -> bytes:
        return self._hashed(text, 6) if text else bytes(6)
