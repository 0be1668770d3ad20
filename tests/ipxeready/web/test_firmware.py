"""Firmware is answered on any Host, without redirects, cookies or pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

pytestmark = pytest.mark.usefixtures("own_urls")

HOSTS = [
    "192.0.2.7:8000",
    "ctl",
    "",
    "a b",
    "[::1",
    "x" * 300,
    "host:port:3",
    "a/../b",
    "_",
]


@pytest.mark.case(101)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "path", ["/boot-vars", "/boot-vars/", "/api/cp/boot-vars", "/healthz", "/healthz/"]
)
@pytest.mark.parametrize("tls", [False, True])
def test_boot_endpoints_answer_on_any_host(
    settings: Any, path: str, host: str, tls: bool
) -> None:
    settings.SECURE_SSL_REDIRECT = tls
    settings.ALLOWED_HOSTS = ["only.example"]
    answer = Client(HTTP_HOST=host).get(path)
    assert answer.status_code == 200
    assert not answer.cookies
    assert "html" not in answer["Content-Type"]


@pytest.mark.case(101)
def test_boot_endpoints_answer_without_any_host() -> None:
    client = Client()
    client.defaults["SERVER_NAME"] = ""
    assert client.get("/boot-vars").content == b"#!ipxe\n"


def test_a_post_needs_no_csrf_token() -> None:
    assert Client(enforce_csrf_checks=True).post("/boot-vars").status_code == 200


def test_a_bug_never_becomes_a_page() -> None:
    answer = Client().get("/boot-vars?mac=bug", HTTP_ACCEPT="text/html")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    script = answer.content.decode("ascii")
    assert script.startswith("#!ipxe\n")
    assert "set menu-default reboot\n" in script
    assert "secret" not in script


def test_a_bug_with_format_json_is_json() -> None:
    answer = Client().get("/boot-vars?mac=bug&format=json")
    assert answer.json() == {"refused": "internal error"}


def test_a_missing_file_is_plain_text() -> None:
    answer = Client().get("/file/no/such", HTTP_ACCEPT="text/html")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/plain")


def test_other_paths_check_the_host() -> None:
    answer = Client(HTTP_HOST="a b").get("/echo", HTTP_ACCEPT="application/json")
    assert answer.status_code == 400
    assert "detail" in answer.json()


def test_health_says_one_word_to_everybody() -> None:
    client = Client()
    for path in ("/healthz", "/healthz/", "/api/cp/healthz"):
        assert client.get(path).json() == {"status": "ok"}
    assert client.post("/healthz").status_code == 405


def test_the_verbose_health_page_needs_credentials(
    api: APIClient, stranger: APIClient
) -> None:
    assert stranger.get("/healthz?verbose=1").status_code == 401
    assert api.get("/healthz?verbose=1").json()["status"] == "ok"
    assert set(api.get("/healthz?verbose=1").json()) > {"files", "dnsmasq", "nodes"}
    assert api.get("/healthz?verbose=maybe").status_code == 400
    assert api.get("/healthz?verbose=0").json() == {"status": "ok"}
