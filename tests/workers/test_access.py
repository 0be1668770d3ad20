"""Who may log in: a worker's word, its node's, on real nodes; ledger and nodes never differ unseen."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from ipxeready.actors import SYSTEM
from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.workers.helpers import ledger, refusal, trail
from tests.workers.stub import Stub, stub_node
from workers import access, chap

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def stub(layout: Layout) -> Iterator[Stub]:
    """A node that can be told to misbehave."""
    with stub_node() as found:
        found.register("stub")
        yield found


def secrets(layout: Layout) -> dict[str, Any]:
    """The secrets as the file has them."""
    return dict(yaml.safe_load(layout.chap_secrets_yml.read_bytes())["secrets"] or {})


def give(api: APIClient, name: str, os: str = "debian", **more: Any) -> dict[str, Any]:
    """An empty disk for a worker; the record."""
    body = {"type": "empty", "os": os, "size": "1M", **more}
    answer = api.post(f"/workers/{name}/luns/disk", body)
    assert answer.status_code == 201, answer.json()
    return dict(answer.json())


def test_a_disk_is_made_with_its_nodes_access(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    record = give(api, name)
    assert record["disks"][0]["access"] == "acl"
    assert "access" not in record
    target = node.targets()[f"{BASE}:{name}.debian"]
    assert target["access"] == "acl"
    assert target["initiators"] == [f"{BASE}:{name}"]
    assert not secrets(layout)


def test_a_node_that_was_there_before_stays_open(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    layout.agents_yml.write_text(
        f"agents:\n  n: {{base_url: '{node.base_url}', token: {node.token}}}\n"
    )
    name = node.name()
    worker(name)
    record = give(api, name)
    assert "access" not in record["disks"][0]
    assert node.targets()[f"{BASE}:{name}.debian"]["access"] == "off"


def test_a_workers_own_word_beats_its_nodes(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    answer = api.put(f"/workers/{name}/access", {"access": "off"})
    assert answer.status_code == 200, answer.json()
    assert answer.json()["access"] == "off"
    give(api, name)
    iqn = f"{BASE}:{name}.debian"
    assert node.targets()[iqn]["access"] == "off"
    answer = api.put(f"/workers/{name}/access", {"access": None})
    assert answer.json()["changed"] == [iqn]
    assert "access" not in answer.json()
    assert node.targets()[iqn]["access"] == "acl"


def test_a_secret_is_made_once_and_stays_in_its_file(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    name = node.name()
    worker(name)
    give(api, name)
    made = secrets(layout)[name]
    assert made["username"] == name
    assert len(made["secret"]) == 16
    assert made["secret"].isalnum()
    give(api, name, "ubuntu")
    assert secrets(layout)[name] == made
    target = node.targets()[f"{BASE}:{name}.debian"]
    assert target["access"] == "chap"
    assert made["secret"] not in str(target)
    assert stat.S_IMODE(layout.chap_secrets_yml.stat().st_mode) == 0o600
    backup = layout.backup / "chap-secrets.yml"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert api.delete(f"/workers/{name}?delete_disk=true").status_code == 200
    assert secrets(layout) == {}


def test_no_secret_is_made_that_lio_takes_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    letters = iter("NULL" + "a" * 12 + "NULl" + "b" * 12)
    monkeypatch.setattr("workers.chap.secrets.choice", lambda _letters: next(letters))
    assert chap.make_secret() == "NULl" + "b" * 12


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ("username: pc1, secret: NULLtwelve12", "secret"),
        ("username: NULLtwelve12, secret: TopSecretTopSecr", "username"),
        ("username: pc1, secret: TopSecretTopSecr, next: NULLtwelve12", "next"),
    ],
)
def test_a_secret_by_hand_that_lio_takes_for_none_is_refused_unseen(
    api: APIClient,
    node: RealNode,
    worker: Make,
    layout: Layout,
    record: str,
    field: str,
) -> None:
    node.register("n", access="acl")
    worker("pc1")
    layout.chap_secrets_yml.write_text(f"secrets:\n  pc1: {{{record}}}\n")
    status, words = refusal(api, "put", "/workers/pc1/access", {"access": "chap"})
    assert status == 503
    assert f"{field} must not begin with NULL" in words
    assert "twelve" not in words


def test_a_new_secret_reaches_the_node(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    name = node.name()
    worker(name)
    give(api, name)
    before = secrets(layout)[name]
    answer = api.put(f"/workers/{name}/access", {"rotate": True})
    assert answer.status_code == 200, answer.json()
    after = secrets(layout)[name]
    assert after["username"] == before["username"]
    assert after["secret"] != before["secret"]
    assert set(after) == {"username", "secret"}
    on_node = (node.folder / ".chap.json").read_text()
    assert after["secret"] in on_node
    assert before["secret"] not in on_node


def test_a_secret_changed_by_hand_is_sent_with_the_next_setting(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    name = node.name()
    worker(name)
    give(api, name)
    text = layout.chap_secrets_yml.read_text()
    layout.chap_secrets_yml.write_text(
        text.replace(secrets(layout)[name]["secret"], "writtenByHand42")
    )
    answer = api.put(f"/workers/{name}/access", {"access": "chap"})
    assert answer.status_code == 200, answer.json()
    assert "writtenByHand42" in (node.folder / ".chap.json").read_text()


def test_there_is_no_secret_to_change_without_chap(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    give(api, name)
    status, words = refusal(api, "put", f"/workers/{name}/access", {"rotate": True})
    assert status == 409
    assert "no secret to change" in words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "give access"),
        ({"force": True}, "give access"),
        ({"access": "everybody"}, "must be one of off, acl, chap"),
        ({"access": ""}, "must not be empty"),
        ({"acess": "off"}, "acess"),
    ],
)
def test_a_wrong_request_names_what_is_wrong(
    api: APIClient, worker: Make, body: dict[str, Any], words: str
) -> None:
    worker("pc1")
    status, said = refusal(api, "put", "/workers/pc1/access", body)
    assert status == 400
    assert words in said


def test_a_node_that_is_gone_leaves_everything_as_it_was(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    give(api, name)
    before = ledger(layout)
    api.put("/agents/n", {"base_url": "http://127.0.0.1:9", "token": "t"})
    status, words = refusal(api, "put", f"/workers/{name}/access", {"access": "chap"})
    assert status == 503
    assert "Nothing was changed" in words
    assert ledger(layout) == before
    assert not secrets(layout)
    status, words = refusal(api, "post", "/agents/n/access", {"access": "off"})
    assert status == 503
    assert api.get("/agents/n").json()["access"] == "acl"


def test_a_refusal_of_the_node_takes_the_ledger_back(
    api: APIClient, stub: Stub, worker: Make, layout: Layout
) -> None:
    worker("pc1")
    stub.next_iqn = f"{BASE}:pc1.debian"
    give(api, "pc1", disk_agent="stub")
    before = ledger(layout)
    stub.access = 409, {"detail": "in use by iqn.other"}
    status, words = refusal(api, "put", "/workers/pc1/access", {"access": "chap"})
    assert status == 409
    assert words == "stub: in use by iqn.other"
    assert ledger(layout) == before
    lines = [line["status"] for line in trail(layout, "worker.access.set")]
    assert lines == ["started", "rollback"]


def test_a_lost_answer_stays_visible_until_it_is_set_again(
    api: APIClient, stub: Stub, worker: Make, layout: Layout
) -> None:
    worker("pc1")
    stub.next_iqn = f"{BASE}:pc1.debian"
    give(api, "pc1", disk_agent="stub")
    stub.access = None
    status, words = refusal(api, "put", "/workers/pc1/access", {"access": "chap"})
    assert status == 503
    assert "set it again" in words
    record = ledger(layout)["pc1"]
    assert record["access"] == "chap"
    assert record["disks"][0]["access"] == "acl"
    (line,) = access.differences()
    assert "pc1.debian: acl instead of chap" in line
    told = api.get("/healthz?verbose=1").json()["differences"]
    assert line in told
    # The machine can log in whichever the node has.
    assert chap.secret_of("pc1") is not None
    stub.access = 200, stub._target(stub.next_iqn)
    assert api.put("/workers/pc1/access", {"access": "chap"}).status_code == 200
    assert access.differences() == []


def test_what_is_done_is_named_where_the_rest_fails(
    api: APIClient, stub: Stub, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    give(api, name, disk_agent="n")
    stub.next_iqn = f"{BASE}:{name}.ubuntu"
    give(api, name, "ubuntu", disk_agent="stub")
    stub.access = 507, {"detail": "no room"}
    status, words = refusal(api, "put", f"/workers/{name}/access", {"access": "off"})
    assert status == 507
    assert (
        words
        == f"stub: set on {BASE}:{name}.debian; then: no room. Set it again to go on"
    )
    disks = {disk["os"]: disk.get("access") for disk in ledger(layout)[name]["disks"]}
    assert disks == {"debian": None, "ubuntu": "acl"}


def test_a_rotation_whose_answer_was_lost_goes_on_with_the_same_secret_known(
    api: APIClient, stub: Stub, worker: Make, layout: Layout
) -> None:
    worker("pc1")
    stub.next_iqn = f"{BASE}:pc1.debian"
    give(api, "pc1", disk_agent="stub")
    stub.access = 200, stub._target(stub.next_iqn)
    assert api.put("/workers/pc1/access", {"access": "chap"}).status_code == 200
    old = secrets(layout)["pc1"]["secret"]
    stub.access = None
    assert api.put("/workers/pc1/access", {"rotate": True}).status_code == 503
    record = secrets(layout)["pc1"]
    assert record["secret"] == old
    assert record["next"] != old
    (problem,) = _problems(api, "chap-secrets")
    assert "was being changed" in problem
    assert record["next"] not in problem
    # The node most likely has it: that one is told.
    found = chap.secret_of("pc1")
    assert found is not None
    assert found.secret == record["next"]
    stub.access = 200, stub._target(stub.next_iqn)
    assert api.put("/workers/pc1/access", {"access": "chap"}).status_code == 200
    assert secrets(layout)["pc1"] == {"username": "pc1", "secret": record["next"]}
    assert _problems(api, "chap-secrets") == []


def _problems(api: APIClient, name: str) -> list[str]:
    files = api.get("/healthz?verbose=1").json()["files"]
    (found,) = [file["problems"] for file in files if file["name"] == name]
    return [str(each) for each in found]


def test_a_target_that_is_missing_is_told_and_stops_nothing(
    api: APIClient, stub: Stub, worker: Make
) -> None:
    worker("pc1")
    stub.next_iqn = f"{BASE}:pc1.debian"
    give(api, "pc1", disk_agent="stub")
    del stub.targets[stub.next_iqn]
    answer = api.put("/workers/pc1/access", {"access": "off"})
    assert answer.status_code == 200
    assert answer.json()["changed"] == []
    assert answer.json()["kept"] == [
        {"iqn": stub.next_iqn, "reason": "node stub has no such target"}
    ]


def test_a_broken_file_of_secrets_refuses_what_needs_one_only(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    layout.chap_secrets_yml.write_text("secrets:\n  x: {secret: TopSecretTopSecr\n")
    give(api, name)
    status, words = refusal(api, "put", f"/workers/{name}/access", {"access": "chap"})
    assert status == 503
    assert "chap-secrets.yml" in words
    assert "TopSecret" not in words
    assert api.put(f"/workers/{name}/access", {"access": "off"}).status_code == 200
    assert api.delete(f"/workers/{name}?delete_disk=true").status_code == 200
    assert "TopSecret" in layout.chap_secrets_yml.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "secrets: {pc1: {username: pc1, secret: TopSecret!TopSe}}",
        "secrets: {pc1: {username: pc1, secret: [TopSecretTopSecr]}}",
        "secrets: {pc1: {username: 'TopSecret/TopSe', secret: abcdefghijklmnop}}",
        "secrets: {pc1: TopSecretTopSecr}",
        "secrets: TopSecretTopSecr",
        "TopSecretTopSecr",
        "secrets:\n  pc1: {username: pc1, secret: TopSecretTopSecr, secret: TopSecretTopSecs}",
        "secrets:\n  pc1: {TopSecretTopSecr, TopSecretTopSecr}\n  pc1: {}",
        "secrets:\n  pc1: !TopSecretTopSecr x",
        "secrets:\n  pc1: *TopSecretTopSecr",
        "secrets:\n  pc1: {username: pc1, secret: !!int TopSecretTopSecr}",
    ],
)
def test_what_is_wrong_with_the_file_is_told_without_its_words(
    api: APIClient, layout: Layout, text: str
) -> None:
    layout.chap_secrets_yml.write_text(text + "\n")
    told = api.get("/healthz?verbose=1").content.decode()
    assert '"chap-secrets"' in told
    assert "TopSecret" not in told
    assert "TopSecret" not in layout.operations.read_text()
    assert api.get("/admin/").status_code in (200, 302)


def test_a_file_that_others_can_read_is_a_problem(
    api: APIClient, layout: Layout
) -> None:
    layout.chap_secrets_yml.chmod(0o644)
    layout.chap_secrets_yml.write_text("secrets: {}\n# x\n")
    (problem,) = _problems(api, "chap-secrets")
    assert "chmod 600" in problem


def test_an_applied_node_takes_its_followers_along_and_leaves_the_others(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="acl")
    follows, own = node.name(), node.name()
    for name in (follows, own):
        worker(name)
        give(api, name)
    api.put(f"/workers/{own}/access", {"access": "acl"})
    answer = api.post("/agents/n/access", {"access": "chap"})
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert found["changed"] == [f"{BASE}:{follows}.debian"]
    assert found["failed"] == []
    reasons = {entry["iqn"]: entry["reason"] for entry in found["kept"]}
    assert reasons[f"{BASE}:{own}.debian"] == f"{own} has access acl of its own"
    assert api.get("/agents/n").json()["access"] == "chap"
    assert set(secrets(layout)) == {follows}
    assert node.targets()[f"{BASE}:{follows}.debian"]["access"] == "chap"
    back = api.post("/agents/n/access", {"access": "off"}).json()
    assert back["changed"] == [f"{BASE}:{follows}.debian"]
    assert node.targets()[f"{BASE}:{follows}.debian"]["access"] == "off"
    assert ledger(layout)[follows]["disks"][0].get("access") is None
    (*_, line) = trail(layout, "agent.access.set")
    assert (line["status"], line["changed_count"]) == ("ok", 1)


def test_changing_a_node_alone_holds_for_new_targets_and_says_so(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    give(api, name)
    answer = api.put("/agents/n", {"access": "off"}).json()
    assert "POST /agents/n/access" in answer["warnings"][0]
    assert node.targets()[f"{BASE}:{name}.debian"]["access"] == "acl"
    give(api, name, "ubuntu")
    assert node.targets()[f"{BASE}:{name}.ubuntu"]["access"] == "off"
    (line,) = access.differences()
    assert f"{name}.debian: acl instead of off" in line
    status = api.get(f"/workers/{name}/status").json()["actual"]["disks"]
    assert [(disk["access"], disk["target"]["access"]) for disk in status] == [
        ("off", "acl"),
        ("off", "off"),
    ]


def test_a_batch_gives_each_worker_its_own_secret(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    names = [node.name() for _ in range(3)]
    for name in names:
        worker(name)
    body = {
        "type": "empty",
        "os": "debian",
        "size": "1M",
        "targets": [{"worker_id": name, "agent": "n"} for name in names],
    }
    answer = api.post("/workers/luns/disk/batch", body)
    assert len(answer.json()["succeeded"]) == 3, answer.json()
    made = secrets(layout)
    assert set(made) == set(names)
    assert len({record["secret"] for record in made.values()}) == 3
    answer = api.post(
        "/workers/delete/batch", {"worker_ids": names, "delete_disk": True}
    )
    assert len(answer.json()["succeeded"]) == 3, answer.json()
    assert secrets(layout) == {}


def test_a_cd_has_its_workers_access(
    api: APIClient, stgt_node: RealNode, worker: Make, layout: Layout
) -> None:
    stgt_node.register("n", access="chap", role={"cd": True})
    name = stgt_node.name()
    stgt_node.image(f"{name}.iso")
    worker(name)
    answer = api.post(f"/workers/{name}/luns/cd", {"iso": f"{name}.iso"})
    assert answer.status_code == 201, answer.json()
    assert answer.json()["cd"]["access"] == "chap"
    target = stgt_node.targets()[f"{BASE}:{name}.windows.iso"]
    assert target["access"] == "chap"
    assert target["initiators"] == [f"{BASE}:{name}"]
    assert set(secrets(layout)) == {name}
    assert api.put(f"/workers/{name}/access", {"access": "off"}).status_code == 200
    target = stgt_node.targets()[f"{BASE}:{name}.windows.iso"]
    assert target["access"] == "off"
    assert api.delete(f"/workers/{name}").status_code == 200
    assert secrets(layout) == {}


def test_operators_set_it_for_workers_and_only_administrators_for_nodes(
    api: APIClient,
    as_viewer: APIClient,
    as_operator: APIClient,
    stranger: APIClient,
    worker: Make,
    node: RealNode,
) -> None:
    node.register("n")
    worker("pc1")
    for path, verb in (("/workers/pc1/access", "put"), ("/agents/n/access", "post")):
        assert getattr(stranger, verb)(path, {"access": "off"}).status_code == 401
        assert getattr(as_viewer, verb)(path, {"access": "off"}).status_code == 403
        assert getattr(api, verb)(path, {"access": "acl"}).status_code == 200
    body = {"access": "off"}
    assert as_operator.put("/workers/pc1/access", body).status_code == 200
    assert as_operator.post("/agents/n/access", body).status_code == 403
    assert as_viewer.get("/agents/n").json()["access"] == "acl"
    assert as_viewer.get("/workers/pc1").json()["access"] == "off"


def test_a_renamed_worker_keeps_its_secret(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    name = node.name()
    worker(name)
    give(api, name)
    made = secrets(layout)[name]
    text = layout.workers_yml.read_text()
    layout.workers_yml.write_text(
        text.replace(f'hostname: "{name}"', "hostname: other")
    )
    assert api.get(f"/workers/{name}").status_code == 200
    found = chap.secret_of(name)
    assert found is not None
    assert found.secret == made["secret"]


def test_a_repr_never_shows_a_secret(layout: Layout) -> None:
    made = chap.ensured(SYSTEM, "pc1", "pc1")
    assert made.secret not in repr(made)


def test_a_node_that_repeats_the_secret_in_its_refusal_is_not_quoted(
    api: APIClient, stub: Stub, worker: Make, layout: Layout
) -> None:
    worker("pc1")
    stub.next_iqn = f"{BASE}:pc1.debian"
    give(api, "pc1", disk_agent="stub")
    stub.set_access = lambda: (
        400,
        {"detail": {"chap": [f"what is {secrets(layout)['pc1']['secret']}?"]}},
    )
    status, words = refusal(api, "put", "/workers/pc1/access", {"access": "chap"})
    assert (status, words) == (400, "stub: chap: what is ...?")
    assert secrets(layout)["pc1"]["secret"] not in layout.operations.read_text()
