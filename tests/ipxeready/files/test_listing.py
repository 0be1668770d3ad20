"""GET /files/...: the public directory as JSON."""

from __future__ import annotations

import os
from datetime import datetime

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout


@pytest.fixture(autouse=True)
def _tree(layout: Layout) -> None:
    boot = layout.public / "boot"
    (boot / "debian").mkdir(parents=True)
    (boot / "kernel").write_bytes(b"x" * 1000)
    os.utime(boot / "kernel", (1_700_000_000, 1_700_000_000))
    (boot / "latest").symlink_to("kernel")
    (boot / "out").symlink_to(layout.cp_token)
    (boot / "outside").symlink_to(layout.config)
    (boot / "dangling").symlink_to("nothing")
    (boot / ".hidden").touch()
    (boot / "机房").touch()
    os.mkfifo(boot / "pipe")
    (layout.public / os.fsdecode(b"latin-\xe9")).mkdir()
    (layout.public / os.fsdecode(b"latin-\xe9/\xff")).write_bytes(b"odd")


def test_a_folder(api: APIClient) -> None:
    answer = api.get("/files/boot")
    assert answer.status_code == 200
    body = answer.json()
    assert body["path"] == "/boot"
    assert [(each["name"], each["type"], each["size"]) for each in body["entries"]] == [
        ("debian", "directory", 0),
        ("kernel", "file", 1000),
        ("latest", "file", 1000),
        ("机房", "file", 0),
    ]
    mtime = datetime.fromisoformat(body["entries"][1]["mtime"])
    assert mtime.timestamp() == 1_700_000_000
    assert mtime.tzinfo is not None


@pytest.mark.parametrize("path", ["/files", "/files/", "/api/cp/files/"])
def test_the_top(api: APIClient, path: str) -> None:
    body = api.get(path).json()
    assert body["path"] == "/"
    assert [each["name"] for each in body["entries"]] == ["boot", "latin-\\xe9"]


def test_names_that_are_no_utf8_are_spelt_and_have_an_address(api: APIClient) -> None:
    boot, odd = api.get("/files/").json()["entries"]
    assert "address" not in boot
    assert odd["address"] == "/files/latin-%E9"
    inside = api.get(odd["address"], RAW_URI=odd["address"]).json()
    assert inside["path"] == "/latin-\\xe9"
    (file,) = inside["entries"]
    assert (file["name"], file["size"]) == ("\\xff", 3)
    assert file["address"] == "/file/latin-%E9/%FF"
    answer = api.get(file["address"], RAW_URI=file["address"])
    assert b"".join(answer.streaming_content) == b"odd"


def test_an_empty_folder(api: APIClient) -> None:
    body = api.get("/files/boot/debian/").json()
    assert body == {"path": "/boot/debian", "entries": []}


@pytest.mark.case(94)
@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "boot/kernel",
        "../config",
        "%2e%2e/config",
        "boot/../../config",
        "boot/outside",
        "boot/out",
        "boot/.hidden",
        "boot%00",
        "/etc",
        "boot//debian",
    ],
)
def test_what_is_no_folder_of_ours(api: APIClient, path: str) -> None:
    answer = api.get(f"/files/{path}")
    assert answer.status_code == 404
    assert list(answer.json()) == ["detail"]


def test_who_may_look(api: APIClient, stranger: APIClient) -> None:
    assert stranger.get("/files/boot").status_code == 401
    assert api.post("/files/boot", {}).status_code == 405
    assert api.get("/files/boot?all=true").status_code == 400
    page = api.get("/files/boot", HTTP_ACCEPT="text/html")
    assert page.status_code == 200
    assert page["Content-Type"].startswith("text/html")
