"""Whether this kernel has LIO: what is said where it has not, and that nothing is tried where it cannot work.

Additions to the guest's tests, which have a kernel with LIO: here the tree is a folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipxeready import lio


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for configfs with nothing in it, and no program that may be called."""
    target = tmp_path / "target"
    monkeypatch.setattr(lio, "TARGET", target)
    monkeypatch.setattr(lio, "ISCSI", target / "iscsi")
    monkeypatch.setattr(lio, "_ADAPTER", target / "core" / "fileio_1")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lio, "_run", lambda *words: pytest.fail(f"called {words}"))
    return target


def test_without_root_it_is_said_and_nothing_is_tried(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in (lio.problem() or "")


def test_a_kernel_without_target_and_modules_is_asked_for_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lio, "_loaded", lambda name: False)
    monkeypatch.setattr(lio.shutil, "which", lambda name: None)
    assert "no modules of it to load" in (lio.problem() or "")
    assert not tree.exists()


def test_a_target_that_is_there_needs_no_modprobe(tree: Path) -> None:
    (tree / "core").mkdir(parents=True)
    assert lio.problem() is None
    assert lio.problem() is None
    assert os.listdir(tree / "core") == []
    assert (tree / "iscsi").is_dir()


def test_a_module_that_cannot_be_loaded_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lio, "_loaded", lambda name: name != "target_core_mod")
    monkeypatch.setattr(lio.shutil, "which", lambda name: "/sbin/modprobe")
    monkeypatch.setattr(lio, "_modules", lambda: tmp_path)
    monkeypatch.setattr(lio, "_run", lambda *words: ": not found")
    assert (
        lio.problem() == "the kernel module target_core_mod cannot be loaded: not found"
    )
