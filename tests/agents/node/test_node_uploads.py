"""Uploads: piece by piece, continued after anything, verified, and never an image before they are whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from agents.node import pieces, uploads
from agents.protocol.limits import MAX_BODY, MAX_PIECE
from tests.agents.node.node_lab import Lab
from tests.nodes import RealNode, serving

MIB = 1 << 20


def begin(lab: Lab, name: str = "win_tpl_1.img", **body: Any) -> Any:
    answer = lab.post("/uploads", name=name, **body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def piece(lab: Lab, upload_id: str, offset: int, content: bytes) -> Any:
    return lab.client.patch(
        f"/uploads/{upload_id}?offset={offset}",
        content,
        content_type="application/octet-stream",
    )


def hidden(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if ".upload" in p.name]


def test_pieces_become_a_file_with_its_name_and_checksum(files: Lab) -> None:
    content = os.urandom(MIB) + bytes(2 * MIB) + os.urandom(512)
    digest = hashlib.sha256(content).hexdigest()
    made = begin(files, size=len(content), sha256=digest.upper())
    assert made["offset"] == 0
    assert piece(files, made["id"], 0, content[:700_000]).json()["offset"] == 700_000
    assert files.client.get(f"/uploads/{made['id']}").json()["offset"] == 700_000
    rest = piece(files, made["id"], 700_000, content[700_000:])
    assert rest.json()["offset"] == len(content)
    assert files.client.get("/masters").json()["masters"] == []
    done = files.post(f"/uploads/{made['id']}/finish")
    assert done.status_code == 200, done.content
    assert done.json()["sha256"] == digest
    path = files.folder / "win_tpl_1.img"
    assert path.read_bytes() == content
    assert path.stat().st_nlink == 1
    assert path.stat().st_blocks * 512 <= 1.5 * MIB  # the zeros are a hole
    assert hidden(files.folder) == []
    assert files.client.get("/uploads").json() == {"uploads": []}
    assert [m["name"] for m in files.client.get("/masters").json()["masters"]] == [
        "win_tpl_1.img"
    ]


def test_a_wrong_offset_is_answered_with_the_right_one(files: Lab) -> None:
    made = begin(files, size=2048)
    piece(files, made["id"], 0, b"x" * 1024)
    again = piece(files, made["id"], 0, b"x" * 1024)
    assert again.status_code == 409
    assert "is at 1024" in again.json()["detail"]


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("../x.img", 512, "not a file name"),
        (".hidden.img", 512, "not a file name"),
        ("x.exe", 512, ".qcow2"),
        ("x.img", 513, "multiple of 512"),
        ("x.iso", 0, "from 1 byte"),
        ("x.iso", -1, "from 1 byte"),
        ("x.iso", 1 << 60, "from 1 byte"),
        ("json:{}.qcow2", 512, "not a file name"),
        ("-o.qcow2", 512, "not a file name"),
    ],
)
def test_what_can_be_no_image_is_refused_before_a_byte_is_sent(
    files: Lab, name: str, size: int, words: str
) -> None:
    answer = files.post("/uploads", name=name, size=size)
    assert answer.status_code == 400
    assert words in str(answer.json()["detail"])
    assert list(files.folder.iterdir()) == []


def test_a_name_that_is_taken_or_being_uploaded_is_refused(files: Lab) -> None:
    files.image("pc-1.windows.img")
    taken = files.post("/uploads", name="PC-1.windows.img", size=512)
    assert taken.status_code == 409
    made = begin(files, "a.iso", size=10)
    twice = files.post("/uploads", name="A.iso", size=10)
    assert twice.status_code == 409
    assert made["id"] in twice.json()["detail"]


def test_a_name_taken_meanwhile_is_left_alone_and_the_upload_kept(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    piece(files, made["id"], 0, b"new")
    files.image("a.iso", 3, b"old")
    assert files.post(f"/uploads/{made['id']}/finish").status_code == 409
    assert (files.folder / "a.iso").read_bytes() == b"old"
    other = files.post(f"/uploads/{made['id']}/finish", name="b.iso")
    assert other.json()["name"] == "b.iso"
    assert (files.folder / "b.iso").read_bytes() == b"new"


def test_a_wrong_checksum_gives_no_file_and_can_be_mended(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    piece(files, made["id"], 0, b"abc")
    wrong = files.post(f"/uploads/{made['id']}/finish", sha256="0" * 64)
    assert wrong.status_code == 409
    right = hashlib.sha256(b"abc").hexdigest()
    words = wrong.json()["detail"]
    assert len(words) <= 200
    assert right[:12] in words
    assert words.startswith("wrong checksum: delete the upload and send")
    assert not (files.folder / "a.iso").exists()
    assert files.post(f"/uploads/{made['id']}/finish", sha256="xyz").status_code == 400
    assert files.post(f"/uploads/{made['id']}/finish", sha256=right).status_code == 200


def test_the_checksum_of_the_end_counts_for_the_one_of_the_beginning(
    files: Lab,
) -> None:
    made = begin(files, "a.iso", size=3, sha256="0" * 64)
    piece(files, made["id"], 0, b"abc")
    path = f"/uploads/{made['id']}/finish"
    assert files.post(path).status_code == 409
    right = hashlib.sha256(b"abc").hexdigest()
    assert files.post(path, sha256=right).status_code == 200


def test_an_upload_that_is_not_whole_is_not_finished(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    piece(files, made["id"], 0, b"ab")
    answer = files.post(f"/uploads/{made['id']}/finish")
    assert answer.status_code == 409
    assert "2 of 3" in answer.json()["detail"]


def test_more_than_was_said_is_refused(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    assert piece(files, made["id"], 0, b"abcd").status_code == 400
    assert files.client.get(f"/uploads/{made['id']}").json()["offset"] == 0


def test_without_a_size_what_came_is_the_file(files: Lab) -> None:
    made = begin(files, "a.iso")
    piece(files, made["id"], 0, b"abc")
    assert files.post(f"/uploads/{made['id']}/finish").json()["size"] == 3


def test_a_piece_has_limits_of_its_own_and_other_bodies_keep_theirs(files: Lab) -> None:
    made = begin(files, "a.iso", size=1 << 30)
    path = f"/uploads/{made['id']}?offset=0"
    octets = "application/octet-stream"
    big = files.client.patch(path, bytes(MAX_PIECE + 1), content_type=octets)
    assert big.status_code == 413
    assert "64 MiB" in big.json()["detail"]
    assert (
        files.client.patch(
            path, b"x", content_type=octets, CONTENT_LENGTH=""
        ).status_code
        == 411
    )
    assert files.client.patch(path, b"x", content_type="text/plain").status_code == 400
    long = files.client.post(
        "/uploads", b" " * (MAX_BODY + 1), content_type="application/json"
    )
    assert long.status_code == 413


def test_without_the_token_no_byte_is_read(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    answer = files.stranger.patch(
        f"/uploads/{made['id']}?offset=0",
        b"abc",
        content_type="application/octet-stream",
    )
    assert answer.status_code == 401
    assert answer.wsgi_request.META["wsgi.input"].read(3) == b"abc"


def test_two_pieces_at_once_one_wins(files: Lab) -> None:
    made = begin(files, "a.iso", size=6)
    inside, go = threading.Event(), threading.Event()
    bodies = iter([b"abc", b""])

    def slow(count: int) -> bytes:
        inside.set()
        assert go.wait(10)
        return next(bodies)

    first = threading.Thread(
        target=lambda: files.node.uploads.write(made["id"], 0, 3, slow)
    )
    first.start()
    assert inside.wait(10)
    second = piece(files, made["id"], 0, b"xyz")
    deletion = files.client.delete(f"/uploads/{made['id']}")
    go.set()
    first.join()
    assert second.status_code == 409
    assert deletion.status_code == 409
    assert files.client.get(f"/uploads/{made['id']}").json()["offset"] == 3


def test_a_sender_that_goes_away_leaves_what_it_sent(files: Lab) -> None:
    made = begin(files, "a.iso", size=10)
    sent = iter([b"abc", b""])
    with pytest.raises(Exception, match="go on at offset 3"):
        files.node.uploads.write(made["id"], 0, 10, lambda count: next(sent))
    assert files.client.get(f"/uploads/{made['id']}").json()["offset"] == 3


def test_what_a_kill_left_beyond_the_note_is_not_trusted(files: Lab) -> None:
    made = begin(files, "a.iso", size=2 * MIB)
    piece(files, made["id"], 0, b"a" * MIB)
    data = files.folder / f".{made['id']}.upload"
    with data.open("ab") as stream:  # a piece that was killed
        stream.write(b"garbage" * 1000)
    files.restart()
    assert files.client.get("/uploads").json()["uploads"][0]["offset"] == MIB
    piece(files, made["id"], MIB, bytes(MIB))
    files.post(f"/uploads/{made['id']}/finish")
    assert (files.folder / "a.iso").read_bytes() == b"a" * MIB + bytes(MIB)


def test_a_kill_between_the_name_and_the_end_is_finished_at_the_start(
    files: Lab,
) -> None:
    made = begin(files, "pc-1.debian.img", size=512)
    piece(files, made["id"], 0, b"x" * 512)
    os.link(files.folder / f".{made['id']}.upload", files.folder / "pc-1.debian.img")
    files.restart()
    assert hidden(files.folder) == []
    assert files.targets() == {"pc-1.debian": "pc-1.debian.img"}


def test_unfinished_uploads_are_never_exported(files: Lab) -> None:
    made = begin(files, "pc-1.debian.img", size=512)
    piece(files, made["id"], 0, b"x" * 512)
    files.restart()
    assert files.targets() == {}
    assert files.scan() == {"created": [], "skipped": []}


def test_after_a_week_without_bytes_it_is_gone(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begin(files, "a.iso", size=3)
    files.restart()
    assert files.client.get(f"/uploads/{made['id']}").status_code == 200
    monkeypatch.setattr(uploads, "EXPIRES", -1)
    files.restart()
    assert files.client.get(f"/uploads/{made['id']}").status_code == 404
    assert hidden(files.folder) == []


def test_a_given_up_upload_leaves_nothing(files: Lab) -> None:
    made = begin(files, "a.iso", size=3)
    assert files.client.delete(f"/uploads/{made['id']}").status_code == 200
    assert hidden(files.folder) == []
    assert files.client.delete(f"/uploads/{made['id']}").status_code == 404


def test_a_full_disk_keeps_what_came_and_the_upload_goes_on(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    lab = make_lab(small_folder)
    size = 40 * MIB
    content = os.urandom(size)
    made = begin(lab, "a.iso", size=size)
    ballast = small_folder / "ballast"
    ballast.write_bytes(os.urandom(30 * MIB))
    at, refused = 0, None
    while at < size:
        answer = piece(lab, made["id"], at, content[at : at + 4 * MIB])
        if answer.status_code != 200:
            refused = answer
            break
        at = answer.json()["offset"]
    assert refused is not None
    assert refused.status_code == 507
    ballast.unlink()
    at = lab.client.get(f"/uploads/{made['id']}").json()["offset"]
    while at < size:
        at = piece(lab, made["id"], at, content[at : at + 4 * MIB]).json()["offset"]
    assert lab.post(f"/uploads/{made['id']}/finish").status_code == 200
    assert (small_folder / "a.iso").read_bytes() == content


def test_what_the_disk_took_before_it_was_full_counts(small_folder: Path) -> None:
    path = small_folder / "data"
    with path.open("w+b") as stream:
        stream.truncate(0)
        size = 80 * MIB
        sent = iter(lambda: os.urandom(MIB), b"")
        at, failed = pieces.take(lambda n: next(sent)[:n], stream.fileno(), 0, size)
        assert failed is not None
        assert 20 * MIB < at < size
        assert path.stat().st_size == at


def test_too_large_for_the_disk_is_said_at_the_beginning(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    lab = make_lab(small_folder)
    answer = lab.post("/uploads", name="a.iso", size=1 << 30)
    assert answer.status_code == 507
    assert hidden(small_folder) == []


# -- a real agent ------------------------------------------------------------


def _send(node: RealNode, method: str, path: str, **kwargs: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {node.token}", **kwargs.pop("headers", {})}
    return requests.request(
        method, node.base_url + path, headers=headers, timeout=30, **kwargs
    )


def test_an_agent_killed_in_a_piece_goes_on_after_its_restart(tmp_path: Path) -> None:
    content = os.urandom(3 * MIB)
    octets = {"Content-Type": "application/octet-stream"}
    with serving(tmp_path / "root", "files") as node:
        made = _send(
            node, "POST", "/uploads", json={"name": "a_tpl_1.img", "size": 3 * MIB}
        ).json()
        path = f"/uploads/{made['id']}"
        _send(node, "PATCH", f"{path}?offset=0", data=content[:MIB], headers=octets)
        sent = threading.Event()

        class Stalling:
            """Half of a piece, and then nothing."""

            len = 2 * MIB

            def __iter__(self) -> Any:
                raise AssertionError

            def read(self, size: int = -1) -> bytes:
                if sent.is_set():
                    threading.Event().wait(1)
                    return b""
                sent.set()
                return content[MIB : MIB + 500_000]

        def stall() -> None:
            with contextlib.suppress(requests.RequestException):
                _send(
                    node,
                    "PATCH",
                    f"{path}?offset={MIB}",
                    data=Stalling(),
                    headers=octets,
                )

        sender = threading.Thread(target=stall)
        sender.start()
        assert sent.wait(10)
        node.kill()
        sender.join()
    with serving(tmp_path / "root", "files") as node:
        (listed,) = _send(node, "GET", "/uploads").json()["uploads"]
        at = listed["offset"]
        assert at == MIB
        done = _send(
            node, "PATCH", f"{path}?offset={at}", data=content[at:], headers=octets
        )
        assert done.status_code == 200, done.text
        done = _send(node, "POST", f"{path}/finish")
        assert done.json()["sha256"] == hashlib.sha256(content).hexdigest()
        assert (node.folder / "a_tpl_1.img").read_bytes() == content


def test_a_refused_piece_is_told_why_over_a_real_connection(node: RealNode) -> None:
    made = _send(
        node, "POST", "/uploads", json={"name": "told.iso", "size": 1 << 26}
    ).json()
    answer = _send(
        node,
        "PATCH",
        f"/uploads/{made['id']}?offset=7",
        data=bytes(32 * MIB),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code == 409
    assert _send(node, "DELETE", f"/uploads/{made['id']}").status_code == 200


def test_a_name_that_another_call_is_making_is_not_taken_meanwhile(
    files: Lab,
) -> None:
    made = begin(files, "Worker-01.debian.img", size=512)
    piece(files, made["id"], 0, bytes(512))
    files.node.reserve("worker-01.debian.img")  # as a reset does, whose image is aside
    refused = files.post(f"/uploads/{made['id']}/finish")
    assert refused.status_code == 409
    assert "being made by another call" in refused.json()["detail"]
    files.node.release("worker-01.debian.img")
    assert files.post(f"/uploads/{made['id']}/finish").status_code == 200
    assert files.node.making() == []


@pytest.mark.parametrize(
    "field",
    [{"name": "../x.img"}, {"offset": "0"}, {"offset": -1}, {"size": []}],
    ids=str,
)
def test_a_note_that_somebody_edited_wrongly_is_no_upload(
    files: Lab, field: dict[str, object]
) -> None:
    made = begin(files, size=512)
    note = files.folder / f".{made['id']}.upload.json"
    note.write_text(json.dumps(json.loads(note.read_text()) | field))
    assert files.client.get("/uploads").json() == {"uploads": []}
    assert files.post(f"/uploads/{made['id']}/finish").status_code == 404
    note.unlink()
    os.mkfifo(note)
    assert files.client.get("/uploads").json() == {"uploads": []}
