"""GET /boot-vars: whom a request is taken for, and what it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from bootvars import runtime
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, M2, M3, ledger, live_hosts, snapshot, trail

Ask = Callable[[str], str]
NOTHING = "#!ipxe\n# no per-worker boot vars found\n"
REFUSED = ("set menu-default reboot", "set menu-timeout 5000")
IQN = "iqn.2026-07.com.controller"
AGENTS = """\
agents:
  node-1:
    base_url: http://192.168.80.3:4840
    token: a
    tags: [stgt]
  node-2:
    base_url: http://192.168.80.4:4840
    iscsi_server: 10.0.0.4
    token: a
    tags: [lio]
"""


def record(name: str, hostname: str | None = None, agent: str = "node-1") -> str:
    host = hostname or name
    return (
        f"  {name}:\n    hostname: {host}\n    default_os: ubuntu\n    disks:\n"
        f'      - {{agent: {agent}, iqn: "{IQN}:{host}.ubuntu", os: ubuntu}}\n'
    )


@pytest.fixture
def site(layout: Layout) -> Layout:
    """Two workers with disks: worker-01 is bound, worker-02 is not."""
    layout.agents_yml.write_text(AGENTS)
    layout.workers_yml.write_text(
        "workers:\n" + record("worker-01") + record("worker-02")
    )
    layout.dhcp_hosts.write_text(f"{M1},worker-01\n")
    return layout


@pytest.fixture
def closed(layout: Layout, administrator: Actor) -> None:
    """Unknown machines are not registered."""
    runtime.auto_register_set(actor=administrator, enabled=False)


def refused(script: str) -> bool:
    lines = script.splitlines()
    return lines[1].startswith("echo ") and tuple(lines[2:]) == REFUSED


def test_the_script_of_the_contract(site: Layout, boot: Ask) -> None:
    assert boot(f"mac={M1}") == (
        "#!ipxe\n"
        "# boot vars for worker-01\n"
        f"set base-iqn {IQN}\n"
        "set iscsi-server 192.168.80.3\n"
        "set iscsi-sep :::1:\n"
        "set hostname worker-01\n"
        "set menu-default ubuntu\n"
        "set menu-timeout 5000\n"
    )


@pytest.mark.case(16)
@pytest.mark.parametrize(
    "spelling",
    [
        "52:54:00:AB:CD:EF",
        "52-54-00-ab-cd-ef",
        "525400ABCDEF",
        "52%3A54%3A00%3Aab%3Acd%3Aef",
        "5254.00ab.cdef",
        "%2052:54:00:ab:cd:ef%20",
        "+52:54:00:ab:cd:ef+",
    ],
)
def test_every_spelling_of_a_mac_is_one_machine(
    layout: Layout, boot: Ask, spelling: str
) -> None:
    first = boot(f"mac={spelling}")
    assert boot("mac=52:54:00:ab:cd:ef") == first
    assert list(ledger(layout)) == ["worker-01"]
    assert live_hosts(layout) == ["52:54:00:ab:cd:ef,worker-01"]


@pytest.mark.case(16)
def test_the_hosts_file_may_spell_it_otherwise(site: Layout, boot: Ask) -> None:
    site.dhcp_hosts.write_text("52:54:0:AB:CD:EF , worker-01\n")
    assert "set hostname worker-01" in boot("mac=525400abcdef")


def test_a_hostname_alone_may_ask(site: Layout, boot: Ask) -> None:
    script = boot("hostname=WORKER-02")
    assert "set menu-default ubuntu" in script
    assert "set hostname" not in script
    assert boot("hostname=nobody") == NOTHING
    assert boot("") == NOTHING
    assert boot("hostname=") == NOTHING


@pytest.mark.case(40)
@pytest.mark.usefixtures("closed")
def test_an_unknown_machine_gets_no_path(site: Layout, boot: Ask) -> None:
    before = snapshot(site)
    assert boot(f"mac={M3}&hostname=") == NOTHING
    assert boot(f"mac={M3}") == NOTHING
    assert snapshot(site) == before


@pytest.mark.case(41)
def test_a_claimed_hostname_is_no_proof(site: Layout, boot: Ask) -> None:
    before = snapshot(site)
    script = boot(f"mac={M3}&hostname=worker-01")
    assert refused(script)
    assert "bound to another machine" in script
    assert snapshot(site) == before
    boot(f"mac={M3}&hostname=worker-01")
    (line,) = trail(site, "boot.refused")
    assert (line["mac"], line["client"]) == (M3, "127.0.0.1")


@pytest.mark.case(41)
def test_the_bound_mac_decides_and_a_stale_name_is_written_down(
    site: Layout, boot: Ask
) -> None:
    with site.dhcp_hosts.open("a") as file:
        file.write(f"{M2},worker-02\n")
    script = boot(f"mac={M2}&hostname=worker-01")
    assert "set hostname worker-02" in script
    boot(f"mac={M2}&hostname=worker-01")
    (line,) = trail(site, "boot.stale_name")
    assert line["worker_id"] == "worker-02"
    assert "sent worker-01, bound to worker-02" in line["reason"]
    # Whoever invents names does not fill the trail.
    boot(f"mac={M2}&hostname=worker-77")
    assert len(trail(site, "boot.stale_name")) == 1


def test_the_first_mac_of_an_unbound_worker_is_bound_to_it(
    site: Layout, boot: Ask
) -> None:
    script = boot(f"mac={M2}&hostname=worker-02")
    assert "set hostname worker-02" in script
    assert live_hosts(site) == [f"{M1},worker-01", f"{M2},worker-02"]
    (line,) = trail(site, "worker.mac.update")
    assert (line["new_mac"], line["changed"]) == (M2, True)
    assert refused(boot(f"mac={M3}&hostname=worker-02"))


@pytest.mark.usefixtures("closed")
def test_without_registration_an_unbound_worker_is_told_but_not_bound(
    site: Layout, boot: Ask
) -> None:
    before = snapshot(site)
    script = boot(f"mac={M2}&hostname=worker-02")
    assert "set menu-default ubuntu" in script and "set hostname" not in script
    assert snapshot(site) == before


@pytest.mark.case(1)
@pytest.mark.parametrize("again", ["worker-01", "WORKER-01", "worker-01.lab"])
def test_a_name_on_two_lines_gives_neither_a_disk(
    site: Layout, boot: Ask, again: str
) -> None:
    site.dhcp_hosts.write_text(f"{M1},worker-01\n{M2},{again}\n")
    before = snapshot(site)
    for query in (f"mac={M1}", f"mac={M2}", "hostname=worker-01"):
        script = boot(query)
        assert refused(script)
        assert "two machines are bound to the hostname worker-01" in script
        assert "base-iqn" not in script
    assert snapshot(site) == before
    page = APIClient().get("/healthz?verbose=1")
    assert page.status_code == 401


@pytest.mark.case(8)
def test_two_cards_on_one_line_are_one_worker(site: Layout, boot: Ask) -> None:
    site.dhcp_hosts.write_text(f"{M1},{M2},worker-01\n")
    assert boot(f"mac={M1}") == boot(f"mac={M2}")
    assert "set hostname worker-01" in boot(f"mac={M2}")


@pytest.mark.case(10)
def test_of_two_lines_with_one_mac_the_later_counts(site: Layout, boot: Ask) -> None:
    site.dhcp_hosts.write_text(f"{M1},worker-01\n{M1.upper()},worker-02\n")
    assert "set hostname worker-02" in boot(f"mac={M1}")


@pytest.mark.case(4)
@pytest.mark.case(2)
@pytest.mark.parametrize("rest", ["ignore", "12h", "101"])
def test_a_line_without_a_name_is_said_to_be_mended(
    layout: Layout, boot: Ask, rest: str
) -> None:
    layout.dhcp_hosts.write_text(f"{M1},{rest}\n")
    before = snapshot(layout)
    script = boot(f"mac={M1}")
    assert refused(script)
    assert "dhcp-hosts.conf" in script
    assert snapshot(layout) == before


@pytest.mark.case(12)
def test_a_machine_that_lost_its_name_is_known_by_its_mac(
    site: Layout, boot: Ask
) -> None:
    site.dhcp_hosts.write_text(f"{M1},10.9.9.9,worker-01\n")
    assert "set hostname worker-01" in boot(f"mac={M1}&hostname=")


@pytest.mark.case(15)
def test_a_lease_is_no_binding(site: Layout, boot: Ask, api: APIClient) -> None:
    leases = site.dnsmasq / "dnsmasq.leases"
    leases.write_text(f"1790000000 {M2} 10.0.0.5 worker-02 *\nduid 00:01\n17900000")
    assert api.get("/workers/worker-02").json()["mac"] is None


@pytest.mark.case(20)
@pytest.mark.case(21)
@pytest.mark.parametrize(
    ("mac", "words"),
    [
        ("00:00:00:00:00:00", "no usable address"),
        ("ff:ff:ff:ff:ff:ff", "no usable address"),
        ("01:00:5e:00:00:01", "no usable address"),
        ("52:54:00:00:00:01:02:03", "not a 6-byte hardware address"),
        (":".join(["52"] * 20), "not a 6-byte hardware address"),
        ("", "not a 6-byte hardware address"),
        ("$%7Bmac%7D", "not a 6-byte hardware address"),
        ("undefined", "not a 6-byte hardware address"),
        ("a" * 8000, "not a 6-byte hardware address"),
        ("%00", "not a 6-byte hardware address"),
        ("%ff", "not a 6-byte hardware address"),
        ("%0aset+x+y", "not a 6-byte hardware address"),
        (f"{M1}&mac={M1}", "more than one mac"),
        (f"{M1}&mac={M2}&hostname=worker-01", "more than one mac"),
    ],
)
@pytest.mark.case(24)
def test_a_mac_that_is_none_is_not_absent(
    site: Layout, boot: Ask, mac: str, words: str
) -> None:
    before = snapshot(site)
    for query in (f"mac={mac}", f"mac={mac}&hostname=worker-01"):
        script = boot(query)
        assert refused(script)
        assert words in script
        assert len(script) < 300
    assert snapshot(site) == before
    assert len(trail(site, "boot.refused")) == 1
    assert len(site.operations.read_text().splitlines()[-1]) < 500


@pytest.mark.case(24)
@pytest.mark.parametrize(
    "hostname", ["${hostname}", "a" * 7000, "%00", "%ff", "..", "%0d%0ashell", "12h"]
)
def test_a_hostname_that_is_none_says_nothing(
    site: Layout, boot: Ask, hostname: str
) -> None:
    assert boot(f"hostname={hostname}") == NOTHING
    assert "set hostname worker-01" in boot(f"mac={M1}&hostname={hostname}")
    (line,) = trail(site, "boot.stale_name")
    assert line["reason"].startswith("sent what is no hostname, bound to worker-01")


def test_the_right_name_in_any_case_is_not_stale(site: Layout, boot: Ask) -> None:
    for hostname in ("worker-01", "WORKER-01", "", "+worker-01+"):
        boot(f"mac={M1}&hostname={hostname}")
    assert not trail(site, "boot.stale_name")


def test_repeated_hostnames_say_nothing(site: Layout, boot: Ask) -> None:
    assert boot("hostname=worker-01&hostname=worker-02") == NOTHING


def test_json_has_the_same_values(site: Layout, layout: Layout) -> None:
    def ask(query: str) -> Any:
        answer = Client().get(f"/boot-vars?{query}&format=json")
        assert answer["Content-Type"] == "application/json"
        return answer.json()

    assert ask(f"mac={M1}") == {
        "base_iqn": IQN,
        "iscsi_server": "192.168.80.3",
        "iscsi_sep": ":::1:",
        "menu_default": "ubuntu",
        "menu_timeout": 5000,
    }
    assert ask("hostname=nobody") == {}
    assert ask("mac=zz") == {
        "refused": "the mac of the request is not a 6-byte hardware address"
    }


@pytest.mark.parametrize("format", ["ipxe", "xml", "", "JSON"])
def test_only_the_word_json_makes_json(site: Layout, boot: Ask, format: str) -> None:
    assert "set hostname worker-01" in boot(f"mac={M1}&format={format}")


def test_accept_is_ignored(site: Layout) -> None:
    for accept in ("text/html", "application/json", "image/png"):
        answer = Client().get(f"/boot-vars?mac={M1}", HTTP_ACCEPT=accept)
        assert answer["Content-Type"] == "text/plain"
        assert answer.status_code == 200


@pytest.mark.case(101)
@pytest.mark.parametrize(
    "path", ["/boot-vars", "/boot-vars/", "/api/cp/boot-vars", "/api/cp/boot-vars/"]
)
@pytest.mark.parametrize("host", ["192.0.2.7:8000", "ctl", "", "bad host!", "a_b.c"])
def test_any_host_and_any_spelling_of_the_path(
    site: Layout, settings: Any, path: str, host: str
) -> None:
    settings.ALLOWED_HOSTS = ["only.example"]
    settings.SECURE_SSL_REDIRECT = True
    answer = Client(headers={"host": host}).get(path, {"mac": M1})
    assert answer.status_code == 200
    assert not answer.cookies
    assert b"set hostname worker-01" in answer.content


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch", "options"])
def test_other_methods_change_nothing(site: Layout, method: str) -> None:
    before = snapshot(site)
    answer = getattr(Client(), method)(f"/boot-vars?mac={M3}")
    assert answer.status_code == 405
    assert answer["Content-Type"].startswith("text/plain")
    assert snapshot(site) == before


def test_parameters_beyond_all_measure_get_a_script(
    site: Layout, settings: Any, boot: Ask
) -> None:
    assert boot("a&" * 4000) == NOTHING
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 100
    assert refused(boot("a&" * 4000))
    answer = Client().generic(
        "GET", f"/boot-vars?mac={M1}", content_type="text/plain; charset=hex"
    )
    assert answer.status_code == 200
    assert answer.content.startswith(b"#!ipxe\n")


def test_a_hostname_of_two_records_gets_no_disk(site: Layout, boot: Ask) -> None:
    twin = record("worker-01") + record("copied", "worker-01") + record("worker-02")
    site.workers_yml.write_text("workers:\n" + twin)
    told = boot(f"mac={M1}")
    assert refused(told)
    assert "copied" in told
    assert refused(boot("hostname=worker-01"))
    site.workers_yml.write_text("workers:\n" + record("worker-01"))
    assert f"set base-iqn {IQN}\n" in boot(f"mac={M1}")
