"""Who may change what, proven over every address and method: a viewer nothing, an operator neither people nor nodes nor tokens.

What belongs to one's own account is one's own business in every role: password, sessions, one's own tokens. Those
addresses (OWN) may change these fields of one's own record, and nothing else. Firmware is nobody in particular:
what `/boot-vars` registers for an unknown machine is the machine's, not the caller's (tests/bootvars).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import Client

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, OPERATOR, VIEWER, Actor
from ipxeready.jobs.runner import runner
from ipxeready.storage.jobs import Job
from ipxeready.storage.paths import Layout
from ipxeready.users import services, throttle
from ipxeready.users.models import Operator
from ipxeready.users.tokens import digest_of
from tests.agents.fakes import CAPABILITIES, http_server
from tests.conftest import TOKEN
from tests.ipxeready import walk
from tests.ipxeready.walk import Call
from tests.nodes import BASE
from tests.site_map import patterns, places
from tests.workers.stub import Stub

PASSWORD = "correct horse battery"
PEOPLE = {
    "alice": ADMINISTRATOR,
    "oscar": OPERATOR,
    "victor": VIEWER,
    # Another administrator, so that nobody is kept by being the last one.
    "idle": ADMINISTRATOR,
}
SECRET = "s" * 43
TOKENS = {
    "alice": walk.TOKEN_OF_ALICE,
    "victor": walk.TOKEN_OF_VICTOR,
    "oscar": walk.TOKEN_OF_OSCAR,
}
#: A token of an administrator that was made for a viewer's work.
WEAK = "a00000000009"
#: Addresses of one's own account, and what they may change of one's own record.
OWN = {
    "account_token_add": {"tokens"},
    "account_token_revoke": {"tokens"},
    "account_sessions": {"nonce"},
    "accounts_token_add": {"tokens"},
    "accounts_token_revoke": {"tokens"},
    "accounts_sessions": {"nonce"},
    "password_change": {"password"},
    "tokens": {"tokens"},
    "token": {"tokens"},
}
#: What an operator is refused over the API, whatever is sent.
ADMINISTERED = {
    ("agents", "post"),
    ("agent", "put"),
    ("agent", "delete"),
    ("agent-probe", "post"),
    ("agent-access", "post"),
}
#: Not below the root's truth: what runs, who holds the lock, and the audit itself.
BESIDE = ("state/run/", "state/.lock", "state/operations.jsonl")


class Node(Stub):
    """A node that has one of everything and says yes."""

    def _answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if method == "GET":
            return 200, self._shown(path)
        if path == "/lun/access":
            return 200, {}
        if path.startswith(("/uploads", "/images")):
            return (201 if method == "POST" else 200), {
                **_UPLOAD,
                "deleted": query.get("name", walk.UPLOAD),
                "freed": 1,
                "seconds": 0.1,
                "bytes": 1,
                "format": "qcow2",
            }
        if path == "/lun/scan":
            return 200, {"created": [], "skipped": []}
        if method == "DELETE":
            return 200, {"deleted": query.get("iqn", "x"), "delete_file": False}
        return 201, {"iqn": self.next_iqn, "backing": "/images/x.img"}

    def _shown(self, path: str) -> Any:
        when = "2026-01-01T00:00:00+00:00"
        file = {"size": 512, "allocated": 512, "mtime": when}
        match path.strip("/").split("/"):
            case ["lun"]:
                return [
                    {**self._target(iqn), "access": "acl", "initiators": []}
                    for iqn in self.targets
                ]
            case ["capabilities"]:
                return {**CAPABILITIES, "cd": True}
            case ["masters"]:
                return {
                    "masters": [
                        {"name": "debian_tpl_1.img", "size": 512, "mtime": when}
                    ]
                }
            case ["images"]:
                kinds = {
                    "setup.iso": "iso",
                    "debian_tpl_1.img": "master",
                    "source.qcow2": "source",
                }
                return {
                    "images": [
                        {"name": name, "kind": kind, **file}
                        for name, kind in kinds.items()
                    ],
                    "formats": ["qcow2"],
                }
            case ["uploads"]:
                return {"uploads": [_UPLOAD]}
            case ["uploads", _]:
                return _UPLOAD
            case ["jobs"]:
                return {"jobs": []}
        return {"status": "ok"}


_UPLOAD = {
    "id": walk.UPLOAD,
    "name": "fresh.img",
    "size": 512,
    "offset": 0,
    "sha256": None,
    "created": "2026-01-01T00:00:00+00:00",
    "changed": "2026-01-01T00:00:00+00:00",
}


@dataclass
class Caller:
    """Somebody, and how he says who he is."""

    name: str
    role: str
    session: str = ""
    token: str = ""

    def client(self) -> Client:
        """A fresh one each time: some addresses log out."""
        headers = {"HTTP_AUTHORIZATION": f"Bearer {self.token}"} if self.token else {}
        client = Client(raise_request_exception=False, **headers)
        if self.session:
            client.cookies["ipxeready"] = self.session
        return client


@dataclass
class Site:
    """One of everything, and the way back to it."""

    layout: Layout
    node: Node
    callers: dict[str, Caller] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Every file that matters, by its path below the root."""
        root = self.layout.root
        return {
            name: path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
            and not (name := str(path.relative_to(root))).startswith(BESIDE)
        }

    def asked(self) -> list[tuple[str, str]]:
        """What the node was asked to change."""
        return [
            (method, path)
            for method, path, _ in self.node.fake.requests
            if method != "GET"
        ]

    def changed(self, call: Call, caller: Caller) -> tuple[Any, set[str]]:
        """Send it; the answer, and the files that are others now (`node`: it was asked to change something)."""
        self.node.fake.requests.clear()
        self.node.next_iqn = _named(call)
        answer = call.send(caller.client())
        if getattr(answer, "streaming", False):
            b"".join(answer.streaming_content)
        assert runner().idle(60)
        now = self.files()
        gone = {
            name
            for name in {*now, *self.before}
            if now.get(name) != self.before.get(name)
        }
        return answer, gone | ({"node"} if self.asked() else set())

    def restore(self, names: set[str]) -> None:
        """Put the files back."""
        for name in names - {"node"}:
            path = self.layout.root / name
            if name in self.before:
                path.write_bytes(self.before[name])
            else:
                path.unlink(missing_ok=True)
        index.ensure_fresh(wait=True)


def _named(call: Call) -> str:
    """The IQN that the node should answer with."""
    if "ubuntu" in call.body:
        return f"{BASE}:pc1.ubuntu"
    if "iso" in call.body:
        return f"{BASE}:pc1.windows.iso"
    return f"{BASE}:pc9.debian"


@pytest.fixture
def site(layout: Layout, administrator: Actor) -> Iterator[Site]:
    node = Node()
    with http_server(node.answer) as fake:
        node.fake = fake
        yield _filled(Site(layout, node), administrator)


def _filled(site: Site, administrator: Actor) -> Site:
    layout = site.layout
    for name, role in PEOPLE.items():
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )
    people = yaml.safe_load(layout.users_yml.read_text())
    for name, token_id in TOKENS.items():
        people["users"][name]["tokens"] = {
            token_id: {
                "name": "laptop",
                "role": PEOPLE[name],
                "sha256": digest_of(SECRET),
            }
        }
    people["users"]["alice"]["tokens"][WEAK] = {
        "name": "watch",
        "role": VIEWER,
        "sha256": digest_of(SECRET),
    }
    layout.users_yml.write_text(yaml.safe_dump(people))
    node = {
        "base_url": site.node.fake.base_url,
        "token": "t",
        "iscsi_server": "192.0.2.9",
        "role": {"disk": True, "cd": True},
        "tags": ["stgt"],
        "enabled": True,
        "access": "acl",
    }
    layout.agents_yml.write_text(json.dumps({"agents": {"n": node}}))
    name = "pc1.debian"
    disk = {
        "agent": "n",
        "iqn": f"{BASE}:{name}",
        "filename": f"{name}.img",
        "backing": f"/images/{name}.img",
        "os": "debian",
        "source": {"type": "master", "name": "debian_tpl_1.img"},
    }
    cd = {
        "agent": "n",
        "iqn": f"{BASE}:pc1.windows.iso",
        "iso": "setup.iso",
        "backing": "/images/setup.iso",
    }
    workers = {
        "pc1": {"hostname": "pc1", "state": "installing", "disks": [disk], "cd": cd},
        "pc2": {"hostname": "pc2", "state": "registered", "disks": [], "cd": None},
    }
    layout.workers_yml.write_text(json.dumps({"workers": workers}, indent=1))
    layout.dhcp_hosts.write_text("52:54:00:00:00:01,pc1\n52:54:00:00:00:02,pc2\n")
    layout.settings_json.write_text('{"auto_register": true}\n')
    site.node.targets = {f"{BASE}:{name}": [], f"{BASE}:loose.debian": []}
    (layout.public / "boot").mkdir()
    (layout.public / "boot" / "vmlinuz").write_bytes(b"kernel")
    layout.jobs.mkdir(exist_ok=True)
    job = Job(
        id=walk.JOB,
        kind="lun.scan",
        by="alice",
        about={"agent": "n"},
        state="running",
        created="2026-11-30T10:00:00+00:00",
    )
    (layout.jobs / f"{walk.JOB}.json").write_text(json.dumps(job.__dict__))
    index.ensure_fresh(wait=True)
    for name, role in PEOPLE.items():
        site.callers[name] = Caller(name, role, session=_session(name))
        if name in TOKENS:
            text = f"ipx_{TOKENS[name]}_{SECRET}"
            site.callers[f"{name}'s token"] = Caller(name, role, token=text)
    weak = f"ipx_{WEAK}_{SECRET}"
    site.callers["a weak token"] = Caller("alice", VIEWER, token=weak)
    site.callers["a wrong token"] = Caller("", "", token=f"ipx_{WEAK}_{'x' * 43}")
    site.callers["nobody"] = Caller("", "")
    site.callers["the service's token"] = Caller("token", ADMINISTRATOR, token=TOKEN)
    site.before = site.files()
    return site


def _session(name: str) -> str:
    """A cookie of somebody who has logged in, without the audit line and the waits of doing so."""
    from django.contrib.sessions.backends.signed_cookies import SessionStore

    user = Operator.objects.get(pk=name)
    store = SessionStore()
    store[SESSION_KEY] = name
    store[BACKEND_SESSION_KEY] = "ipxeready.users.backends.FileBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.save()
    return str(store.session_key)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk fails more often than a person does: waits have a test of their own."""
    monkeypatch.setattr(throttle, "begin", lambda _account, _address: 0)
    monkeypatch.setattr(throttle, "token_failed", lambda _address: 0.0)


def every_call(site: Site, caller: Caller) -> list[Call]:
    """All methods of all addresses, and all that the pages' forms would send, as an administrator sees them.

    Pages do not look at tokens, so their forms are not tried with one.
    """
    alice, node = site.callers["alice"], site.node.fake.base_url
    found: dict[Call, None] = {}
    for place in places(walk.THERE):
        calls = list(walk.calls(place, node))
        if place.api is None and not caller.token and place.path[:7] == "/admin/":
            forms = [call for call in calls if call.method == "post" and call.body]
            answer = alice.client().get(place.path)
            if _is_page(answer):
                page = answer.content.decode()
                forms += walk.form_calls(place.path, page, node)
            calls += forms
            if caller.session:
                calls += asked_again(site, forms)
        found.update(dict.fromkeys(calls))
    return list(found)


def _is_page(answer: Any) -> bool:
    return answer.status_code == 200 and "html" in answer["Content-Type"]


def asked_again(site: Site, forms: list[Call]) -> Iterator[Call]:
    """What the pages would send that ask, or go on to a second step, before they do something."""
    alice, node = site.callers["alice"], site.node.fake.base_url
    for call in dict.fromkeys(forms):
        if call.name in ("logout", "set_language"):
            continue
        answer, changed = site.changed(call, alice)
        if changed:
            site.restore(changed)
            continue
        path = call.path
        if answer.status_code == 302 and "?" in answer["Location"]:
            path = answer["Location"]
            answer = alice.client().get(path)
        if _is_page(answer):
            yield from walk.form_calls(path, answer.content.decode(), node)


def touched_own(site: Site, call: Call, caller: Caller) -> bool:
    """Whether only those fields of the caller's own record are others that this address may change."""
    if not caller.session or call.name not in OWN:
        return False
    now, before = (
        yaml.safe_load(text)["users"]
        for text in (
            site.layout.users_yml.read_bytes(),
            site.before["config/users.yml"],
        )
    )
    for record in (now[caller.name], before[caller.name]):
        for name in OWN[call.name]:
            record.pop(name, None)
    return bool(now == before)


def walked(
    site: Site, who: str, wrong: Callable[[Call, Any, set[str]], object]
) -> list[Any]:
    """Send every call as `who`; what `wrong` finds, and whatever is a bug of ours."""
    caller = site.callers[who]
    found: list[Any] = []
    for call in every_call(site, caller):
        answer, changed = site.changed(call, caller)
        backup = {name for name in changed if name.startswith("state/backup/")}
        seen = changed - backup
        if "config/users.yml" in seen and touched_own(site, call, caller):
            seen -= {"config/users.yml"}
        problem = wrong(call, answer, seen)
        if answer.status_code == 500:
            problem = "a bug"
        if call.method in walk.READING and seen:
            problem = "reading changed something"
        if problem:
            found.append((str(call), answer.status_code, sorted(seen), problem))
        if changed:
            site.restore(changed)
    return found


@pytest.mark.parametrize(
    "who", ["victor", "victor's token", "a weak token", "a wrong token", "nobody"]
)
def test_a_viewer_and_a_stranger_change_nothing_by_any_path(
    site: Site, who: str
) -> None:
    def wrong(call: Call, answer: Any, changed: set[str]) -> object:
        if changed:
            return "changed"
        pages = call.path.startswith(("/admin/", "/i18n/")) or call.path == "/"
        writes = call.method in walk.WRITING
        if writes and not pages and answer.status_code < 400 and call.name not in OWN:
            return "accepted"
        return None

    assert walked(site, who, wrong) == []


@pytest.mark.parametrize("who", ["oscar", "oscar's token"])
def test_an_operator_cannot_touch_users_nodes_or_tokens(site: Site, who: str) -> None:
    kept = {"config/users.yml", "config/agents.yml", "config/cp-token"}
    used: set[str] = set()

    def wrong(call: Call, answer: Any, changed: set[str]) -> object:
        used.update(changed)
        if kept & changed:
            return "changed"
        served = answer.status_code != 405
        if (call.name, call.method) in ADMINISTERED and served:
            return answer.status_code != 403 and "not refused"
        return None

    assert walked(site, who, wrong) == []
    # The walk is none of refusals only: what an operator may, it did.
    assert {"state/workers.yml", "dnsmasq/dhcp-hosts.conf", "node"} <= used


@pytest.mark.parametrize("who", ["alice", "the service's token"])
def test_the_same_walk_changes_everything_for_an_administrator(
    site: Site, who: str
) -> None:
    """Else it would prove nothing: the bodies are such that only the role stands in the way."""
    used: set[str] = set()
    passed: set[tuple[str, str]] = set()
    served: set[tuple[str, str]] = set()

    def wrong(call: Call, answer: Any, changed: set[str]) -> object:
        used.update(changed)
        if call.method in walk.WRITING and answer.status_code != 405:
            key = (call.name, call.method)
            served.add(key)
            if answer.status_code not in (400, 401, 403, 404, 411, 415):
                passed.add(key)
        return None

    assert walked(site, who, wrong) == []
    assert {
        "state/workers.yml",
        "state/settings.json",
        "dnsmasq/dhcp-hosts.conf",
        "config/users.yml",
        "config/agents.yml",
        "node",
    } <= used
    api = {place.name for place in places(walk.THERE) if place.api is not None}
    assert {key for key in served - passed if key[0] in api} == set()


def test_the_addresses_under_the_prefix_are_the_same_views() -> None:
    found = dict(patterns())
    under = {route for route in found if route.startswith("api/cp/")}
    assert under
    for route in under:
        plain = found[route.removeprefix("api/cp/")]
        assert found[route].callback is plain.callback, route


def test_the_walk_knows_every_kind_of_page(site: Site) -> None:
    paths = {place.path for place in places(walk.THERE)}
    assert {"/workers/pc1/mac", "/admin/account/", "/tokens", "/"} <= paths
    assert len(paths) > 100
    assert Path(walk.__file__).name == "walk.py"
