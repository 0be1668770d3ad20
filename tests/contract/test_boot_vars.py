"""Section 5's table: every variable of the script and every key of the JSON, from files as people write them.

Who is asking, what is refused and what never reaches the script: tests/bootvars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents import seen
from agents.selectors import agent_get
from ipxeready.storage.paths import Layout
from tests.bootvars.conftest import well_formed

MAC = "52:54:00:00:00:01"
BASE = "iqn.2026-07.com.controller"
AGENTS = """\
agents:
  a: {base_url: "http://192.168.80.3:4840", token: t, tags: [storage, stgt]}
  b: {base_url: "http://192.168.80.4:4840", token: t, iscsi_server: 10.0.0.4, tags: [storage, lio]}
  c: {base_url: "http://192.168.80.5:4840", token: t}
"""
#: The script of the contract, byte for byte.
GOLDEN = """\
#!ipxe
# boot vars for worker-01
set base-iqn iqn.2026-07.com.controller
set iscsi-server 192.168.80.3
set iscsi-sep :::1:
set hostname worker-01
set menu-default ubuntu
set menu-timeout 5000
"""
Ask = Callable[..., Any]


def disk(os: str, agent: str, host: str = "worker-01") -> str:
    return f'{{agent: {agent}, iqn: "{BASE}:{host}.{os}", os: {os}}}'


@pytest.fixture
def ask(layout: Layout) -> Ask:
    """What worker-01 is told with this record: the script, or with `json` the JSON."""
    layout.agents_yml.write_text(AGENTS)
    layout.dhcp_hosts.write_text(f"{MAC},worker-01\n")
    client = Client()

    def asked(*disks: str, json: bool = False, **fields: str) -> Any:
        more = "".join(f", {name}: {value}" for name, value in fields.items())
        layout.workers_yml.write_text(
            "workers:\n  worker-01: {hostname: worker-01, disks: ["
            + ", ".join(disks)
            + f"]{more}}}\n"
        )
        if json:
            return client.get(f"/boot-vars?mac={MAC}&format=json").json()
        return well_formed(client.get(f"/boot-vars?mac={MAC}"))

    return asked


def values(script: str) -> dict[str, str]:
    lines = [line.split(" ", 2) for line in script.splitlines()]
    return {words[1]: words[2] for words in lines if words[0] == "set"}


def test_the_script_of_the_contract(ask: Ask) -> None:
    assert ask(disk("ubuntu", "a"), default_os="ubuntu") == GOLDEN


def test_the_same_as_json(ask: Ask) -> None:
    assert ask(disk("ubuntu", "a"), default_os="ubuntu", json=True) == {
        "base_iqn": BASE,
        "iscsi_server": "192.168.80.3",
        "iscsi_sep": ":::1:",
        "menu_default": "ubuntu",
        "menu_timeout": 5000,
    }


def test_without_a_disk_the_last_three_lines(ask: Ask) -> None:
    script = ask()
    assert list(values(script)) == ["hostname", "menu-default", "menu-timeout"]
    assert script.startswith("#!ipxe\n# boot vars for worker-01\nset hostname")
    assert values(script)["menu-timeout"] == "1000"


@pytest.mark.case(45)
def test_another_node_is_another_server_and_another_lun(
    ask: Ask, layout: Layout
) -> None:
    """LUN 1 on stgt, LUN 0 on LIO; a worker that moves takes both along."""
    seps = {}
    for agent in ("a", "b", "c"):
        found = values(ask(disk("ubuntu", agent), default_os="ubuntu"))
        seps[agent] = (found["iscsi-server"], found["iscsi-sep"])
        assert found["base-iqn"] == BASE
    assert seps == {
        "a": ("192.168.80.3", ":::1:"),
        "b": ("10.0.0.4", "::::"),
        # Nothing is known of its target system: stgt.
        "c": ("192.168.80.5", ":::1:"),
    }
    # What the node said when it was asked last counts where tags say nothing, and only there.
    for agent in ("a", "c"):
        seen.note_backend(agent_get(agent), "lio")
        found = values(ask(disk("ubuntu", agent), default_os="ubuntu"))
        assert found["iscsi-sep"] == {"a": ":::1:", "c": "::::"}[agent]
    # The whole path, as the menu makes it from these.
    found = values(ask(disk("ubuntu", "b"), default_os="ubuntu"))
    path = f"iscsi:{found['iscsi-server']}{found['iscsi-sep']}{found['base-iqn']}:worker-01.ubuntu"
    assert path == f"iscsi:10.0.0.4::::{BASE}:worker-01.ubuntu"
    assert path.removeprefix("iscsi:").split(":")[3] == ""


@pytest.mark.case(45)
def test_a_second_disk_elsewhere_has_its_own_server_and_lun(ask: Ask) -> None:
    disks = disk("ubuntu", "a"), disk("windows", "b"), disk("debian", "a")
    found = values(ask(*disks, default_os="ubuntu"))
    assert found["iscsi-server-windows"] == "10.0.0.4"
    assert found["iscsi-sep-windows"] == "::::"
    assert not [name for name in found if name.endswith(("-ubuntu", "-debian"))]
    moved = values(ask(*disks, default_os="windows"))
    assert (moved["iscsi-server"], moved["iscsi-sep"]) == ("10.0.0.4", "::::")
    assert moved["iscsi-sep-ubuntu"] == moved["iscsi-sep-debian"] == ":::1:"


def test_an_install_cd(ask: Ask) -> None:
    cd = f'{{agent: b, iqn: "{BASE}:worker-01.windows.iso", iso: w.iso}}'
    found = values(ask(disk("windows", "a"), cd=cd))
    assert found["cd-server"] == "10.0.0.4"
    assert found["cd-sep"] == "::::"
    assert found["cd-iqn"] == f"{BASE}:worker-01.windows.iso"
    assert not [name for name in values(ask(disk("windows", "a"))) if "cd-" in name]


@pytest.mark.parametrize(
    ("fields", "default", "timeout"),
    [
        ({"default_os": "ubuntu"}, "ubuntu", "5000"),
        ({"default_os": "ubuntu", "boot": "{menu_default: shell}"}, "ubuntu", "5000"),
        ({"boot": "{menu_default: shell, menu_timeout: 9}"}, "shell", "9"),
        ({"boot": "{menu_default: shell, menu_timeout: 0}"}, "shell", "0"),
        ({}, "reboot", "1000"),
    ],
)
def test_what_the_menu_chooses_and_when(
    ask: Ask, fields: dict[str, str], default: str, timeout: str
) -> None:
    found = values(ask(disk("ubuntu", "a"), **fields))
    assert (found["menu-default"], found["menu-timeout"]) == (default, timeout)


def test_nothing_to_say(ask: Ask, layout: Layout) -> None:
    client = Client()
    layout.settings_json.write_text('{"auto_register": false}')
    unknown = "/boot-vars?mac=52:54:00:00:00:99"
    script = well_formed(client.get(unknown))
    assert script == "#!ipxe\n# no per-worker boot vars found\n"
    assert client.get(f"{unknown}&format=json").json() == {}
    # `Accept` is ignored, whoever asks.
    for accept in ("text/html", "application/json", "image/png"):
        answer = client.get(unknown, HTTP_ACCEPT=accept)
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain")


def test_a_refusal(ask: Ask) -> None:
    client = Client()
    query = "/boot-vars?mac=00:00:00:00:00:00"
    script = well_formed(client.get(query))
    assert script.splitlines()[1].startswith("echo ")
    assert values(script) == {"menu-default": "reboot", "menu-timeout": "5000"}
    assert list(client.get(f"{query}&format=json").json()) == ["refused"]
