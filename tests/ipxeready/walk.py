"""Every address of the control plane with every method and a body that could succeed, found by looking: URLconf, serializers, forms of pages.

A new page or endpoint is found by itself. It needs a word here only when it has a parameter of a new name (THERE), or a
body that cannot be made from the names of its fields (BODIES, QUERIES).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import Resolver404, resolve
from rest_framework import serializers

from tests.nodes import BASE
from tests.site_map import Place, There

READING = ("get", "head", "options")
WRITING = ("post", "put", "patch", "delete")
UPLOAD, TOKEN_OF_ALICE, TOKEN_OF_VICTOR, TOKEN_OF_OSCAR = (
    "0123456789abcdef",
    "a00000000001",
    "a00000000002",
    "a00000000003",
)
JOB = "20261130-100000-0123abcd"

#: What is there.
THERE = There(
    values={
        "worker_id": ("pc1",),
        "os": ("debian",),
        "agent_id": ("n",),
        "job_id": (JOB,),
        "upload_id": (UPLOAD,),
        "token_id": (TOKEN_OF_ALICE, TOKEN_OF_VICTOR, TOKEN_OF_OSCAR),
        "username": ("alice", "victor", "oscar", "idle"),
        "path": ("boot/vmlinuz",),
        "app_label": ("workers", "users"),
        "content_type_id": ("1",),
        "url": ("nothing",),
        "what": ("create", "delete"),
        "below": ("boot",),
        "number": ("1",),
    },
    objects={
        "workers/worker": ("pc1",),
        "agents/agent": ("n",),
        "audit/operation": ("1",),
        "bootvars/setting": ("auto_register",),
        "users/operator": ("alice", "idle", "oscar", "victor"),
        "r": ("1",),
    },
)

#: Values of fields by name, for bodies of the API and inputs of forms.
FIELDS: dict[str, Any] = {
    "worker_id": "pc9",
    "id": "n9",
    "mac": "52:54:00:00:00:99",
    "hostname": "pc9",
    "base_url": "{node}",
    "token": "another",
    "iscsi_server": "192.0.2.8",
    "tags": ["fast"],
    "os": "debian",
    "size": "2M",
    "type": "empty",
    "access": "off",
    "enabled": False,
    "worker_ids": ["pc1"],
    "targets": [{"worker_id": "pc2", "agent": "n"}],
    "iso": "setup.iso",
    "iqn": f"{BASE}:pc9.debian",
    "name": "fresh.img",
    "source": "source.qcow2",
    "username": "mallory",
    "password": "correct horse battery",
    "old_password": "correct horse battery",
    "new_password1": "another horse battery",
    "new_password2": "another horse battery",
    "role": "viewer",
    "days": 5,
    "menu_default": "reboot",
    "menu_timeout": 1000,
    "master": "debian_tpl_1.img",
    "agent": "n",
    "delete_disk": True,
    "ignore_missing_target": True,
    "post": "yes",
    "worker": "pc2",
    "chosen": "pc2",
    "asked": "1",
    "macs": "52:54:00:00:00:77",
}
#: Bodies that the names alone do not make, by the name of the address.
BODIES: dict[str, tuple[Any, ...]] = {
    "workers": (
        {"worker_id": "pc9", "mac": "52:54:00:00:00:99"},
        {"worker_id": "pc8", "mac": "52:54:00:00:00:98", "windows_iso": "setup.iso"},
    ),
    "worker-default-os": ({"os": "debian", "menu_timeout": 5},),
    "worker-access": ({"access": "off"}, {"rotate": True, "access": "chap"}),
    "worker-disks": (
        {"type": "empty", "os": "ubuntu", "size": "1M", "disk_agent": "n"},
    ),
    "disk-batch": (
        {
            "type": "empty",
            "os": "ubuntu",
            "size": "1M",
            "targets": [{"worker_id": "pc1", "agent": "n"}],
        },
    ),
    "worker-disk-reset": ({"master": "debian_tpl_1.img"},),
    "worker-cd": ({"iso": "setup.iso", "agent": "n"},),
    "agents": ({"id": "n9", "base_url": "http://127.0.0.1:9", "token": "t"},),
    "agent": (
        {"enabled": False},
        {"base_url": "http://127.0.0.1:9", "token": "t"},
        {"token": "thief"},
        {"access": "off"},
    ),
    "agent-probe": (
        {"agent_id": "n", "base_url": "{node}"},
        {"base_url": "{node}", "token": "t"},
    ),
    "agent-access": ({"access": "off"}, {"access": "off", "force": True}),
    "agent-lun-disk": ({"iqn": f"{BASE}:pc9.debian", "size": "1M"},),
    "agent-lun-cd": ({"iso": "setup.iso"},),
    "agent-image-convert": ({"source": "source.qcow2", "name": "made.img"},),
    "agent-uploads": ({"name": "fresh.img", "size": 512},),
    "agent-upload-finish": ({}, {"name": "fresh.img"}),
    "auto-register": ({"enabled": False},),
    "tokens": (
        {"name": "mine"},
        {"name": "theirs", "user": "alice"},
        {"name": "strong", "role": "administrator"},
        {"name": "theirs", "user": "idle", "role": "operator"},
    ),
}
#: Queries of deletions and pieces, by the name of the address.
QUERIES: dict[str, tuple[str, ...]] = {
    "agent-luns": (f"iqn={BASE}:loose.debian", f"iqn={BASE}:loose.debian&force=true"),
    "agent-images": ("name=setup.iso", "name=debian_tpl_1.img&master=true"),
    "agent-upload": ("offset=0",),
    "worker": ("delete_disk=true&ignore_missing_target=true&force=true",),
    "worker-disk": ("delete_file=true&ignore_missing_target=true&force=true",),
}
_JSON = "application/json"


@dataclass(frozen=True)
class Call:
    """One request."""

    name: str
    method: str
    path: str
    body: str = ""
    kind: str = ""

    def send(self, client: Any, **headers: Any) -> Any:
        """Its answer."""
        given = {"data": self.body, "content_type": self.kind} if self.kind else {}
        return getattr(client, self.method)(self.path, **given, **headers)

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path} {self.body[:300]}"


def calls(place: Place, node: str) -> Iterator[Call]:
    """Every method; the writing ones without a body and with each body that could succeed."""
    for method in READING:
        yield Call(place.name, method, place.path)
    queries = ("", *QUERIES.get(place.name, ()))
    for method in WRITING:
        for query in queries:
            path = f"{place.path}?{query}" if query else place.path
            yield Call(place.name, method, path)
        if place.api is None:
            if method == "post":
                data = _encoded(_form(FIELDS), node)
                yield Call(place.name, method, place.path, data, _FORM)
            continue
        if method in ("patch",):
            path = f"{place.path}?{queries[-1]}"
            yield Call(place.name, method, path, "x" * 16, "application/octet-stream")
        for body in _bodies(place):
            text = json.dumps(body).replace("{node}", node)
            yield Call(place.name, method, place.path, text, _JSON)


_FORM = "application/x-www-form-urlencoded"


def _form(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if not isinstance(value, dict)}


def _bodies(place: Place) -> tuple[Any, ...]:
    if place.name in BODIES:
        return BODIES[place.name]
    serializer = getattr(place.api, "serializer_class", None)
    if serializer is None:
        return ()
    fields = serializer().fields
    whole = {name: _value(name, each) for name, each in fields.items()}
    needed = {name: whole[name] for name, each in fields.items() if each.required}
    return (whole,) if whole == needed else (needed, whole)


def _value(name: str, each: Any) -> Any:
    if name in FIELDS:
        return FIELDS[name]
    if isinstance(each, serializers.BooleanField):
        return True
    if isinstance(each, serializers.IntegerField):
        return 1
    if isinstance(each, serializers.ListField | serializers.ListSerializer):
        return []
    return "x"


# --- forms of pages -------------------------------------------------------------
class _Forms(HTMLParser):
    """The POST forms of a page: where they go, and what a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[
            tuple[str, dict[str, list[list[str]]], dict[str, list[str]]]
        ] = []
        #: What a browser sends when nobody touches anything.
        self._asis: dict[str, list[str]] = {}
        self._here: dict[str, list[list[str]]] | None = None
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._here = None
            if given.get("method", "").lower() == "post":
                self._here, self._asis = {}, {}
                self.forms.append((given.get("action", ""), self._here, self._asis))
            return
        if self._here is None:
            return
        name = given.get("name", "")
        if tag == "select":
            self._select = name
        elif tag == "option" and self._select:
            value = given.get("value", "")
            self._add(self._select, value)
            if "selected" in given or self._select not in self._asis:
                self._asis[self._select] = [value]
        elif tag == "textarea" or (tag == "input" and name):
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio"):
                self._add(name, given.get("value", "on"))
                if "checked" in given:
                    self._asis.setdefault(name, []).append(given.get("value", "on"))
            elif kind != "file":
                self._add(name, given.get("value", ""))
                if kind != "submit":
                    self._asis.setdefault(name, []).append(given.get("value", ""))
        elif tag == "button" and name:
            self._add(name, given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._here = None
        if tag == "select":
            self._select = ""

    def _add(self, name: str, value: str) -> None:
        if name and self._here is not None:
            self._here.setdefault(name, []).append([value])


def _encoded(data: dict[str, Any], node: str) -> str:
    return urlencode(data, doseq=True).replace("%7Bnode%7D", quote(node, safe=""))


def form_calls(path: str, page: str, node: str) -> Iterator[Call]:
    """What the forms of a page would send: as it is, and with everything filled and the last choice taken."""
    parser = _Forms()
    parser.feed(page)
    for action, inputs, asis in parser.forms:
        name = ""
        target = action if action.startswith("/") else path
        with contextlib.suppress(Resolver404):
            name = resolve(target.partition("?")[0]).url_name or ""
        # What differs from page to page and decides nothing would make the same call many times.
        sent = {key: value for key, value in inputs.items() if key not in _NOISE}
        first = {key: values[0][0] for key, values in sent.items()}
        last = {key: values[-1][0] for key, values in sent.items()}
        filled = {key: value or str(FIELDS.get(key, "")) for key, value in last.items()}
        named = {
            **first,
            **{key: str(FIELDS[key]) for key in sent if key in FIELDS and _plain(key)},
        }
        ticked = {key: [value[0] for value in values] for key, values in sent.items()}
        seen: set[str] = set()
        begun = {**asis, **{key: sent[key][0] for key in _PRESSED if key in sent}}
        for data in (asis, begun, first, filled, named, ticked, *_actions(sent)):
            said = {key: value for key, value in data.items() if key not in _NOISE}
            text = _encoded({"post": "yes", **said}, node)
            if text not in seen:
                seen.add(text)
                yield Call(name, "post", target, text, _FORM)


#: Buttons that say something.
_PRESSED = ("begin", "confirmed")
_NOISE = frozenset({"csrfmiddlewaretoken", "next"})


def _plain(key: str) -> bool:
    return isinstance(FIELDS[key], str | int) and not isinstance(FIELDS[key], bool)


def _actions(sent: dict[str, list[list[str]]]) -> Iterator[dict[str, Any]]:
    """A list's actions, each on each row, with and without the answer yes."""
    rows = [value[0] for value in sent.get("_selected_action", [])]
    for action in {value[0] for value in sent.get("action", [])} - {""}:
        yield {"action": action, "_selected_action": rows, "index": "0"}
        for row in rows:
            yield {"action": action, "_selected_action": [row], "index": "0"}
