"""Logging in and the pages of people, through a real session."""

from __future__ import annotations

import pytest
import yaml
from django.test import Client

from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def people(layout: Layout, administrator: Actor) -> None:
    """One person of each role."""
    for name, role in (
        ("alice", "administrator"),
        ("oscar", "operator"),
        ("victor", "viewer"),
    ):
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )


def login(name: str) -> Client:
    client = Client()
    answer = client.post("/admin/login/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302, answer.content.decode()
    return client


def record(layout: Layout, name: str) -> dict[str, object]:
    return yaml.safe_load(layout.users_yml.read_text())["users"][name]


def test_the_root_leads_to_the_pages_and_they_to_the_login() -> None:
    client = Client()
    assert client.get("/")["Location"] == "/admin/"
    assert "/admin/login/" in client.get("/admin/")["Location"]


def test_everybody_sees_the_start_page() -> None:
    for name in ("alice", "oscar", "victor", "ALICE"):
        page = login(name).get("/admin/")
        assert page.status_code == 200
        assert b"ipxeready" in page.content


def test_a_wrong_password_is_refused_on_the_page() -> None:
    answer = Client().post("/admin/login/", {"username": "alice", "password": "x"})
    assert answer.status_code == 200
    assert b"errornote" in answer.content


def test_the_session_cookie_is_for_twelve_hours_and_no_script() -> None:
    cookie = login("alice").cookies["ipxeready"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 12 * 60 * 60


def test_a_session_ends_when_it_is_withdrawn(administrator: Actor) -> None:
    client = login("victor")
    assert client.get("/admin/").status_code == 200
    services.user_end_sessions(actor=administrator, username="victor")
    assert client.get("/admin/").status_code == 302


def test_a_hand_edit_of_the_role_counts_at_once(layout: Layout) -> None:
    client = login("victor")
    text = layout.users_yml.read_text()
    layout.users_yml.write_text(text.replace("viewer", "administrator"))
    # The session was made with the other role: log in again.
    assert client.get("/admin/").status_code == 302
    assert login("victor").get("/admin/users/operator/").status_code == 200


def test_people_are_for_administrators_only() -> None:
    assert login("alice").get("/admin/users/operator/").status_code == 200
    for name in ("oscar", "victor"):
        client = login(name)
        assert client.get("/admin/users/operator/").status_code == 403
        assert client.post("/admin/users/operator/add/").status_code == 403


def test_a_person_is_added_on_the_page(layout: Layout) -> None:
    answer = login("alice").post(
        "/admin/users/operator/add/",
        {"username": "Bob", "role": "viewer", "password": PASSWORD},
    )
    assert answer.status_code == 302, answer.content.decode()
    assert record(layout, "bob")["role"] == "viewer"
    login("bob")


def test_a_refusal_of_the_service_is_an_error_of_the_form(layout: Layout) -> None:
    before = layout.users_yml.read_bytes()
    for data, words in (
        ({"username": "bob", "role": "viewer", "password": "x"}, "too short"),
        (
            {"username": "b b", "role": "viewer", "password": PASSWORD},
            "must be 1 to 63",
        ),
        ({"username": "token", "role": "viewer", "password": PASSWORD}, "audit"),
    ):
        answer = login("alice").post("/admin/users/operator/add/", data)
        assert answer.status_code == 200
        assert words in answer.content.decode()
    assert layout.users_yml.read_bytes() == before


def test_a_name_that_is_taken_is_refused_in_the_words_of_the_service() -> None:
    data = {"username": "oscar", "role": "viewer", "password": PASSWORD}
    client = login("alice")
    page = client.post("/admin/users/operator/add/", data).content.decode()
    assert "there is a user oscar already" in page
    assert 'id="id_username_error"' in page
    page = client.post(
        "/admin/users/operator/add/", data, headers={"Accept-Language": "zh-hans"}
    ).content.decode()
    assert "已有用户 oscar" in page


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("short", "至少 10 个字符"),
        ("password123", "太常见"),
        ("83625190473", "只包含数字"),
    ],
)
def test_what_is_wrong_with_a_password_is_said_in_chinese(
    password: str, words: str
) -> None:
    answer = login("alice").post(
        "/admin/users/operator/oscar/change/",
        {"role": "operator", "is_active": "on", "password": password},
        headers={"Accept-Language": "zh-hans"},
    )
    error = answer.content.decode().partition('id="id_password_error"')[2]
    assert words in error[:200]


def test_a_change_on_the_page_is_the_smallest_change_of_the_file(
    layout: Layout,
) -> None:
    with layout.users_yml.open("a") as file:
        file.write("# the end\n")
    client = login("alice")
    answer = client.post(
        "/admin/users/operator/oscar/change/",
        {"role": "viewer", "is_active": "on", "password": ""},
    )
    assert answer.status_code == 302, answer.content.decode()
    assert record(layout, "oscar")["role"] == "viewer"
    assert layout.users_yml.read_text().endswith("# the end\n")
    login("oscar")


def test_the_last_administrator_cannot_be_disabled_on_the_page(layout: Layout) -> None:
    answer = login("alice").post(
        "/admin/users/operator/alice/change/", {"role": "administrator"}
    )
    assert answer.status_code == 200
    assert "only administrator" in answer.content.decode()
    assert record(layout, "alice")["active"] is True


def test_a_stale_form_is_refused(layout: Layout, administrator: Actor) -> None:
    client = login("alice")
    page = client.get("/admin/users/operator/oscar/change/").content.decode()
    digest = page.split('name="record_digest" value="')[1].split('"')[0]
    services.user_update(actor=administrator, username="oscar", role="administrator")
    form = {"role": "viewer", "is_active": "on", "record_digest": digest}
    answer = client.post("/admin/users/operator/oscar/change/", form)
    assert answer.status_code == 200
    assert "changed since" in answer.content.decode()
    assert record(layout, "oscar")["role"] == "administrator"


def test_deleting_asks_and_then_deletes(layout: Layout) -> None:
    client = login("alice")
    url = "/admin/users/operator/victor/delete/"
    assert "victor" in client.get(url).content.decode()
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert "victor" not in layout.users_yml.read_text().replace("# ", "")


def test_deleting_the_last_administrator_is_refused_above_the_page(
    layout: Layout,
) -> None:
    client = login("alice")
    url = "/admin/users/operator/alice/delete/"
    page = client.post(url, {"post": "yes"}, follow=True)
    assert "only administrator" in page.content.decode()
    assert record(layout, "alice")


def test_deleting_many_does_what_can_be_done(layout: Layout) -> None:
    client = login("alice")
    form = {
        "action": "delete_selected",
        "_selected_action": ["alice", "oscar", "victor"],
        "post": "yes",
    }
    page = client.post("/admin/users/operator/", form, follow=True)
    assert "only administrator" in page.content.decode()
    left = yaml.safe_load(layout.users_yml.read_text())["users"]
    assert list(left) == ["alice"]


def test_ones_own_password_is_changed_by_the_service(layout: Layout) -> None:
    client = login("victor")
    form = {
        "old_password": PASSWORD,
        "new_password1": "another horse battery",
        "new_password2": "another horse battery",
    }
    assert client.get("/admin/password_change/").status_code == 200
    answer = client.post("/admin/password_change/", form)
    assert answer.status_code == 302, answer.content.decode()
    # This session goes on, others end.
    assert client.get("/admin/").status_code == 200
    wrong = {**form, "old_password": "x"}
    assert client.post("/admin/password_change/", wrong).status_code == 200


def test_the_language_is_chosen_and_remembered() -> None:
    client = login("victor")
    answer = client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/admin/"})
    assert answer["Location"] == "/admin/"
    assert 'lang="zh-hans"' in client.get("/admin/").content.decode()


def test_a_broken_file_is_a_banner_on_every_page(layout: Layout) -> None:
    client = login("victor")
    layout.workers_yml.write_text("workers: [\n")
    page = client.get("/admin/jobs/").content.decode()
    assert "file-problems" in page
    assert str(layout.workers_yml) in page
    # The start page has it among all that is wrong.
    page = client.get("/admin/").content.decode()
    assert "1 file cannot be read" in page
    assert str(layout.workers_yml) in page
    assert "file-problems" not in Client().get("/admin/login/").content.decode()


def test_no_page_needs_a_row_of_djangos_own(layout: Layout) -> None:
    """The index was made anew under us: pages go on."""
    client = login("alice")
    index.ensure_fresh(wait=True)
    for path in (
        "/admin/",
        "/admin/users/operator/",
        "/admin/users/operator/add/",
        "/admin/users/operator/alice/change/",
        "/admin/users/operator/alice/delete/",
        "/admin/users/",
        "/admin/jsi18n/",
    ):
        assert client.get(path).status_code == 200, path


def test_a_session_reads_the_api_by_its_role_and_writes_with_a_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    page = client.get("/admin/login/")
    token = page.cookies["csrftoken"].value
    form = {"username": "victor", "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert client.post("/admin/login/", form).status_code == 302
    assert client.get("/workers").status_code == 200
    body = {"worker_id": "w1", "mac": "52:54:00:00:00:01"}
    answer = client.post("/workers", body, content_type="application/json")
    assert answer.status_code == 403
    assert "CSRF" in answer.json()["detail"]
    token = client.cookies["csrftoken"].value
    header = {"HTTP_X_CSRFTOKEN": token}
    answer = client.post("/workers", body, content_type="application/json", **header)
    assert answer.status_code == 403
    assert "operator" in answer.json()["detail"]


def test_an_operator_writes_through_a_session(layout: Layout) -> None:
    body = {"worker_id": "w1", "mac": "52:54:00:00:00:01"}
    client = login("oscar")
    answer = client.post("/workers", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert '"user":"oscar"' in layout.operations.read_text()
