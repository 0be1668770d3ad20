"""The pages of a node's images: who sees what, a plain form whose file goes straight to the node, conversion, deletion."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents.helpers import trail
from tests.nodes import MIB, RealNode

PASSWORD = "correct horse battery"
IMAGES = "/admin/agents/agent/n/images/"


@pytest.fixture
def login(
    layout: Layout, administrator: Actor, node: RealNode
) -> Callable[[str], Client]:
    """Log in as a person of that role; the node is registered."""
    node.register("n", role={"disk": True, "cd": True})

    def enter(role: str) -> Client:
        users.user_create(
            actor=administrator, username=role[:5], password=PASSWORD, role=role
        )
        client = Client(enforce_csrf_checks=True)
        client.get("/admin/login/")
        answer = client.post(
            "/admin/login/",
            {"username": role[:5], "password": PASSWORD, **_csrf(client)},
        )
        assert answer.status_code == 302
        return client

    return enter


def _csrf(client: Client) -> dict[str, str]:
    return {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}


def _address(page: str) -> str:
    match = re.search(r'action="([^"]*images/upload/\?proof=[^"]*)"', page)
    assert match
    return match[1].replace("&amp;", "&")


def _send(client: Client, content: bytes, name: str, **fields: str) -> Any:
    page = client.get(IMAGES).content.decode()
    file = SimpleUploadedFile(name, content)
    data = {**fields, "upload-file": file}
    return client.post(_address(page), data, follow=True)


def test_everybody_sees_what_lies_there_and_viewers_change_nothing(
    login: Callable[[str], Client], node: RealNode
) -> None:
    master = node.image(f"{node.name()}_tpl_1.img")
    client = login("viewer")
    page = client.get(IMAGES).content.decode()
    assert master.name in page
    assert 'id="upload"' not in page
    assert "<form" not in page.split('id="content-main"')[1]
    delete = f"{IMAGES}delete/?name={master.name}"
    assert client.get(delete).status_code == 403
    for path in ("upload/", "convert/", "uploads/0123456789abcdef/delete/"):
        assert client.post(IMAGES + path, _csrf(client)).status_code == 403
    assert "/images/" in client.get("/admin/agents/agent/n/change/").content.decode()


def test_a_plain_form_brings_a_file_to_the_node(
    login: Callable[[str], Client], node: RealNode
) -> None:
    client = login("operator")
    name = f"{node.name()}_tpl_1.img"
    content = os.urandom(9 * MIB)
    digest = hashlib.sha256(content).hexdigest()
    before = sorted(node.folder.glob(".*.upload"))
    answer = _send(
        client, content, "Windows 11.img", **{"upload-name": name, "upload-sha256": digest}
    )  # fmt: skip
    page = answer.content.decode()
    assert digest in page, page
    assert (node.folder / name).read_bytes() == content
    assert sorted(node.folder.glob(".*.upload")) == before
    assert trail("image.upload")[-1]["user"] == "opera"


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("x.exe", {}, "is not a file that is taken here"),
        ("x.iso", {"upload-sha256": "0" * 64}, "not the expected"),
        ("x.iso", {"upload-sha256": "zz"}, "is not a SHA-256"),
        ("x.iso", {"upload-name": "../x.iso"}, "is not a file name"),
        ("odd.img", {}, "multiple of 512"),
    ],
)
def test_a_refused_file_leaves_nothing_on_the_node(
    login: Callable[[str], Client],
    node: RealNode,
    name: str,
    fields: dict[str, str],
    words: str,
) -> None:
    before = sorted(p.name for p in node.folder.iterdir())
    answer = _send(login("operator"), b"x" * 1000, name, **fields)
    assert words in answer.content.decode()
    assert sorted(p.name for p in node.folder.iterdir()) == before


def test_a_form_from_elsewhere_sends_no_byte_to_the_node(
    login: Callable[[str], Client], node: RealNode
) -> None:
    client = login("operator")
    before = sorted(p.name for p in node.folder.iterdir())
    for query in ("", "?proof=", "?proof=made-up"):
        file = SimpleUploadedFile("x.iso", b"x" * 1000)
        answer = client.post(
            f"{IMAGES}upload/{query}", {**_csrf(client), "upload-file": file}
        )
        assert answer.status_code == 302
    assert sorted(p.name for p in node.folder.iterdir()) == before
    assert trail("image.upload") == []


def test_an_image_is_converted_from_the_page(
    login: Callable[[str], Client], node: RealNode
) -> None:
    client = login("operator")
    stem = node.name()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", f"{stem}.qcow2", "2M"],
        cwd=node.folder,
        check=True,
    )
    assert f">{stem}.qcow2</option>" in client.get(IMAGES).content.decode()
    data = {"convert-source": f"{stem}.qcow2", "convert-name": f"{stem}_tpl_1.img"}
    answer = client.post(f"{IMAGES}convert/", {**data, **_csrf(client)}, follow=True)
    text = answer.content.decode()
    assert f"{stem}_tpl_1.img is there: 2 MiB" in text
    again = client.post(f"{IMAGES}convert/", {**data, **_csrf(client)})
    assert "exists already" in again.content.decode()


def test_a_deletion_says_what_goes_and_a_master_needs_more(
    login: Callable[[str], Client], node: RealNode
) -> None:
    master = node.image(f"{node.name()}_tpl_1.img")
    iso = node.image(f"{node.name()}.iso")
    operator = login("operator")
    path = f"{IMAGES}delete/?name={iso.name}"
    page = operator.get(path).content.decode()
    assert iso.name in page and "1 MiB" in page
    assert operator.post(path, _csrf(operator)).status_code == 302
    assert not iso.exists()
    administrator = login("administrator")
    path = f"{IMAGES}delete/?name={master.name}"
    assert administrator.post(path, _csrf(administrator)).status_code == 200
    assert master.exists()
    administrator.post(path, {"master": "on", **_csrf(administrator)})
    assert not master.exists()
    assert operator.get(f"{IMAGES}delete/?name=none.iso").status_code == 404


def test_a_node_that_is_gone_is_said(
    login: Callable[[str], Client], nobody: str, node: RealNode
) -> None:
    client = login("operator")
    node.register("gone", base_url=nobody)
    page = client.get("/admin/agents/agent/gone/images/")
    assert page.status_code == 200
    assert "unreachable" in page.content.decode()


def test_an_unfinished_upload_is_shown_and_given_up(
    login: Callable[[str], Client], node: RealNode
) -> None:
    client = login("operator")
    name = f"{node.name()}.iso"
    made = client.post(
        "/agents/n/uploads",
        {"name": name, "size": 2048},
        content_type="application/json",
        headers={"X-CSRFToken": client.cookies["csrftoken"].value},
    ).json()
    assert f"{name}: 0 B of 2 KiB" in client.get(IMAGES).content.decode()
    client.post(f"{IMAGES}uploads/{made['id']}/delete/", _csrf(client))
    assert name not in client.get(IMAGES).content.decode()


def test_the_pages_script_may_send_pieces_with_its_session(
    login: Callable[[str], Client], node: RealNode
) -> None:
    client = login("operator")
    headers = {"X-CSRFToken": client.cookies["csrftoken"].value}
    name = f"{node.name()}.iso"
    made = client.post(
        "/agents/n/uploads",
        {"name": name, "size": 3 * MIB},
        content_type="application/json",
        headers=headers,
    ).json()
    path = f"/agents/n/uploads/{made['id']}?offset=0"
    octets = "application/octet-stream"
    forged = client.patch(path, bytes(3 * MIB), content_type=octets)
    assert forged.status_code == 403
    sent = client.patch(path, bytes(3 * MIB), content_type=octets, headers=headers)
    assert sent.json()["offset"] == 3 * MIB


@pytest.mark.parametrize(
    "name",
    [b"\xff\xfe.img", "机房.qcow2".encode(), b"a\nb.img", b"<b>x.iso", b"'\"&.raw"],
)
def test_a_file_of_whatever_name_is_listed_and_breaks_no_page(
    login: Callable[[str], Client], node: RealNode, api: Any, name: bytes
) -> None:
    client = login("administrator")
    path = os.fsencode(node.folder) + b"/" + name
    with open(path, "xb") as stream:
        stream.truncate(MIB)
    try:
        assert api.post("/agents/n/luns/scan").status_code == 200
        listed = api.get("/agents/n/images")
        assert listed.status_code == 200
        assert os.fsdecode(name) in [each["name"] for each in listed.json()["images"]]
        assert api.get("/agents/n/health").json()["health"] is not None
        for page in (IMAGES, IMAGES.removesuffix("images/") + "change/"):
            assert client.get(page).status_code == 200, page
        text = client.get(IMAGES).content.decode()
        assert "<b>x" not in text
    finally:
        os.unlink(path)
