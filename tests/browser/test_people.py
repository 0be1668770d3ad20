"""People in the browser: added, changed, disabled and deleted; one's own password; tokens made, used and revoked."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import count

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import PASSWORD, Product

LIST = "/admin/users/operator/"
ACCOUNT = "/admin/account/"
BOARD = '.areas a[href="/admin/board/"]'
OTHER = "another horse battery"
WAYS = [("en", True), ("zh", True), ("en", False), ("zh", False)]
ways = pytest.mark.parametrize(("lang", "js"), WAYS)
#: The rules as pages say them.
NAME = {"en": "must be 1 to 63 of a-z", "zh": "必须是 1 到 63 个 a-z"}
LENGTH = {"en": "at least 10 characters", "zh": "至少 10 个字符"}
TOKEN_NAME = {"en": "must be 1 to 40 letters", "zh": "必须是 1 到 40 个字母"}
TAKEN = {"en": "there is a user {} already", "zh": "已有用户 {}"}
ROLES = {
    "viewer": {"en": "viewer", "zh": "查看者"},
    "operator": {"en": "operator", "zh": "操作员"},
}
_numbers = count(1)


@pytest.fixture
def name(room: Product) -> Iterator[str]:
    """A name that nobody has, before this test and after it."""
    found = f"person-{os.getpid()}-{next(_numbers)}"
    yield found
    text = (room.root / "config" / "users.yml").read_text()
    if found in yaml.safe_load(text)["users"]:
        room.manage("user", "delete", found)


@pytest.fixture
def person(room: Product, name: str) -> Callable[[str], str]:
    """Makes the one person of a test, with that role."""

    def make(role: str) -> str:
        room.manage("user", "create", name, "--role", role, stdin=f"{PASSWORD}\n")
        return name

    return make


def _at(name: str, page: str = "change/") -> str:
    return f"{LIST}{name}/{page}"


def _log_in(page: Page, name: str, password: str) -> None:
    """Through the form; the window must be nobody's."""
    page.goto("/admin/login/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.locator("#login-form [type=submit]").click()


def _assert_in(page: Page, name: str) -> None:
    expect(page.locator("a.who")).to_have_text(name)


def _assert_out(page: Page) -> None:
    """What was open is open no more."""
    page.goto("/admin/")
    expect(page.locator("#login-form")).to_be_visible()
    expect(page.locator("a.who")).to_have_count(0)


def _assert_refused(page: Page, name: str, password: str) -> None:
    _log_in(page, name, password)
    expect(page.locator(".errornote")).to_be_visible()
    _assert_out(page)


def _save(page: Page) -> None:
    page.locator("input[name=_save]").click()


def _row(page: Page, name: str) -> Locator:
    """Somebody in the list of people, looked for as one does."""
    page.goto(LIST)
    page.fill("#searchbar", name)
    page.press("#searchbar", "Enter")
    return page.locator("#result_list tbody tr")


def _asked(room: Product, token: str, method: str, path: str) -> int:
    """The status of the API's answer to a token."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(room.url + path, headers=headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _make_token(page: Page, name: str, role: str, days: str = "") -> str:
    """Make one on the page of an account that is open; what is shown of it, this once."""
    form = page.locator('form[aria-labelledby="new"]')
    form.locator("#id_name").fill(name)
    form.locator("#id_role").select_option(role)
    form.locator("#id_days").fill(days)
    form.locator("[type=submit]").click()
    expect(page.locator("#made")).to_contain_text(name)
    token = page.input_value("#token")
    assert token.startswith("ipx_")
    return token


def _token_row(page: Page, name: str) -> Locator:
    return page.locator("table.grid tbody tr").filter(has_text=name)


# --- as an administrator ------------------------------------------------------------


@ways
def test_somebody_is_added_and_the_form_says_what_is_wrong_before(
    lang: str, js: bool, page_as: PageAs, name: str
) -> None:
    page = page_as("administrator", lang, js=js)
    page.goto(LIST)
    page.locator(f'a[href="{LIST}add/"]').first.click()
    page.fill("#id_username", "no name!")
    page.select_option("#id_role", "operator")
    page.fill("#id_password", PASSWORD)
    _save(page)
    expect(page.locator(".field-username .errorlist")).to_contain_text(NAME[lang])
    page.fill("#id_username", name)
    page.fill("#id_password", "short")
    _save(page)
    expect(page.locator(".field-password .errorlist")).to_contain_text(LENGTH[lang])
    expect(page.locator(".field-username .errorlist")).to_have_count(0)
    # What was right is still there, and a password is never shown again.
    expect(page.locator("#id_username")).to_have_value(name)
    expect(page.locator("#id_role")).to_have_value("operator")
    expect(page.locator("#id_password")).to_have_value("")
    if js:  # axe is a script itself
        assert_accessible(page)
    assert_fits(page)
    page.fill("#id_password", PASSWORD)
    _save(page)
    page.wait_for_url(f"**{LIST}")
    row = _row(page, name)
    expect(row).to_have_count(1)
    expect(row.locator(".field-role")).to_have_text(ROLES["operator"][lang])

    page.goto(f"{LIST}add/")
    page.fill("#id_username", name)
    page.select_option("#id_role", "viewer")
    page.fill("#id_password", OTHER)
    _save(page)
    taken = page.locator(".field-username .errorlist")
    expect(taken).to_contain_text(TAKEN[lang].format(name))

    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)
    expect(own.locator(BOARD)).to_be_visible()
    # People are for administrators.
    expect(own.locator(f'.areas a[href="{LIST}"]')).to_have_count(0)


@ways
def test_another_role_counts_from_the_next_login_on(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str]
) -> None:
    name = person("viewer")
    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)
    expect(own.locator(BOARD)).to_have_count(0)

    page = page_as("administrator", lang, js=js)
    _row(page, name).locator("th a").click()
    expect(page.locator("#id_role")).to_have_value("viewer")
    page.select_option("#id_role", "operator")
    _save(page)
    page.wait_for_url(f"**{LIST}*")
    expect(_row(page, name).locator(".field-role")).to_have_text(
        ROLES["operator"][lang]
    )

    _assert_out(own)
    _log_in(own, name, PASSWORD)  # an empty password has left the old one
    _assert_in(own, name)
    expect(own.locator(BOARD)).to_be_visible()


@ways
def test_an_administrator_sets_the_password_of_somebody(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str]
) -> None:
    name = person("operator")
    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)

    page = page_as("administrator", lang, js=js)
    page.goto(_at(name))
    page.fill("#id_password", "short")
    _save(page)
    expect(page.locator(".field-password .errorlist")).to_contain_text(LENGTH[lang])
    own.goto("/admin/")
    _assert_in(own, name)  # what was refused changed nothing
    page.fill("#id_password", OTHER)
    _save(page)
    page.wait_for_url(f"**{LIST}")

    _assert_out(own)
    _assert_refused(own, name, PASSWORD)
    _log_in(own, name, OTHER)
    _assert_in(own, name)
    expect(own.locator(BOARD)).to_be_visible()  # the role is as it was


@ways
def test_who_is_disabled_is_out_and_comes_back_in_when_enabled(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str]
) -> None:
    name = person("viewer")
    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)

    page = page_as("administrator", lang, js=js)
    page.goto(_at(name))
    page.uncheck("#id_is_active")
    _save(page)
    page.wait_for_url(f"**{LIST}")
    _assert_out(own)
    _assert_refused(own, name, PASSWORD)

    page.goto(_at(name))
    expect(page.locator("#id_is_active")).not_to_be_checked()
    page.check("#id_is_active")
    _save(page)
    page.wait_for_url(f"**{LIST}")
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)


@ways
def test_somebody_is_deleted_after_a_question(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str]
) -> None:
    name = person("viewer")
    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    _assert_in(own, name)

    page = page_as("administrator", lang, js=js)
    page.goto(_at(name))
    page.locator("a.deletelink").click()
    page.wait_for_url(f"**{_at(name, 'delete/')}")
    expect(page.locator("#content")).to_contain_text(name)
    if js:
        assert_accessible(page)
    assert_fits(page)
    page.locator("a.closelink").click()
    page.wait_for_url(f"**{_at(name)}")
    own.goto("/admin/")
    _assert_in(own, name)  # a question deletes nobody

    page.locator("a.deletelink").click()
    page.locator("#content input[type=submit].danger").click()
    page.wait_for_url(f"**{LIST}")
    expect(_row(page, name)).to_have_count(0)
    _assert_out(own)
    _assert_refused(own, name, PASSWORD)


# --- one's own account ----------------------------------------------------------------


@ways
def test_somebody_changes_the_own_password(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str]
) -> None:
    name = person("viewer")
    elsewhere = page_as(None, lang, js=js)
    _log_in(elsewhere, name, PASSWORD)
    _assert_in(elsewhere, name)
    page = page_as(None, lang, js=js)
    _log_in(page, name, PASSWORD)
    page.locator("a.who").click()
    page.locator('.head a[href="/admin/password_change/"]').click()

    def send(old: str, new: str, again: str) -> None:
        page.fill("#id_old_password", old)
        page.fill("#id_new_password1", new)
        page.fill("#id_new_password2", again)
        page.locator("#content-main [type=submit]").click()

    wrong = page.locator("#content-main .errorlist")
    send("not the old one", OTHER, OTHER)
    expect(page.locator("#id_old_password_error")).to_be_visible()
    send(PASSWORD, OTHER, f"{OTHER}!")
    expect(page.locator("#id_new_password2_error")).to_be_visible()
    expect(page.locator("#id_old_password_error")).to_have_count(0)
    send(PASSWORD, "short", "short")
    expect(wrong).to_contain_text(LENGTH[lang])
    if js:
        assert_accessible(page)
    elsewhere.goto("/admin/")
    _assert_in(elsewhere, name)
    send(PASSWORD, OTHER, OTHER)
    page.wait_for_url("**/admin/password_change/done/")
    # Here one stays; other windows are out.
    page.goto(ACCOUNT)
    _assert_in(page, name)
    _assert_out(elsewhere)
    _assert_refused(elsewhere, name, PASSWORD)
    _log_in(elsewhere, name, OTHER)
    _assert_in(elsewhere, name)


@ways
def test_a_token_is_shown_once_may_what_its_role_may_and_ends_when_revoked(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str], room: Product
) -> None:
    name = person("operator")
    page = page_as(None, lang, js=js)
    _log_in(page, name, PASSWORD)
    page.locator("a.who").click()
    form = page.locator('form[aria-labelledby="new"]')
    # Nobody makes one that may more than oneself.
    expect(form.locator("option[value=operator]")).to_have_count(1)
    expect(form.locator("option[value=administrator]")).to_have_count(0)
    form.locator("#id_name").fill("-no-")
    form.locator("[type=submit]").click()
    wrong = form.locator(".field-name .errorlist")
    expect(wrong).to_contain_text(TOKEN_NAME[lang])
    expect(page.locator("#token")).to_have_count(0)

    weak = _make_token(page, "reading", "viewer", "30")
    if js:
        assert_accessible(page)
    page.goto(ACCOUNT)
    assert weak not in page.content()
    row = _token_row(page, "reading")
    cells = row.locator("td")
    expect(cells.nth(0)).to_have_text(ROLES["viewer"][lang])
    expect(cells.nth(2)).not_to_have_text("-")  # when it expires
    expect(cells.nth(3)).to_have_text("-")  # when it was used
    strong = _make_token(page, "writing", "operator")

    worker = room.worker("token")
    try:
        assert _asked(room, weak, "GET", f"/workers/{worker}") == 200
        assert _asked(room, weak, "DELETE", f"/workers/{worker}") == 403
    finally:
        # The scope of the other one, which takes the worker away again.
        assert _asked(room, strong, "DELETE", f"/workers/{worker}") == 200
    page.goto(ACCOUNT)
    expect(cells.nth(3)).not_to_have_text("-")

    row.locator("button").click()
    page.wait_for_url(f"**{ACCOUNT}")
    expect(row).to_have_count(0)
    expect(_token_row(page, "writing")).to_have_count(1)
    assert _asked(room, weak, "GET", "/workers") == 401
    assert _asked(room, strong, "GET", "/workers") == 200


@ways
def test_an_administrator_revokes_the_token_of_somebody(
    lang: str, js: bool, page_as: PageAs, person: Callable[[str], str], room: Product
) -> None:
    name = person("viewer")
    own = page_as(None, lang, js=js)
    _log_in(own, name, PASSWORD)
    own.locator("a.who").click()
    token = _make_token(own, "script", "viewer")
    assert _asked(room, token, "GET", "/workers") == 200

    page = page_as("administrator", lang, js=js)
    page.goto(_at(name))
    page.locator(f'a[href="/admin/accounts/{name}/"]').click()
    row = _token_row(page, "script")
    expect(row).to_have_count(1)
    assert token not in page.content()
    row.locator("button").click()
    page.wait_for_url(f"**/admin/accounts/{name}/")
    expect(page.locator("#content-main .empty")).to_be_visible()
    assert _asked(room, token, "GET", "/workers") == 401
    # The person is told apart from the token: who was logged in still is.
    own.goto(ACCOUNT)
    _assert_in(own, name)
    expect(own.locator("#content-main .empty")).to_be_visible()
