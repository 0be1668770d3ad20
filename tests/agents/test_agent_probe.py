"""POST /agents/probe: what is at an address; the stored token goes nowhere but home."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.agents.fakes import http_server, silent
from tests.agents.helpers import trail
from tests.nodes import BASE, RealNode


def test_a_real_node_says_what_it_would_be_registered_as(
    api: APIClient, node: RealNode, layout: Layout
) -> None:
    before = layout.agents_yml.read_bytes()
    answer = api.post("/agents/probe", {"base_url": node.base_url, "token": node.token})
    assert answer.status_code == 200, answer.content
    found = answer.json()
    fs_type = found.pop("fs_type")
    assert isinstance(fs_type, str)
    free, total = found.pop("free_bytes"), found.pop("total_bytes")
    assert 0 < free <= total
    assert isinstance(found.pop("reflink"), bool)
    assert found == {
        "base_url": node.base_url,
        "role": {"disk": True, "cd": False},
        "tags": ["storage", "files"],
        "iscsi_server": "127.0.0.1",
        "enabled": True,
        "backend": "files",
        "base_iqn": BASE,
        "clone": True,
        "empty_disk": True,
        "persistent": found["persistent"],
    }
    assert layout.agents_yml.read_bytes() == before
    (line,) = trail("agent.probe")
    assert (line["status"], line["base_url"]) == ("ok", node.base_url)
    assert node.token not in layout.operations.read_text()


@pytest.mark.tgtd
def test_a_node_over_tgtd_takes_cds(api: APIClient, stgt_node: RealNode) -> None:
    answer = api.post(
        "/agents/probe", {"base_url": stgt_node.base_url, "token": stgt_node.token}
    )
    assert answer.json()["role"] == {"disk": True, "cd": True}
    assert answer.json()["tags"] == ["storage", "stgt"]


def test_the_answer_can_be_registered_as_it_is(api: APIClient, node: RealNode) -> None:
    found = api.post(
        "/agents/probe", {"base_url": node.base_url, "token": node.token}
    ).json()
    taken = {
        k: found[k] for k in ("base_url", "role", "tags", "iscsi_server", "enabled")
    }
    answer = api.post("/agents", {"id": "n", "token": node.token, **taken})
    assert answer.status_code == 201, answer.content


def test_the_stored_token_is_used_towards_its_own_place(
    api: APIClient, node: RealNode
) -> None:
    node.register("n")
    body = {"base_url": node.base_url + "/", "agent_id": "N", "token": ""}
    assert api.post("/agents/probe", body).status_code == 200


def test_the_stored_token_never_leaves_for_another_place(
    api: APIClient, node: RealNode
) -> None:
    node.register("n")
    with http_server(lambda method, path: (200, {}, b'{"status": "ok"}')) as thief:
        answer = api.post(
            "/agents/probe", {"base_url": thief.base_url, "agent_id": "n"}
        )
        assert thief.requests == []
    assert answer.status_code == 400
    assert "give the token" in str(answer.json()["detail"]["token"])
    same_host_tls = node.base_url.replace("http://", "https://")
    answer = api.post("/agents/probe", {"base_url": same_host_tls, "agent_id": "n"})
    assert answer.status_code == 400


def test_a_redirect_is_not_followed(api: APIClient, node: RealNode) -> None:
    def away(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        return 307, {"Location": f"{node.base_url}{path}"}, b""

    with http_server(away) as fake:
        answer = api.post(
            "/agents/probe", {"base_url": fake.base_url, "token": node.token}
        )
    assert answer.status_code == 502
    assert "redirect" in answer.json()["detail"]


def test_no_answer_is_502_in_time(api: APIClient, impatient: None, nobody: str) -> None:
    answer = api.post("/agents/probe", {"base_url": nobody})
    assert answer.status_code == 502
    assert nobody in answer.json()["detail"]
    with silent() as url:
        assert api.post("/agents/probe", {"base_url": url}).status_code == 502
    assert [line["status"] for line in trail("agent.probe")] == ["failed", "failed"]


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_token_that_the_node_does_not_take_is_502(
    api: APIClient, node: RealNode, token: str
) -> None:
    answer = api.post("/agents/probe", {"base_url": node.base_url, "token": token})
    assert answer.status_code == 502
    assert "token" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"[]", b'{"status": "ok", "backend": 7}', b""]
)
def test_another_service_is_not_taken_for_a_node(api: APIClient, body: bytes) -> None:
    with http_server(
        lambda method, path: (200, {"Content-Type": "text/html"}, body)
    ) as fake:
        answer = api.post("/agents/probe", {"base_url": fake.base_url, "token": "x"})
    assert answer.status_code == 502


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "base_url"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"base_url": "http://192.0.2.1", "token": "${HOME}"}, "token"),
        ({"base_url": "http://192.0.2.1", "name": "x"}, "name"),
    ],
)
def test_a_wrong_value_is_refused(
    api: APIClient, body: dict[str, str], field: str
) -> None:
    answer = api.post("/agents/probe", body)
    assert answer.status_code == 400
    assert field in answer.json()["detail"]


def test_an_id_that_is_not_there_is_404(api: APIClient) -> None:
    body = {"base_url": "http://192.0.2.1", "agent_id": "nope"}
    assert api.post("/agents/probe", body).status_code == 404


def test_strangers_and_viewers_may_not(
    stranger: APIClient, as_viewer: APIClient
) -> None:
    body = {"base_url": "http://127.0.0.1:1"}
    assert stranger.post("/agents/probe", body).status_code == 401
    assert as_viewer.post("/agents/probe", body).status_code == 403
