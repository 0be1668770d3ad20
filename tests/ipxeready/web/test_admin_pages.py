"""Our own pages inside the admin site: who gets in, by which method, and how a refusal looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.http import Http404, HttpRequest, HttpResponse
from django.test import RequestFactory

from ipxeready.actors import ADMINISTRATOR, OPERATOR
from ipxeready.errors import Conflict, NotFound
from ipxeready.storage.paths import Layout
from ipxeready.web.pages import page, page_view


@pytest.fixture
def ask(layout: Layout) -> Callable[..., HttpRequest]:
    """A request of somebody with a role."""

    def ask(role: str | None, method: str = "GET") -> HttpRequest:
        request = RequestFactory().generic(method, "/admin/x/", HTTP_ACCEPT="text/html")
        request.user = get_user_model()(username="x", role=role or "", is_active=role)
        request._dont_enforce_csrf_checks = True
        return request

    return ask


def _view(request: HttpRequest) -> HttpResponse:
    return HttpResponse("here")


def test_who_is_not_logged_in_is_sent_to_the_login(
    ask: Callable[..., HttpRequest],
) -> None:
    answer = page_view(_view)(ask(None))
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


@pytest.mark.parametrize(
    ("role", "get", "post"),
    [("viewer", 200, 403), ("operator", 200, 403), ("administrator", 200, 200)],
)
def test_the_role_that_a_method_needs_is_asked_for(
    role: str, get: int, post: int, ask: Callable[..., HttpRequest]
) -> None:
    from django.core.exceptions import PermissionDenied

    view = page_view(_view, change=ADMINISTRATOR, methods=("GET", "POST"))
    for method, status in (("GET", get), ("HEAD", get), ("POST", post)):
        if status == 403:
            with pytest.raises(PermissionDenied):
                view(ask(role, method))
        else:
            assert view(ask(role, method)).status_code == status


def test_another_method_is_refused_for_everybody(
    ask: Callable[..., HttpRequest],
) -> None:
    answer = page_view(_view)(ask("administrator", "DELETE"))
    assert answer.status_code == 405
    assert answer["Allow"] == "GET, HEAD"


def test_what_a_service_refuses_is_a_page_that_says_so(
    ask: Callable[..., HttpRequest],
) -> None:
    def refusing(request: HttpRequest) -> HttpResponse:
        raise Conflict("somebody is <connected>")

    answer = page_view(refusing)(ask("viewer"))
    assert answer.status_code == 409
    assert "somebody is &lt;connected&gt;" in answer.content.decode()


def test_what_is_not_there_is_not_found(ask: Callable[..., HttpRequest]) -> None:
    def missing(request: HttpRequest) -> HttpResponse:
        raise NotFound("no such worker")

    with pytest.raises(Http404):
        page_view(missing, look=OPERATOR)(ask("operator"))


def test_a_page_has_its_title_and_its_trail_as_text(
    ask: Callable[..., HttpRequest],
) -> None:
    answer = page(
        ask("viewer"), "page.html", title="<b>\u202e", trail=[("<i>", "/admin/y/")]
    )
    text = answer.render().content.decode()
    assert "<title>&lt;b&gt;\\u202e | ipxeready</title>" in text
    assert '<a href="/admin/y/">&lt;i&gt;</a>' in text
    assert "<h1>&lt;b&gt;\\u202e</h1>" in text
