"""Every page of every model answers what it should, to everybody, in both languages, whatever the data."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.storage.jobs import Job
from ipxeready.storage.paths import Layout
from ipxeready.users import services

PASSWORD = "correct horse battery"
PEOPLE = {"alice": "administrator", "oscar": "operator", "victor": "viewer"}
LANGUAGES = ("en", "zh-hans")
#: What must never come out as it went in.
MARKUP = "<b onclick='x'>\"&amp;</b>"

OK, ELSEWHERE, FORBIDDEN, GONE = 200, 302, 403, 404
#: For each page of a model: administrator, operator, viewer.
EXPECTED: dict[str, dict[str, tuple[int, int, int]]] = {
    "workers.worker": {
        "changelist": (OK, OK, OK),
        "add": (OK, OK, FORBIDDEN),
        "change": (OK, OK, OK),
        "delete": (OK, OK, FORBIDDEN),
        "history": (OK, OK, OK),
        "disk_add": (OK, OK, FORBIDDEN),
        "disk_delete": (OK, OK, FORBIDDEN),
        "disk_default": (ELSEWHERE, ELSEWHERE, ELSEWHERE),
        "disk_grow": (OK, OK, FORBIDDEN),
        "disk_reset": (OK, OK, FORBIDDEN),
        "cd_attach": (OK, OK, FORBIDDEN),
        "cd_detach": (GONE, GONE, FORBIDDEN),
        "mac": (ELSEWHERE, ELSEWHERE, ELSEWHERE),
        "boot": (ELSEWHERE, ELSEWHERE, ELSEWHERE),
        "deleted": (GONE, GONE, GONE),
        "access": (OK, OK, FORBIDDEN),
        "node_access": (OK, FORBIDDEN, FORBIDDEN),
    },
    "agents.agent": {
        "changelist": (OK, OK, OK),
        "add": (OK, FORBIDDEN, FORBIDDEN),
        "change": (OK, OK, OK),
        "delete": (OK, FORBIDDEN, FORBIDDEN),
        "history": (OK, OK, OK),
        "edit": (OK, FORBIDDEN, FORBIDDEN),
        "log": (OK, OK, OK),
        "scan": (OK, OK, FORBIDDEN),
        "disk_add": (OK, OK, FORBIDDEN),
        "cd_add": (OK, OK, FORBIDDEN),
        "lun_delete": (OK, OK, FORBIDDEN),
        "lun_access": (OK, OK, FORBIDDEN),
    },
    "audit.operation": {
        "changelist": (OK, OK, OK),
        "add": (FORBIDDEN, FORBIDDEN, FORBIDDEN),
        "change": (OK, OK, OK),
        "delete": (FORBIDDEN, FORBIDDEN, FORBIDDEN),
        "history": (OK, OK, OK),
    },
    "bootvars.setting": {
        "changelist": (OK, OK, OK),
        "add": (FORBIDDEN, FORBIDDEN, FORBIDDEN),
        "change": (ELSEWHERE, ELSEWHERE, ELSEWHERE),
        "delete": (FORBIDDEN, FORBIDDEN, FORBIDDEN),
        "history": (OK, OK, OK),
    },
    "users.operator": {
        "changelist": (OK, FORBIDDEN, FORBIDDEN),
        "add": (OK, FORBIDDEN, FORBIDDEN),
        "change": (OK, FORBIDDEN, FORBIDDEN),
        "delete": (OK, FORBIDDEN, FORBIDDEN),
        "history": (OK, FORBIDDEN, FORBIDDEN),
    },
}
#: One object of each model.
OBJECTS = {
    "workers.worker": "worker-01",
    "agents.agent": "node-1",
    "audit.operation": "1",
    "bootvars.setting": "auto_register",
    "users.operator": "victor",
}
#: A job that failed.
JOB = "20261130-100000-0123abcd"
#: Pages beside those of the models: administrator, operator, viewer.
OTHERS = {
    "/admin/": (OK, OK, OK),
    "/admin/password_change/": (OK, OK, OK),
    "/admin/password_change/done/": (OK, OK, OK),
    "/admin/jsi18n/": (OK, OK, OK),
    "/admin/account/": (OK, OK, OK),
    "/admin/accounts/victor/": (OK, FORBIDDEN, OK),
    "/admin/accounts/alice/": (OK, FORBIDDEN, FORBIDDEN),
    "/admin/accounts/%3Cb%3E/": (GONE, FORBIDDEN, FORBIDDEN),
    "/admin/account/tokens/": (ELSEWHERE, ELSEWHERE, ELSEWHERE),
    "/admin/nothing/": (GONE, GONE, GONE),
    "/admin/workers/": (OK, OK, OK),
    "/admin/jobs/": (OK, OK, OK),
    "/admin/jobs/?state=failed&p=1": (OK, OK, OK),
    "/admin/jobs/?state=%3Cb%3E&p=-1": (OK, OK, OK),
    f"/admin/jobs/{JOB}/": (OK, OK, OK),
    f"/admin/jobs/{JOB}/cancel/": (OK, OK, FORBIDDEN),
    "/admin/jobs/no-such/": (GONE, GONE, GONE),
    "/admin/jobs/no-such/cancel/": (GONE, GONE, GONE),
    "/admin/workers/worker/?q=%3Cb%3E%22%27": (OK, OK, OK),
    "/admin/workers/worker/?state__exact=ready&has_disk=true&o=-2.3": (OK, OK, OK),
    "/admin/audit/operation/?q=worker-01&all=": (OK, OK, OK),
    "/admin/workers/worker/no-such/delete/": (GONE, GONE, FORBIDDEN),
    "/admin/files/": (OK, OK, OK),
    "/admin/files/nothing/": (GONE, GONE, GONE),
}


@pytest.fixture
def room(layout: Layout, administrator: Actor) -> Layout:
    """One of everything, with markup and quotes wherever a hand may write them."""
    for name, role in PEOPLE.items():
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )
    node = {
        "base_url": "http://127.0.0.1:9",
        "token": "a-secret-of-the-node",
        "iscsi_server": "192.0.2.9",
        "role": {"disk": True, "cd": False},
        "tags": ["stgt"],
        "enabled": True,
        "access": "off",
    }
    # JSON is YAML: values can hold anything without another quoting here.
    odd = {**node, "tags": [MARKUP]}
    layout.agents_yml.write_text(json.dumps({"agents": {"node-1": node, "odd": odd}}))
    disk = {
        "agent": "node-1",
        "iqn": "iqn.2026-07.com.controller:worker-01.ubuntu",
        "filename": f"{MARKUP}.img",
        "backing": f"/images/{MARKUP}.img",
        "os": "ubuntu",
        "source": {"type": "master", "name": MARKUP},
    }
    worker = {
        "hostname": "worker-01",
        "state": "ready",
        "disks": [disk],
        "cd": None,
        "note": MARKUP,
    }
    broken = {"hostname": MARKUP}
    layout.workers_yml.write_text(
        json.dumps({"workers": {"worker-01": worker, MARKUP: broken}})
    )
    layout.dhcp_hosts.write_text(
        f"52:54:00:12:34:01,worker-01\n{MARKUP},worker-02\n# {MARKUP}\n"
    )
    layout.jobs.mkdir()
    job = Job(
        id=JOB,
        kind=MARKUP,
        by=MARKUP,
        about={"worker_id": MARKUP, MARKUP: {MARKUP: MARKUP}},
        state="failed",
        created="2026-11-30T10:00:00+00:00",
        result={"failed": [{"worker_id": MARKUP, "error": MARKUP}]},
        error={"status": 409, "detail": {MARKUP: [MARKUP]}},
    )
    (layout.jobs / f"{JOB}.json").write_text(json.dumps(dataclasses.asdict(job)))
    layout.settings_json.write_text('{"auto_register": true}\n')
    with layout.operations.open("a") as file:
        line = {
            "id": 1000,
            "ts": "2026-11-30T10:00:00+00:00",
            "op": MARKUP,
            "status": MARKUP,
            "worker_id": MARKUP,
            "agent": MARKUP,
            "client": MARKUP,
            "user": MARKUP,
            MARKUP: {MARKUP: [MARKUP]},
        }
        file.write(json.dumps(line) + "\n")
    index.ensure_fresh(wait=True)
    return layout


def addresses() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Every page with what the three roles get."""
    for model, pages in EXPECTED.items():
        prefix = f"admin:{model.replace('.', '_')}"
        key = OBJECTS[model]
        for page, expected in pages.items():
            args = {
                "changelist": [],
                "add": [],
                "disk_default": [key, "ubuntu"],
                "disk_grow": [key, "ubuntu"],
                "disk_reset": [key, "ubuntu"],
                "disk_delete": [key, "ubuntu"],
                "node_access": [OBJECTS["agents.agent"]],
            }.get(page, [key])
            yield reverse(f"{prefix}_{page}", args=args), expected
    yield from OTHERS.items()


@pytest.fixture
def login(room: Layout) -> Callable[[str, str], Client]:
    """Logs somebody in, with a language."""

    def login(name: str, language: str) -> Client:
        client = Client(HTTP_ACCEPT_LANGUAGE=language)
        form = {"username": name, "password": PASSWORD}
        assert client.post("/admin/login/", form).status_code == 302
        return client

    return login


def test_every_model_page_is_in_this_test() -> None:
    models = {model._meta.label_lower for model in admin.site._registry}
    assert models == set(EXPECTED)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("who", "place"), [("alice", 0), ("oscar", 1), ("victor", 2)])
def test_every_page_answers_everybody_as_expected(
    who: str, place: int, language: str, login: Callable[[str, str], Client]
) -> None:
    client = login(who, language)
    wrong = []
    for address, expected in addresses():
        answer = client.get(address, follow="/history/" in address)
        page = answer.content.decode()
        if answer.status_code != expected[place]:
            wrong.append((address, answer.status_code, expected[place]))
        elif MARKUP in page or "onclick='x'" in page:
            wrong.append((address, "markup came through", 0))
        elif expected[place] == OK and "jsi18n" not in address:
            assert f'lang="{language}"' in page, address
        assert "a-secret-of-the-node" not in page, address
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_nobody_gets_further_than_the_login(language: str, room: Layout) -> None:
    client = Client(HTTP_ACCEPT_LANGUAGE=language)
    for address, _ in addresses():
        answer = client.get(address)
        assert answer.status_code == ELSEWHERE, address
        assert answer["Location"].startswith("/admin/login/?next="), address
    assert client.get("/admin/login/").status_code == OK


def test_a_page_of_a_record_with_markup_shows_it_as_text(
    login: Callable[[str, str], Client],
) -> None:
    page = login("alice", "en").get("/admin/audit/operation/1000/change/")
    assert page.status_code == OK
    assert "&lt;b onclick=" in page.content.decode()


def test_the_areas_above_every_page_are_those_one_may_see(
    login: Callable[[str, str], Client],
) -> None:
    def areas(who: str) -> str:
        page = login(who, "en").get("/admin/").content.decode()
        return page.split('<nav class="areas"')[1].split("</nav>")[0]

    assert areas("alice").index("Workers") < areas("alice").index("Users")
    assert "Workers" in areas("victor")
    assert "Users" not in areas("victor")


def test_a_file_that_does_not_parse_is_named_once(
    room: Layout, login: Callable[[str, str], Client]
) -> None:
    room.workers_yml.write_text("workers:\n  a: [\n")
    page: Any = login("victor", "en").get("/admin/").content.decode()
    assert page.count(str(room.workers_yml)) == 1


def test_a_setting_has_no_form_of_its_own(
    room: Layout, login: Callable[[str, str], Client]
) -> None:
    """Settings are switched on their one page; the form of a row leads there."""
    client = login("alice", "en")
    before = room.settings_json.read_bytes()
    address = reverse("admin:bootvars_setting_change", args=["auto_register"])
    answer = client.post(address, {"key": "auto_register", "value": "false"})
    assert answer.status_code == ELSEWHERE
    assert answer["Location"] == reverse("admin:bootvars_setting_changelist")
    assert room.settings_json.read_bytes() == before


def test_who_may_only_look_is_offered_nothing_that_is_refused(
    login: Callable[[str, str], Client],
) -> None:
    def page(who: str, address: str) -> str:
        return login(who, "en").get(address).content.decode()

    worker = reverse("admin:workers_worker_change", args=["worker-01"])
    for link in ("disk/ubuntu/delete/", "disk/add/"):
        assert link in page("oscar", worker)
        assert link not in page("victor", worker)
    # What is read-only is written for people all the same.
    assert "52:54:00:12:34:01" in page("victor", worker)
    node = page("victor", reverse("admin:agents_agent_change", args=["node-1"]))
    assert "stgt" in node
    for link in ("/edit/", "/delete/", "/scan/", "/luns/disk/add/"):
        assert link not in node
    settings = reverse("admin:bootvars_setting_changelist")
    assert "Switch it off" in page("oscar", settings)
    assert "Switch it off" not in page("victor", settings)


def test_workers_are_filtered_by_what_they_boot(
    room: Layout, login: Callable[[str, str], Client]
) -> None:
    client = login("victor", "en")
    address = reverse("admin:workers_worker_changelist")
    option = '<option value="ubuntu">ubuntu</option>'
    # Once, as a system that somebody may have a disk of.
    assert client.get(address).content.decode().count(option) == 1
    text = room.workers_yml.read_text()
    assert '"state": "ready"' in text
    room.workers_yml.write_text(
        text.replace('"state": "ready"', '"state": "ready", "default_os": "ubuntu"')
    )
    page = client.get(address).content.decode()
    assert page.count(option) == 2
    assert "worker-01" in client.get(f"{address}?default_os=ubuntu").content.decode()
    none = client.get(f"{address}?default_os=none").content.decode()
    assert "0 workers" in none
    assert "No worker is like that" in none
