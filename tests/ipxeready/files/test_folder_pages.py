"""/admin/files/...: folders of the public directory as pages, whatever their names are."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpResponse
from django.test import Client

from ipxeready.actors import VIEWER, Actor
from ipxeready.files import pages
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.ipxeready.files.odd import ODD

PASSWORD = "correct horse battery"
TOP = "/admin/files/"


@pytest.fixture
def viewer_page(layout: Layout, administrator: Actor) -> Client:
    """A window of somebody who may only look."""
    users.user_create(
        actor=administrator, username="victor", password=PASSWORD, role=VIEWER
    )
    client = Client()
    client.post("/admin/login/", {"username": "victor", "password": PASSWORD})
    return client


@pytest.fixture
def tree(layout: Layout) -> Path:
    """Folders, files, links in and out, hidden ones."""
    public = layout.public
    (public / "boot/debian").mkdir(parents=True)
    (public / "boot/kernel").write_bytes(b"x" * 2048)
    os.utime(public / "boot/kernel", (1_700_000_000, 1_700_000_000))
    (public / "boot/.hidden").touch()
    (public / "boot/out").symlink_to(layout.cp_token)
    (public / "boot/latest").symlink_to("kernel")
    (public / "a-file").write_bytes(b"1")
    return public


def _get(client: Client, address: str) -> HttpResponse:
    """An answer; the real server also says what it was sent."""
    return client.get(address, RAW_URI=address)


def _links(page: str) -> dict[str, str]:
    """Addresses in the table by what they show."""
    table = page.split('<table class="grid" id="folder">')[1].split("</table>")[0]
    found = re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', table, re.DOTALL)
    return {
        html.unescape(re.sub(r"<[^>]+>", "", text)): html.unescape(address)
        for address, text in found
    }


def test_folders_come_first_then_files_with_size_and_time(
    viewer_page: Client, tree: Path
) -> None:
    top = viewer_page.get(TOP).content.decode()
    assert list(_links(top)) == ["boot/", "a-file"]
    page = viewer_page.get(f"{TOP}boot/").content.decode()
    assert list(_links(page)) == [
        "../ the folder above",
        "debian/",
        "kernel",
        "latest",
    ]
    assert "2 KiB" in page
    assert '<time datetime="2023-11-1' in page
    assert ".hidden" not in page


def test_the_way_back_is_above_every_folder(viewer_page: Client, tree: Path) -> None:
    page = viewer_page.get(f"{TOP}boot/debian/").content.decode()
    way = page.split('<div class="breadcrumbs">')[1].split("</div>")[0]
    assert re.findall(r'href="([^"]+)"', way) == ["/admin/", TOP, f"{TOP}boot/"]
    assert "The folder is empty" in page
    assert _links(page)["../ the folder above"] == f"{TOP}boot/"


def test_an_odd_name_is_text_and_its_link_fetches_the_file(
    viewer_page: Client, layout: Layout
) -> None:
    for name in ODD:
        (layout.public / name).write_bytes(os.fsencode(name))
    page = viewer_page.get(TOP).content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    links = _links(page)
    assert all(shown.isprintable() for shown in links)
    assert len(set(links.values())) == len(ODD)
    fetched = set()
    for address in links.values():
        answer = _get(Client(), address)
        assert answer.status_code == 200, address
        fetched.add(b"".join(answer))
        answer.close()
    assert fetched == {os.fsencode(name) for name in ODD}


def test_a_folder_with_an_odd_name_opens_and_leads_on(
    viewer_page: Client, layout: Layout
) -> None:
    for name in ODD:
        (layout.public / name / name).mkdir(parents=True)
        (layout.public / name / name / "kernel").touch()
    for top in _links(viewer_page.get(TOP).content.decode()).values():
        inner = list(_links(_get(viewer_page, top).content.decode()).values())[-1]
        links = _links(_get(viewer_page, inner).content.decode())
        answer = _get(Client(), links["kernel"])
        assert answer.status_code == 200, inner
        answer.close()
        assert links["../ the folder above"] == top


def test_names_that_are_no_utf8_can_be_told_from_their_spelling(
    viewer_page: Client, layout: Layout
) -> None:
    (layout.public / os.fsdecode(b"\xff")).write_text("byte")
    (layout.public / "%FF").write_text("spelling")
    links = _links(viewer_page.get(TOP).content.decode())
    for shown, content in (("\\xff", b"byte"), ("%FF", b"spelling")):
        answer = _get(Client(), links[shown])
        assert b"".join(answer) == content
        answer.close()


@pytest.mark.parametrize(
    "name", [b"caf\xe9", b"%FF", b"a%20b", b"\xff\xfe", "caf\u00e9".encode()]
)
def test_the_language_is_switched_in_a_folder_of_any_name(
    viewer_page: Client, layout: Layout, name: bytes
) -> None:
    (layout.public / os.fsdecode(name)).mkdir()
    (address,) = _links(_get(viewer_page, TOP).content.decode()).values()
    page = _get(viewer_page, f"{address}?p=1").content.decode()
    found = re.search(r'name="next" value="([^"]*)"', page)
    assert found
    back = html.unescape(found[1])
    assert back == f"{address}?p=1"
    answer = viewer_page.post("/i18n/setlang/", {"language": "zh-hans", "next": back})
    assert answer["Location"] == back
    assert viewer_page.cookies["django_language"].value == "zh-hans"
    assert _get(viewer_page, back).status_code == 200
    login = _get(Client(), back)["Location"]
    assert parse_qs(urlsplit(login).query)["next"] == [back]


def test_an_odd_address_without_its_slash_is_led_to_the_one_with_it(
    viewer_page: Client,
) -> None:
    answer = _get(viewer_page, "/admin/jobs/%FF?p=1")
    assert answer["Location"] == "/admin/jobs/%FF/?p=1"
    assert _get(viewer_page, "/admin/jobs/%FF/").status_code == 404


def test_a_stamp_outside_of_all_calendars_is_no_error(
    viewer_page: Client, layout: Layout
) -> None:
    path = layout.public / "old"
    path.touch()
    os.utime(path, (2**33, 2**33))
    assert viewer_page.get(TOP).status_code == 200


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    "path",
    [
        "nothing/",
        "boot/kernel/",
        "boot/out/",
        "../config/",
        "%2e%2e/config/",
        "boot/%2e%2e/%2e%2e/config/",
        "boot%00/",
        "/etc/",
        "boot//debian/",
        "boot/.hidden/",
        "%ff/",
    ],
)
def test_what_is_no_folder_is_not_found(viewer_page: Client, path: str) -> None:
    answer = _get(viewer_page, TOP + path)
    assert answer.status_code == 404


def test_many_names_come_in_pages(
    viewer_page: Client, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE", 10)
    for number in range(25):
        (layout.public / f"{number:02d}").touch()
    page = viewer_page.get(f"{TOP}?p=3").content.decode()
    assert list(_links(page)) == ["20", "21", "22", "23", "24"]
    assert "25 names" in page
    assert 'rel="prev"' in page


def test_who_may_look_and_how(viewer_page: Client, tree: Path) -> None:
    assert Client().get(f"{TOP}boot/")["Location"].startswith("/admin/login/")
    for method in ("post", "put", "delete"):
        assert getattr(viewer_page, method)(f"{TOP}boot/").status_code == 405
    assert viewer_page.head(TOP).status_code == 200
