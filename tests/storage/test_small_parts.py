"""Settings, marks of slow work and files put on disk: the small parts of the storage layer."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipxeready.errors import Unavailable
from ipxeready.storage import atomic, inflight, jsonl
from ipxeready.storage.broken import FileBroken
from ipxeready.storage.fingerprint import fingerprint
from ipxeready.storage.jsonrecords import JsonText


def test_settings_keep_order_unknown_keys_and_text() -> None:
    text = JsonText(b'{"zeta": "\xe6\x9c\xba", "auto_register": true, "alpha": [1.5]}')
    text.put("auto_register", True)
    assert text.render().startswith(b'{"zeta"')  # nothing changed: not a byte
    text.put("auto_register", 1)
    assert (
        text.render()
        == '{\n  "zeta": "机",\n  "auto_register": 1,\n  "alpha": [\n    1.5\n  ]\n}\n'.encode()
    )
    assert not text.remove("beta")
    assert text.remove("zeta")
    assert text.value("zeta") is None


def test_an_absent_key_that_is_removed_changes_nothing() -> None:
    text = JsonText(b'{"a":1}')
    assert not text.remove("b")
    assert text.render() == b'{"a":1}'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,}', "line 1"),
        (b"[1]", "one JSON object"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"a": ' + b"[" * 9000 + b"]" * 9000 + b"}", "recursion"),
        (b'{"a": "\xff"}', "0xff is not UTF-8"),
    ],
)
def test_settings_that_are_no_settings_are_broken(content: bytes, words: str) -> None:
    with pytest.raises(FileBroken) as caught:
        JsonText(content)
    assert words in caught.value.where()


def test_settings_with_a_mark_or_nothing_are_read() -> None:
    assert JsonText(b"\xef\xbb\xbf{}").entries() == {}
    assert JsonText(b" \n").entries() == {}


def test_slow_work_is_marked_once(tmp_path: Path) -> None:
    with inflight.claim(tmp_path / "run", "worker-01") as first:
        assert first
        with inflight.claim(tmp_path / "run", "worker-01") as second:
            assert not second
        with inflight.claim(tmp_path / "run", "worker-02") as other:
            assert other
    with inflight.claim(tmp_path / "run", "worker-01") as again:
        assert again
    assert list((tmp_path / "run").iterdir()) == []


def test_the_mark_dies_with_its_process(tmp_path: Path) -> None:
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        with inflight.claim(tmp_path, "w"):
            os.write(done, b"x")
            os._exit(0)
    os.read(ready, 1)
    os.waitpid(pid, 0)
    assert (tmp_path / "w.busy").exists()
    with inflight.claim(tmp_path, "w") as mine:
        assert mine


@pytest.mark.case(92)
def test_a_replaced_file_keeps_mode_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    atomic.write_replace(path, b"one", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    (tmp_path / f".a.yml.{os.getpid()}.tmp").write_bytes(b"left by a crash")
    atomic.write_replace(path, b"two", 0o600)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["a.yml"]


@pytest.mark.case(89)
def test_writing_in_place_is_never_short_of_a_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"old " * 100)
    inode = path.stat().st_ino
    sizes: list[int] = []
    real = os.write

    def one_byte(fd: int, content: memoryview) -> int:
        sizes.append(os.fstat(fd).st_size)
        return real(fd, content[:1])

    monkeypatch.setattr(os, "write", one_byte)
    atomic.write_in_place(path, b"new", 0o644)
    assert path.read_bytes() == b"new"
    assert path.stat().st_ino == inode
    assert set(sizes) == {400}  # cut to length last, never first


def test_a_fingerprint_tells_a_replacement_of_equal_size(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1")
    before = fingerprint(path)
    other.write_bytes(b"2")
    os.utime(other, ns=(0, before.mtime_ns if before else 0))
    other.replace(path)
    assert fingerprint(path) != before
    assert fingerprint(tmp_path / "none") is None
    assert fingerprint(path / "below a file") is None
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert fingerprint(loop) is None


def test_a_line_that_finds_no_room_leaves_the_trail_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "o.jsonl"
    jsonl.append(path, jsonl.encode({"id": 1}))
    before = path.read_bytes()
    real = os.write

    def half(fd: int, content: bytes) -> int:
        if len(content) < 10:
            raise OSError(28, "No space left on device")
        return real(fd, content[:10])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        jsonl.append(path, jsonl.encode({"id": 2, "op": "x"}))
    assert path.read_bytes() == before


def test_a_line_holds_any_text() -> None:
    line = jsonl.encode({"id": 1, "name": "机\udcff\n\u2028"})
    assert line.count(b"\n") == 1
    assert jsonl.parse(line, 1, 1).data is not None


def test_a_mark_that_cannot_be_made_or_removed_is_not_held_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", _failing(errno.ENOSPC))
        with (
            pytest.raises(Unavailable, match="No space left"),
            inflight.claim(tmp_path, "a"),
        ):
            raise AssertionError("the block began")
    with monkeypatch.context() as patch, inflight.claim(tmp_path, "a") as mine:
        assert mine
        patch.setattr(Path, "unlink", _failing(errno.EROFS))
    with inflight.claim(tmp_path, "a") as mine:
        assert mine


def _failing(number: int) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return call
