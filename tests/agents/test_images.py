"""/agents/{id}/images and /agents/{id}/uploads: files of a node through the control plane."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from rest_framework.test import APIClient

from agents.protocol.limits import MAX_PIECE
from tests.agents.helpers import trail
from tests.nodes import MIB, RealNode
from tests.processes import eventually
from tests.served import Service

OCTETS = "application/octet-stream"


@pytest.fixture
def registered(layout: object, node: RealNode) -> None:
    node.register("n", role={"disk": True, "cd": True})


def begin(client: APIClient, name: str, **body: Any) -> str:
    answer = client.post("/agents/n/uploads", {"name": name, **body})
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def piece(client: APIClient, upload_id: str, offset: int, content: bytes) -> Any:
    return client.generic(
        "PATCH",
        f"/agents/n/uploads/{upload_id}?offset={offset}",
        content,
        content_type=OCTETS,
    )


@pytest.mark.usefixtures("registered")
def test_an_operator_brings_a_file_to_a_node(
    as_operator: APIClient, node: RealNode
) -> None:
    name = f"{node.name()}_tpl_1.img"
    content = os.urandom(3 * MIB)
    digest = hashlib.sha256(content).hexdigest()
    uid = begin(as_operator, name, size=len(content), sha256=digest)
    # More than any other body may have.
    assert piece(as_operator, uid, 0, content[: 2 * MIB]).json()["offset"] == 2 * MIB
    late = piece(as_operator, uid, 0, b"x")
    assert late.status_code == 409
    assert late.json()["detail"]["agent"] == "n"
    assert as_operator.get(f"/agents/n/uploads/{uid}").json()["offset"] == 2 * MIB
    assert uid in str(as_operator.get("/agents/n/uploads").json())
    piece(as_operator, uid, 2 * MIB, content[2 * MIB :])
    done = as_operator.post(f"/agents/n/uploads/{uid}/finish", {})
    assert done.status_code == 200, done.content
    assert done.json()["sha256"] == digest
    assert (node.folder / name).read_bytes() == content
    (image,) = (
        entry
        for entry in as_operator.get("/agents/n/images").json()["images"]
        if entry["name"] == name
    )
    assert image["kind"] == "master"
    started, ok = trail("image.upload")
    assert (started["status"], ok["status"]) == ("started", "ok")
    assert (started["name"], ok["sha256"]) == (name, digest)


@pytest.mark.usefixtures("registered")
def test_a_viewer_reads_and_changes_nothing(
    as_viewer: APIClient, as_operator: APIClient, node: RealNode
) -> None:
    name = f"{node.name()}.iso"
    uid = begin(as_operator, name, size=10)
    for answer in (
        as_viewer.post("/agents/n/uploads", {"name": "x.iso"}),
        piece(as_viewer, uid, 0, b"0123456789"),
        as_viewer.post(f"/agents/n/uploads/{uid}/finish", {}),
        as_viewer.delete(f"/agents/n/uploads/{uid}"),
        as_viewer.delete(f"/agents/n/images?name={name}"),
        as_viewer.post(
            "/agents/n/images/convert", {"source": "a.raw", "name": "b.img"}
        ),
    ):
        assert answer.status_code == 403
    assert as_viewer.get(f"/agents/n/uploads/{uid}").json()["offset"] == 0
    assert as_viewer.get("/agents/n/images").status_code == 200
    assert as_operator.delete(f"/agents/n/uploads/{uid}").status_code == 200
    assert [line["status"] for line in trail("image.upload")] == ["started", "rollback"]


@pytest.mark.usefixtures("registered")
def test_a_stranger_is_asked_who_he_is(stranger: APIClient) -> None:
    assert stranger.get("/agents/n/images").status_code == 401
    assert piece(stranger, "0" * 16, 0, b"x").status_code == 401


@pytest.mark.usefixtures("registered")
def test_a_master_is_an_administrators_to_delete(
    as_operator: APIClient, api: APIClient, node: RealNode
) -> None:
    master = node.image(f"{node.name()}_tpl_1.img")
    iso = node.image(f"{node.name()}.iso")
    path = f"/agents/n/images?name={master.name}"
    assert as_operator.delete(f"{path}&master=true").status_code == 403
    assert api.delete(path).status_code == 409
    assert api.delete(f"{path}&master=true").json() == {
        "deleted": master.name,
        "freed": 0,
    }
    assert as_operator.delete(f"/agents/n/images?name={iso.name}").status_code == 200
    assert not master.exists()
    assert not iso.exists()
    assert [line["status"] for line in trail("image.delete")] == ["failed", "ok", "ok"]


@pytest.mark.usefixtures("registered")
def test_an_image_is_converted(as_operator: APIClient, node: RealNode) -> None:
    stem = node.name()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", f"{stem}.qcow2", "2M"],
        cwd=node.folder,
        check=True,
    )
    done = as_operator.post(
        "/agents/n/images/convert",
        {"source": f"{stem}.qcow2", "name": f"{stem}_tpl_1.img"},
    )
    assert done.status_code == 201, done.content
    assert done.json()["format"] == "qcow2"
    assert (node.folder / f"{stem}_tpl_1.img").stat().st_size == 2 * MIB
    (line,) = trail("image.convert")
    assert (line["source"], line["status"]) == (f"{stem}.qcow2", "ok")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("post", "/uploads", {"name": "x.exe"}, 400),
        ("post", "/uploads", {"name": "x.iso", "sha256": "zz"}, 400),
        ("post", "/uploads", {"name": "x.iso", "more": 1}, 400),
        ("post", "/uploads", {}, 400),
        ("get", "/uploads/..%2fhealthz", None, 404),
        ("get", "/uploads/0123456789abcdef", None, 404),
        ("post", "/uploads/0123456789abcdef/finish", {}, 404),
        ("delete", "/uploads/0123456789abcdef", None, 404),
        ("delete", "/images", None, 400),
        ("delete", "/images?name=..%2fx", None, 400),
        ("delete", "/images?name=.targets.json", None, 400),
        ("delete", "/images?name=gone.iso", None, 404),
        ("delete", "/images?name=gone.iso&x=1", None, 400),
        ("post", "/images/convert", {"source": "json:{}.qcow2", "name": "b.img"}, 400),
        ("post", "/images/convert", {"source": "gone.raw", "name": "b.img"}, 404),
        ("post", "/images/convert", {"source": "a.raw", "name": "b.iso"}, 400),
        ("post", "/images/convert", {"source": "a.raw", "name": "b.img", "format": "nbd"}, 400),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("registered")
def test_what_is_refused(
    api: APIClient, method: str, path: str, body: Any, status: int
) -> None:
    answer = getattr(api, method)(f"/agents/n{path}", body)
    assert answer.status_code == status, answer.content


@pytest.mark.usefixtures("registered")
def test_a_piece_has_its_rules_and_all_other_bodies_keep_theirs(
    api: APIClient, node: RealNode
) -> None:
    uid = begin(api, f"{node.name()}.iso", size=MIB)
    path = f"/agents/n/uploads/{uid}"
    form = api.patch(f"{path}?offset=0", {"a": "b"}, format="multipart")
    assert form.status_code == 400
    assert piece(api, uid, 0, b"").status_code == 411
    assert api.generic("PATCH", path, b"x", content_type=OCTETS).status_code == 400
    assert (
        api.generic("PATCH", f"{path}?offset=-1", b"x", content_type=OCTETS).status_code
        == 400
    )
    assert piece(api, uid, 0, bytes(MAX_PIECE + 1)).status_code == 400
    long = api.post("/agents/n/uploads", {"name": "x" * (1 << 20)})
    assert long.status_code == 413


# -- import --------------------------------------------------------------------


def _worker(api: APIClient, name: str) -> None:
    made = api.post("/workers", {"worker_id": name, "mac": "52:54:00:aa:00:01"})
    assert made.status_code == 201, made.content


@pytest.mark.usefixtures("registered")
def test_an_image_of_the_node_becomes_a_workers_disk(
    api: APIClient, node: RealNode
) -> None:
    pc = node.name()
    _worker(api, pc)
    node.image(f"old {pc}.img", content=b"system")
    done = api.post(
        f"/workers/{pc}/luns/disk",
        {"type": "import", "os": "debian", "name": f"old {pc}.img"},
    )
    assert done.status_code == 201, done.content
    (disk,) = done.json()["disks"]
    assert disk["source"] == {"type": "import", "name": f"old {pc}.img"}
    assert disk["agent"] == "n"
    assert (node.folder / f"{pc}.debian.img").read_bytes().startswith(b"system")
    assert not (node.folder / f"old {pc}.img").exists()
    assert trail("image.import")[0]["worker_id"] == pc
    owned = api.delete(f"/agents/n/images?name={pc}.debian.img")
    assert owned.status_code == 409
    assert pc in str(owned.json()["detail"])


@pytest.mark.usefixtures("registered")
def test_an_image_that_nobody_or_two_have_needs_a_node(
    api: APIClient, node: RealNode, other_node: RealNode
) -> None:
    other_node.register("m", role={"disk": True, "cd": False})
    pc = node.name()
    _worker(api, pc)
    path, body = f"/workers/{pc}/luns/disk", {"type": "import", "os": "debian"}
    gone = api.post(path, {**body, "name": "gone.img"})
    assert gone.status_code == 404
    node.image(f"{pc}-x.img")
    other_node.image(f"{pc}-x.img")
    both = api.post(path, {**body, "name": f"{pc}-x.img"})
    assert both.status_code == 409
    assert "m, n" in str(both.json()["detail"])
    named = api.post(path, {**body, "name": f"{pc}-x.img", "disk_agent": "m"})
    assert named.status_code == 201, named.content
    assert (node.folder / f"{pc}-x.img").exists()
    for wrong in (
        {"name": "a_tpl_1.img"},
        {"name": "a.iso"},
        {},
        {"name": "a.img", "size": "1M"},
    ):
        assert api.post(path, {**body, "os": "ubuntu", **wrong}).status_code == 400


@pytest.mark.usefixtures("registered")
def test_one_image_never_becomes_two_disks(api: APIClient, node: RealNode) -> None:
    answer = api.post(
        "/workers/luns/disk/batch",
        {
            "type": "import",
            "os": "debian",
            "name": "a.img",
            "targets": [
                {"worker_id": "pc1", "agent": "n"},
                {"worker_id": "pc2", "agent": "n"},
            ],
        },
    )
    assert answer.status_code == 400
    assert "one worker" in str(answer.json()["detail"])


# -- a control plane that serves -----------------------------------------------


@pytest.fixture
def service(tmp_path: Path, node: RealNode) -> Iterator[Callable[..., Any]]:
    """Asks a served control plane that knows the node."""
    served = Service(tmp_path / "root", IPXE_CP_TOKEN="token-of-the-tests")
    served.start()

    def ask(method: str, path: str, **kwargs: Any) -> requests.Response:
        headers = {
            "Authorization": "Bearer token-of-the-tests",
            **kwargs.pop("headers", {}),
        }
        url = f"http://127.0.0.1:{served.port}{path}"
        return requests.request(method, url, headers=headers, timeout=60, **kwargs)

    ask.port = served.port  # type: ignore[attr-defined]
    ask.pid = served.process.pid  # type: ignore[attr-defined, union-attr]
    agent = {"id": "n", "base_url": node.base_url, "token": node.token}
    assert ask("POST", "/agents", json=agent).status_code == 201
    try:
        yield ask
    finally:
        assert served.process is not None
        served.process.terminate()
        served.process.communicate(timeout=20)


def _peak(pid: int) -> int:
    """The most memory (bytes) that the workers of a service have had."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    peaks = []
    for child in children:
        for line in Path(f"/proc/{child}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peaks.append(int(line.split()[1]) * 1024)
    return max(peaks)


def test_a_piece_passes_through_without_being_held(
    service: Any, node: RealNode
) -> None:
    size = 48 * MIB
    content = os.urandom(MIB) * 48
    made = service(
        "POST", "/agents/n/uploads", json={"name": f"{node.name()}.iso", "size": size}
    ).json()
    path = f"/agents/n/uploads/{made['id']}"
    octets = {"Content-Type": OCTETS}
    wrong = service("PATCH", f"{path}?offset=5", data=content, headers=octets)
    assert wrong.status_code == 409, wrong.text
    before = _peak(service.pid)
    done = service("PATCH", f"{path}?offset=0", data=content, headers=octets)
    assert done.json()["offset"] == size
    assert _peak(service.pid) - before < 16 * MIB
    finished = service("POST", f"{path}/finish", json={})
    assert finished.json()["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_sender_that_goes_away_can_go_on(service: Any, node: RealNode) -> None:
    content = os.urandom(2 * MIB)
    name = f"{node.name()}.iso"
    made = service(
        "POST", "/agents/n/uploads", json={"name": name, "size": len(content)}
    ).json()
    path = f"/agents/n/uploads/{made['id']}"
    head = (
        f"PATCH {path}?offset=0 HTTP/1.1\r\nHost: x\r\nContent-Type: {OCTETS}\r\n"
        f"Authorization: Bearer token-of-the-tests\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port)) as sender:
        sender.sendall(head.encode() + content[:MIB])
    at = 0

    def there() -> bool:
        nonlocal at
        at = service("GET", path).json()["offset"]
        return at > 0

    with contextlib.suppress(AssertionError):
        eventually(there, 5)
    rest = service(
        "PATCH",
        f"{path}?offset={at}",
        data=content[at:],
        headers={"Content-Type": OCTETS},
    )
    assert rest.status_code == 200, rest.text
    assert service("POST", f"{path}/finish", json={}).status_code == 200
    assert (node.folder / name).read_bytes() == content
