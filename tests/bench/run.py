"""`make bench`: figures of this machine, on a temporary root that goes afterwards.

Start-up, one registration through the API, and /boot-vars for the machine that was registered.
"""

from __future__ import annotations

import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.served import Service

REPEATS = 200


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    before = time.perf_counter()
    call()
    return (time.perf_counter() - before) * 1000


def line(what: str, values: list[float]) -> None:
    """One figure: the median and the worst."""
    worst = f", worst {max(values):.1f} ms of {len(values)}" if len(values) > 1 else ""
    sys.stdout.write(f"{what:<34} {statistics.median(values):8.1f} ms{worst}\n")


def main() -> int:
    """Run it all; the exit status tells whether every answer was right."""
    with tempfile.TemporaryDirectory(prefix="ipxeready-bench-") as folder:
        service = Service(Path(folder) / "root", IPXE_SERVE_WORKERS="2")
        try:
            line("start on an empty root", [timed(service.start)])
            return measure(service)
        finally:
            service.end()


def measure(service: Service) -> int:
    """Figures of a service that answers."""
    token = (service.root / "config" / "cp-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    wrong: list[str] = []

    def ask(method: str, path: str, expected: int, body: object = None) -> None:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != expected:
            wrong.append(f"{method} {path}: {answer.status} {text[:200]!r}")

    def register(number: int) -> None:
        mac = f"52:54:00:00:00:{number:02x}"
        ask("POST", "/workers", 201, {"worker_id": f"bench-{number}", "mac": mac})

    line("one registration", [timed(lambda n=n: register(n)) for n in range(1, 21)])
    path = "/boot-vars?mac=52:54:00:00:00:01"
    line("/boot-vars", [timed(lambda: ask("GET", path, 200)) for _ in range(REPEATS)])
    line(
        "/healthz", [timed(lambda: ask("GET", "/healthz", 200)) for _ in range(REPEATS)]
    )
    line(
        "GET /workers", [timed(lambda: ask("GET", "/workers", 200)) for _ in range(20)]
    )
    connection.close()
    for words in wrong[:3]:
        sys.stderr.write(f"wrong answer: {words}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
