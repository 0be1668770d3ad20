"""The pages of jobs, and the page of a new disk that leads to one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.jobs.services import Work, job_start, job_wait
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from tests.ipxeready.jobs.helpers import Slow
from tests.nodes import BASE, RealNode, node
from tests.workers.helpers import ledger
from tests.workers.stub import Stub, stub_node
from workers.pages import common

__all__ = ["node"]
PASSWORD = "correct horse battery"
DISK = {"os": "ubuntu", "type": "empty", "size": "1M", "set_default": "on"}


@pytest.fixture
def login(layout: Layout, administrator: Actor) -> Callable[[str], Client]:
    """Logs somebody in; forms need their token."""
    for name, role in (("oscar", "operator"), ("victor", "viewer")):
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )

    def login(name: str) -> Client:
        client = Client(enforce_csrf_checks=True)
        client.get("/admin/login/")
        given = {"username": name, "password": PASSWORD, **_token(client)}
        assert client.post("/admin/login/", given).status_code == 302
        return client

    return login


def _token(client: Client) -> dict[str, str]:
    return {"csrfmiddlewaretoken": client.cookies["csrftoken"].value}


def _page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer
    return answer.content.decode()


@pytest.fixture
def running(layout: Layout, operator: Actor) -> Iterator[tuple[Slow, str]]:
    """A job that runs, and its page."""
    slow = Slow(stubborn=True, worker_id="pc1", agent="n")
    job = job_start(actor=operator, work=slow.work)
    assert slow.begun.wait(10)
    yield slow, f"/admin/jobs/{job.id}/"
    slow.go.set()


def test_a_running_job_has_a_bar_and_renews_itself_with_and_without_javascript(
    login: Callable[[str], Client], running: tuple[Slow, str]
) -> None:
    slow, address = running
    page = _page(login("victor"), address)
    assert '<noscript><meta http-equiv="refresh"' in page
    assert "ipxeready/refresh.js" in page
    assert 'max="2" value="0"' in page
    assert "0 of 2" in page
    assert "pc1" in page and "oscar" in page
    slow.go.set()
    job_wait(address.split("/")[-2], 10)
    page = _page(login("victor"), address)
    for words in ("http-equiv", "refresh.js", "<progress", "data-refresh"):
        assert words not in page
    assert "2 of 2" in page


def test_the_list_leads_to_each_and_is_above_every_page(
    login: Callable[[str], Client], running: tuple[Slow, str]
) -> None:
    _, address = running
    client = login("victor")
    page = _page(client, "/admin/jobs/")
    assert f'href="{address}"' in page
    assert "pc1 @ n" in page
    assert address not in _page(client, "/admin/jobs/?state=done")
    assert address in _page(client, "/admin/jobs/?state=running")
    areas = _page(client, "/admin/").split('<nav class="areas"')[1]
    assert 'href="/admin/jobs/"' in areas.split("</nav>")[0]


def test_an_operator_is_asked_before_a_job_is_cancelled(
    login: Callable[[str], Client], running: tuple[Slow, str]
) -> None:
    slow, address = running
    client = login("oscar")
    assert f'href="{address}cancel/"' in _page(client, address)
    assert "Cancel this job?" in _page(client, f"{address}cancel/")
    assert client.post(f"{address}cancel/").status_code == 403  # without the token
    assert slow.watch and not slow.watch.cancelled()
    answer = client.post(f"{address}cancel/", _token(client))
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert slow.watch.cancelled()
    page = _page(client, address)
    assert "is being cancelled" in page
    assert "cancel/" not in page
    slow.go.set()
    job_wait(address.split("/")[-2], 10)
    assert "It has ended meanwhile" in _page(client, f"{address}cancel/")
    answer = client.post(f"{address}cancel/", _token(client), follow=True)
    assert "has ended already" in answer.content.decode()


def test_a_viewer_cannot_cancel(
    login: Callable[[str], Client], running: tuple[Slow, str]
) -> None:
    slow, address = running
    client = login("victor")
    assert "cancel/" not in _page(client, address)
    assert client.get(f"{address}cancel/").status_code == 403
    assert client.post(f"{address}cancel/", _token(client)).status_code == 403
    assert slow.watch and not slow.watch.cancelled()


def test_what_failed_is_said_item_by_item(
    login: Callable[[str], Client], operator: Actor
) -> None:
    result = {
        "succeeded": [{"worker_id": "pc1", "agent": "n"}],
        "skipped": [],
        "failed": [{"worker_id": f"pc{n}", "error": "no room"} for n in range(2, 200)],
    }
    work = Work(kind="worker.disk.batch", do=lambda _: result, total=200)
    job = job_wait(job_start(actor=operator, work=work).id, 10)
    page = _page(login("victor"), f"/admin/jobs/{job.id}/")
    assert "Succeeded: 1" in page
    assert "Failed: 198" in page
    assert "pc2, no room" in page
    assert "and 98 more" in page
    assert "Skipped" not in page


# --- a new disk ----------------------------------------------------------------
def test_a_disk_that_is_made_at_once_is_answered_as_ever(
    login: Callable[[str], Client],
    layout: Layout,
    node: RealNode,
    worker: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common, "PATIENCE", 30.0)
    node.register("n")
    name = node.name()
    worker(name)
    client = login("oscar")
    address = f"/admin/workers/worker/{name}/disk/add/"
    answer = client.post(address, {**DISK, **_token(client)}, follow=True)
    assert answer.redirect_chain == [(f"/admin/workers/worker/{name}/change/", 302)]
    assert "The disk was made." in answer.content.decode()
    assert ledger(layout)[name]["default_os"] == "ubuntu"
    # Refusals are still errors of the form, known before or told by the node.
    page = client.post(address, {**DISK, **_token(client)}).content.decode()
    assert "has a ubuntu disk already" in page
    clone = {"os": "debian", "type": "master", "master": "n/none_tpl_.img"}
    given = {**clone, "disk_agent": "n", **_token(client)}
    page = client.post(address, given).content.decode()
    assert "node n: " in page


@pytest.fixture
def slow_node(
    layout: Layout, worker: Callable[..., dict[str, Any]]
) -> Iterator[tuple[Stub, threading.Event]]:
    begun = threading.Event()

    def wait(_: str) -> None:
        begun.set()
        found.release.wait(30)

    with stub_node() as found:
        found.register()
        found.next_iqn = f"{BASE}:pc1.ubuntu"
        found.before = wait
        worker("pc1")
        yield found, begun


def test_a_disk_that_takes_long_leads_to_its_jobs_page(
    login: Callable[[str], Client],
    layout: Layout,
    slow_node: tuple[Stub, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common, "PATIENCE", 0.2)
    stub, begun = slow_node
    client = login("oscar")
    address = "/admin/workers/worker/pc1/disk/add/"
    answer = client.post(address, {**DISK, **_token(client)})
    assert answer.status_code == 302
    job = answer["Location"]
    assert job.startswith("/admin/jobs/")
    assert begun.wait(10)
    # Asked for again, by somebody who has lost the page: the same.
    assert client.post(address, {**DISK, **_token(client)})["Location"] == job
    assert "is running" in _page(client, job)
    stub.release.set()
    assert job_wait(job.split("/")[-2], 20).state == "done"
    assert "Number" in _page(client, job)
    assert ledger(layout)["pc1"]["default_os"] == "ubuntu"
    assert len(stub.asked("POST")) == 1
