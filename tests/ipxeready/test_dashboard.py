"""The start page: what is wrong, with the way to mend it, and the numbers of the room; nobody is waited for."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from agents.known import known
from agents.selectors import agents
from ipxeready.actors import SYSTEM, Actor
from ipxeready.conf import Reload
from ipxeready.errors import Conflict, NodeRefused, Unavailable
from ipxeready.jobs import services as jobs
from ipxeready.storage.inflight import claim
from ipxeready.storage.jobs import FAILED
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from ipxeready.web.troubles import KINDS, NAMED, kind_of_code, troubles
from tests.agents import fakes
from tests.nodes import RealNode, node
from tests.workers.helpers import M1, M2, M3
from workers.settle import mark

__all__ = ["node"]

PASSWORD = "correct horse battery"
BASE = "iqn.2026-07.com.controller"


@pytest.fixture
def start(layout: Layout, administrator: Actor) -> Callable[..., str]:
    """The start page as a viewer sees it."""
    services.user_create(
        actor=administrator, username="victor", password=PASSWORD, role="viewer"
    )
    client = Client()
    form = {"username": "victor", "password": PASSWORD}
    assert client.post("/admin/login/", form).status_code == 302

    def start(query: str = "", language: str = "en") -> str:
        answer = client.get(f"/admin/{query}", HTTP_ACCEPT_LANGUAGE=language)
        assert answer.status_code == 200
        page: str = answer.content.decode()
        return page

    return start


def found() -> dict[str, Any]:
    """What is wrong, by kind."""
    return {trouble.kind.name: trouble for trouble in troubles()}


def write_worker(layout: Layout, name: str = "pc1", **disk: Any) -> None:
    entry = {
        "agent": "node-1",
        "iqn": f"{BASE}:{name}.ubuntu",
        "filename": f"{name}.ubuntu.img",
        "backing": "",
        "os": "ubuntu",
        "source": {"type": "empty"},
        **disk,
    }
    record = {"hostname": name, "state": "ready", "disks": [entry], "cd": None}
    layout.workers_yml.write_text(json.dumps({"workers": {name: record}}))
    layout.dhcp_hosts.write_text(f"{M1},{name}\n")


def write_node(layout: Layout, **fields: Any) -> None:
    record = {"base_url": "http://127.0.0.1:9", "token": "t", **fields}
    layout.agents_yml.write_text(json.dumps({"agents": {"node-1": record}}))


def test_a_room_in_order_says_that_nothing_is_wrong(start: Callable[..., str]) -> None:
    assert troubles() == []
    assert "Nothing, as far as" in start()


def test_a_broken_file_is_told_with_its_line(
    layout: Layout, start: Callable[..., str]
) -> None:
    layout.workers_yml.write_text("workers:\n  a: [\n")
    page = start()
    assert "1 file cannot be read" in page
    assert "put the file back from state/backup" in page
    assert str(layout.workers_yml) in page


def test_records_lines_and_names_are_told_apart(
    layout: Layout, start: Callable[..., str]
) -> None:
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: same}\n  b: {hostname: same}\n  c: {hostname: '<b>'}\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},seat\n{M2},seat\n{M3},so,many,,,words here\n")
    page = start()
    told = found()
    assert told["record.broken"].count == 1
    assert told["worker.doubled"].count >= 1
    assert told["binding.conflict"].count >= 1
    assert told["binding.conflict"].kind.grave
    assert "&lt;b&gt;" in page and "'<b>'" not in page


def test_a_worker_without_a_mac_and_a_mac_without_a_worker_are_no_failures(
    layout: Layout, start: Callable[..., str]
) -> None:
    layout.workers_yml.write_text("workers:\n  a: {hostname: seat-1}\n")
    layout.dhcp_hosts.write_text(f"{M2},stranger\n")
    page = start()
    assert not any(trouble.kind.grave for trouble in troubles())
    assert '<a href="/admin/workers/worker/a/change/">a (seat-1)</a>' in page
    assert f"{M2} stranger" in page


def test_many_of_a_kind_are_counted_and_the_first_named(
    layout: Layout, start: Callable[..., str]
) -> None:
    names = [f"pc{number}" for number in range(NAMED + 3)]
    layout.workers_yml.write_text(
        json.dumps({"workers": {name: {"hostname": name} for name in names}})
    )
    assert "and 3 more" in start()
    (trouble,) = troubles()
    assert (trouble.count, len(trouble.items)) == (NAMED + 3, NAMED)


def test_secrets_that_others_can_read_are_named_with_their_mode(
    layout: Layout, start: Callable[..., str]
) -> None:
    layout.users_yml.chmod(0o644)
    assert "users.yml: 0644" in start()
    assert "chmod 600" in found()["secret.exposed"].mend
    layout.users_yml.chmod(0o600)
    assert "secret.exposed" not in found()


def test_secrets_of_workers_that_others_can_read_are_told_once(
    layout: Layout, start: Callable[..., str]
) -> None:
    layout.chap_secrets_yml.chmod(0o640)
    start()
    assert found()["secret.exposed"].count == 1


def test_a_disk_under_way_is_stuck_only_when_nobody_works_on_it(
    layout: Layout, start: Callable[..., str]
) -> None:
    write_node(layout)
    write_worker(layout, status="creating")
    start()
    with claim(layout.run, mark("pc1", "ubuntu")) as mine:
        assert mine
        assert "disk.stuck" not in found()
    assert found()["disk.stuck"].count == 1
    assert "pc1: ubuntu @ node-1, creating" in start()


def test_a_disk_on_a_node_that_nobody_knows_is_told(
    layout: Layout, start: Callable[..., str]
) -> None:
    write_worker(layout)
    assert "1 disk lies on a node that is not registered" in start()


def test_access_that_is_not_what_it_should_be_leads_to_the_page_that_sets_it(
    layout: Layout, start: Callable[..., str]
) -> None:
    write_node(layout, access="acl")
    write_worker(layout)
    page = start()
    assert "pc1.ubuntu: off instead of acl" in page
    assert "/admin/workers/worker/pc1/access/" in page
    # The same rule tells the health page.
    write_worker(layout, access="acl")
    start()
    assert "access.differs" not in found()


def test_bindings_that_no_dnsmasq_reads_are_told(
    layout: Layout, start: Callable[..., str], settings: Any
) -> None:
    pid_file = layout.run / "dnsmasq.pid"
    reload = Reload("pidfile", str(pid_file))
    settings.IPXE = dataclasses.replace(settings.IPXE, dnsmasq_reload_set=reload)
    page = start()
    assert "dnsmasq does not have the bindings as they are written" in page
    assert "there is no pid file" in page


def test_a_job_that_failed_lately_leads_to_its_page(
    start: Callable[..., str],
) -> None:
    def fail(watch: Any) -> Any:
        raise Unavailable("the node is <away>")

    work = jobs.Work(kind="worker.disk.create", do=fail, about={"worker_id": "pc1"})
    job = jobs.job_wait(jobs.job_start(actor=SYSTEM, work=work).id, 10)
    page = start()
    assert "1 job failed in the last day" in page
    assert "the node is &lt;away&gt;" in page
    assert f'href="/admin/jobs/{job.id}/"' in page


@pytest.mark.parametrize(
    "error",
    [
        Conflict("it is in use"),
        NodeRefused(agent="n", status=404, error="there is no such file"),
    ],
)
def test_a_request_that_was_refused_is_no_trouble_of_the_site(
    start: Callable[..., str], error: Exception
) -> None:
    def refuse(watch: Any) -> Any:
        raise error

    work = jobs.Work(kind="image.convert", do=refuse)
    assert jobs.job_wait(jobs.job_start(actor=SYSTEM, work=work).id, 10).state == FAILED
    assert "in the last day" not in start()


@pytest.mark.case(83)
def test_the_page_asks_no_node_unless_it_is_told_to(start: Callable[..., str]) -> None:
    with fakes.node_like() as fake:
        RealNode(fake.base_url, "t", None, None).register("n", access="off")  # type: ignore[arg-type]
        fake.requests.clear()
        assert "not asked yet" in start()
        assert fake.requests == []


@pytest.mark.case(83)
def test_a_node_that_hangs_costs_the_page_nothing_and_is_told_once_asked(
    start: Callable[..., str], node: RealNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipxeready.dashboard.PATIENCE", 1.0)
    node.register("well")
    with fakes.node_like() as fake:
        RealNode(fake.base_url, "t", None, None).register("dead", access="off")  # type: ignore[arg-type]
    with fakes.silent() as base_url:
        from agents.services import agent_update

        agent_update(actor=SYSTEM, agent_id="dead", enabled=True)
        _move(base_url)
        began = time.monotonic()
        start()
        assert time.monotonic() - began < 0.9
        page = start("?ask")
    assert "1 storage node does not answer" in page
    assert ">well</a>" in page
    seen = known(list(agents()))
    assert seen["well"].reachable and seen["well"].number("room", "total") > 0
    assert not seen["dead"].reachable
    # What was learnt stays for those who do not ask.
    assert "1 storage node does not answer" in start()


def _move(base_url: str) -> None:
    """The registered node is reached somewhere else now."""
    from django.conf import settings as now

    path = now.IPXE_LAYOUT.agents_yml
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("dead:"))
    for number in range(at, len(lines)):
        if "base_url" in lines[number]:
            lines[number] = f"    base_url: {base_url}"
            break
    path.write_text("\n".join(lines) + "\n")


def test_what_was_learnt_of_a_node_counts_only_at_its_address(
    layout: Layout, start: Callable[..., str], node: RealNode
) -> None:
    node.register("n")
    start("?ask")
    assert known(list(agents()))
    text = layout.agents_yml.read_text()
    layout.agents_yml.write_text(text.replace(node.base_url, "http://127.0.0.1:9"))
    start()
    assert known(list(agents())) == {}


def test_the_notes_of_nodes_may_be_lost_or_nonsense(
    layout: Layout, start: Callable[..., str], node: RealNode
) -> None:
    node.register("n")
    path = layout.run / "node-health.json"
    for text in ("", "[]", '{"n": 3}', '{"n": ["x", "y", {}]}', "\udcff"):
        path.write_text(text, errors="surrogateescape")
        assert "not asked yet" in start()


def test_workers_are_counted_by_state(
    api: APIClient, layout: Layout, start: Callable[..., str]
) -> None:
    write_node(layout)
    write_worker(layout)
    assert api.post("/workers", {"worker_id": "w2", "mac": M2}).status_code == 201
    page = start()
    card = page.split('id="workers"')[1].split("</section>")[0]
    assert '<a href="/admin/workers/worker/?state=registered">registered</a>' in card
    counts = [each.split("</dd>")[0] for each in card.split("<dd>")[1:]]
    assert counts == ["2", "1", "1", "0", "1", "2"]


def test_the_health_page_tells_the_same(api: APIClient, layout: Layout) -> None:
    layout.users_yml.chmod(0o644)
    told = api.get("/healthz?verbose=1").json()["troubles"]
    (trouble,) = told
    assert trouble["kind"] == "secret.exposed"
    assert trouble["count"] == 1
    assert trouble["grave"] is True
    assert trouble["title"] and trouble["mend"]
    assert trouble["named"] == [f"{layout.users_yml}: 0644"]


def test_the_last_operations_are_shown(
    api: APIClient, start: Callable[..., str]
) -> None:
    api.post("/workers", {"worker_id": "w2", "mac": M2})
    page = start()
    assert "create_worker" in page.split('id="operations"')[1]


def test_every_kind_says_what_to_do() -> None:
    for kind in KINDS.values():
        assert str(kind.title % {"count": 1})
        assert str(kind.title % {"count": 2})
        assert str(kind.mend).endswith(".")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("hosts.line", "binding.dropped"),
        ("hosts.mac", "binding.conflict"),
        ("record.broken", "record.broken"),
        ("workers.disk", "worker.doubled"),
        ("something.else", None),
    ],
)
def test_a_problem_of_a_file_is_of_the_nearest_kind(
    code: str, name: str | None
) -> None:
    kind = kind_of_code(code)
    assert (kind.name if kind else None) == name
