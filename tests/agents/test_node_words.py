"""What a storage node says reaches a Chinese page in Chinese, and whole; programs keep its English, clipped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import translation
from rest_framework.test import APIClient

from agents import known
from agents.client import NodeClient
from agents.node.backends.base import in_use
from agents.node.errors import NoRoom
from agents.services import agent_register
from ipxeready.actors import SYSTEM, Actor
from ipxeready.errors import NodeRefused
from ipxeready.storage.paths import Layout
from ipxeready.web.words import in_words
from tests.agents.fakes import http_server
from tests.nodes import BASE, RealNode
from tests.workers.page_helpers import logged_in, text_of

ROOT = "/admin/agents/agent/n/"
ZH = {"HTTP_ACCEPT_LANGUAGE": "zh-hans,zh;q=0.9"}
OPEN = (
    "master {name} is open for writing: it is still being copied there, or something uses it as a disk. "
    "Wait until that is done, or end it (`fuser -v {name}` in the image directory names it)."
)


@pytest.fixture(autouse=True)
def _language() -> Iterator[None]:
    """The test client leaves the language of its last request behind."""
    with translation.override("en"):
        yield


@pytest.fixture
def page(layout: Layout, administrator: Actor) -> Client:
    """An operator who reads Chinese."""
    client = logged_in(administrator, "operator")
    client.defaults |= {**ZH, "HTTP_ACCEPT": "text/html"}
    return client


def refused(body: object, status: int = 409) -> NodeRefused:
    """What becomes of a node's answer."""
    content = json.dumps(body).encode()
    with http_server(lambda method, path: (status, {}, content)) as fake:
        agent = agent_register(
            actor=SYSTEM, agent_id="n", base_url=fake.base_url, token="t"
        )
        with pytest.raises(NodeRefused) as caught:
            NodeClient(agent).targets()
    return caught.value


SESSION: Any = {
    "initiator": "iqn.2026-07.com.ipxe:pc-1",
    "address": "192.0.2.7",
    "since": "2026-11-02T10:00:00+01:00",
}
TARGET: Any = {"iqn": f"{BASE}:pc-1.debian", "luns": [], "sessions": [SESSION]}
OTHER: Any = {"initiator": "iqn.2026-07.com.ipxe:pc-2", "address": "", "since": None}


@pytest.mark.parametrize(
    ("detail", "chinese"),
    [
        (
            in_use(TARGET).message,
            f"{BASE}:pc-1.debian 正由 iqn.2026-07.com.ipxe:pc-1（来自 192.0.2.7，登录于 "
            "2026-11-02T10:00:00+01:00） 使用。请关闭那台机器，或用 force=true 重试。",
        ),
        (
            in_use({**TARGET, "sessions": [SESSION, OTHER]}).message,
            f"{BASE}:pc-1.debian 正由 iqn.2026-07.com.ipxe:pc-1（来自 192.0.2.7，登录于 "
            "2026-11-02T10:00:00+01:00）, iqn.2026-07.com.ipxe:pc-2（来自 未知地址） 使用。"
            "请关闭那台机器，或用 force=true 重试。",
        ),
        (
            NoRoom.of("pc-1.debian.img", needed=40 << 30, free=9 << 30, reserve=1 << 30).message,
            "没有空间存放 pc-1.debian.img：需要 40 GiB，可用 9 GiB，其中 1 GiB 须作保留。"
            "请腾出空间或换一个节点。",
        ),
        (
            f"master w_tpl_.img is exported as {BASE}:w, so that it may change at any time. "
            "Delete that target first; its file stays.",
            f"母盘 w_tpl_.img 已导出为 {BASE}:w，随时可能改变。请先删除该 target；其文件会保留。",
        ),
        (
            {"size": ["size 'two' is not a size: write 40G or bytes."]},
            "大小 'two' 无效：请写成 40G 或字节数。",
        ),
        (
            f"qemu-img could not read {'x' * 80}.qcow2 as qcow2: its tables are damaged (it said 2).",
            f"qemu-img 无法完成“按 qcow2 读取 {'x' * 80}.qcow2”：其元数据表已损坏（其返回值为 2）。",
        ),
    ],
)  # fmt: skip
def test_a_refusal_over_http(layout: Layout, detail: Any, chinese: str) -> None:
    error = refused({"detail": detail})
    assert error.detail()["error"] in str(detail) or isinstance(detail, dict)
    assert len(error.detail()["error"]) <= 200
    with translation.override("zh-hans"):
        assert in_words(error) == f"节点 n：{chinese}"
        assert in_words(error.error) == chinese


def test_a_long_one_is_whole_on_a_page_in_either_language(layout: Layout) -> None:
    english = OPEN.format(name="win11_tpl_1.img")
    assert len(english) > 200
    error = refused({"detail": english})
    assert error.detail() == {"agent": "n", "error": english[:200]}
    assert json.loads(json.dumps(error.detail()))["error"] == english[:200]
    assert error.message == f"node n: {english[:200]}"
    assert in_words(error) == f"node n: {english}"
    with translation.override("zh-hans"):
        assert in_words(error) == (
            "节点 n：母盘 win11_tpl_1.img 正被打开写入：仍在向它复制，或有程序把它当磁盘使用。"
            "请等待其完成，或将其结束（在镜像目录中执行 `fuser -v win11_tpl_1.img` 可看到是谁）。"
        )


def test_what_nobody_here_wrote_has_an_end(layout: Layout) -> None:
    error = refused({"detail": "x " * 5000})
    assert len(error.detail()["error"]) == 200
    assert len(in_words(error)) == len("node n: ") + 1000


def test_a_master_that_is_being_written(
    page: Client, api: APIClient, node: RealNode, layout: Layout
) -> None:
    """More than 200 characters, from a real node to the form, and to what a program gets."""
    node.register("n")
    master = node.image(f"{node.name()}_tpl_1.img")
    name = node.name()
    with master.open("r+b"):
        answer = page.post(
            f"{ROOT}luns/disk/add/",
            {"name": f"{name}.debian", "source": "master", "master": master.name},
        )
        told = api.post(
            "/agents/n/luns/disk",
            {"iqn": f"{BASE}:{name}.debian", "master": master.name},
            **ZH,
        )
    words = html.unescape(answer.content.decode())
    assert f"母盘 {master.name} 正被打开写入：仍在向它复制" in words
    assert "可看到是谁）。" in words
    assert "is open for writing" not in words
    english = OPEN.format(name=master.name)
    assert told.status_code == 409
    assert told.json() == {"detail": {"agent": "n", "error": english[:200]}}
    assert "is open for writing" in layout.operations.read_text()
    assert "正被打开写入" not in layout.operations.read_text()


def test_a_file_of_the_wrong_size(page: Client, node: RealNode) -> None:
    node.register("n")
    form = html.unescape(page.get(f"{ROOT}images/").content.decode())
    (_, _, rest) = form.partition(f'action="{ROOT}images/upload/')
    file = SimpleUploadedFile("odd.img", b"x" * 1000)
    address = f"{ROOT}images/upload/{rest.partition(chr(34))[0]}"
    answer = page.post(address, {"upload-file": file}, follow=True)
    assert (
        "大小 1000：镜像（.img）必须是 512 字节的倍数。如果是其他格式，请用相应的扩展名"
        in text_of(answer)
    )


def test_what_a_node_complains_of(page: Client, layout: Layout) -> None:
    agent = agent_register(
        actor=SYSTEM, agent_id="n", base_url="http://127.0.0.1:9", token="t"
    )
    problems = [
        "only 1 GiB are free, less than the 2 GiB that stay in reserve",
        f"{BASE}:pc-1.debian: its file /images/pc-1.debian.img is gone; the target was left as it is",
        "/images/.targets.json cannot be read: line 3, column 5: Expecting value. Mend it; or delete it "
        "to forget which targets were taken off, which CDs come back, and who may log in (then everybody "
        "may, or each machine itself where a target had a secret, until it is set again).",
        "the disk hums",
    ]
    health = {"problems": problems}
    known.note({"n": (agent, {"reachable": True, "seconds": 0.1, "health": health})})
    for path in ("/admin/", "/admin/agents/agent/"):
        words = text_of(page.get(path))
        assert "仅剩 1 GiB 可用，少于须保留的 2 GiB" in words
        assert (
            f"{BASE}:pc-1.debian: 其文件 /images/pc-1.debian.img 已不存在；target 未作改动"
            in words
        )
        assert (
            "无法读取 /images/.targets.json：第 3 行第 5 列：Expecting value。请修复它"
            in words
        )
    assert "the disk hums" in text_of(page.get("/admin/"))
