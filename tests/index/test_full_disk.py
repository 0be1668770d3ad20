"""Disks that refuse: everything is as before, the answer says what to do, and later it goes on."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready import index
from ipxeready.errors import Unavailable
from ipxeready.index import freshness
from ipxeready.index.verify import verify_index
from ipxeready.storage import intents
from ipxeready.storage.paths import Layout
from tests.index.helpers import ALICE, create, ledger, lines, mac
from workers.models import Worker


def everything(layout: Layout) -> dict[str, bytes]:
    """Content of each live file."""
    paths = (layout.workers_yml, layout.dhcp_hosts, layout.operations)
    return {path.name: path.read_bytes() for path in paths}


class Refusing:
    """Lets the calls of a write through until one of them, counted from 0, is refused."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, layout: Layout, at: int, code: int
    ) -> None:
        self.count = 0
        self.refused = False
        self.at, self.code = at, code
        self.root = str(layout.root)
        for name in ("write", "fsync", "ftruncate"):
            monkeypatch.setattr(os, name, self._wrapped(getattr(os, name)))
        monkeypatch.setattr(Path, "replace", self._wrapped(Path.replace))

    def _wrapped(self, real: Any) -> Any:
        def call(what: Any, *args: Any) -> Any:
            if self._ours(what):
                self.count += 1
                if self.count - 1 == self.at:
                    self.refused = True
                    raise OSError(self.code, os.strerror(self.code))
            return real(what, *args)

        return call

    def _ours(self, what: Any) -> bool:
        if isinstance(what, int):
            try:
                what = os.readlink(f"/proc/self/fd/{what}")
            except OSError:
                return False
        return str(what).startswith(self.root) and ".lock" not in str(what)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EBUSY])
def test_each_refused_call_leaves_everything_as_it_was(
    layout: Layout, code: int
) -> None:
    create(1)
    at = 0
    while True:
        before = everything(layout)
        with pytest.MonkeyPatch.context() as patch:
            disk = Refusing(patch, layout, at, code)
            try:
                create(2)
            except Unavailable as error:
                assert error.code == "state.unwritable"
                assert "nothing was changed" in error.message
                assert "Make room" in error.message
                done = False
            else:
                done = True
        if not disk.refused:
            break
        if done:
            # Refused after the point of no return: the write stands.
            assert "worker-02" in ledger(layout)
            with index.writing(actor=ALICE, op="t") as tx:
                tx.yaml("workers").remove("worker-02")
                tx.hosts.unbind_hostname("worker-02")
        else:
            assert everything(layout) == before
            assert not intents.pending(layout)
        assert at % 6 or verify_index() == []
        at += 1
    assert at > 8, "no call was refused"
    create(3)
    assert verify_index() == []
    assert list(layout.root.rglob("*.tmp")) == []


def test_when_taking_back_fails_too_the_next_one_finishes(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(1)

    def refuse(*args: Any) -> None:
        raise OSError(errno.EIO, "Input/output error", str(layout.dhcp_hosts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ipxeready.storage.atomic.write_in_place", refuse)
        with pytest.raises(Unavailable) as caught:
            create(2)
        assert caught.value.code == "state.unfinished"
        assert "the next request finishes" in caught.value.message
        # Readers go on meanwhile.
        index.ensure_fresh()
        assert Worker.objects.filter(pk="worker-01").exists()
        with pytest.raises(Unavailable, match="interrupted cannot be finished"):
            create(3)
    index.ensure_fresh(wait=True)
    assert set(ledger(layout)) == {"worker-01", "worker-02"}
    assert f"{mac(2)},worker-02" in layout.dhcp_hosts.read_text()
    assert len(lines(layout, "create_worker")) == 2
    assert verify_index() == []


@pytest.fixture
def small_disk(layout: Layout, tmp_path: Path) -> Iterator[Path]:
    """A real file system of one MiB below state/ and dnsmasq/."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting needs root")
    try:
        for folder in (layout.state, layout.dnsmasq):
            shutil.move(folder, disk / folder.name)
            folder.symlink_to(disk / folder.name)
        freshness.forget()
        index.ensure_fresh(wait=True)
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC


@pytest.mark.case(89)
def test_a_really_full_disk(small_disk: Path, layout: Layout, api: APIClient) -> None:
    layout.dhcp_hosts.write_text(
        "".join(f"{mac(n)},other-{n}\n" for n in range(10, 50))
    )
    create(1)
    inode = layout.dhcp_hosts.stat().st_ino
    fill(small_disk)
    before = everything(layout)
    answer = api.post("/workers", {"worker_id": "worker-02", "mac": mac(2)})
    assert answer.status_code == 503
    assert "No space left on device" in answer.json()["detail"]
    assert everything(layout) == before
    assert layout.dhcp_hosts.stat().st_ino == inode
    # Reading goes on, even of an edit that somebody squeezed in.
    assert api.get("/workers/worker-01").status_code == 200
    layout.workers_yml.write_bytes(before["workers.yml"].replace(b"x86_64", b"riscv1"))
    assert api.get("/workers/worker-01").json()["arch"] == "riscv1"
    (small_disk / "filler").unlink()
    assert (
        api.post("/workers", {"worker_id": "worker-02", "mac": mac(2)}).status_code
        == 201
    )
    assert set(ledger(layout)) == {"worker-01", "worker-02"}
    # What could not be written down is written now.
    assert lines(layout, "external.edit")[-1]["changed"] == ["worker-01"]
    assert list(layout.state.resolve().rglob("*.tmp")) == []
    assert verify_index() == []


def test_a_read_only_disk(small_disk: Path, layout: Layout, api: APIClient) -> None:
    create(1)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    before = everything(layout)
    answer = api.post("/workers", {"worker_id": "worker-02", "mac": mac(2)})
    assert answer.status_code == 503
    assert "Read-only file system" in answer.json()["detail"]
    assert api.get("/workers").status_code == 200
    freshness.forget()
    index.ensure_fresh()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert everything(layout) == before
    create(2)
    assert verify_index() == []


def test_an_index_that_cannot_be_written_is_told(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    create(1)
    layout.workers_yml.write_bytes(layout.workers_yml.read_bytes() + b"# edited\n")

    def full(*args: Any) -> None:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr("ipxeready.index.freshness._refresh_changed", full)
    monkeypatch.setattr("ipxeready.index.build.build", full)
    index.ensure_fresh()  # a reader is served what is there
    with pytest.raises(Unavailable, match="index .* cannot be written"):
        index.ensure_fresh(wait=True)
