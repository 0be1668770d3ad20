"""The node's API at its edge: tokens first, names that are no paths, strict input, JSON always."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client

from agents.node import http
from tests.agents.node.node_lab import BASE, SIZE, TOKEN, Lab

PATHS = [
    ("get", "/capabilities"),
    ("get", "/masters"),
    ("get", "/lun"),
    ("delete", f"/lun?iqn={BASE}:worker-01.windows&delete_file=true&force=true"),
    ("post", "/lun/disk"),
    ("post", "/lun/cd"),
    ("post", "/lun/scan"),
    ("get", "/logs"),
    ("get", "/nothing"),
    ("get", "/"),
]


def test_healthz_is_open(files: Lab) -> None:
    for path in ("/healthz", "/healthz/"):
        assert files.stranger.get(path).json() == {"status": "ok"}


@pytest.mark.case(97)
@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        "Bearer é",
    ],
)
def test_without_the_right_token_nothing_is_read_or_done(
    files: Lab, method: str, path: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.disk("worker-01.windows", size=SIZE)
    before = files.files()

    def read(*args: object) -> bytes:
        raise AssertionError("the body was read")

    monkeypatch.setattr(WSGIRequest, "read", read)
    client = Client(headers={"Authorization": header} if header else {})
    answer = getattr(client, method)(path)
    assert answer.status_code == 401
    assert "detail" in answer.json()
    assert answer["WWW-Authenticate"] == "Bearer"
    assert files.files() == before
    assert set(files.targets()) == {"worker-01.windows"}


@pytest.mark.case(97)
def test_the_token_is_compared_in_constant_time(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bytes, bytes]] = []
    real = http.hmac.compare_digest

    def compare(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return real(a, b)

    monkeypatch.setattr(http.hmac, "compare_digest", compare)
    Client(headers={"Authorization": "Bearer guess"}).get("/lun")
    assert (b"guess", TOKEN.encode()) in seen


def test_a_node_without_a_token_is_closed_until_its_file_is_there(
    files: Lab, tmp_path: Path
) -> None:
    files.restart(IPXE_AGENT_TOKEN="")
    for header in ("", "Bearer ", "Bearer"):
        assert Client(headers={"Authorization": header}).get("/lun").status_code == 401
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "agent-token").write_text("from-the-file\n")
    client = Client(headers={"Authorization": "Bearer from-the-file"})
    assert client.get("/lun").status_code == 200


@pytest.mark.case(97)
def test_a_body_above_the_cap_is_413(files: Lab) -> None:
    answer = files.post("/lun/disk", iqn=f"{BASE}:a", master="x" * 70_000)
    assert answer.status_code == 413
    assert "detail" in answer.json()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "1",
        '"x"',
        '{"iqn": NaN',
        "\xff",
        '{"iqn": "a", "iqn": "b"}',
        "[" * 30_000,
    ],
)
def test_bodies_that_are_no_json_object_are_400(files: Lab, text: str) -> None:
    answer = files.client.post(
        "/lun/disk", text.encode("latin-1"), content_type="application/json"
    )
    assert answer.status_code == 400
    assert "detail" in answer.json()


def test_forms_and_trailing_slashes_work(files: Lab) -> None:
    form = {
        "iqn": f"{BASE}:worker-01.windows",
        "size": "1M",
        "csrfmiddlewaretoken": "x",
    }
    assert files.client.post("/lun/disk/", form).status_code == 201
    files.client.delete(f"/lun/?iqn={BASE}:worker-01.windows")
    again = {"iqn": f"{BASE}:worker-01.windows", "existing": "1"}
    answer = files.client.post(
        "/lun/disk",
        "&".join(f"{k}={v}" for k, v in again.items()),
        content_type="application/x-www-form-urlencoded",
    )
    assert answer.status_code == 201
    for path in ("/capabilities/", "/masters/", "/lun/", "/logs/"):
        assert files.client.get(path).status_code == 200
    assert files.client.post("/lun/scan/").status_code == 200


def test_unknown_fields_and_parameters_are_refused_by_name(files: Lab) -> None:
    for answer in (
        files.disk("worker-01.windows", size=SIZE, sise=1),
        files.post("/lun/cd", iso="a.iso", sise=1),
        files.post("/lun/scan", sise=1),
        files.client.delete(f"/lun?iqn={BASE}:a&sise=1"),
        files.client.get("/logs?sise=1"),
    ):
        assert answer.status_code == 400
        assert "sise" in answer.json()["detail"]


def test_unknown_paths_and_methods_are_json(files: Lab) -> None:
    assert "detail" in files.client.get("/nothing").json()
    assert files.client.get("/lun%0a").status_code == 404
    answer = files.client.put("/lun")
    assert answer.status_code == 405
    assert "GET" in answer["Allow"]
    assert "detail" in answer.json()
    assert files.client.head("/lun").status_code == 200


NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "",
    ".",
    "..",
    "a/../b.img",
    "%2e%2e%2f",
    "a\0.img",
    "a\n.img",
    "...",
    "a\\b",
]


@pytest.mark.case(94)
@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_paths_are_refused_everywhere(lab: Lab, name: str) -> None:
    lab.image("debian_tpl_v1.img")
    outside = lab.folder.parent / "outside.img"
    outside.write_bytes(b"o" * SIZE)
    before = lab.files()
    assert lab.post("/lun/disk", iqn=f"{BASE}:{name}", size=SIZE).status_code == 400
    assert lab.disk("worker-01.debian", master=name).status_code == 400
    assert lab.disk("worker-01.debian", size=SIZE, filename=name).status_code == 400
    assert lab.post("/lun/cd", iso=name, iqn=f"{BASE}:a.iso").status_code == 400
    from urllib.parse import quote

    for encoded in (quote(f"{BASE}:{name}", safe=""), quote(name, safe="")):
        answer = lab.client.delete(f"/lun?iqn={encoded}&delete_file=true&force=true")
        assert answer.status_code == 400
    assert lab.files() == before
    assert outside.exists()


@pytest.mark.case(94)
def test_a_symlink_that_points_out_is_no_master(lab: Lab) -> None:
    outside = lab.folder.parent / "outside.img"
    outside.write_bytes(b"o" * SIZE)
    (lab.folder / "out_tpl_1.img").symlink_to(outside)
    assert lab.client.get("/masters").json() == {"masters": []}
    assert lab.disk("worker-01.debian", master="out_tpl_1.img").status_code == 404
    assert lab.targets() == {}


def test_capabilities_say_what_there_is(lab: Lab) -> None:
    found = lab.client.get("/capabilities").json()
    assert found["backend"] == ("stgt" if lab.tgtd else "files")
    assert found["base_iqn"] == BASE
    assert (found["clone"], found["empty_disk"], found["persistent"]) == (
        True,
        True,
        False,
    )
    assert 0 < found["free_bytes"] < found["total_bytes"]
    assert os.listdir(lab.folder) == []


def test_masters_are_listed_with_size_and_time_and_seen_at_once(files: Lab) -> None:
    assert files.client.get("/masters").json() == {"masters": []}
    path = files.image("debian_tpl_v1.img")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    listed = files.client.get("/masters").json()["masters"]
    assert [(m["name"], m["size"]) for m in listed] == [("debian_tpl_v1.img", SIZE)]
    from datetime import datetime

    stamp = datetime.fromisoformat(listed[0]["mtime"])
    assert stamp.timestamp() == 1_700_000_000
    assert stamp.tzinfo is not None
    path.unlink()
    assert files.client.get("/masters").json() == {"masters": []}


def test_a_master_that_came_without_moving_the_folders_time_is_found_when_it_is_asked_for(
    files: Lab,
) -> None:
    time.sleep(0.1)
    files.client.get("/masters")
    stamp = files.folder.stat()
    files.image("debian_tpl_v1.img", content=b"m" * SIZE)
    os.utime(files.folder, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert files.disk("worker-01.debian", master="debian_tpl_v1.img").status_code == 201
    answer = files.disk("worker-02.debian", master="none_tpl_v1.img")
    assert answer.status_code == 404
    assert "none_tpl_v1.img" in answer.json()["detail"]


def test_the_list_of_masters_is_read_from_memory_while_nothing_moves(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image("debian_tpl_v1.img")
    time.sleep(0.1)
    files.client.get("/masters")

    def read() -> list[Any]:
        raise AssertionError("the directory was read")

    monkeypatch.setattr(files.node.images, "masters", read)
    assert len(files.client.get("/masters").json()["masters"]) == 1


def test_a_folder_that_is_gone_is_503_and_comes_back(files: Lab) -> None:
    files.folder.rename(files.folder.with_name("away"))
    for answer in (
        files.client.get("/masters"),
        files.disk("a", size=SIZE),
        files.client.get("/capabilities"),
    ):
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
    files.folder.with_name("away").rename(files.folder)
    assert files.disk("a", size=SIZE).status_code == 201


def test_the_log_pages_by_id_and_survives_a_torn_tail(files: Lab) -> None:
    for number in range(3):
        files.disk(f"worker-{number}.debian", size=SIZE)
    files.disk("worker-0.debian", size=SIZE)
    first = files.client.get("/logs?limit=2").json()
    assert len(first["entries"]) == 2
    rest = files.client.get(f"/logs?since={first['next_cursor']}").json()["entries"]
    assert [e["id"] for e in rest] == list(range(3, 3 + len(rest)))
    assert rest[-1]["status"] == "failed"
    assert "exists already" in rest[-1]["error"]
    assert TOKEN not in str(rest)
    with files.node.log.path.open("ab") as stream:
        stream.write(b'{"id": 99, "op": "\xe6')
    files.restart()
    files.disk("worker-9.debian", size=SIZE)
    last = files.client.get("/logs").json()["entries"][-1]
    assert last["iqn"] == f"{BASE}:worker-9.debian"
    for bad in ("since=-1", "limit=0", "limit=x", "since=1e3"):
        assert files.client.get(f"/logs?{bad}").status_code == 400


def test_the_log_is_read_back_from_its_end(files: Lab) -> None:
    for number in range(5):
        files.disk(f"worker-{number}.debian", size=SIZE)
    everything = files.client.get("/logs").json()["entries"]
    found, before = [], 0
    for _ in range(len(everything)):
        page = files.client.get(f"/logs?before={before}&limit=2").json()
        found += page["entries"]
        before = page["next_cursor"]
        if not before:
            break
    assert found == everything[::-1]
    assert files.client.get("/logs?before=1").json() == {
        "next_cursor": 0,
        "entries": [],
    }
    for bad in ("before=-1", "before=x", "since=1&before=2"):
        assert files.client.get(f"/logs?{bad}").status_code == 400


def test_a_log_that_cannot_be_written_stops_no_operation(files: Lab) -> None:
    files.node.log.path.unlink()
    files.node.log.path.mkdir()
    assert files.disk("worker-01.debian", size=SIZE).status_code == 201
