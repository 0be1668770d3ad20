"""The client against what a node can do wrong: in time, in our words, and without a token going astray."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from agents import http
from agents.calls import node_words
from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.access import Chap
from agents.protocol.requests import DiskRequest
from ipxeready.errors import NodeRefused, Unavailable, UpstreamFailed
from ipxeready.storage.paths import Layout
from tests.agents.fakes import http_server, node_like, silent
from tests.nodes import BASE, RealNode

WORD = "word"
pytestmark = pytest.mark.usefixtures("layout")


def _client(base_url: str, token: str = WORD, timeout: float = 5.0) -> NodeClient:
    return NodeClient(Agent(id="n", base_url=base_url, token=token), timeout=timeout)


def test_a_whole_life_of_a_disk_on_a_real_node(node: RealNode) -> None:
    client = _client(node.base_url, node.token)
    name = node.name()
    assert client.health() == "ok"
    assert client.capabilities()["backend"] == "files"
    made = client.create_disk(DiskRequest(iqn=f"{BASE}:{name}.debian", size="1M"))
    assert made["backing"] == str(node.folder / f"{name}.debian.img")
    assert made["iqn"] in {target["iqn"] for target in client.targets()}
    client.delete(made["iqn"], delete_file=False)
    again = client.create_disk(DiskRequest(iqn=made["iqn"], existing=True))
    assert (again["iqn"], again["backing"]) == (made["iqn"], made["backing"])
    assert client.set_access(made["iqn"], "off")["access"] == "off"
    secret = Chap(f"user-{name}", "Abcdefghijkl")
    shown = client.set_access(made["iqn"], "chap", secret, force=True)
    assert (shown["access"], shown["initiators"]) == ("chap", [f"{BASE}:{name}"])
    assert client.scan(access="acl")["created"] == []
    assert client.node_health()["backend"]["alive"] is True
    client.delete(made["iqn"], delete_file=True)
    with pytest.raises(NodeRefused) as refused:
        client.delete(made["iqn"], delete_file=True)
    assert refused.value.status == 404


def test_a_refused_connection_was_not_sent(nobody: str) -> None:
    with pytest.raises(Unavailable) as caught:
        _client(nobody).create_disk(DiskRequest(iqn=f"{BASE}:a.debian", size=512))
    assert caught.value.code == "agent.unreachable"
    assert caught.value.extra == {"agent": "n", "sent": False}
    assert "connection refused" in caught.value.message


def test_an_unknown_name_is_said_so() -> None:
    with pytest.raises(Unavailable, match="its name is not known"):
        _client("http://no-such-node.invalid:4840").health()


@pytest.mark.case(83)
@pytest.mark.parametrize(
    "dribble",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: ",
    ],
)
def test_a_node_that_never_finishes_is_given_up_in_time(dribble: bytes) -> None:
    with silent(dribble) as url:
        before = time.monotonic()
        with pytest.raises(Unavailable) as caught:
            _client(url, timeout=0.5).targets()
        assert time.monotonic() - before < 3
    assert caught.value.extra["sent"] is True


def test_a_connection_that_is_cut_after_the_request_may_have_been_received() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = server.accept()
        client.recv(65536)
        client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(Unavailable) as caught:
        _client(url).scan()
    thread.join()
    server.close()
    assert caught.value.extra["sent"] is True


def test_a_node_that_hangs_is_told_before_it_is_given_a_day_for_a_copy() -> None:
    with silent(b"") as url, pytest.raises(Unavailable) as caught:
        _client(url, timeout=0.5).create_disk(
            DiskRequest(iqn=f"{BASE}:a.debian", size=512)
        )
    assert caught.value.extra["sent"] is False


def test_a_kept_connection_that_the_node_has_closed_is_opened_anew() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    body = b'{"status": "ok"}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def serve() -> None:
        for _ in range(3):
            client, _ = server.accept()
            client.recv(65536)
            client.sendall(answer)
            client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    client = _client(f"http://127.0.0.1:{server.getsockname()[1]}")
    assert [client.health() for _ in range(3)] == ["ok", "ok", "ok"]
    thread.join()
    server.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed_and_the_token_stays_here(status: int) -> None:
    with node_like() as thief:
        location = {"Location": f"{thief.base_url}/lun"}
        with (
            http_server(lambda method, path: (status, location, b"")) as fake,
            pytest.raises(UpstreamFailed, match="redirect"),
        ):
            _client(fake.base_url).targets()
        assert thief.requests == []


@pytest.mark.parametrize(
    "body",
    [b"<html>login</html>", b"", b"\xff\xfe", b"{", b"null", b'{"a": 1}', b"[7]"],
)
def test_nonsense_is_said_so_and_not_taken(body: bytes) -> None:
    with http_server(lambda method, path: (200, {}, body)) as fake:
        client = _client(fake.base_url)
        for call in (
            client.health,
            client.capabilities,
            client.masters,
            client.targets,
            client.scan,
            lambda: client.create_disk(DiskRequest(iqn=f"{BASE}:a.debian", size=512)),
            lambda: client.delete(f"{BASE}:a.debian", delete_file=False),
        ):
            with pytest.raises(UpstreamFailed) as caught:
                call()  # type: ignore[operator]
            assert fake.base_url in caught.value.message


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER", 1000)
    with (
        http_server(lambda method, path: (200, {}, b" " * 5000)) as fake,
        pytest.raises(UpstreamFailed, match="longer"),
    ):
        _client(fake.base_url).targets()


@pytest.mark.parametrize(
    ("status", "becomes"),
    [
        (400, 400),
        (401, 502),
        (403, 502),
        (404, 404),
        (409, 409),
        (500, 502),
        (503, 503),
        (507, 507),
    ],
)
def test_refusals_keep_their_status_but_those_that_are_ours(
    status: int, becomes: int
) -> None:
    body = b'{"detail": "because\\n of that"}'
    with (
        http_server(lambda method, path: (status, {}, body)) as fake,
        pytest.raises(NodeRefused) as caught,
    ):
        _client(fake.base_url).targets()
    assert caught.value.status == becomes
    assert caught.value.detail()["agent"] == "n"
    assert "word" not in str(caught.value.detail())
    if status not in (401, 403):
        assert caught.value.error == "because of that"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, ""),
        ({"detail": {"iqn": ["iqn 'x' is wrong"]}}, "iqn 'x' is wrong"),
        ({"detail": {"size": ["must be more"]}}, "size: must be more"),
        ({"detail": ["a", "b"]}, "a b"),
        ({"detail": "x" * 300}, "x" * 200),
        ({"detail": "a\x1b[31m\tb"}, "a [31m b"),
        ({"error": "x"}, ""),
    ],
)
def test_a_nodes_words_become_one_short_line(answer: object, words: str) -> None:
    assert node_words(answer) == words


def test_no_proxy_and_no_netrc_of_the_environment_counts(
    monkeypatch: pytest.MonkeyPatch, nobody: str
) -> None:
    monkeypatch.setenv("http_proxy", nobody)
    monkeypatch.setenv("HTTP_PROXY", nobody)
    monkeypatch.delenv("no_proxy", raising=False)
    with node_like() as fake:
        assert _client(fake.base_url).health() == "ok"


def test_a_variable_in_the_file_is_filled_in_for_use_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent(id="n", base_url="", token="${NODE_WORD}")
    with node_like() as fake:
        agent.base_url = fake.base_url
        monkeypatch.setenv("NODE_WORD", "the-real-word")
        NodeClient(agent).capabilities()
        assert fake.requests[0][2]["Authorization"] == "Bearer the-real-word"
        monkeypatch.delenv("NODE_WORD")
        with pytest.raises(Unavailable, match="NODE_WORD"):
            NodeClient(agent).capabilities()
        monkeypatch.setenv("NODE_WORD", "a\r\nX-Evil: 1")
        with pytest.raises(Unavailable):
            NodeClient(agent).capabilities()
        assert len(fake.requests) == 1
    assert agent.token == "${NODE_WORD}"


def test_a_row_shows_no_token_in_logs() -> None:
    agent = Agent(id="n", base_url="http://192.0.2.1", token="secret-word")
    assert "secret-word" not in f"{agent} {agent!r}"


def test_a_forked_process_has_connections_of_its_own(
    node: RealNode, layout: Layout
) -> None:
    client = _client(node.base_url, node.token)
    client.health()
    child = os.fork()
    if not child:
        try:
            os._exit(0 if client.health() == "ok" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert client.health() == "ok"
