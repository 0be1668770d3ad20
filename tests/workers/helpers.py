"""What the tests of workers and boots read from the files, past the product."""

from __future__ import annotations

import json
from typing import Any

import yaml
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout

M1, M2, M3 = (f"52:54:00:00:00:0{n}" for n in (1, 2, 3))


def ledger(layout: Layout) -> dict[str, Any]:
    """The workers as the file has them."""
    return dict(yaml.safe_load(layout.workers_yml.read_bytes())["workers"] or {})


def trail(layout: Layout, op: str) -> list[dict[str, Any]]:
    """The audit lines of one operation, as the file has them."""
    lines = [json.loads(line) for line in layout.operations.read_text().splitlines()]
    return [line for line in lines if line["op"] == op]


def live_hosts(layout: Layout) -> list[str]:
    """The lines of the hosts file that are no comments."""
    lines = layout.dhcp_hosts.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def snapshot(layout: Layout) -> dict[str, tuple[int, int, bytes]]:
    """Inode, mtime and bytes of every file that a refusal must leave alone."""
    found = {}
    for path in (layout.workers_yml, layout.dhcp_hosts, layout.settings_json):
        seen = path.stat()
        found[path.name] = (seen.st_ino, seen.st_mtime_ns, path.read_bytes())
    return found


def refusal(
    client: APIClient, method: str, path: str, body: Any = None, **more: Any
) -> tuple[int, str]:
    """Status and words of a refusal: fields of the detail are written before their texts."""
    answer = getattr(client, method)(path, body, **more)
    detail = answer.json()["detail"]
    if isinstance(detail, dict) and set(detail) == {"agent", "error"}:
        return answer.status_code, f"{detail['agent']}: {detail['error']}"
    return answer.status_code, _words(detail)


def _words(detail: Any) -> str:
    if isinstance(detail, dict):
        return "; ".join(f"{key}: {_words(value)}" for key, value in detail.items())
    if isinstance(detail, list):
        return " ".join(_words(each) for each in detail)
    return str(detail)
