"""/agents/{id}/luns...: targets of one node, made, listed, scanned and taken off through the control plane."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from tests.agents.fakes import http_server
from tests.agents.helpers import trail
from tests.agents.node import node_lab
from tests.nodes import BASE, MIB, RealNode


@pytest.fixture(autouse=True)
def _registered(layout: object, node: RealNode) -> None:
    node.register("n", role={"disk": True, "cd": True})


def _listed(api: APIClient, iqn: str, agent: str = "n") -> dict[str, object] | None:
    targets = api.get(f"/agents/{agent}/luns").json()
    return next((target for target in targets if target["iqn"] == iqn), None)


def test_an_empty_disk_is_made_listed_and_taken_off(
    api: APIClient, node: RealNode
) -> None:
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    made = api.post(
        "/agents/N/luns/disk",
        {"iqn": iqn.upper().replace("IQN.", "iqn."), "size": "1M"},
    )
    assert made.status_code == 201, made.content
    image = node.folder / f"{name}.debian.img"
    answer = made.json()
    assert answer.pop("seconds") >= 0
    assert answer == {
        "iqn": iqn,
        "backing": str(image),
        "how": "empty",
        "bytes": 0,
    }
    found = _listed(api, iqn)
    assert found is not None
    assert found["luns"] == [
        {"lun": 1, "backing": str(image), "size": MIB, "type": "disk"}
    ]
    assert found["sessions"] == []
    gone = api.delete(f"/agents/n/luns?iqn={iqn}&delete_file=true")
    assert gone.status_code == 200, gone.content
    assert gone.json() == {"deleted": iqn, "delete_file": True}
    assert not image.exists()
    assert _listed(api, iqn) is None
    assert trail("lun.create_disk")[0]["agent"] == "n"
    assert trail("lun.create_disk")[0]["size"] == MIB
    assert trail("lun.delete")[0]["delete_file"] is True
    assert {line["agent"] for line in trail("lun.list")} == {"n"}


def test_a_clone_has_the_masters_bytes(api: APIClient, node: RealNode) -> None:
    name = node.name()
    master = node.image(f"{name}_tpl_v1.img", MIB, b"the master")
    body = {
        "iqn": f"{BASE}:{name}.ubuntu",
        "master": master.name,
        "filename": f"{name}.ubuntu.img",
    }
    made = api.post("/agents/n/luns/disk", body)
    assert made.status_code == 201, made.content
    assert (node.folder / f"{name}.ubuntu.img").read_bytes() == master.read_bytes()


def test_a_kept_image_stays_when_its_target_goes(
    api: APIClient, node: RealNode
) -> None:
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    api.post("/agents/n/luns/disk", {"iqn": iqn, "size": MIB})
    assert api.delete(f"/agents/n/luns?iqn={iqn}").json()["delete_file"] is False
    assert (node.folder / f"{name}.debian.img").exists()


@pytest.mark.parametrize(
    "body",
    [
        {"size": "1M"},
        {"iqn": "nonsense", "size": "1M"},
        {"iqn": "{iqn}"},
        {"iqn": "{iqn}", "size": "1M", "master": "a_tpl_b.img"},
        {"iqn": "{iqn}", "size": 0},
        {"iqn": "{iqn}", "size": 1000},
        {"iqn": "{iqn}", "size": True},
        {"iqn": "{iqn}", "size": "many"},
        {"iqn": "{iqn}", "master": "../../etc/passwd"},
        {"iqn": "{iqn}", "master": "a.img"},
        {"iqn": "{iqn}", "size": "1M", "filename": "../x.img"},
        {"iqn": "{iqn}", "size": "1M", "filename": "other.debian.img"},
        {"iqn": "iqn.2020-01.org.elsewhere:{name}.debian", "size": "1M"},
        {"iqn": "{iqn}", "size": "1M", "agent": "n"},
    ],
)
def test_a_wrong_disk_is_refused_and_nothing_is_made(
    api: APIClient, node: RealNode, body: dict[str, object]
) -> None:
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    filled = {
        key: value.format(iqn=iqn, name=name) if isinstance(value, str) else value
        for key, value in body.items()
    }
    before = sorted(path.name for path in node.folder.iterdir())
    answer = api.post("/agents/n/luns/disk", filled)
    assert answer.status_code == 400, answer.content
    assert iqn not in node.targets()
    assert sorted(path.name for path in node.folder.iterdir()) == before


def test_the_nodes_refusals_keep_their_status_and_name_it(
    api: APIClient, node: RealNode
) -> None:
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    api.post("/agents/n/luns/disk", {"iqn": iqn, "size": "1M"})
    again = api.post("/agents/n/luns/disk", {"iqn": iqn, "size": "1M"})
    assert again.status_code == 409
    assert again.json()["detail"]["agent"] == "n"
    assert iqn in again.json()["detail"]["error"]
    no_master = api.post(
        "/agents/n/luns/disk",
        {"iqn": f"{BASE}:{node.name()}.debian", "master": "no_tpl_such.img"},
    )
    assert no_master.status_code == 404
    assert [line["status"] for line in trail("lun.create_disk")] == [
        "ok",
        "failed",
        "failed",
    ]


def test_what_is_not_there_is_404_unless_that_is_fine(
    api: APIClient, node: RealNode
) -> None:
    iqn = f"{BASE}:{node.name()}.debian"
    assert api.delete(f"/agents/n/luns?iqn={iqn}").status_code == 404
    answer = api.delete(f"/agents/n/luns?iqn={iqn}&ignore_missing=1")
    assert answer.status_code == 200
    assert answer.json() == {
        "deleted": iqn,
        "delete_file": False,
        "ignored_missing": True,
    }


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?iqn=",
        "?iqn=x",
        "?iqn={iqn}&delete=1",
        "?iqn={iqn}&delete_file=yes",
        "?iqn={iqn}&iqn={iqn}",
    ],
)
def test_a_wrong_deletion_deletes_nothing(
    api: APIClient, node: RealNode, query: str
) -> None:
    iqn = f"{BASE}:{node.name()}.debian"
    api.post("/agents/n/luns/disk", {"iqn": iqn, "size": "1M"})
    assert api.delete("/agents/n/luns" + query.format(iqn=iqn)).status_code == 400
    assert iqn in node.targets()


def test_a_scan_exports_what_has_no_target(api: APIClient, node: RealNode) -> None:
    name = node.name()
    node.image(f"{name}.debian.img")
    answer = api.post("/agents/n/luns/scan")
    assert answer.status_code == 200, answer.content
    assert {"iqn": f"{BASE}:{name}.debian", "cd": False} in answer.json()["created"]
    assert isinstance(answer.json()["skipped"], list)
    assert trail("lun.scan")[0]["created"] >= 1
    assert api.post("/agents/n/luns/scan", {"x": 1}).status_code == 400


def test_a_node_without_cd_drives_says_so(api: APIClient, node: RealNode) -> None:
    node.image(f"{node.name()}.windows.iso")
    answer = api.post("/agents/n/luns/cd", {"iso": f"{node.name()}.iso"})
    assert answer.status_code == 400
    assert answer.json()["detail"]["agent"] == "n"


@pytest.mark.tgtd
@pytest.mark.case(78)
def test_a_cd_over_a_real_tgtd(api: APIClient, stgt_node: RealNode) -> None:
    stgt_node.register("s", role={"disk": True, "cd": True})
    name = stgt_node.name()
    stgt_node.image(f"{name}.windows.iso")
    made = api.post("/agents/s/luns/cd", {"iso": f"{name}.windows.iso"})
    assert made.status_code == 201, made.content
    iqn = f"{BASE}:{name}.windows.iso"
    assert made.json()["iqn"] == iqn
    found = _listed(api, iqn, "s")
    assert found is not None
    assert [lun["type"] for lun in found["luns"]] == ["cd"]  # type: ignore[attr-defined]
    assert api.post("/agents/s/luns/cd", {"iso": "nope.iso"}).status_code == 404
    assert api.post("/agents/s/luns/cd", {"iso": "../x.iso"}).status_code == 400
    assert api.post("/agents/s/luns/cd", {}).status_code == 400
    assert api.delete(f"/agents/s/luns?iqn={iqn}").status_code == 200
    assert (stgt_node.folder / f"{name}.windows.iso").exists()


@pytest.mark.tgtd
@pytest.mark.case(72)
def test_a_target_in_use_stays_and_its_initiator_is_named(
    api: APIClient, stgt_node: RealNode
) -> None:
    stgt_node.register("s")
    assert stgt_node.tgtd is not None
    name = stgt_node.name()
    iqn = f"{BASE}:{name}.debian"
    api.post("/agents/s/luns/disk", {"iqn": iqn, "size": "1M"})
    image = stgt_node.folder / f"{name}.debian.img"
    inode = image.stat().st_ino
    who = f"{BASE}:{name}"
    with node_lab.session(stgt_node.tgtd, iqn, initiator=who):
        answer = api.delete(f"/agents/s/luns?iqn={iqn}&delete_file=true")
        assert answer.status_code == 409
        assert answer.json()["detail"]["agent"] == "s"
        assert who in answer.json()["detail"]["error"]
        found = _listed(api, iqn, "s")
        assert found is not None
        assert who in str(found["sessions"])
        assert image.stat().st_ino == inode
        forced = api.delete(f"/agents/s/luns?iqn={iqn}&delete_file=true&force=true")
        assert forced.status_code == 200, forced.content
    assert not image.exists()


@pytest.mark.parametrize(
    ("path", "body"),
    [("disk", {"iqn": f"{BASE}:x.debian", "size": "1M"}), ("cd", {"iso": "x.iso"})],
)
def test_a_node_without_the_role_or_switched_off_takes_nothing(
    api: APIClient, node: RealNode, path: str, body: dict[str, str]
) -> None:
    node.register("none", role={"disk": False, "cd": False})
    node.register("off", role={"disk": True, "cd": True}, enabled=False)
    assert api.post(f"/agents/none/luns/{path}", body).status_code == 400
    assert api.post(f"/agents/off/luns/{path}", body).status_code == 409
    assert not any(iqn.endswith(":x.debian") for iqn in node.targets())


def test_there_must_be_such_a_node(api: APIClient) -> None:
    iqn = f"{BASE}:x.debian"
    assert api.get("/agents/nope/luns").status_code == 404
    assert (
        api.post("/agents/nope/luns/disk", {"iqn": iqn, "size": "1M"}).status_code
        == 404
    )
    assert api.post("/agents/nope/luns/cd", {"iso": "x.iso"}).status_code == 404
    assert api.delete(f"/agents/nope/luns?iqn={iqn}").status_code == 404
    assert api.post("/agents/nope/luns/scan").status_code == 404


def test_a_dead_node_is_503_and_the_audit_says_so(api: APIClient, nobody: str) -> None:
    agent_register(actor=SYSTEM, agent_id="dead", base_url=nobody)
    iqn = f"{BASE}:x.debian"
    assert api.get("/agents/dead/luns").status_code == 503
    answer = api.post("/agents/dead/luns/disk", {"iqn": iqn, "size": "1M"})
    assert answer.status_code == 503
    assert nobody in answer.json()["detail"]
    assert (
        api.delete(f"/agents/dead/luns?iqn={iqn}&ignore_missing=true").status_code
        == 503
    )
    assert api.post("/agents/dead/luns/scan").status_code == 503
    assert trail("lun.create_disk")[0]["status"] == "failed"


def test_a_token_that_the_node_does_not_take_is_502(
    api: APIClient, node: RealNode
) -> None:
    node.register("wrong", token="wrong")
    answer = api.get("/agents/wrong/luns")
    assert answer.status_code == 502
    assert answer.json()["detail"]["agent"] == "wrong"


def test_a_nodes_long_words_are_cut(api: APIClient) -> None:
    with http_server(
        lambda method, path: (507, {}, b'{"detail": "' + b"no room " * 100 + b'"}')
    ) as fake:
        agent_register(actor=SYSTEM, agent_id="full", base_url=fake.base_url)
        answer = api.post(
            "/agents/full/luns/disk", {"iqn": f"{BASE}:x.debian", "size": "1M"}
        )
    assert answer.status_code == 507
    assert len(answer.json()["detail"]["error"]) == 200


def test_strangers_and_viewers_may_not_change_anything(
    stranger: APIClient, as_viewer: APIClient, as_operator: APIClient, node: RealNode
) -> None:
    iqn = f"{BASE}:{node.name()}.debian"
    body = {"iqn": iqn, "size": "1M"}
    for client, status in ((stranger, 401), (as_viewer, 403)):
        assert client.post("/agents/n/luns/disk", body).status_code == status
        assert client.post("/agents/n/luns/cd", {"iso": "x.iso"}).status_code == status
        assert client.delete(f"/agents/n/luns?iqn={iqn}").status_code == status
        assert client.post("/agents/n/luns/scan").status_code == status
    assert stranger.get("/agents/n/luns").status_code == 401
    assert as_viewer.get("/agents/n/luns").status_code == 200
    assert iqn not in node.targets()
    assert as_operator.post("/agents/n/luns/disk", body).status_code == 201
