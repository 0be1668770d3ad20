"""GET /boot-vars: which values a worker's record makes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipxeready.storage.paths import Layout
from tests.bootvars.test_who_is_asking import AGENTS, IQN, refused
from tests.workers.helpers import M1

Ask = Callable[[str], str]


def disk(os: str, agent: str = "node-1", host: str = "pc1", **more: str) -> str:
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return f'{{agent: {agent}, iqn: "{IQN}:{host}.{os}", os: {os}{extra}}}'


@pytest.fixture
def script(layout: Layout, boot: Ask) -> Callable[..., str]:
    """The script of pc1 with this record."""
    layout.agents_yml.write_text(AGENTS)
    layout.dhcp_hosts.write_text(f"{M1},pc1\n")

    def ask(*disks: str, **fields: str) -> str:
        lines = ["workers:", "  pc1:", "    hostname: pc1"]
        lines += [f"    {key}: {value}" for key, value in fields.items()]
        if disks:
            lines += ["    disks:", *(f"      - {each}" for each in disks)]
        layout.workers_yml.write_text("\n".join(lines) + "\n")
        return boot(f"mac={M1}")

    return ask


def values(script: str) -> dict[str, str]:
    sets = [
        line.split(" ", 2) for line in script.splitlines() if line.startswith("set ")
    ]
    return {name: value for _, name, value in sets}


def test_without_a_disk_there_are_three_lines(script: Callable[..., str]) -> None:
    assert script() == (
        "#!ipxe\n# boot vars for pc1\nset hostname pc1\nset menu-default reboot\n"
        "set menu-timeout 1000\n"
    )


def test_the_first_disk_makes_the_address_and_nothing_boots_by_itself(
    script: Callable[..., str],
) -> None:
    found = values(script(disk("windows"), disk("ubuntu", "node-2")))
    assert found == {
        "base-iqn": IQN,
        "iscsi-server": "192.168.80.3",
        "iscsi-sep": ":::1:",
        "iscsi-server-ubuntu": "10.0.0.4",
        "iscsi-sep-ubuntu": "::::",
        "hostname": "pc1",
        "menu-default": "reboot",
        "menu-timeout": "1000",
    }


@pytest.mark.case(45)
def test_the_default_disk_decides_the_address(script: Callable[..., str]) -> None:
    found = values(
        script(disk("windows"), disk("ubuntu", "node-2"), default_os="Ubuntu")
    )
    assert (found["iscsi-server"], found["iscsi-sep"]) == ("10.0.0.4", "::::")
    assert found["iscsi-server-windows"] == "192.168.80.3"
    assert found["iscsi-sep-windows"] == ":::1:"
    assert (found["menu-default"], found["menu-timeout"]) == ("ubuntu", "5000")


@pytest.mark.parametrize("status", ["creating", "deleting"])
def test_nothing_is_sent_of_a_disk_that_is_not_there(
    script: Callable[..., str], status: str
) -> None:
    under_way = disk("ubuntu", status=status)
    for fields in (
        {"default_os": "ubuntu"},
        {"boot": "{menu_default: ubuntu}"},
        {},
    ):
        found = values(script(under_way, **fields))
        assert set(found) == {"hostname", "menu-default", "menu-timeout"}
        assert found["menu-default"] == "reboot"
    found = values(script(under_way, disk("windows", "node-2"), default_os="ubuntu"))
    assert found["iscsi-server"] == "10.0.0.4"
    assert "iscsi-server-ubuntu" not in found
    assert found["menu-default"] == "reboot"


@pytest.mark.parametrize(
    ("fields", "default", "timeout"),
    [
        ({"default_os": "ubuntu"}, "ubuntu", "5000"),
        (
            {"default_os": "ubuntu", "boot": "{menu_default: shell}"},
            "ubuntu",
            "5000",
        ),
        ({"boot": "{menu_default: shell}"}, "shell", "5000"),
        ({"boot": "{menu_default: menu-install}"}, "menu-install", "5000"),
        ({"boot": "{menu_default: ubuntu}"}, "ubuntu", "5000"),
        ({"boot": "{menu_default: windows}"}, "reboot", "1000"),
        ({"boot": "{menu_timeout: 0}"}, "reboot", "0"),
        ({"default_os": "ubuntu", "boot": "{menu_timeout: 77}"}, "ubuntu", "77"),
        ({"default_os": "centos"}, "reboot", "1000"),
        ({"default_os": "centos", "boot": "{menu_default: shell}"}, "shell", "5000"),
    ],
)
def test_what_the_menu_chooses(
    script: Callable[..., str], fields: dict[str, str], default: str, timeout: str
) -> None:
    found = values(script(disk("ubuntu"), **fields))
    assert (found["menu-default"], found["menu-timeout"]) == (default, timeout)


def test_the_sites_times_count(
    script: Callable[..., str], configured: Callable[..., None]
) -> None:
    configured(boot_menu_timeout=1234, auto_boot_timeout=55)
    assert values(script(disk("ubuntu"), default_os="ubuntu"))["menu-timeout"] == "1234"
    assert values(script())["menu-timeout"] == "55"


def test_a_cd_has_its_own_address(script: Callable[..., str]) -> None:
    cd = f'{{agent: node-2, iqn: "{IQN}:pc1.windows.iso", iso: w.iso}}'
    found = values(script(disk("windows"), cd=cd))
    assert found["cd-server"] == "10.0.0.4"
    assert found["cd-sep"] == "::::"
    assert found["cd-iqn"] == f"{IQN}:pc1.windows.iso"


@pytest.mark.case(46)
def test_a_node_that_nobody_knows_is_named(script: Callable[..., str]) -> None:
    text = script(disk("ubuntu", "gone"), default_os="ubuntu")
    assert refused(text)
    assert "the node gone" in text and "agents.yml" in text
    # Another system's node does not keep the default one from booting.
    found = values(script(disk("ubuntu"), disk("windows", "gone"), default_os="ubuntu"))
    assert found["menu-default"] == "ubuntu"
    assert "iscsi-server-windows" not in found


@pytest.mark.case(46)
def test_a_target_of_another_name_is_not_asked_for(script: Callable[..., str]) -> None:
    text = script(disk("ubuntu", host="old"), default_os="ubuntu")
    assert refused(text)
    assert "pc1.ubuntu" in text


def test_a_base_of_its_own_is_sent_as_it_is(script: Callable[..., str]) -> None:
    own = '{agent: node-1, iqn: "iqn.2020-01.lab.x:a:pc1.ubuntu", os: ubuntu}'
    assert values(script(own))["base-iqn"] == "iqn.2020-01.lab.x:a"


def test_a_node_that_is_down_is_not_asked(
    script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents import http

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a boot asks no node")

    monkeypatch.setattr(http, "exchange", never)
    assert values(script(disk("ubuntu")))["iscsi-server"] == "192.168.80.3"
