"""Who reads Chinese is refused in Chinese on pages; the API, the trail and the files keep their English."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.utils import translation
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM, Actor
from ipxeready.errors import Conflict
from ipxeready.said import said
from ipxeready.storage.paths import Layout
from ipxeready.web.views import permission_denied, refused
from tests.nodes import RealNode
from tests.workers.helpers import M1, M2, trail
from tests.workers.page_helpers import LIST, PASSWORD, at, logged_in, text_of
from workers.pages import common

Make = Callable[..., dict[str, Any]]
ZH = {"HTTP_ACCEPT_LANGUAGE": "zh-hans,zh;q=0.9"}
HAN = re.compile(r"[\u4e00-\u9fff]")


def chinese(client: Client) -> Client:
    client.defaults |= {**ZH, "HTTP_ACCEPT": "text/html"}
    return client


@pytest.fixture(autouse=True)
def _language() -> Iterator[None]:
    """The test client leaves the language of its last request behind."""
    with translation.override("en"):
        yield


@pytest.fixture
def page(
    layout: Layout, administrator: Actor, monkeypatch: pytest.MonkeyPatch
) -> Client:
    monkeypatch.setattr(common, "PATIENCE", 30.0)
    return chinese(logged_in(administrator, "operator"))


@pytest.fixture
def admin(layout: Layout, administrator: Actor) -> Client:
    return chinese(logged_in(administrator, "administrator"))


def refusals(answer: Any) -> dict[str, list[str]]:
    """The errors of a page's form, by field."""
    return {name: list(words) for name, words in answer.context["form"].errors.items()}


@pytest.mark.parametrize(
    ("sent", "field", "chinese_words", "english"),
    [
        (
            {"worker_id": "pc-1", "mac": "zz"},
            "mac",
            "MAC：'zz' 不是 MAC 地址。请写成 00:0c:29:b9:8b:2d。",
            "mac: 'zz' is not a MAC address. Write it as 00:0c:29:b9:8b:2d.",
        ),
        (
            {"worker_id": "pc-1", "mac": "01:00:5e:00:00:01"},
            "mac",
            "MAC：'01:00:5e:00:00:01' 是组播地址：其首字节的最低位为 1。请给出网卡自身的地址。",
            "mac: '01:00:5e:00:00:01' is a multicast (group) address: the low bit of its first byte "
            "is set. Give the card's own address.",
        ),
        (
            {"worker_id": "pc-1", "mac": M2, "hostname": "a.b"},
            "hostname",
            "主机名：'a.b' 含有点号：机器只会得到点号之前的部分。请给出不带域名的名称。",
            "hostname: 'a.b' has a dot: the machine would only get the part before it. Give the name "
            "without its domain.",
        ),
        (
            {"worker_id": "-", "mac": M2},
            "worker_id",
            "'-' 必须是 1 到 63 个字母、数字、点号、连字符或下划线，并以字母或数字开头",
            "'-' must be 1 to 63 letters, digits, dots, hyphens or underscores, beginning with a "
            "letter or digit",
        ),
    ],
)
def test_a_new_worker(
    page: Client,
    api: APIClient,
    sent: dict[str, str],
    field: str,
    chinese_words: str,
    english: str,
) -> None:
    answer = page.post(f"{LIST}add/", sent)
    assert refusals(answer) == {field: [chinese_words]}
    told = api.post("/workers", sent, **ZH)
    assert told.status_code == 400
    assert told.json() == {"detail": {field: [english]}}


def test_a_worker_that_is_there(
    page: Client, api: APIClient, worker: Make, layout: Layout
) -> None:
    worker("pc-1", mac=M1)
    sent = {"worker_id": "pc-1", "mac": M2}
    answer = page.post(f"{LIST}add/", sent)
    words = refusals(answer)["__all__"]
    assert words == ["Worker ID：已有 Worker pc-1；请另取 ID"]
    told = api.post("/workers", sent, **ZH)
    assert told.status_code == 409
    assert told.json()["detail"] == (
        "worker_id: there is a worker pc-1 already; choose another id"
    )
    assert not HAN.search(layout.operations.read_text())


def test_a_disk_that_is_there_and_one_that_fits_nowhere(
    page: Client, api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    url = at(name, "disk/add/")
    sent = {"type": "empty", "os": "debian", "size": "2M", "disk_agent": "n"}
    assert page.post(url, sent).status_code == 302
    answer = page.post(url, sent)
    assert refusals(answer)["__all__"] == [f"系统：{name} 在节点 n 上已有 debian 磁盘"]
    told = api.post(
        f"/workers/{name}/luns/disk",
        {"type": "empty", "os": "debian", "size": "2M", "disk_agent": "n"},
        **ZH,
    )
    assert told.json()["detail"] == f"os: {name} has a debian disk already on node n"
    answer = page.post(url, {**sent, "os": "ubuntu", "size": "two"})
    assert refusals(answer)["size"] == [
        "size 'two' 不是大小：请写 40G、512M、1T 或字节数。"
    ]
    assert not HAN.search(layout.operations.read_text())


def test_what_went_through_the_file_of_a_job(
    page: Client, api: APIClient, worker: Make, layout: Layout
) -> None:
    """A page reads the refusal of its work from the job: its English stays there."""
    agent_register(actor=SYSTEM, agent_id="n", base_url="http://127.0.0.1:9", token="t")
    worker("pc-1")
    sent = {"type": "empty", "os": "debian", "size": "2M", "disk_agent": "n"}
    answer = page.post(at("pc-1", "disk/add/"), sent)
    (words,) = refusals(answer)["__all__"]
    assert words.startswith("节点 n（http://127.0.0.1:9） 无法连接：")
    (failed,) = trail(layout, "worker.disk.create")[-1:]
    assert failed["status"] in ("failed", "rollback")
    assert "is unreachable" in failed["error"]
    assert not HAN.search(layout.operations.read_text())
    (job,) = api.get("/jobs", **ZH).json()
    assert "is unreachable" in str(job["error"])
    assert not HAN.search(str(job))
    shown = text_of(page.get(f"/admin/jobs/{job['id']}/"))
    assert words in shown
    assert "is unreachable" not in shown


def test_a_person(admin: Client) -> None:
    url = "/admin/users/operator/add/"
    sent = {"username": "A B", "password": "correct horse battery", "role": "viewer"}
    answer = admin.post(url, sent)
    errors = answer.context["adminform"].form.errors
    assert list(errors["username"]) == [
        "必须是 1 到 63 个 a-z、0-9、点号、下划线、连字符，并以字母或数字开头"
    ]
    url = "/admin/users/operator/the-administrator/change/"
    answer = admin.post(url, {"role": "viewer", "active": "on"})
    (words,) = answer.context["adminform"].form.non_field_errors()
    assert words == "the-administrator 是唯一能登录的管理员；请先让另一人成为管理员"


def test_a_node(admin: Client, api: APIClient, layout: Layout) -> None:
    url = "/admin/agents/agent/add/"
    answer = admin.post(url, {"base_url": "ftp://n", "token": "t"})
    (words,) = refusals(answer)["base_url"]
    assert words == (
        "'ftp://n' 必须是节点 Agent 的 http://host:port 或 https://host:port，"
        "不带用户名、密码、查询和片段"
    )
    told = api.post("/agents/probe", {"base_url": "ftp://n", "token": "t"}, **ZH)
    (words,) = told.json()["detail"]["base_url"]
    assert words.startswith("'ftp://n' must be http://host:port or https://host:port")
    answer = admin.post(url, {"base_url": "http://127.0.0.1:9", "token": "t"})
    (words,) = refusals(answer)["__all__"]
    assert "http://127.0.0.1:9 无法连接" in words
    assert not HAN.search(layout.operations.read_text())


def test_a_token(admin: Client, api: APIClient) -> None:
    sent = {"name": "!", "role": "viewer", "days": "3", "password": PASSWORD}
    answer = admin.post("/admin/account/tokens/", sent)
    words = text_of(answer)
    assert "必须是 1 到 40 个字母、数字、空格、点号、下划线或连字符" in words
    told = api.post("/tokens", {"name": "!", "user": "the-administrator"}, **ZH)
    assert "must be 1 to 40 letters, digits" in str(told.json())


def test_a_page_that_is_refused_as_a_whole(rf: RequestFactory) -> None:
    """What no form shows is a page of its own, and an English answer for who asks for data."""
    error = Conflict(said("it is {status}", status="creating"))
    with translation.override("zh-hans"):
        answer = refused(rf.get("/", HTTP_ACCEPT="text/html"), error)
        assert "其状态为 creating" in text_of(answer)
        answer = refused(rf.get("/", HTTP_ACCEPT="application/json"), error)
        assert json.loads(answer.content) == {"detail": "it is creating"}
        denied = PermissionDenied(error.message)
        answer = permission_denied(rf.get("/", HTTP_ACCEPT="text/html"), denied)
        assert "其状态为 creating" in text_of(answer)
        answer = permission_denied(rf.get("/"), denied)
        assert json.loads(answer.content) == {"detail": "it is creating"}


def test_a_record_that_does_not_validate(
    page: Client, layout: Layout, worker: Make
) -> None:
    worker("pc-1")
    layout.workers_yml.write_text("workers: [")
    sent = {"default_os": "", "menu_default": "reboot", "menu_timeout": ""}
    words = text_of(page.post(at("pc-1", "boot/"), sent))
    assert "已损坏，修正之前不接受写入" in words
    words = text_of(page.post(at("pc-1", "boot/"), sent, HTTP_ACCEPT_LANGUAGE="en"))
    assert "is broken and takes no writes until it is mended" in words


def test_broken_files_on_the_dashboard(page: Client, layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"{M1},a\n{M2},a\n")
    words = text_of(page.get("/admin/"))
    assert "出现在第 1, 2 行：多台机器会得到此名称" in words
