"""An image directory whose disk fails: a refusal in words at every place, nothing half, and the node goes on."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

import pytest

from agents.node import folder, images
from tests.agents.node.node_lab import SIZE, Lab

DISK = "worker-01.debian"
MASTER = "debian_tpl_v1.img"


def _eio(*_: object, **__: object) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_directory_that_cannot_be_read_is_told_and_stops_no_start(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.disk(DISK, size=SIZE)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "names_in", _eio)
        assert files.restart().unbuilt
        for answer in (
            files.client.get("/images"),
            files.client.post("/lun/scan"),
            files.disk("worker-02.debian", size=SIZE),
        ):
            assert answer.status_code == 503
            assert "Input/output error" in answer.json()["detail"]
        health = files.client.get("/health").json()
        assert any("Input/output error" in words for words in health["problems"])
    assert files.disk("worker-02.debian", size=SIZE).status_code == 201
    assert len(files.targets()) == 2


@pytest.mark.parametrize("body", [{"size": SIZE}, {"master": MASTER}])
def test_an_image_whose_name_is_not_durable_is_not_there(
    files: Lab, monkeypatch: pytest.MonkeyPatch, body: dict[str, object]
) -> None:
    files.image(MASTER)
    before, real = files.files(), os.fsync

    def failing(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode) and (files.folder / f"{DISK}.img").exists():  # fmt: skip
            _eio()
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(images.os, "fsync", failing)
        answer = files.disk(DISK, **body)
    assert answer.status_code == 503, answer.content
    assert "Input/output error" in answer.json()["detail"]
    assert files.files() == before
    assert files.targets() == {}
    assert files.disk(DISK, **body).status_code == 201


def test_a_name_that_no_file_can_have_is_refused(files: Lab) -> None:
    assert files.client.delete(f"/images?name={'x' * 300}").status_code == 400
    assert files.client.delete(f"/images?name={'%E6%9C%BA' * 100}").status_code == 400
    assert files.client.delete(f"/images?name={'x' * 255}").status_code == 404
