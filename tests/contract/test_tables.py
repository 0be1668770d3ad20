"""Walks contract.md's tables: each endpoint with its success, its refusals, and what section 1 says of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from agents.node import urls as agent_urls
from ipxeready import urls as control_urls
from tests.contract.conftest import Answer, Site
from tests.contract.rows import AGENT_BESIDE, AGENT_ROWS, BESIDE, CONTROL, Refused, Row
from tests.contract.shapes import differs

METHODS = ("get", "post", "put", "delete", "patch")


def rows(which: tuple[Row, ...], *, where: Any = bool) -> Any:
    """A test for each row."""
    chosen = [row for row in which if where(row)]
    return pytest.mark.parametrize("row", chosen, ids=[row.id for row in chosen])


def refusals(which: tuple[Row, ...]) -> Any:
    """A test for each refusal of each row."""
    found = [(row, refused) for row in which for refused in row.refused]
    return pytest.mark.parametrize(
        ("row", "refused"),
        found,
        ids=[f"{row.id} {refused.status} {refused.why}" for row, refused in found],
    )


def _bodied(row: Row) -> bool:
    return row.method in ("POST", "PUT")


def _url(row: Row, query: str | None = None) -> str:
    query = row.query if query is None else query
    return f"{row.path}?{query}" if query else row.path


def _succeeds(site: Site, row: Row, answer: Answer) -> None:
    assert answer.status == row.status, answer
    if isinstance(row.shape, str):
        assert answer.text == row.shape
    else:
        fault = differs(site.fill(row.shape), answer.json)
        assert not fault, (fault, answer.text)


def _detail(answer: Answer) -> Any:
    assert list(answer.json) == ["detail"], answer
    return answer.json["detail"]


# --- sections 4 and 5: the control plane -------------------------------------
@rows(CONTROL)
def test_success(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _succeeds(control, row, control.ask(row.method, _url(row), row.body))


@rows(CONTROL)
def test_the_same_under_the_prefix_and_with_a_slash(control: Site, row: Row) -> None:
    control.prepare(row.given)
    path, mark, query = _url(row).partition("?")
    # A file's name is taken as it is.
    slash = "" if row.path.startswith("/file/") else "/"
    url = f"/api/cp{path}{slash}{mark}{query}"
    _succeeds(control, row, control.ask(row.method, url, row.body))


@rows(CONTROL)
def test_browsers_get_a_page_on_the_same_url(control: Site, row: Row) -> None:
    control.prepare(row.given)
    wants = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    answer = control.ask(row.method, _url(row), row.body, headers=wants)
    assert answer.status == row.status
    assert answer.kind.startswith("text/html") == row.page, answer.kind
    assert ("</html>" in answer.text) == row.page


@rows(CONTROL, where=lambda row: _bodied(row) and row.body)
def test_a_form_does_the_same(control: Site, row: Row) -> None:
    control.prepare(row.given)
    form = {"csrfmiddlewaretoken": "x", **_flat(control.fill(row.body))}
    answer = control.ask(row.method, _url(row), form, form=True)
    _succeeds(control, row, answer)


def _flat(body: dict[str, Any]) -> dict[str, Any]:
    """A body as a form writes it: `role.disk`, `targets[0]agent`, lists of words by repeating."""
    form: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, dict):
            form |= {f"{name}.{key}": _word(each) for key, each in value.items()}
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for at, item in enumerate(value):
                form |= {f"{name}[{at}]{key}": item[key] for key in item}
        else:
            form[name] = value if isinstance(value, list) else _word(value)
    return form


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@refusals(CONTROL)
def test_a_refusal(control: Site, row: Row, refused: Refused) -> None:
    answer = _refused(control, row, refused)
    detail = _detail(answer)
    if refused.from_node:
        assert set(detail) == {"agent", "error"}, answer
        assert detail["agent"] == "n"
        assert 0 < len(detail["error"]) <= 200


def _refused(site: Site, row: Row, refused: Refused) -> Answer:
    site.prepare(row.given if refused.given is None else refused.given)
    body = row.body
    if refused.body is not None:
        body = {**(row.body or {}), **refused.body}
        body = {name: value for name, value in body.items() if value is not None}
    changed = Row(row.method, refused.path or row.path, None, query=row.query)
    answer = site.ask(row.method, _url(changed, refused.query), body)
    assert answer.status == refused.status, answer
    assert site.fill(refused.says) in answer.text, answer
    return answer


@rows(CONTROL, where=_bodied)
def test_an_unknown_field_is_refused_by_name(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _refuses_unknown_field(control, row)
    # Nothing was done: the same without it succeeds.
    _succeeds(control, row, control.ask(row.method, _url(row), row.body))


def _refuses_unknown_field(site: Site, row: Row) -> None:
    answer = site.ask(row.method, _url(row), {**(row.body or {}), "tpyo": 1})
    assert answer.status == 400, answer
    assert "tpyo" in str(_detail(answer))


@rows(CONTROL, where=lambda row: row.method == "DELETE")
def test_a_deletion_takes_what_it_knows_only(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _deletes_strictly(control, row)
    _succeeds(control, row, control.ask(row.method, _url(row)))


def _deletes_strictly(site: Site, row: Row) -> None:
    mark = "&" if row.query else "?"
    answer = site.ask(row.method, f"{_url(row)}{mark}tpyo=1")
    assert answer.status == 400, answer
    assert "tpyo" in str(_detail(answer))
    answer = site.ask(row.method, _url(row), {"tpyo": 1})
    assert answer.status == 400, answer
    assert "tpyo" in str(_detail(answer))


@rows(CONTROL, where=lambda row: row.flags)
def test_a_flag_of_the_query_is_a_boolean(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _wants_booleans(control, row)


def _wants_booleans(site: Site, row: Row) -> None:
    kept = [part for part in row.query.split("&") if part.startswith("iqn=")]
    for flag in row.flags:
        for value in ("yes", "", "2", "on"):
            query = "&".join([*kept, f"{flag}={value}"])
            answer = site.ask(row.method, _url(row, query))
            assert answer.status == 400, (query, answer)
            assert flag in str(_detail(answer)), answer


@rows(CONTROL, where=lambda row: _bodied(row) and row.body)
def test_a_wrong_type_is_refused_by_the_fields_name(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _refuses_types(control, row)
    _succeeds(control, row, control.ask(row.method, _url(row), row.body))


def _refuses_types(site: Site, row: Row) -> None:
    assert row.body
    tries = [(name, row.wrong[name]) for name in row.wrong]
    for name, value in row.body.items():
        if not isinstance(value, list):
            tries.append((name, [1]))
        if not isinstance(value, dict):
            tries.append((name, {"a": 1}))
    for name, value in tries:
        answer = site.ask(row.method, _url(row), {**row.body, name: value})
        assert answer.status == 400, (name, value, answer)
        assert name in str(_detail(answer)), (name, value, answer)
    for value in ([], "text", 5, [row.body]):
        answer = site.ask(row.method, _url(row), value)
        assert answer.status == 400, (value, answer)


@rows(CONTROL)
def test_without_the_token_nothing_is_told_or_done(control: Site, row: Row) -> None:
    control.prepare(row.given)
    _is_guarded(control, row)


def _is_guarded(site: Site, row: Row) -> None:
    url, body = site.fill(_url(row)), site.fill(row.body)
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {site.token}x"},
        {"Authorization": f"Basic {site.token}"},
        {"Authorization": "Bearer"},
    ):
        answer = site.send(row.method, url, body, headers=headers)
        if row.open:
            assert answer.status == 200, answer
        else:
            assert answer.status == 401, (headers, answer)
            _detail(answer)
    _succeeds(site, row, site.ask(row.method, _url(row), row.body))


# --- section 6: the agent ----------------------------------------------------
@rows(AGENT_ROWS)
def test_agent_success(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    _succeeds(agent, row, agent.ask(row.method, _url(row), row.body))


@rows(AGENT_ROWS)
def test_agent_with_a_slash(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    path, mark, query = _url(row).partition("?")
    _succeeds(agent, row, agent.ask(row.method, f"{path}/{mark}{query}", row.body))


@rows(AGENT_ROWS, where=lambda row: _bodied(row) and row.body)
def test_agent_takes_forms(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    form = {"csrfmiddlewaretoken": "x", **_flat(agent.fill(row.body))}
    _succeeds(agent, row, agent.ask(row.method, _url(row), form, form=True))


@refusals(AGENT_ROWS)
def test_agent_refuses(agent: Site, row: Row, refused: Refused) -> None:
    _detail(_refused(agent, row, refused))


@rows(AGENT_ROWS, where=_bodied)
def test_agent_refuses_an_unknown_field(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    _refuses_unknown_field(agent, row)
    _succeeds(agent, row, agent.ask(row.method, _url(row), row.body))


@rows(AGENT_ROWS, where=lambda row: row.method == "DELETE")
def test_agent_deletes_what_it_was_told_only(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    _deletes_strictly(agent, row)
    _wants_booleans(agent, row)
    _succeeds(agent, row, agent.ask(row.method, _url(row)))


@rows(AGENT_ROWS, where=lambda row: _bodied(row) and row.body)
def test_agent_refuses_a_wrong_type(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    _refuses_types(agent, row)
    _succeeds(agent, row, agent.ask(row.method, _url(row), row.body))


@rows(AGENT_ROWS)
def test_agent_wants_its_token(agent: Site, row: Row) -> None:
    agent.prepare(row.given)
    _is_guarded(agent, row)


# --- nothing is missing --------------------------------------------------------
def _served(patterns: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each method and path of a list of addresses, names as `*`."""
    for pattern in patterns:
        text = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from _served(pattern.url_patterns, text)
        elif isinstance(pattern, URLPattern):
            path = re.sub(r"\(\?P<\w+>[^)]*\)", "*", text)
            path = "/" + path.replace(r"/?\Z", "").replace("\\", "")
            for method in _methods(pattern.callback):
                yield method, path


def _methods(view: Any) -> list[str]:
    """What a view takes: DRF's class says so; the plain ones only read."""
    kind = getattr(view, "cls", None)
    if kind is None:
        return ["GET"]
    return [name.upper() for name in METHODS if hasattr(kind, name)]


def _written(which: tuple[Row, ...]) -> set[tuple[str, str]]:
    found = set()
    for row in which:
        path = re.sub(r"\{\w+\}", "*", row.path)
        path = re.sub(r"/(disk)/debian(?=/|$)", r"/\1/*", path)
        path = re.sub(r"^(/files?)/boot.*", r"\1/*", path)
        found.add((row.method, path))
    return found


def test_every_address_is_in_the_table_and_the_reverse() -> None:
    served = {
        (method, path)
        for method, path in _served(get_resolver(control_urls.__name__).url_patterns)
        if not path.startswith(("/admin", "/i18n", "/api/cp/")) and path != "/"
    }
    assert served - BESIDE == _written(CONTROL)
    prefixed = {
        (method, path.removeprefix("/api/cp"))
        for method, path in _served(get_resolver(control_urls.__name__).url_patterns)
        if path.startswith("/api/cp/")
    }
    assert prefixed == served


def test_every_address_of_the_agent_is_in_the_table_and_the_reverse() -> None:
    paths = {path for _, path in _served(agent_urls.urlpatterns)}
    assert paths - AGENT_BESIDE == {path for _, path in _written(AGENT_ROWS)}


@rows(AGENT_ROWS)
def test_agent_takes_no_other_method(agent: Site, row: Row) -> None:
    here = {method for method, path in _written(AGENT_ROWS) if path == row.path}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - here:
        assert agent.ask(method, row.path).status == 405


@rows(CONTROL)
def test_no_other_method_is_taken(control: Site, row: Row) -> None:
    here = {m for m, path in _written(CONTROL) if path in _written((row,)).pop()[1:]}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - here:
        answer = control.ask(method, row.path)
        assert answer.status == 405, (method, answer)
