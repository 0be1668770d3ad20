"""A room in which everything that a file, a node or a machine can say is hostile text, and how to see whether it got through."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ipxeready.storage.jobs import Job
from ipxeready.storage.paths import Layout
from tests.agents.fakes import CAPABILITIES, Fake, http_server

#: Markup, both quotes, an entity, a template; then turning, invisible and controlling characters.
MARKUP = (
    "<script>alert(1)</script><b data-evil=\"1\" onmouseover='alert(2)'>&lt;{{ x }}"
)
TURNING = "\u202eRTL\u2066\u200b\u05d0\x1b[31m\x07\x7f"
EVIL = MARKUP + TURNING
#: As the name of a file.
EVIL_FILE = EVIL.replace("/", "\\")
BASE = "iqn.2026-07.com.controller"
JOB = "20261130-100000-0123abcd"
NODE_JOB = "20261130-100000-0123abce"
_STAMP = "2026-11-30T10:00:00+00:00"
#: Characters that act on the text around them, or that nobody sees.
_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def job(job_id: str, state: str) -> dict[str, Any]:
    """A job with hostile text in all that is text."""
    return dataclasses.asdict(
        Job(
            id=job_id,
            kind=EVIL,
            by=EVIL,
            about={
                "worker_id": EVIL,
                "agent": EVIL,
                "iqn": EVIL,
                "master": EVIL,
                EVIL: {EVIL: EVIL},
            },
            state=state,
            created=_STAMP,
            started=_STAMP,
            ended=_STAMP,
            result={
                name: [{"worker_id": EVIL, "reason": EVIL, "error": EVIL, EVIL: EVIL}]
                for name in ("succeeded", "skipped", "failed", "created")
            },
            error={"status": 409, "detail": {EVIL: [EVIL]}},
        )
    )


_TARGETS = [
    {
        "iqn": iqn,
        "tid": number,
        "luns": [
            {"lun": 1, "backing": f"/images/{EVIL}.img", "size": 1 << 20, "type": EVIL}
        ],
        "sessions": [
            {"initiator": EVIL, "address": EVIL, "since": EVIL, "id": EVIL},
            {"initiator": EVIL, "address": EVIL},
        ],
        "access": EVIL,
        "initiators": [EVIL],
    }
    for number, iqn in enumerate(
        (f"{BASE}:worker-01.ubuntu", f"{BASE}:{EVIL}", f"{BASE}:{MARKUP}?#%&+ /"), 1
    )
]
_ANSWERS: dict[str, Any] = {
    "/healthz": {"status": "ok"},
    "/capabilities": {
        **CAPABILITIES,
        "backend": EVIL,
        "base_iqn": EVIL,
        "fs_type": EVIL,
        "cd": True,
        "making": [EVIL],
        "removing": [EVIL],
        EVIL: EVIL,
    },
    "/masters": {
        "masters": [
            {"name": f"{EVIL}_tpl_.img", "size": 1 << 20, "mtime": EVIL},
            {"name": "good_tpl_.img", "size": 1 << 20, "mtime": _STAMP},
        ]
    },
    "/lun": _TARGETS,
    "/images": {
        "images": [
            {
                "name": f"{name}.{kind}",
                "kind": EVIL if kind == "odd" else kind,
                "size": 1 << 20,
                "allocated": 1,
                "mtime": mtime,
                "problem": EVIL,
                **target,
            }
            for name, mtime, target in (
                (EVIL, EVIL, {"target": EVIL}),
                (f"{EVIL_FILE}?#%&+ ;", _STAMP, {}),
                (f"other {EVIL_FILE}", "", {}),
            )
            for kind in ("disk", "master", "iso", "source", "other", "odd")
        ],
        "formats": [EVIL],
    },
    "/health": {
        "backend": {"name": EVIL, "alive": False, "ours": False, "error": EVIL},
        "room": {"free": 1 << 30, "total": 1 << 40, "reserve": 1, "promised": 2},
        "fs": {"type": EVIL, "reflink": True, "mount": EVIL},
        "targets": {"ours": 1, "foreign": 1, "sessions": 1},
        "images": {"disks": 1, "masters": 1, "isos": 0, "kept": 0},
        "problems": [EVIL, f"second {EVIL}"],
    },
    "/jobs": {"jobs": [job(NODE_JOB, "failed"), job(NODE_JOB[:-1] + "f", "running")]},
    "/logs": {
        "next_cursor": 3,
        "entries": [
            {"id": 3, "ts": _STAMP, "op": EVIL, "status": EVIL, EVIL: {EVIL: [EVIL]}},
            {"id": 2, "ts": EVIL, "op": {EVIL: EVIL}, "status": None, "error": EVIL},
            {"id": EVIL, "iqn": EVIL},
        ],
    },
    "/uploads": {
        "uploads": [
            {
                "id": "0abc",
                "name": EVIL,
                "size": 10,
                "offset": 5,
                "sha256": EVIL,
                "created": EVIL,
                "changed": EVIL,
            }
        ]
    },
}


def _answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(path)
    body, status = _ANSWERS.get(parts.path), 200
    if method == "DELETE":
        name = next(iter(parse_qs(parts.query).values()), [EVIL])[0]
        body = {"deleted": name, "freed": 1}
    elif body is None or method != "GET":
        body, status = {"detail": f"refused {EVIL}"}, 409
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


def hostile_node() -> contextlib.AbstractContextManager[Fake]:
    """A storage node that answers with hostile text, and refuses with it."""
    return http_server(_answer)


def furnish(layout: Layout, base_url: str) -> None:
    """Hostile text in every file, around records that can be used; the node is at `base_url`."""
    node = {
        "base_url": base_url,
        "token": "a-secret-of-the-node",
        "iscsi_server": "192.0.2.9",
        "role": {"disk": True, "cd": True},
        "tags": ["stgt"],
        "enabled": True,
        "access": "off",
        EVIL: EVIL,
    }
    nodes = {
        "node_22": node,
        "strange": {**node, "base_url": f"http://127.0.0.1:9/{EVIL}"},
        "tagged": {**node, "tags": [EVIL]},
        "stranger": {**node, "iscsi_server": EVIL, "access": EVIL},
        EVIL: node,
    }
    layout.agents_yml.write_text(json.dumps({"agents": nodes}))
    disk = {
        "agent": "node_22",
        "iqn": f"{BASE}:worker-01.ubuntu",
        "filename": f"{EVIL}.img",
        "backing": f"/images/{EVIL}.img",
        "os": "ubuntu",
        "source": {"type": "master", "name": EVIL, EVIL: EVIL},
        EVIL: EVIL,
    }
    worker = {
        "hostname": "worker-01",
        "state": "ready",
        "disks": [
            disk,
            {
                **disk,
                "os": "windows",
                "iqn": f"{BASE}:worker-01.windows",
                "status": "creating",
                "source": {"type": EVIL, "size": EVIL},
            },
        ],
        "cd": {
            "agent": "node_22",
            "iqn": f"{BASE}:worker-01.windows.iso",
            "iso": f"{EVIL}.iso",
            "backing": f"/images/{EVIL}.iso",
        },
        "note": EVIL,
        EVIL: {EVIL: [EVIL]},
    }
    workers = {
        "worker_22": worker,
        "w-odd-agent": {
            "hostname": "w-odd-agent",
            "disks": [{**disk, "agent": EVIL, "iqn": f"{BASE}:w-odd-agent.ubuntu"}],
        },
        "w-odd-os": {"hostname": "w-odd-os", "disks": [{**disk, "os": EVIL}]},
        "w-odd-iqn": {"hostname": "w-odd-iqn", "disks": [{**disk, "iqn": EVIL}]},
        "w-odd-boot": {
            "hostname": "w-odd-boot",
            "default_os": EVIL,
            "boot": {"menu_default": EVIL, "menu_timeout": EVIL, EVIL: EVIL},
        },
        "w-odd-host": {"hostname": EVIL},
        "w-odd-arch": {"hostname": "w-odd-arch", "arch": EVIL},
        "w-odd-state": {"hostname": "w-odd-state", "state": EVIL, "access": EVIL},
        EVIL: {"hostname": "w-odd-id"},
    }
    layout.workers_yml.write_text(json.dumps({"workers": workers}))
    layout.dhcp_hosts.write_text(
        "52:54:00:12:34:01,worker-01\n"
        f"52:54:00:12:34:02,{EVIL}\n"
        f"{EVIL},worker-02\n"
        f"52:54:00:12:34:03,set:{EVIL},w-odd-agent,192.0.2.3 # {EVIL}\n"
        f"52:54:00:12:34:04,no-record # {EVIL}\n"
        f"# {EVIL}\n",
        encoding="utf-8",
    )
    with layout.users_yml.open("a") as stream:
        for name in (EVIL, "odd-role"):
            person = {"role": EVIL, "password": EVIL, "active": EVIL, EVIL: EVIL}
            stream.write(f"  {json.dumps(name)}: {json.dumps(person)}\n")
    layout.settings_json.write_text(json.dumps({"auto_register": True, EVIL: EVIL}))
    layout.jobs.mkdir(exist_ok=True)
    for number, state in enumerate(("failed", "done", "queued", "cancelled")):
        name = f"{JOB[:-1]}{number}"
        (layout.jobs / f"{name}.json").write_text(json.dumps(job(name, state)))
    fields = ("op", "status", "worker_id", "agent", "client", "user", "job", "error")
    lines: list[dict[str, Any]] = [
        {"ts": _STAMP, **dict.fromkeys(fields, EVIL), EVIL: {EVIL: [EVIL]}},
        {"ts": EVIL, **{key: {EVIL: EVIL} for key in fields}},
        {"ts": _STAMP, "op": "worker.mac.update", "status": "ok", "worker_id": "worker_22",
         "agent": "node_22", "old_mac": EVIL, "new_mac": EVIL, "user": EVIL, "client": EVIL},
        {"ts": _STAMP, "op": "boot.refused", "status": "failed", "mac": EVIL, "hostname": EVIL,
         "reason": EVIL, "worker_id": "worker_22"},
        {"ts": _STAMP, "op": "boot.stale_name", "status": "ok", "mac": "52:54:00:12:34:01",
         "hostname": EVIL, "claimed": EVIL, "worker_id": "worker_22"},
        {"ts": _STAMP, "op": "external.edit", "status": "ok", "file": EVIL, "records": [EVIL]},
        {"ts": _STAMP, "op": "file.broken", "status": "failed", "file": EVIL, "error": EVIL},
    ]  # fmt: skip
    with layout.operations.open("a") as stream:
        for number, line in enumerate(lines, 1000):
            stream.write(json.dumps({"id": number, **line}) + "\n")
        stream.write(f"{EVIL}\n")
    folder = layout.public / EVIL_FILE
    folder.mkdir(parents=True)
    (folder / folder.name).write_bytes(b"evil")


class Seen(HTMLParser):
    """A page as a browser would read it: links, forms, and whatever of the hostile text acts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.actions: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self._script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes links and forms, and what should not be there."""
        given = {name: value or "" for name, value in attrs}
        if tag == "script":
            self._script = True
        for name in given:
            if name == "data-evil" or name.startswith("on") or name == "style":
                self.faults.append(f"<{tag} {name}>")
        for name, value in given.items():
            # What a form sends back must be what it is.
            if name not in ("value", "href", "action", "data-query") and (
                found := _ACTING.search(value)
            ):
                self.faults.append(f"<{tag} {name}> holds {found[0]!r}")
            if name in ("href", "src", "action") and _ACTING.search(value):
                self.faults.append(f"<{tag} {name}> is not quoted: {value!r}")
            if name in ("href", "src", "action") and not re.match(
                r"https?://|[/?#]|data:|$", value
            ):
                self.faults.append(f"<{tag} {name}> leads to {value[:80]!r}")
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "form":
            self.actions.append((given.get("method", "get"), given.get("action", "")))

    def handle_endtag(self, tag: str) -> None:
        """Ends a script."""
        if tag == "script":
            self._script = False

    def handle_data(self, data: str) -> None:
        """Text: nothing in it acts, and no script is inline."""
        if self._script and "alert" in data:
            self.faults.append(f"a script: {data[:80]!r}")
        if found := _ACTING.search(data):
            around = data[max(found.start() - 40, 0) : found.end() + 10]
            self.faults.append(f"text holds {found[0]!r} after {around!r}")


def shapes(addresses: list[str]) -> Iterator[str]:
    """The addresses without those that differ in numbers only."""
    known = set()
    for address in addresses:
        shape = re.sub(r"[0-9]+", "0", address)
        if shape not in known:
            known.add(shape)
            yield address
