"""Personal API tokens: shown once, kept as a hash, never stronger than their owner, dead when they should be."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from ipxeready.storage.paths import Layout
from ipxeready.users import selectors, services, tokens
from ipxeready.users.tokens import token_create, token_owner, token_revoke

GOOD = "correct horse battery"
ROOT = Actor("root", "administrator")
PEOPLE = {"ann": "administrator", "oscar": "operator", "victor": "viewer"}
MAC = "52:54:00:00:00:01"


@pytest.fixture(autouse=True)
def people(layout: Layout) -> None:
    for name, role in PEOPLE.items():
        services.user_create(actor=ROOT, username=name, password=GOOD, role=role)


def own(name: str) -> Actor:
    return Actor(name, PEOPLE[name], "192.0.2.1")


def make(name: str, **more: Any) -> str:
    return token_create(actor=own(name), username=name, name="laptop", **more).text


def caller(text: str) -> APIClient:
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {text}")
    client.default_format = "json"
    return client


def page(name: str) -> Client:
    client = Client()
    form = {"username": name, "password": GOOD}
    assert client.post("/admin/login/", form).status_code == 302
    return client


def test_a_token_works_as_its_owner_and_is_kept_as_a_hash_only(layout: Layout) -> None:
    text = make("oscar")
    answer = caller(text).post("/workers", {"worker_id": "pc1", "mac": MAC})
    assert answer.status_code == 201
    assert '"user":"oscar (token laptop)"' in layout.operations.read_text()
    secret = text.split("_", 2)[2]
    for path in layout.root.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    (record,) = yaml.safe_load(layout.users_yml.read_text())["users"]["oscar"][
        "tokens"
    ].values()
    assert re.fullmatch("[0-9a-f]{64}", record["sha256"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
        lambda text: text.replace("ipx_", "ipy_"),
        lambda text: text[:17] + "A" * 43,
        lambda text: "ipx_" + "a" * 12 + text[16:],
        lambda text: text.upper(),
        lambda text: "",
        lambda text: "ipx_\udcff",
    ],
)
def test_nothing_but_the_whole_token_is_the_token(
    spoil: Callable[[str], str],
) -> None:
    text = make("ann")
    assert token_owner(text) is not None
    assert token_owner(spoil(text)) is None


def test_a_token_is_found_by_its_public_part_and_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[str, str]] = []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return False

    text = make("ann")
    monkeypatch.setattr("ipxeready.users.tokens.hmac.compare_digest", compare)
    for given in (text, "ipx_" + "a" * 12 + text[16:], "nonsense"):
        assert token_owner(given) is None
    assert [len(one) for one, _ in compared] == [64, 64, 64]
    assert [len(other) for _, other in compared] == [64, 64, 64]


def test_a_token_never_may_more_than_its_owner_at_that_moment() -> None:
    text, weak = (
        make("oscar"),
        token_create(actor=own("ann"), username="ann", name="watch", role="viewer"),
    )
    assert caller(weak.text).get("/workers").status_code == 200
    body = {"worker_id": "pc1", "mac": MAC}
    assert caller(weak.text).post("/workers", body).status_code == 403
    services.user_update(actor=ROOT, username="oscar", role="viewer")
    assert caller(text).post("/workers", body).status_code == 403
    services.user_update(actor=ROOT, username="oscar", role="administrator")
    assert caller(text).post("/workers", body).status_code == 201
    # Made by an operator, it stays an operator's.
    assert caller(text).delete("/agents/none").status_code == 403
    with pytest.raises(Invalid) as caught:
        token_create(actor=own("victor"), username="victor", name="x", role="operator")
    assert caught.value.field == "role"


@pytest.mark.parametrize("end", ["disable", "delete", "revoke", "expire", "edit"])
def test_a_token_is_dead_at_once(layout: Layout, end: str) -> None:
    text = make("oscar", days=1)
    client = caller(text)
    assert client.get("/workers").status_code == 200
    (token,) = selectors.tokens("oscar")
    if end == "disable":
        services.user_update(actor=ROOT, username="oscar", is_active=False)
    elif end == "delete":
        services.user_delete(actor=ROOT, username="oscar")
    elif end == "revoke":
        token_revoke(actor=own("oscar"), token_id=token.token_id)
    else:
        past = (timezone.localtime() - timedelta(seconds=1)).isoformat()
        words = layout.users_yml.read_text()
        assert token.expires is not None
        if end == "expire":
            written = re.sub(r'(expires: )"[^"]+"', rf'\1"{past}"', words)
        else:
            written = words.replace("active: true", "active: false")
        assert written != words
        layout.users_yml.write_text(written)
    assert client.get("/workers").status_code == 401


def test_a_person_who_comes_again_under_the_name_has_no_old_tokens() -> None:
    text = make("oscar")
    services.user_delete(actor=ROOT, username="oscar")
    services.user_create(actor=ROOT, username="oscar", password=GOOD, role="operator")
    assert token_owner(text) is None


def test_a_copy_of_a_token_in_another_record_makes_it_nobodys(layout: Layout) -> None:
    text = make("oscar")
    data = yaml.safe_load(layout.users_yml.read_text())
    data["users"]["ann"]["tokens"] = data["users"]["oscar"]["tokens"]
    layout.users_yml.write_text(yaml.safe_dump(data))
    index.ensure_fresh(wait=True)
    assert token_owner(text) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "plain"}, "sha256 must be"),
        ({"role": "king"}, "role must be"),
        ({"name": ""}, "name must be"),
        ({"expires": "tomorrow"}, "expires must be"),
        ({"expires": "9999-12-31T23:59:59-14:00"}, "expires: the year must be"),
        ({"created": "0001-01-01T00:00:00+14:00"}, "created: the year must be"),
    ],
)
def test_a_token_that_a_hand_spoiled_is_a_problem_that_says_which(
    layout: Layout, change: dict[str, str], words: str
) -> None:
    make("oscar")
    data = yaml.safe_load(layout.users_yml.read_text())
    for each in data["users"]["oscar"]["tokens"].values():
        each.update(change)
    layout.users_yml.write_text(yaml.safe_dump(data))
    index.ensure_fresh(wait=True)
    (problem,) = index.problems()
    assert words in problem.message
    assert "of oscar" in problem.message
    assert page("ann").get("/admin/").status_code == 200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": "admin"}, "role of oscar: must be one of"),
        ({"role": None}, "role of oscar: must be one of"),
        ({"tokens": {"a00000000001": 5}}, "token a00000000001 of oscar"),
        ({"tokens": [1]}, "tokens of oscar: must be a mapping"),
    ],
)
def test_no_token_is_made_for_a_record_that_a_hand_spoiled(
    api: APIClient, layout: Layout, change: dict[str, Any], words: str
) -> None:
    data = yaml.safe_load(layout.users_yml.read_text())
    data["users"]["oscar"].update(change)
    layout.users_yml.write_text(yaml.safe_dump(data))
    before = layout.users_yml.read_bytes()
    answer = api.post("/tokens", {"name": "n", "user": "oscar"})
    assert answer.status_code == 503
    assert words in answer.json()["detail"]
    assert "mend this record first" in answer.json()["detail"]
    form = {"name": "n", "role": "viewer"}
    refused = page("ann").post("/admin/accounts/oscar/tokens/", form)
    assert words in html.unescape(refused.content.decode())
    assert layout.users_yml.read_bytes() == before


def test_a_record_that_is_an_alias_is_refused_and_not_a_bug(layout: Layout) -> None:
    make("oscar")
    text = layout.users_yml.read_text().replace("  oscar:\n", "  oscar: &one\n")
    layout.users_yml.write_text(f"{text}  copy: *one\n")
    make("ann")
    with pytest.raises(Unavailable, match="copy"):
        services.user_end_sessions(actor=ROOT, username="copy")


def test_days_are_plain_digits(api: APIClient) -> None:
    for days in ("1_0", "+5", "\uff11\uff12", "1e3", True):
        answer = api.post("/tokens", {"name": "n", "user": "oscar", "days": days})
        assert answer.status_code == 400, days
        assert "days" in answer.json()["detail"]
    form = {"name": "n", "role": "viewer", "days": "1_0"}
    refused = page("victor").post("/admin/account/tokens/", form)
    assert "1_0 is no whole number" in refused.content.decode()
    assert not selectors.tokens().exists()


def test_an_address_that_only_takes_a_post_leads_to_its_form() -> None:
    """Where the language is switched beside a refusal, or the session had ended before the button was pressed."""
    ann = page("ann")
    for start in ("/admin/account/", "/admin/accounts/oscar/"):
        for path in ("tokens/", "tokens/a00000000001/revoke/", "sessions/"):
            assert ann.get(start + path)["Location"] == start
    assert "next=/admin/account/" in Client().get("/admin/account/tokens/")["Location"]


def test_the_rules_of_making_one() -> None:
    make("oscar")
    with pytest.raises(Conflict) as taken:
        make("oscar")
    assert taken.value.field == "name"
    for name in ("", " ", "a\nb", "(x)", "x" * 41, "<b>"):
        with pytest.raises(Invalid) as caught:
            token_create(actor=own("oscar"), username="oscar", name=name)
        assert caught.value.field == "name"
    for days in (0, -1, 4000):
        with pytest.raises(Invalid):
            token_create(actor=own("oscar"), username="oscar", name="d", days=days)
    token_create(actor=own("oscar"), username="oscar", name="备份 1")
    for number in range(tokens.MOST - 2):
        token_create(actor=own("oscar"), username="oscar", name=f"n{number}")
    with pytest.raises(Conflict, match="revoke one first"):
        token_create(actor=own("oscar"), username="oscar", name="one more")


def test_others_tokens_are_for_administrators() -> None:
    make("ann")
    (token,) = selectors.tokens("ann")
    with pytest.raises(Forbidden):
        token_create(actor=own("oscar"), username="ann", name="x")
    with pytest.raises(NotFound):
        token_revoke(actor=own("oscar"), token_id=token.token_id)
    made = token_create(actor=own("ann"), username="oscar", name="x")
    assert made.token.role == "operator"
    token_revoke(actor=own("ann"), token_id=made.token.token_id)
    assert not selectors.tokens("oscar").exists()


def test_a_token_cannot_make_another_nor_change_the_account() -> None:
    client = caller(make("oscar"))
    answer = client.post("/tokens", {"name": "another"})
    assert answer.status_code == 403
    assert "log in with your password" in answer.json()["detail"]
    (shown,) = client.get("/tokens").json()
    assert client.delete(f"/tokens/{shown['id']}").status_code == 403
    acting = Actor("oscar", "operator", None, "token laptop")
    with pytest.raises(Forbidden):
        services.user_set_password(actor=acting, username="oscar", password=GOOD)
    with pytest.raises(Forbidden):
        services.user_end_sessions(actor=acting, username="oscar")


def test_the_last_use_is_kept_by_the_hour_and_writes_no_ledger(layout: Layout) -> None:
    client = caller(make("oscar"))
    (shown,) = client.get("/tokens").json()
    before = layout.users_yml.stat(), layout.operations.stat()
    stamp = layout.token_use / shown["id"]
    first = stamp.stat().st_mtime_ns
    for _ in range(3):
        assert client.get("/workers").status_code == 200
    assert stamp.stat().st_mtime_ns == first
    assert (layout.users_yml.stat(), layout.operations.stat()) == before
    (again,) = client.get("/tokens").json()
    assert again["last_used"].endswith(":00:00" + again["last_used"][-6:])
    os.utime(stamp, (0, 0))
    page("oscar").post(f"/admin/account/tokens/{shown['id']}/revoke/")
    assert not stamp.exists()


# --- the API ------------------------------------------------------------------------
def test_the_api_makes_lists_and_revokes(api: APIClient, layout: Layout) -> None:
    client = page("oscar")
    made = client.post("/tokens", {"name": "ci", "days": 3}, "application/json")
    assert made.status_code == 201
    body = made.json()
    assert caller(body.pop("token")).get("/workers").status_code == 200
    (shown,) = client.get("/tokens").json()
    assert {**shown, "last_used": None} == body
    assert "no-store" in made["Cache-Control"]
    # The service's own token is an administrator, and nobody's person.
    assert api.post("/tokens", {"name": "x"}).status_code == 400
    assert api.post("/tokens", {"name": "x", "user": "none"}).status_code == 404
    assert api.post("/tokens", {"name": "x", "user": "victor"}).status_code == 201
    assert len(api.get("/tokens").json()) == 2
    assert [each["user"] for each in api.get("/tokens?user=Oscar").json()] == ["oscar"]
    assert client.get("/tokens?user=victor").status_code == 403
    assert api.delete(f"/tokens/{shown['id']}").json() == {"deleted": shown["id"]}
    assert client.delete(f"/tokens/{shown['id']}").status_code == 404


# --- the pages ------------------------------------------------------------------------
def test_ones_own_page_shows_a_new_token_once(layout: Layout) -> None:
    client = page("victor")
    answer = client.post(
        "/admin/account/tokens/", {"name": "watch", "role": "viewer", "days": ""}
    )
    text = answer.content.decode()
    (token,) = set(re.findall(r"ipx_[a-f0-9]{12}_[\w-]{43}", text))
    assert caller(token).get("/workers").status_code == 200
    assert "no-store" in answer["Cache-Control"]
    again = client.get("/admin/account/").content.decode()
    assert "watch" in again
    assert token not in again
    answer = client.post("/admin/account/tokens/", {"name": "watch", "role": "viewer"})
    assert "has a token watch already" in answer.content.decode()
    answer = client.post("/admin/account/tokens/", {"name": "w2", "role": "operator"})
    assert "errorlist" in answer.content.decode()
    assert selectors.tokens("victor").count() == 1


def test_only_administrators_open_others_accounts(layout: Layout) -> None:
    assert page("oscar").get("/admin/accounts/victor/").status_code == 403
    client = page("ann")
    assert client.get("/admin/accounts/none/").status_code == 404
    assert "victor" in client.get("/admin/accounts/victor/").content.decode()
    other = page("victor")
    client.post("/admin/accounts/victor/sessions/")
    assert other.get("/admin/account/").status_code == 302
    assert client.get("/admin/account/").status_code == 200


def test_logging_out_everywhere_ends_ones_other_browsers() -> None:
    here, there = page("victor"), page("victor")
    here.post("/admin/account/sessions/")
    assert there.get("/admin/account/").status_code == 302
    assert here.get("/admin/account/").status_code == 302
