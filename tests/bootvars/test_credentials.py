"""A machine is told its login secret only where it is itself: bound, direct, at its present lease, in a script."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from bootvars import views
from ipxeready.storage.paths import Layout
from tests.bootvars.conftest import Ask, well_formed
from tests.workers.helpers import M1, M2, trail

IQN = "iqn.2026-07.com.controller"
SECRET = "sEcretOfPc1Abcde"
HERE = "192.0.2.50"


@pytest.fixture
def leases(layout: Layout, configured: Callable[..., None], tmp_path: Path) -> Path:
    """A site with chap, whose machine has its lease."""
    layout.agents_yml.write_text(
        "agents:\n  n: {base_url: 'http://192.0.2.3:4840', token: a, access: chap}\n"
    )
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n    default_os: ubuntu\n    disks:\n"
        f"      - {{agent: n, iqn: '{IQN}:pc1.ubuntu', os: ubuntu, access: chap}}\n"
    )
    layout.chap_secrets_yml.write_text(
        f"secrets:\n  pc1: {{username: pc1, secret: {SECRET}}}\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},pc1\n")
    path = tmp_path / "dnsmasq.leases"
    configured(dnsmasq_leases=path)
    lease(path, f"{_later()} {M1} {HERE} pc1 *")
    return path


def _later() -> int:
    return int(time.time()) + 600


def lease(path: Path, *lines: str) -> None:
    """What dnsmasq has leased."""
    path.write_text("".join(f"{line}\n" for line in lines))


def ask(query: str = f"mac={M1}", address: str = HERE, **headers: str) -> str:
    """The script that a machine at that address gets."""
    answer = Client(REMOTE_ADDR=address).get(f"/boot-vars?{query}", headers=headers)
    assert answer["Cache-Control"] == "no-store"
    return well_formed(answer)


def _why(script: str) -> str:
    assert SECRET not in script
    assert "set username" not in script
    (line,) = [line for line in script.splitlines() if "No login secret" in line]
    # All the rest is there.
    assert "set menu-default ubuntu" in script
    assert line.startswith("echo ")
    return line


def test_the_machine_itself_is_told(leases: Path) -> None:
    script = ask()
    assert script.splitlines()[-2:] == ["set username pc1", f"set password {SECRET}"]
    assert "echo" not in script


def test_a_lease_without_an_end_and_a_second_one_of_the_card_count(
    leases: Path,
) -> None:
    lease(leases, f"0 {M1} {HERE} pc1 *", f"{_later()} {M1} 192.0.2.51 pc1 01:02")
    assert SECRET in ask()
    assert SECRET in ask(address="192.0.2.51")


def test_a_listener_on_ipv6_sees_the_same_machine(leases: Path) -> None:
    assert SECRET in ask(address=f"::ffff:{HERE}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Forwarded-For", HERE),
        ("X-Forwarded-For", ""),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Anything", "1"),
        ("Forwarded", f"for={HERE}"),
        ("Via", "1.1 proxy"),
        ("X-Real-IP", HERE),
    ],
)
def test_not_through_a_proxy(leases: Path, name: str, value: str) -> None:
    assert "proxy" in _why(ask(**{name: value}))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_proxy_on_this_machine_speaks_for_nobody(leases: Path, address: str) -> None:
    assert "proxy" in _why(ask(address=address, **{"X-Forwarded-For": HERE}))
    assert "not leased" in _why(ask(address=address))


@pytest.mark.parametrize("address", ["192.0.2.51", "", "nonsense", "192.0.2.5"])
def test_not_at_another_address(leases: Path, address: str) -> None:
    assert "not leased" in _why(ask(address=address))


@pytest.mark.parametrize(
    "line",
    [
        f"1 {M1} {HERE} pc1 *",
        f"{{before}} {M1} {HERE} pc1 *",
        f"{{later}} {M2} {HERE} pc1 *",
        f"{{later}} 06-{M1} {HERE} pc1 *",
        f"{{later}} {M1} {HERE}",
        "duid 00:01",
        "",
    ],
)
def test_not_without_a_present_lease_of_that_mac(leases: Path, line: str) -> None:
    lease(leases, line.format(before=int(time.time()) - 1, later=_later()))
    assert "not leased" in _why(ask())


def test_a_lease_that_goes_is_seen_at_once(leases: Path) -> None:
    for _ in range(3):
        lease(leases, f"{_later()} {M1} {HERE} pc1 *")
        assert SECRET in ask()
        lease(leases, f"{_later()} {M2} {HERE} pc2 *")
        _why(ask())


def test_without_the_lease_file_the_machine_is_told_which_setting(leases: Path) -> None:
    leases.unlink()
    assert "IPXE_CP_DNSMASQ_LEASES" in _why(ask())
    leases.mkdir()
    assert "IPXE_CP_DNSMASQ_LEASES" in _why(ask())


@pytest.mark.parametrize("query", ["hostname=pc1", f"mac={M2}&hostname=pc1"])
def test_not_by_a_hostname_alone(leases: Path, layout: Layout, query: str) -> None:
    lease(leases, *(f"{_later()} {mac} {HERE} pc1 *" for mac in (M1, M2)))
    # Unbound, the hostname is all that is left.
    layout.dhcp_hosts.write_text("")
    layout.settings_json.write_text('{"auto_register": false}')
    assert "bound" in _why(ask(query))


def test_not_to_the_mac_of_another_machine(leases: Path) -> None:
    lease(leases, f"{_later()} {M2} {HERE} pc1 *")
    script = ask(f"mac={M2}&hostname=pc1")
    assert SECRET not in script
    assert "bound to another machine" in script


def test_not_in_a_conflict(leases: Path, layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"{M1},pc1\n{M2},pc1\n")
    script = ask()
    assert SECRET not in script
    assert "two machines" in script


def test_never_in_json(leases: Path) -> None:
    answer = Client(REMOTE_ADDR=HERE).get(f"/boot-vars?mac={M1}&format=json")
    assert SECRET not in answer.content.decode()
    assert {"username", "password"}.isdisjoint(json.loads(answer.content))


def test_a_head_has_no_body_and_no_trace(leases: Path, layout: Layout) -> None:
    answer = Client(REMOTE_ADDR="192.0.2.99").head(f"/boot-vars?mac={M1}")
    assert answer.content == b""
    assert trail(layout, "boot.no_secret") == []


def test_what_one_was_told_is_never_given_to_the_next(leases: Path) -> None:
    time.sleep(0.06)  # the files have settled: plain answers would be kept now
    for _ in range(3):
        assert SECRET in ask()
        _why(ask(address="192.0.2.99"))
    assert not any(SECRET.encode() in body for body in views._kept["bodies"].values())


def test_why_is_written_down_once_an_hour(leases: Path, layout: Layout) -> None:
    for _ in range(3):
        _why(ask(address="192.0.2.99"))
    (line,) = trail(layout, "boot.no_secret")
    assert (line["worker_id"], line["mac"]) == ("pc1", M1)
    assert "not leased" in line["reason"]


def test_open_and_closed_targets_need_no_secret(
    leases: Path, layout: Layout, boot: Ask
) -> None:
    text = layout.workers_yml.read_text()
    layout.workers_yml.write_text(text.replace("access: chap", "access: acl"))
    agents = layout.agents_yml.read_text()
    layout.agents_yml.write_text(agents.replace("chap", "acl"))
    script = ask()
    assert "username" not in script
    assert "echo" not in script


@pytest.mark.parametrize(
    ("node", "disk"), [("off", "chap"), ("chap", "acl"), ("chap", "off")]
)
def test_it_is_told_where_a_target_may_ask_for_it_still_or_already(
    leases: Path, layout: Layout, node: str, disk: str
) -> None:
    text = layout.workers_yml.read_text()
    layout.workers_yml.write_text(text.replace("access: chap", f"access: {disk}"))
    agents = layout.agents_yml.read_text()
    layout.agents_yml.write_text(agents.replace("chap", node))
    assert SECRET in ask()


def test_a_cd_alone_needs_it_too(leases: Path, layout: Layout) -> None:
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n    access: chap\n"
        f"    cd: {{agent: n, iqn: '{IQN}:pc1.windows.iso', iso: a.iso}}\n"
    )
    assert SECRET in ask()


@pytest.mark.parametrize(
    "text",
    [
        "secrets: {}\n",
        "secrets:\n  pc1: {username: pc1}\n",
        "secrets:\n  pc1: {username: pc1, secret: short}\n",
        "secrets:\n  pc1: {username: pc1, secret: NULLtwelve12}\n",
        "secrets: [\n",
        "",
    ],
)
def test_without_a_usable_secret_it_is_told_where_to_look(
    leases: Path, layout: Layout, text: str
) -> None:
    layout.chap_secrets_yml.write_text(text)
    assert "chap-secrets.yml" in _why(ask())
    layout.chap_secrets_yml.unlink()
    assert "chap-secrets.yml" in _why(ask())


def test_a_hand_edit_counts_at_the_next_boot(leases: Path, layout: Layout) -> None:
    assert SECRET in ask()
    text = layout.chap_secrets_yml.read_text()
    layout.chap_secrets_yml.write_text(text.replace(SECRET, "another0another0"))
    assert "set password another0another0" in ask()


def test_the_lease_file_is_not_read_for_others(
    leases: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bootvars import credentials

    def never(path: Path) -> Any:
        raise AssertionError("the lease file was read")

    monkeypatch.setattr(credentials._leases, "get", never)
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    assert "reboot" in ask()
