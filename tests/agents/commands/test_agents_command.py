"""`agents`: the registry from the shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.agents.helpers import registry, trail
from tests.nodes import RealNode
from tests.shell import run

URL = "http://127.0.0.1:9"


def test_a_node_from_the_shell(layout: Layout, api: APIClient) -> None:
    ended = run("agents", "add", "N1", URL, "--token-file", "-", stdin="geheim\n")
    assert (ended.code, ended.out, ended.err) == (0, f"n1: {URL}\n", "")
    assert registry(layout)["n1"]["token"] == "geheim"
    ended = run(
        "agents",
        "edit",
        "n1",
        "--iscsi-server",
        "192.0.2.7",
        "--no-disk",
        "--cd",
        "--tag",
        "stgt",
        "--tag",
        "fast",
        "--json",
    )
    assert ended.json == api.get("/agents/n1").json()
    assert ended.json["role"] == {"disk": False, "cd": True}
    assert ended.json["tags"] == ["stgt", "fast"]
    assert registry(layout)["n1"]["token"] == "geheim"
    run("agents", "edit", "n1", "--tag", "", "--base-url", f"{URL}9")
    assert registry(layout)["n1"]["tags"] == []
    assert registry(layout)["n1"]["base_url"] == f"{URL}9"
    run("agents", "disable", "n1")
    assert registry(layout)["n1"]["enabled"] is False
    assert run("agents", "enable", "n1").out == "n1: enabled\n"
    assert run("agents", "list", "--json").json == api.get("/agents").json()
    assert run("agents", "delete", "n1").out == "n1: deleted\n"
    assert registry(layout) == {}
    assert all(line["user"].startswith("shell:") for line in trail("agent.update"))


def test_no_token_is_ever_shown(layout: Layout, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("geheim\n")
    seen = ""
    for words in (
        ("add", "n1", URL, "--token-file", str(secret)),
        ("edit", "n1", "--enabled", "--token-file", str(secret)),
        ("list",),
        ("list", "--live"),
        ("probe", "n1"),
        ("probe", URL, "--token-file", str(secret)),
    ):
        for form in ((), ("--json",)):
            ended = run("agents", *words, *form)
            seen += ended.out + ended.err
    assert "geheim" not in seen
    assert "geheim" not in layout.operations.read_text()


def test_live_asks_the_nodes(layout: Layout, node: RealNode, nobody: str) -> None:
    node.register("alive")
    run("agents", "add", "dead", nobody)
    run("agents", "add", "off", nobody, "--no-enabled")
    ended = run("agents", "list", "--live", "--json")
    health = {entry["id"]: entry["health"] for entry in ended.json}
    assert health["alive"] == "ok"
    assert health["off"] == "disabled"
    assert "is unreachable" in health["dead"]
    assert ended.json[0]["capabilities"]["backend"] == "files"
    table = run("agents", "list", "--live").out.splitlines()
    assert table[0].split()[-1] == "HEALTH"
    assert table[1].startswith("alive ") and table[1].endswith(" ok")
    # The option counts wherever it stands.
    assert len(run("agents", "--json", "list").json) == 3


def test_a_probe_writes_nothing_but_its_line(
    layout: Layout, node: RealNode, tmp_path: Path
) -> None:
    secret = tmp_path / "token"
    secret.write_text(node.token)
    before = layout.agents_yml.read_bytes()
    ended = run("agents", "probe", node.base_url, "--token-file", str(secret), "--json")
    assert ended.json["backend"] == "files"
    assert layout.agents_yml.read_bytes() == before
    node.register("n1")
    assert "backend: files" in run("agents", "probe", "n1").out.splitlines()
    assert [line["status"] for line in trail("agent.probe")] == ["ok", "ok"]
    ended = run("agents", "probe", node.base_url)
    assert ended.code == 1
    assert len(ended.err.splitlines()) == 1


def test_several_at_once_each_on_its_own(layout: Layout) -> None:
    for name in ("a", "b", "c"):
        run("agents", "add", name, URL)
    ended = run("agents", "disable", "A", "x", "b", "a", "--json")
    assert ended.code == 3
    assert ended.json["succeeded"] == [{"id": "a"}, {"id": "b"}]
    assert ended.json["failed"][0]["error"]["code"] == "agent.missing"
    assert "x: there is no node 'x'" in ended.err
    assert registry(layout)["b"]["enabled"] is False
    assert run("agents", "delete", "x", "y").code == 1


def test_a_node_with_disks_is_not_deleted(layout: Layout) -> None:
    run("agents", "add", "n1", URL)
    iqn = "iqn.2026-07.com.controller:a.ubuntu"
    layout.workers_yml.write_text(
        f'workers:\n  a: {{hostname: a, disks: [{{agent: n1, os: ubuntu, iqn: "{iqn}"}}]}}\n'
    )
    ended = run("agents", "delete", "n1")
    assert (ended.code, "still has disks or CDs of a" in ended.err) == (1, True)
    assert "n1" in registry(layout)


@pytest.mark.parametrize(
    ("words", "code", "rule"),
    [
        (["add", "probe", URL], 1, "id: probe is an address of the API"),
        (["add", "a/b", URL], 1, "id: 'a/b' must be 1 to 63"),
        (["add", "a", "ftp://x"], 1, "base_url: 'ftp://x' must be http://"),
        (["add", "n1", URL], 1, "there is a node n1 already"),
        (["edit", "n1"], 2, "nothing is given"),
        (["edit", "x", "--enabled"], 1, "there is no node 'x'"),
        (["edit", "n1", "--tag", "a b"], 1, "tags: 'a b' must be 1 to 63"),
        (["edit", "n1", "--iscsi-server", "a b"], 1, "iscsi_server: 'a b' must be"),
        (["edit", "n1", "--token-file", "/nowhere"], 2, "/nowhere: cannot be read"),
        (["edit", "n1", "--token-file", "-"], 2, "-: holds no token"),
        (["probe", "x"], 1, "there is no node 'x'"),
    ],
)
def test_a_refusal_is_one_line(
    layout: Layout, words: list[str], code: int, rule: str
) -> None:
    run("agents", "add", "n1", URL)
    before = layout.agents_yml.read_bytes()
    ended = run("agents", *words)
    assert (ended.code, rule in ended.err) == (code, True), ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""
    assert layout.agents_yml.read_bytes() == before
