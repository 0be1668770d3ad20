"""GET /file/<path>: whole files and parts for firmware, plain refusals, nothing from outside of the public directory."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ipxeready.files.views import Places, places, wanted
from ipxeready.storage.paths import Layout
from tests.served import Service

BODY = bytes(range(256)) * 4


@pytest.fixture
def kernel(layout: Layout) -> Path:
    """public/boot/kernel, 1,024 bytes."""
    folder = layout.public / "boot"
    folder.mkdir()
    path = folder / "kernel"
    path.write_bytes(BODY)
    return path


@pytest.fixture
def firmware(layout: Layout) -> Iterator[Client]:
    """A caller without credentials; every place for files is free again afterwards."""
    yield Client()
    assert places.taken == 0


def _get(client: Client, path: str, **headers: str) -> tuple[int, bytes, Any]:
    answer = client.get(path, headers=headers)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    answer.close()
    return answer.status_code, body, answer.headers


@pytest.mark.parametrize("path", ["/file/boot/kernel", "/api/cp/file/boot/kernel/"])
def test_a_whole_file(firmware: Client, kernel: Path, path: str) -> None:
    status, body, headers = _get(firmware, path, host="any.where:1")
    assert (status, body) == (200, BODY)
    assert headers["Content-Length"] == "1024"
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Accept-Ranges"] == "bytes"
    assert "Set-Cookie" not in headers


def test_an_empty_file(firmware: Client, layout: Layout) -> None:
    (layout.public / "empty").touch()
    status, body, headers = _get(firmware, "/file/empty")
    assert (status, body, headers["Content-Length"]) == (200, b"", "0")
    assert _get(firmware, "/file/empty", range="bytes=0-")[0] == 416


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=1000-", 1000, 1024),
        ("bytes=1000-5000", 1000, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=-9999", 0, 1024),
        ("BYTES=5-6", 5, 7),
    ],
)
def test_a_part(
    firmware: Client, kernel: Path, asked: str, start: int, stop: int
) -> None:
    status, body, headers = _get(firmware, "/file/boot/kernel", range=asked)
    assert (status, body) == (206, BODY[start:stop])
    assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/1024"
    assert headers["Content-Length"] == str(stop - start)


@pytest.mark.parametrize("asked", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_a_part_that_is_not_there(firmware: Client, kernel: Path, asked: str) -> None:
    status, _, headers = _get(firmware, "/file/boot/kernel", range=asked)
    assert (status, headers["Content-Range"]) == (416, "bytes */1024")
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    "asked", ["", "bytes=", "bytes=-", "bytes=9-5", "bytes=0-1,5-6", "items=0-1", "x"]
)
def test_what_is_no_single_range_gets_the_whole(
    firmware: Client, kernel: Path, asked: str
) -> None:
    assert wanted(asked, 1024) is None
    assert _get(firmware, "/file/boot/kernel", range=asked)[:2] == (200, BODY)


def test_a_part_of_what_was_seen_before_only(firmware: Client, kernel: Path) -> None:
    headers = _get(firmware, "/file/boot/kernel")[2]
    for condition in (headers["ETag"], headers["Last-Modified"]):
        given = {"range": "bytes=0-3", "if-range": condition}
        assert _get(firmware, "/file/boot/kernel", **given)[0] == 206
    for condition in ('"other"', "Thu, 01 Jan 1970 00:00:00 GMT", "x"):
        given = {"range": "bytes=0-3", "if-range": condition}
        assert _get(firmware, "/file/boot/kernel", **given)[0] == 200
    kernel.write_bytes(BODY[::-1])
    given = {"range": "bytes=0-3", "if-range": headers["ETag"]}
    assert _get(firmware, "/file/boot/kernel", **given)[:2] == (200, BODY[::-1])


def test_what_the_caller_has_is_not_sent_again(firmware: Client, kernel: Path) -> None:
    headers = _get(firmware, "/file/boot/kernel")[2]
    etag, modified = headers["ETag"], headers["Last-Modified"]
    path = "/file/boot/kernel"
    status, body, again = _get(firmware, path, **{"if-none-match": etag})
    assert (status, body, again["ETag"]) == (304, b"", etag)
    assert _get(firmware, path, **{"if-modified-since": modified})[0] == 304
    assert _get(firmware, path, **{"if-none-match": '"x"'})[0] == 200
    assert _get(firmware, path, **{"if-match": '"x"'})[0] == 412


def test_head_tells_the_size_and_sends_nothing(firmware: Client, kernel: Path) -> None:
    answer = firmware.head("/file/boot/kernel", headers={"range": "bytes=0-3"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Content-Length"] == "1024"
    assert answer["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_is_written(firmware: Client, kernel: Path, method: str) -> None:
    answer = getattr(firmware, method)("/file/boot/kernel")
    assert answer.status_code == 405
    assert answer["Content-Type"].startswith("text/plain")
    assert kernel.read_bytes() == BODY


def test_a_page_cannot_act_for_who_is_logged_in(
    firmware: Client, layout: Layout
) -> None:
    (layout.public / "x.html").write_text("<script>1</script>")
    (layout.public / "x.gz").write_text("packed")
    _, _, headers = _get(firmware, "/file/x.html")
    assert headers["Content-Type"] == "text/html"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    _, _, headers = _get(firmware, "/file/x.gz")
    assert headers["Content-Type"] == "application/octet-stream"
    assert "Content-Encoding" not in headers


@pytest.fixture
def traps(layout: Layout, kernel: Path) -> None:
    """Links in and out, hidden files, and what is no file."""
    public = layout.public
    (public / ".hidden").write_text("secret")
    (public / "boot/.git").mkdir()
    (public / "boot/.git/config").write_text("secret")
    (public / "out").symlink_to(layout.cp_token)
    (public / "relative-out").symlink_to("../config/cp-token")
    (public / "root").symlink_to("/")
    (public / "to-hidden").symlink_to(".hidden")
    (public / "loop").symlink_to("loop")
    (public / "dangling").symlink_to("nothing")
    (public / "latest").symlink_to("boot/kernel")
    (public / "boots").symlink_to("boot")
    os.mkfifo(public / "pipe")


@pytest.mark.case(94)
@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/nothing",
        "/boot",
        "/boot/",
        "/../config/cp-token",
        "/%2e%2e/config/cp-token",
        "/boot/../../config/cp-token",
        "/boot/%2e%2e%2f%2e%2e%2fconfig/cp-token",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/boot//kernel",
        "/./boot/kernel",
        "/boot/kernel%00",
        "/boot/kernel%00.txt",
        "/boot/%ff",
        "/boot/kernel%0a",
        "/" + "x" * 300,
        "/" + "x/" * 2000,
        "/boot/kernel/x",
        "/.hidden",
        "/boot/.git/config",
        "/out",
        "/relative-out",
        "/root/etc/hostname",
        "/to-hidden",
        "/loop",
        "/dangling",
        "/pipe",
    ],
)
def test_a_miss_is_plain_text(firmware: Client, path: str) -> None:
    answer = firmware.get(f"/file{path}", headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/plain")
    assert answer.content == b"not found\n"


@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize("path", ["/latest", "/boots/kernel"])
def test_links_that_stay_inside_are_followed(firmware: Client, path: str) -> None:
    assert _get(firmware, f"/file{path}")[:2] == (200, BODY)


def test_half_of_the_threads_and_no_more(settings: Any, layout: Layout) -> None:
    assert settings.IPXE.serve_threads == 8
    mine = Places()
    assert [mine.take() for _ in range(5)] == [True] * 4 + [False]
    mine.free()
    assert mine.take()


def test_served_by_the_real_server(tmp_path: Path) -> None:
    """Slow readers take half of the threads: the next is sent away for later, and boots are answered all the same."""
    service = Service(tmp_path / "root", IPXE_SERVE_THREADS="4")
    service.start()
    try:
        public = tmp_path / "root/public"
        (public / "small").write_bytes(BODY)
        with (public / "large").open("wb") as stream:
            stream.truncate(256 << 20)
        part = service.get("/file/small", Range="bytes=10-19")
        assert (part.status, part.body) == (206, BODY[10:20])
        whole = service.get("/file/small")
        assert (whole.status, whole.body) == (200, BODY)
        assert whole.headers["Content-Length"] == "1024"
        slow = [_reader(service.port) for _ in range(2)]
        try:
            busy = service.get("/file/small")
            assert busy.status == 503, busy.body
            assert busy.headers["Retry-After"] == "2"
            assert busy.headers["Content-Type"].startswith("text/plain")
            assert service.get("/boot-vars?mac=x").status == 200
            assert service.get("/healthz").status == 200
        finally:
            for each in slow:
                each.close()
        for _ in range(100):
            answer = service.get("/file/small")
            if answer.status == 200:
                break
        assert (answer.status, answer.body) == (200, BODY)
    finally:
        service.end()


def _raw(port: int, request: bytes) -> bytes:
    """The whole answer to a request written by hand."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(request + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b""
        while more := line.recv(65536):
            answer += more
    return answer


def test_addresses_written_by_hand_at_the_real_server(tmp_path: Path) -> None:
    """What clients and this test's own libraries would tidy up before they send it."""
    service = Service(tmp_path / "root")
    service.start()
    try:
        public = tmp_path / "root/public"
        (public / "boot").mkdir()
        (public / "boot/kernel").write_bytes(BODY)
        (public / os.fsdecode(b"latin-\xe9")).write_bytes(b"byte")
        (public / "latin-%E9").write_bytes(b"spelling")
        for path, body in (
            (b"/file/latin-%E9", b"byte"),
            (b"/file/latin-%e9", b"byte"),
            (b"http://x/api/cp/file/latin-%E9?a=b", b"byte"),
            (b"/file/latin-%25E9", b"spelling"),
            (b"/%66ile/boot/kernel/", BODY),
        ):
            answer = _raw(service.port, b"GET %b HTTP/1.1" % path)
            assert answer.startswith(b"HTTP/1.1 200 "), path
            assert answer.endswith(b"\r\n\r\n" + body), path
        for path in (
            b"/file/../config/cp-token",
            b"/file/%2e%2e/config/cp-token",
            b"/file/%2E%2E%2Fconfig%2Fcp-token",
            b"/file/boot/..%2f..%2fconfig/cp-token",
            b"/file/..%c0%afconfig/cp-token",
            b"/file/..\\config\\cp-token",
            b"/file//etc/passwd",
            b"http://x/file/../config/cp-token",
            b"/file/boot/kernel%00",
            b"/file/%00",
            b"/file/%ff",
            b"/file/%",
            b"/file/boot",
            b"/file/boot/",
            b"/file/",
            b"/file",
        ):
            answer = _raw(service.port, b"GET %b HTTP/1.1" % path)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 404 "), (path, answer)
            assert b"\r\nContent-Type: text/plain" in head, (path, answer)
            assert body == b"not found\n", (path, answer)
        for path, status in ((b"/file/boot/kernel", b"200"), (b"/file/x", b"404")):
            answer = _raw(service.port, b"HEAD %b HTTP/1.1" % path)
            assert answer.startswith(b"HTTP/1.1 %b " % status)
            assert answer.endswith(b"\r\n\r\n"), answer
            assert b"\r\nContent-Length: " in answer
        ranged = b"GET /file/boot/kernel HTTP/1.1\r\nRange: bytes=0-3"
        for more, status in (
            (b"", b"206"),
            (b",5-6", b"200"),
            (b"\r\nIf-Range: W/%b", b"200"),
            (b"\r\nIf-Range: %b", b"206"),
        ):
            if b"%b" in more:
                more = more % service.get("/file/boot/kernel").headers["ETag"].encode()
            answer = _raw(service.port, ranged + more)
            assert answer.startswith(b"HTTP/1.1 %b " % status), more
    finally:
        service.end()


def _reader(port: int) -> socket.socket:
    """Ask for the large file and read its first bytes only."""
    for _ in range(100):
        reader = socket.create_connection(("127.0.0.1", port), timeout=20)
        reader.sendall(b"GET /file/large HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = http.client.HTTPResponse(reader)
        answer.begin()
        if answer.status == 200:
            return reader
        # Whoever got the last byte is seen to have gone a moment later.
        reader.close()
    raise AssertionError(answer.status)
