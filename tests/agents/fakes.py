"""Servers that are no storage nodes: for what a real one never does."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CAPABILITIES = {
    "backend": "files",
    "cd": False,
    "persistent": True,
    "base_iqn": "iqn.2026-07.com.controller",
    "fs_type": "xfs",
    "clone": True,
    "empty_disk": True,
    "reflink": True,
    "free_bytes": 1 << 40,
    "total_bytes": 2 << 40,
}


class Fake:
    """A server and what it was asked."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.requests: list[tuple[str, str, dict[str, str]]] = []


@contextlib.contextmanager
def http_server(
    answer: Callable[[str, str], tuple[int, dict[str, str], bytes]],
) -> Iterator[Fake]:
    """A server whose answers are made by `answer(method, path)`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            fake.requests.append((self.command, self.path, dict(self.headers)))
            status, headers, body = answer(self.command, self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_PUT = do_PATCH = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake = Fake(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def node_like(
    capabilities: dict[str, Any] | None = None,
    masters: list[str] | None = None,
    size: int = 1 << 20,
) -> contextlib.AbstractContextManager[Fake]:
    """A server that says of itself what no node here can be made to say."""
    bodies: dict[str, Any] = {
        "/healthz": {"status": "ok"},
        "/capabilities": {**CAPABILITIES, **(capabilities or {})},
        "/masters": {
            "masters": [
                {"name": name, "size": size, "mtime": "2026-01-01T00:00:00+00:00"}
                for name in masters or []
            ]
        },
    }

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        return (
            200,
            {"Content-Type": "application/json"},
            json.dumps(bodies[path]).encode(),
        )

    return http_server(answer)


def health_like(**fields: Any) -> contextlib.AbstractContextManager[Fake]:
    """A server whose every answer is a node's health."""
    body = {
        "backend": {"name": "stgt", "alive": True, "ours": True},
        "room": {"free": 1 << 30, "total": 1 << 40, "reserve": 1, "promised": 2},
        "fs": {"type": "xfs", "reflink": True, "mount": "/srv"},
        "targets": {"ours": 1, "foreign": 0, "sessions": 0},
        "images": {"disks": 1, "masters": 1, "isos": 0, "kept": 0},
        "problems": [],
        **fields,
    }
    raw = json.dumps(body).encode()
    return http_server(lambda *_: (200, {"Content-Type": "application/json"}, raw))


@contextlib.contextmanager
def silent(dribble: bytes = b"") -> Iterator[str]:
    """Accepts, reads and never answers; or sends `dribble`, byte by byte and for ever."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    held: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while not stop.is_set():
                client, _ = server.accept()
                held.append(client)
                if dribble:
                    threading.Thread(target=drip, args=(client,), daemon=True).start()

    def drip(client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.sendall(dribble)
            while not stop.wait(0.05):
                client.sendall(b" ")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        for client in held:
            client.close()
