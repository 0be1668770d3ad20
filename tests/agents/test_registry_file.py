"""config/agents.yml written by hand: what is read, what is reported, what a boot makes of it."""

from __future__ import annotations

import pytest

from agents import seen, selectors
from agents.client import NodeClient
from agents.models import Agent
from ipxeready import index
from ipxeready.errors import NotFound
from ipxeready.storage.paths import Layout
from tests.agents.fakes import node_like


def _read(layout: Layout, record: str) -> None:
    layout.agents_yml.write_text(
        "agents:\n  n:\n" + "".join(f"    {line}\n" for line in record.splitlines())
    )
    index.ensure_fresh(wait=True)


def test_the_shipped_example_is_an_empty_registry_and_its_comment_a_node(
    layout: Layout,
) -> None:
    text = layout.agents_yml.read_text()
    assert not selectors.agents().exists()
    lines = [
        line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")
    ]
    layout.agents_yml.write_text("\n".join(lines[lines.index("agents:") :]) + "\n")
    index.ensure_fresh(wait=True)
    agent = selectors.agents().get()
    assert agent.token == "${NODE_1_TOKEN}"
    assert not index.problems().exists()


def test_only_a_base_url_is_needed(layout: Layout) -> None:
    _read(layout, "base_url: http://192.0.2.1:4840")
    agent = selectors.agent_get("N")
    assert (agent.role_disk, agent.role_cd, agent.enabled) == (True, False, True)
    assert (agent.token, agent.tags, agent.iscsi_server) == ("", [], "")
    assert selectors.agents_enabled_for_disks() == [agent]
    assert selectors.agents_enabled_for_cd() == []


def test_a_token_of_digits_is_text(layout: Layout) -> None:
    _read(layout, "base_url: http://192.0.2.1:4840\ntoken: 12345678")
    assert selectors.agent_get("n").token == "12345678"


def test_the_rows_data_has_no_token(layout: Layout) -> None:
    _read(layout, "base_url: http://192.0.2.1:4840\ntoken: secret\nrack: 7")
    assert selectors.agent_get("n").data == {
        "base_url": "http://192.0.2.1:4840",
        "rack": 7,
    }


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("token: x", "base_url"),
        ("base_url: ftp://x", "base_url"),
        ("base_url: http://192.0.2.1\nrole: both", "role"),
        ("base_url: http://192.0.2.1\nrole: {disk: yes}", "role.disk"),
        ("base_url: http://192.0.2.1\nenabled: maybe", "enabled"),
        ("base_url: http://192.0.2.1\naccess: everybody", "access"),
        ("base_url: http://192.0.2.1\ntags: lio", "tags"),
        ("base_url: http://192.0.2.1\ntoken: two words", "token"),
        ("base_url: http://192.0.2.1\ntoken: x${HOME}", "token"),
        ("base_url: http://192.0.2.1\ntoken: [secret-word]", "token"),
        ("base_url: http://192.0.2.1\niscsi_server: a b", "iscsi_server"),
    ],
)
def test_a_wrong_record_is_a_problem_by_field_and_the_last_good_row_stays(
    layout: Layout, record: str, words: str
) -> None:
    _read(layout, "base_url: http://192.0.2.77:4840")
    _read(layout, record)
    (problem,) = index.problems()
    assert words in problem.message
    assert "secret-word" not in problem.message
    assert problem.line == 2
    assert selectors.agent_get("n").base_url == "http://192.0.2.77:4840"


def test_an_upper_case_id_is_a_problem(layout: Layout) -> None:
    layout.agents_yml.write_text("agents:\n  Node-1: {base_url: 'http://192.0.2.1'}\n")
    index.ensure_fresh(wait=True)
    assert "lower case" in index.problems().get().message


def test_there_must_be_such_a_node(layout: Layout) -> None:
    with pytest.raises(NotFound, match="nope"):
        selectors.agent_get("nope")


@pytest.mark.parametrize(
    ("base_url", "given", "server"),
    [
        ("http://192.0.2.1:4840", "", "192.0.2.1"),
        ("https://node_1.lab:4840/agent", "", "node_1.lab"),
        ("http://[2001:db8::1]:4840", "", "[2001:db8::1]"),
        ("http://192.0.2.1:4840", "192.0.2.9", "192.0.2.9"),
    ],
)
def test_where_machines_find_the_targets(
    base_url: str, given: str, server: str
) -> None:
    agent = Agent(id="n", base_url=base_url, iscsi_server=given)
    assert selectors.iscsi_server_of(agent) == server


@pytest.mark.parametrize(
    ("tags", "sep"),
    [
        ([], ":::1:"),
        (["storage", "LIO"], "::::"),
        (["stgt"], ":::1:"),
        (["files"], ":::1:"),
        (["fast"], ":::1:"),
    ],
)
def test_the_separator_by_tags(layout: Layout, tags: list[str], sep: str) -> None:
    assert selectors.iscsi_sep(Agent(id="n", base_url="http://x", tags=tags)) == sep


def test_the_separator_by_what_was_last_seen_in_any_process_at_that_address(
    layout: Layout,
) -> None:
    with node_like({"backend": "lio"}) as fake:
        agent = Agent(id="n", base_url=fake.base_url)
        assert selectors.iscsi_sep(agent) == ":::1:"
        NodeClient(agent).capabilities()
        assert selectors.iscsi_sep(agent) == "::::"
        seen._known.update(stamp=None, nodes={})  # what another process starts with
        assert selectors.iscsi_sep(agent) == "::::"
        assert len(fake.requests) == 1
    moved = Agent(id="n", base_url="http://192.0.2.1:4840")
    assert selectors.iscsi_sep(moved) == ":::1:"
    tagged = Agent(id="n", base_url=fake.base_url, tags=["stgt"])
    assert selectors.iscsi_sep(tagged) == ":::1:"


def test_notes_that_are_garbage_are_forgotten(layout: Layout) -> None:
    agent = Agent(id="n", base_url="http://192.0.2.1")
    for text in ("{", "[]", '{"n": 7}', '{"n": ["http://192.0.2.1", "tape"]}'):
        (layout.run / "node-backends.json").write_text(text)
        assert selectors.iscsi_sep(agent) == ":::1:"
    seen.note_backend(agent, "lio")
    assert selectors.iscsi_sep(agent) == "::::"
