"""A node's images in the browser: files are brought in pieces and go on after a stop, are converted and deleted, as people do it.

Texts are looked for by what they are (fields, addresses, checksums), so that both languages are tried alike.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Dialog, Page, Request, expect

from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product
from tests.nodes import MIB, RealNode, node
from tests.processes import eventually

__all__ = ["node"]
LIST = "/admin/agents/agent/"
#: Both languages, and the forms with and without scripts.
WAYS = [("en", True), ("zh", True), ("en", False), ("zh", False)]
#: The script sends so much at once.
PIECE = 8 * MIB
#: For what a node or a browser under load does.
LONG = 60_000


@dataclass
class Place:
    """A node of this room for one test, and the page of its images."""

    id: str
    node: RealNode
    room: Product

    @property
    def page(self) -> str:
        """Where its images are."""
        return f"{LIST}{self.id}/images/"

    def uploads(self, name: str) -> list[dict[str, Any]]:
        """The unfinished uploads of that name."""
        found = self.room.call("GET", f"/agents/{self.id}/uploads")["uploads"]
        return [each for each in found if each["name"] == name]


@pytest.fixture
def place(room: Product, node: RealNode) -> Iterator[Place]:
    """The node in the room, and afterwards as it was."""
    found = Place(node.name("images"), node, room)
    body = {"id": found.id, "base_url": node.base_url, "token": node.token}
    room.call("POST", "/agents", body)
    before = set(node.folder.glob("[!.]*"))  # what is hidden is the node's own
    yield found
    path = f"/agents/{found.id}/uploads"
    for upload in room.call("GET", path)["uploads"]:
        room.call("DELETE", f"{path}/{upload['id']}")
    for file in set(node.folder.glob("[!.]*")) - before:
        with contextlib.suppress(OSError):
            file.unlink()
    room.call("DELETE", f"/agents/{found.id}")


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str, int], Path]:
    """Makes files of random content; those of one name lie in folders of their own."""

    def make(name: str, size: int) -> Path:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        path = folder / name
        path.write_bytes(os.urandom(size))
        return path

    return make


def _open(page: Page, place: Place) -> None:
    """The page, once the node has answered in its time: a busy machine may need a second try."""

    def opened() -> bool:
        page.goto(place.page)
        return page.locator("#upload").count() == 1

    eventually(opened, 60)


def _send(page: Page, file: Path) -> None:
    page.set_input_files("#id_upload-file", file)
    page.locator("#upload [type=submit]").click()


def _there(page: Page, place: Place, file: Path) -> None:
    """The page tells the checksum, and the node has that very file."""
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    expect(page.locator("body")).to_contain_text(digest, timeout=LONG)
    expect(page.locator("#files")).to_contain_text(file.name)
    assert (place.node.folder / file.name).read_bytes() == content
    assert place.uploads(file.name) == []


def _stopped(page: Page, place: Place, file: Path) -> None:
    """Send a file of which only the first piece comes, and press Stop."""
    page.allowed = ["ERR_FAILED"]
    _open(page, place)
    button = page.locator("#upload [type=submit]")
    label = button.input_value()
    second = f"**/uploads/*?offset={PIECE}"
    page.route(second, lambda route: route.abort())
    with page.expect_event("requestfailed", timeout=LONG):
        _send(page, file)
    button.click()
    expect(button).to_have_value(label, timeout=LONG)
    page.unroute(second)
    (upload,) = place.uploads(file.name)
    assert upload["offset"] == PIECE
    _open(page, place)


def _offsets(page: Page) -> list[int]:
    """Where the pieces begin that this page sends from now on."""
    found: list[int] = []

    def hear(request: Request) -> None:
        if request.method == "PATCH":
            found.append(int(parse_qs(urlsplit(request.url).query)["offset"][0]))

    page.on("request", hear)
    return found


@pytest.mark.parametrize(("lang", "js"), WAYS)
def test_a_file_is_uploaded_and_deleted(
    page_as: PageAs,
    place: Place,
    files: Callable[[str, int], Path],
    lang: str,
    js: bool,
) -> None:
    file = files(f"{place.node.name()}.iso", MIB + 3)
    page = page_as("operator", lang, js=js)
    _open(page, place)
    _send(page, file)
    _there(page, place, file)
    if js:  # axe is a script itself
        assert_accessible(page)
    assert_fits(page)
    row = page.locator("#files tbody tr", has_text=file.name)
    row.locator("a.danger").click()
    expect(page.locator("ul.goes")).to_contain_text(file.name)
    page.locator("#content-main form button.button[type=submit]").click()
    page.wait_for_url(f"**{place.page}")
    expect(page.locator("#content-main")).not_to_contain_text(file.name)
    assert not (place.node.folder / file.name).exists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_upload_goes_on_with_the_same_file(
    page_as: PageAs, place: Place, files: Callable[[str, int], Path], lang: str
) -> None:
    file = files(f"{place.node.name()}.iso", 2 * PIECE + 5)
    page = page_as("operator", lang)
    _stopped(page, place, file)
    sent = _offsets(page)
    _send(page, file)
    _there(page, place, file)
    assert sent == [PIECE, 2 * PIECE]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_another_file_of_that_name_and_size_is_never_mixed_into_it(
    page_as: PageAs, place: Place, files: Callable[[str, int], Path], lang: str
) -> None:
    name = f"{place.node.name()}.iso"
    file, other = files(name, 2 * PIECE), files(name, 2 * PIECE)
    page = page_as("operator", lang)
    _stopped(page, place, file)
    sent = _offsets(page)
    asked: list[str] = []

    def no(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", no)
    with page.expect_event("dialog", timeout=LONG):
        _send(page, other)
    expect(page.locator("#upload [data-label]")).to_have_count(0)
    assert [name in words for words in asked] == [True]
    assert sent == []
    assert [each["offset"] for each in place.uploads(name)] == [PIECE]

    page.once("dialog", lambda dialog: dialog.accept())
    _send(page, other)
    _there(page, place, other)
    assert sent == [0, PIECE]


def test_another_browser_does_not_know_the_file_and_asks(
    page_as: PageAs, place: Place, files: Callable[[str, int], Path]
) -> None:
    file = files(f"{place.node.name()}.iso", 2 * PIECE)
    _stopped(page_as("operator"), place, file)
    page = page_as("operator")
    _open(page, place)
    sent = _offsets(page)
    asked: list[str] = []

    def yes(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    page.once("dialog", yes)
    _send(page, file)
    _there(page, place, file)
    assert len(asked) == 1
    assert sent == [0, PIECE]


def test_a_wrong_checksum_is_told_with_what_to_do_and_can_be_mended(
    page_as: PageAs, place: Place, files: Callable[[str, int], Path]
) -> None:
    file = files(f"{place.node.name()}.iso", MIB)
    page = page_as("operator")
    _open(page, place)
    page.allowed = ["409"]
    page.fill("#id_upload-sha256", "0" * 64)
    _send(page, file)
    alert = page.locator("#upload [role=alert]")
    expect(alert).to_contain_text("send the file again", timeout=LONG)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    page.fill("#id_upload-sha256", digest)
    sent = _offsets(page)
    _send(page, file)
    _there(page, place, file)
    assert sent == []


def test_a_master_that_is_no_raw_disk_is_said_and_can_be_converted(
    page_as: PageAs, place: Place
) -> None:
    name = f"{place.node.name()}_tpl_1.img"
    words = ["qemu-img", "create", "-q", "-f", "qcow2", name, "2M"]
    subprocess.run(words, cwd=place.node.folder, check=True)
    page = page_as("operator")
    _open(page, place)
    row = page.locator("#files tbody tr", has_text=name)
    expect(row).to_contain_text("qcow2 inside")
    choice = page.locator(f"#id_convert-source option[value='{name}']")
    expect(choice).to_have_count(1)


@pytest.mark.parametrize(("lang", "js"), WAYS)
def test_an_image_of_another_system_is_converted_as_a_job(
    page_as: PageAs, place: Place, lang: str, js: bool
) -> None:
    stem = place.node.name()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", f"{stem}.qcow2", "2M"],
        cwd=place.node.folder,
        check=True,
    )
    page = page_as("operator", lang, js=js)
    _open(page, place)
    page.select_option("#id_convert-source", f"{stem}.qcow2")
    page.fill("#id_convert-name", f"{stem}_tpl_1.img")
    page.locator("form[action$='/convert/'] [type=submit]").click()
    # Either it was quick, or the page of its job is shown.
    expect(page.locator("#content-main")).to_contain_text(f"{stem}_tpl_1.img")
    jobs = [
        each
        for each in place.room.call("GET", "/jobs")
        if each["kind"] == "image.convert" and each["about"]["agent"] == place.id
    ]
    assert len(jobs) == 1
    path = f"/jobs/{jobs[0]['id']}"
    eventually(lambda: place.room.call("GET", path)["state"] == "done", 60)
    page.goto(f"/admin/jobs/{jobs[0]['id']}/")
    expect(page.locator("#content-main")).to_contain_text(f"{stem}_tpl_1.img")
    _open(page, place)
    row = page.locator("#files tbody tr", has_text=f"{stem}_tpl_1.img")
    expect(row).to_contain_text("2 MiB")
    assert (place.node.folder / f"{stem}_tpl_1.img").stat().st_size == 2 * MIB
