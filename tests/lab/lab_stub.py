"""Answers on the controller's port in place of the product: for what the product never sends, and what a site may lack.

As a program: `lab_stub.py FOLDER [PORT]` serves the files of FOLDER (/boot-vars is the file boot-vars), or, when FOLDER is
"silent", accepts and never answers.
"""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PORT = 4839


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path

    def do_GET(self) -> None:
        path = self.folder / urlsplit(self.path).path.lstrip("/")
        found = path.is_file()
        body = path.read_bytes() if found else b"no such file\n"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Listen, say so, and serve until ended."""
    what = sys.argv[1]
    if what == "silent":
        listener = socket.create_server(("", PORT))
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        held = []
        while True:
            held.append(listener.accept())
            sys.stdout.write("asked\n")
            sys.stdout.flush()
    _Handler.folder = Path(what)
    server = ThreadingHTTPServer(("", PORT), _Handler)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
