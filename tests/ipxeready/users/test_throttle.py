"""Guessing becomes slow, in all processes together, and locks nobody out for ever."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.storage.counters import PLACES, Count, Counters, Key
from ipxeready.storage.paths import Layout
from ipxeready.users import services, throttle, trail

GOOD = "correct horse battery"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in one cell."""
    now = [1_800_000_000.0]
    monkeypatch.setattr("ipxeready.users.throttle.time.time", lambda: now[0])
    return now


@pytest.fixture
def ann(layout: Layout, administrator: Actor) -> str:
    services.user_create(
        actor=administrator, username="ann", password=GOOD, role="administrator"
    )
    return "ann"


def audit(layout: Layout, op: str) -> list[dict[str, Any]]:
    lines = map(json.loads, layout.operations.read_text().splitlines())
    return [line for line in lines if line["op"] == op]


def fail(account: str, address: str, times: int) -> int:
    return [throttle.begin(account, address) for _ in range(times)][-1]


def log_in(password: str, address: str = "192.0.2.1", name: str = "ann") -> Any:
    client = Client(REMOTE_ADDR=address)
    return client.post("/admin/login/", {"username": name, "password": password})


def test_the_wait_after_failures_doubles_and_ends(
    layout: Layout, clock: list[float]
) -> None:
    assert fail("ann", "192.0.2.1", 5) == 0
    waits = []
    for _ in range(12):
        wait = throttle.begin("ann", "192.0.2.1")
        waits.append(wait)
        clock[0] += wait
        assert throttle.begin("ann", "192.0.2.1") == 0
    assert waits[:4] == [2, 4, 8, 16]
    assert waits[-1] == 900
    clock[0] += 3601
    assert throttle.begin("ann", "192.0.2.1") == 0


def test_a_try_during_the_wait_does_not_make_it_longer(
    layout: Layout, clock: list[float]
) -> None:
    fail("ann", "192.0.2.1", 5)
    assert [throttle.begin("ann", "192.0.2.1") for _ in range(50)] == [2] * 50
    clock[0] += 2
    assert throttle.begin("ann", "192.0.2.1") == 0


def test_an_address_that_tries_many_accounts_waits_for_all_of_them(
    layout: Layout, clock: list[float]
) -> None:
    tries = [throttle.begin(f"name{number}", "192.0.2.1") for number in range(60)]
    assert tries[:40] == [0] * 40
    assert all(tries[40:])
    assert throttle.begin("ann", "192.0.2.2") == 0


def test_one_customer_of_ipv6_is_one_address(
    layout: Layout, clock: list[float]
) -> None:
    tries = [throttle.begin("ann", f"2001:db8::{number:x}") for number in range(20)]
    assert any(tries)
    assert throttle.begin("ann", "2001:db8:0:1::1") == 0


def test_many_addresses_cannot_lock_an_administrator_out(
    layout: Layout, clock: list[float]
) -> None:
    assert throttle.begin("ann", "192.0.2.1") == 0
    throttle.succeeded("ann", "192.0.2.1")
    for number in range(200):
        throttle.begin("ann", f"203.0.113.{number}")
    # Elsewhere the wait is short, from where she has logged in before there is none.
    assert 0 < throttle.begin("ann", "198.51.100.1") <= 60
    assert throttle.begin("ann", "192.0.2.1") == 0
    throttle.forget("ann", "198.51.100.7")
    for number in range(100):
        throttle.begin("ann", f"203.0.113.{number}")
    assert throttle.begin("ann", "198.51.100.7") == 0


def test_a_login_forgets_ones_own_failures_only(
    layout: Layout, clock: list[float]
) -> None:
    for _ in range(30):
        assert fail("ann", "192.0.2.1", 4) == 0
        throttle.succeeded("ann", "192.0.2.1")
        if throttle.begin("bob", "192.0.2.1"):
            break
    else:
        pytest.fail("logging in oneself must not hide guesses at others")


def test_a_clock_that_was_set_back_locks_nobody_out(
    layout: Layout, clock: list[float]
) -> None:
    fail("ann", "192.0.2.1", 30)
    clock[0] -= 86_400
    assert throttle.begin("ann", "192.0.2.1") == 0


def test_tries_side_by_side_are_counted_before_they_are_looked_at(
    layout: Layout,
) -> None:
    passed: list[int] = []
    start = threading.Barrier(20)

    def guess() -> None:
        start.wait()
        passed.append(throttle.begin("ann", "192.0.2.1"))

    threads = [threading.Thread(target=guess) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(0) == 5


def _count(path: str, start: Any) -> None:
    counters = Counters(Path(path), b"key")
    start.wait()
    for _ in range(200):
        with counters.held() as held:
            key = Key(1, "ann")
            held.put(key, Count(held.get(key).number + 1, 1.0))


def test_processes_count_together(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    start = fork.Barrier(3)
    path = str(tmp_path / "counters")
    children = [fork.Process(target=_count, args=(path, start)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    with Counters(Path(path), b"key").held() as held:
        assert held.get(Key(1, "ann")) == Count(600, 1.0)


def test_the_file_does_not_grow_and_names_nobody(layout: Layout) -> None:
    for number in range(300):
        throttle.begin(f"secret-name-{number}", f"192.0.2.{number % 250}")
    content = layout.login_counters.read_bytes()
    assert len(content) <= PLACES * 32
    assert b"secret-name" not in content
    assert layout.login_counters.stat().st_mode & 0o777 == 0o600


def test_a_disk_that_takes_no_writes_keeps_nobody_out(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("login-counters"):
            raise OSError(30, "Read-only file system")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr("ipxeready.storage.counters.os.open", refuse)
    assert fail("ann", "192.0.2.1", 5) == 0
    assert throttle.begin("ann", "192.0.2.1") > 0


# --- the login page -----------------------------------------------------------
def test_the_login_says_how_long_to_wait_and_does_not_look_at_the_password(
    ann: str, layout: Layout
) -> None:
    for _ in range(5):
        assert log_in("wrong").status_code == 200
    answer = log_in(GOOD)
    assert answer.status_code == 429
    assert answer["Retry-After"] == "2"
    assert "Too many failures. Try again in 2 seconds." in answer.content.decode()
    assert log_in(GOOD, "192.0.2.9").status_code == 302


def test_every_login_and_refusal_and_logout_is_in_the_audit(
    ann: str, layout: Layout
) -> None:
    log_in("hunter2hunter2")
    log_in(GOOD, name="my-secret-password")
    services.user_create(
        actor=Actor("root", "administrator"),
        username="bob",
        password=GOOD,
        role="viewer",
    )
    services.user_update(
        actor=Actor("root", "administrator"), username="bob", is_active=False
    )
    log_in(GOOD, name="bob")
    client = Client(REMOTE_ADDR="192.0.2.5")
    client.post("/admin/login/", {"username": " ANN ", "password": GOOD})
    client.post("/admin/logout/")
    refused = audit(layout, "user.login.refused")
    assert [(line["account"], line["reason"]) for line in refused] == [
        ("ann", "wrong name or password"),
        ("unknown user", "wrong name or password"),
        ("bob", "disabled"),
    ]
    assert {line["user"] for line in refused} == {"anonymous"}
    assert {line["status"] for line in refused} == {"failed"}
    (login,) = audit(layout, "user.login")
    (logout,) = audit(layout, "user.logout")
    assert login["user"] == logout["user"] == "ann"
    assert login["client"] == logout["client"] == "192.0.2.5"
    text = layout.operations.read_text()
    for secret in ("hunter2", "my-secret-password", GOOD):
        assert secret not in text


def test_a_flood_of_refusals_is_counted_and_not_written_line_by_line(
    ann: str, layout: Layout, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[Any] = []

    class Later:
        def __init__(self, seconds: float, call: Any, args: list[Any]) -> None:
            timers.append((seconds, call, args))

        daemon = False

        def start(self) -> None:
            """When the test says so."""

    monkeypatch.setattr(trail.threading, "Timer", Later)
    for _ in range(50):
        log_in("wrong")
    assert len(audit(layout, trail.REFUSED)) == throttle.LINES_EACH
    assert len(timers) == 1
    seconds, call, args = timers[0]
    assert seconds == 60
    call(*args)
    last = audit(layout, trail.REFUSED)[-1]
    assert last["count"] == 40
    assert last["reason"] == "flood"


def test_ones_own_password_cannot_be_guessed_in_a_browser_that_was_left(
    ann: str, layout: Layout
) -> None:
    client = Client()
    client.post("/admin/login/", {"username": ann, "password": GOOD})
    form = {
        "new_password1": "another pass phrase",
        "new_password2": "another pass phrase",
    }
    for _ in range(5):
        client.post("/admin/password_change/", {**form, "old_password": "wrong"})
    answer = client.post("/admin/password_change/", {**form, "old_password": GOOD})
    assert "Too many failures" in answer.content.decode()
    assert audit(layout, "user.password") == []


# --- wrong bearer tokens --------------------------------------------------------
def test_wrong_tokens_are_answered_later_and_the_right_one_never_waits(
    api: APIClient, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("ipxeready.users.authentication.time.sleep", slept.append)
    wrong = APIClient(HTTP_AUTHORIZATION="Bearer nonsense")
    for _ in range(30):
        assert wrong.get("/workers").status_code == 401
    assert len(slept) == 11
    assert slept[0] < slept[3]
    assert max(slept) <= 2
    slept.clear()
    assert api.get("/workers").status_code == 200
    assert slept == []
    lines = audit(layout, "token.refused")
    assert len(lines) == throttle.LINES_EACH
    assert "nonsense" not in layout.operations.read_text()


def test_those_who_guess_tokens_do_not_keep_all_threads(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, most = [0], [0]
    gate = threading.Event()

    def sleep(_seconds: float) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        gate.wait(10)
        inside[0] -= 1

    for _ in range(25):
        throttle.token_failed("127.0.0.1")
    monkeypatch.setattr("ipxeready.users.authentication.time.sleep", sleep)
    from ipxeready.users.authentication import TokenAuthentication

    monkeypatch.setattr(trail, "write", lambda **_fields: None)

    class Request:
        META = {"REMOTE_ADDR": "127.0.0.1"}

    threads = [
        threading.Thread(target=lambda: TokenAuthentication().refuse(Request()))  # type: ignore[arg-type]
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    while inside[0] < 2:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert most[0] == 2
