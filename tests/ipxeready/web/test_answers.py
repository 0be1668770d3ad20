"""What the API answers: error bodies, status codes, credentials, pages of lists."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout

pytestmark = pytest.mark.usefixtures("own_urls")


@pytest.mark.parametrize(
    ("kind", "status", "detail"),
    [
        ("invalid", 400, {"mac": ["no"]}),
        ("missing", 404, "no worker x"),
        ("conflict", 409, "taken"),
        ("lock", 503, "lock held by y"),
        ("node", 507, {"agent": "n1", "error": "full" * 50}),
    ],
)
def test_a_refusal_keeps_its_status_and_words(
    api: APIClient, kind: str, status: int, detail: Any
) -> None:
    answer = api.get(f"/refuse/{kind}")
    assert answer.status_code == status
    assert answer.json() == {"detail": detail}
    if kind == "lock":
        assert answer["Retry-After"] == "7"


def test_a_refused_field_is_named_in_detail(api: APIClient) -> None:
    answer = api.post("/echo", {"tetx": "a"})
    assert answer.status_code == 400
    assert list(answer.json()["detail"]) == ["tetx"]
    assert api.post("/echo", {}).json()["detail"]["text"]


@pytest.mark.parametrize("body", ["{", "\ufeff", "[1", '{"text": NaN}', "\x00"])
def test_a_body_that_is_no_json_is_400(api: APIClient, body: str) -> None:
    answer = api.post("/echo", body, content_type="application/json")
    assert answer.status_code == 400
    assert "detail" in answer.json()


def test_a_form_works_like_json(api: APIClient) -> None:
    form = "text=a&csrfmiddlewaretoken=b"
    answer = api.post("/echo", form, content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()) == (201, {"text": "a"})


def test_an_unknown_path_is_a_json_404(api: APIClient) -> None:
    for path in ("/nothing", "/api/cp/nothing", "/echo/x", "/echo%0A"):
        answer = api.get(path, HTTP_ACCEPT="application/json")
        assert answer.status_code == 404
        assert "detail" in answer.json()
    page = api.get("/nothing", HTTP_ACCEPT="text/html")
    assert page.status_code == 404
    assert page["Content-Type"].startswith("text/html")


def test_a_wrong_method_is_405_with_those_allowed(api: APIClient) -> None:
    answer = api.delete("/echo")
    assert answer.status_code == 405
    assert "GET" in answer["Allow"]
    assert "detail" in answer.json()


def test_a_bug_is_a_json_500_without_details(api: APIClient) -> None:
    api.raise_request_exception = False
    answer = api.get("/bug")
    assert answer.status_code == 500
    assert "secret" not in str(answer.json()["detail"])


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", "Bearer ä", "Basic eDp5", "Bearer  "]
)
def test_no_or_wrong_credentials_are_401_and_say_how(
    stranger: APIClient, header: str
) -> None:
    answer = stranger.get("/echo", HTTP_AUTHORIZATION=header)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert "detail" in answer.json()


def test_a_service_that_asks_for_a_login_is_a_401_too(api: APIClient) -> None:
    answer = api.get("/refuse/login")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_the_token_is_an_administrator_at_an_address(api: APIClient) -> None:
    answer = api.get("/echo/", REMOTE_ADDR="192.0.2.9")
    assert answer.json() == {
        "name": "token",
        "role": "administrator",
        "client": "192.0.2.9",
    }
    assert api.put("/echo", {"text": "a"}).status_code == 201


@pytest.mark.parametrize(
    ("remote", "forwarded", "client"),
    [
        ("127.0.0.1", "203.0.113.1, 192.0.2.7", "192.0.2.7"),
        ("127.0.0.1", "rubbish", "127.0.0.1"),
        ("192.0.2.1", "203.0.113.1", "192.0.2.1"),
    ],
)
def test_only_a_proxy_on_this_machine_speaks_for_others(
    api: APIClient, remote: str, forwarded: str, client: str
) -> None:
    answer = api.get("/echo", REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded)
    assert answer.json()["client"] == client


def test_the_token_file_counts_as_it_is_now(
    stranger: APIClient, layout: Layout, settings: Any
) -> None:
    from dataclasses import replace

    settings.IPXE = replace(settings.IPXE, cp_token="")
    assert stranger.get("/echo", HTTP_AUTHORIZATION="Bearer ").status_code == 401
    layout.cp_token.write_text("first\n")
    assert stranger.get("/echo", HTTP_AUTHORIZATION="Bearer first").status_code == 200
    layout.cp_token.write_text("second\n")
    assert stranger.get("/echo", HTTP_AUTHORIZATION="Bearer first").status_code == 401


@pytest.mark.case(97)
def test_a_huge_body_is_refused_unread_and_credentials_come_first(
    api: APIClient, stranger: APIClient
) -> None:
    # The length alone decides: the body behind it is never touched.
    huge = {
        "CONTENT_LENGTH": str(100 * 1024 * 1024),
        "content_type": "application/json",
    }
    assert stranger.post("/echo", "{}", **huge).status_code == 401
    assert api.post("/echo", "{}", **huge).status_code == 413


def test_a_list_is_paged_only_when_asked(api: APIClient) -> None:
    assert len(api.get("/numbers").json()) == 250
    page = api.get("/numbers?limit=3&offset=2").json()
    assert (page["count"], page["results"]) == (250, [2, 3, 4])
    assert len(api.get("/numbers?offset=10").json()["results"]) == 100
    for wrong in ("limit=0", "limit=x", "limit=1001", "offset=-1", "limit="):
        assert api.get(f"/numbers?{wrong}").status_code == 400


def test_browsers_get_the_browsable_page_and_everyone_else_json(api: APIClient) -> None:
    assert api.get("/echo", HTTP_ACCEPT="*/*")["Content-Type"] == "application/json"
    page = api.get("/echo", HTTP_ACCEPT="text/html,*/*;q=0.8")
    assert page["Content-Type"].startswith("text/html")


def test_answers_carry_the_security_headers(api: APIClient) -> None:
    answer = api.get("/echo")
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer["Cache-Control"]
