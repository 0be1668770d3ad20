"""The shipped iPXE scripts, read as text: what each must hold whatever a site changes. tests/lab runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workers.choices import MENU_DEFAULTS

TFTP = Path(__file__).resolve().parents[2] / "tftp"
SCRIPTS = ("boot.ipxe", "boot.ipxe.cfg", "menu.ipxe")
#: What Debian 12's build of iPXE has and these scripts need.
COMMANDS = {
    *(
        "chain",
        "choose",
        "clear",
        "config",
        "echo",
        "exit",
        "goto",
        "ifstat",
        "inc",
        "iseq",
    ),
    *("isset", "item", "menu", "prompt", "reboot", "route", "sanboot", "sanhook"),
    *("sanunhook", "set", "shell", "sleep"),
}
#: An address in a script ties it to one site. 0.0.0.0 is none.
ADDRESS = re.compile(r"(?<![\d.])(?!0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")


def _text(name: str) -> str:
    return (TFTP / name).read_text("ascii")


def _statements(name: str) -> list[str]:
    """Lines that do something, in order; labels are among them."""
    lines = (line.strip() for line in _text(name).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _commands(line: str) -> list[str]:
    """The commands of one line: iPXE knows &&, || and ; as words of their own."""
    parts = re.split(r"\s(?:&&|\|\||;)(?:\s|$)", line)
    return [part.strip() for part in parts if part.strip()]


def _labels(name: str) -> list[str]:
    return [line[1:] for line in _statements(name) if line.startswith(":")]


def _menus(name: str) -> list[list[str]]:
    """The item ids of each menu of a script."""
    menus: list[list[str]] = []
    for command in (each for line in _statements(name) for each in _commands(line)):
        words = command.split()
        if words[0] == "menu":
            menus.append([])
        elif words[0] == "item" and words[1] != "--gap":
            menus[-1].append(words[1])
    return menus


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_starts_with_the_magic_that_bios_firmware_insists_on(name: str) -> None:
    assert _text(name).startswith("#!ipxe\n")
    assert _text(name).endswith("\n")


@pytest.mark.case(17)
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_never_names_the_first_card(name: str) -> None:
    assert "net0/" not in _text(name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_holds_no_address(name: str) -> None:
    assert ADDRESS.findall(_text(name)) == []
    for url in re.findall(r"\bhttp://\S*", _text(name)):
        assert url.startswith("http://${next-server}:4839/"), url


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_uses_only_commands_of_the_shipped_loaders(name: str) -> None:
    for line in _statements(name):
        for command in [] if line.startswith(":") else _commands(line):
            assert command.split()[0] in COMMANDS, line


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_server_can_hold_a_machine_for_ever(name: str) -> None:
    chains = [line for line in _statements(name) if "chain " in line]
    assert chains
    for line in chains:
        assert re.search(r"--timeout [1-9]\d{3,4} ", line), line


@pytest.mark.parametrize("name", SCRIPTS)
def test_whatever_can_fail_leads_somewhere(name: str) -> None:
    """A failing command without `||` ends the script, and the machine sits at a prompt."""
    can_fail = re.compile(
        r"(chain|sanboot|sanhook|sanunhook|choose|isset|iseq|goto \$)"
    )
    for line in _statements(name):
        if can_fail.match(line):
            assert re.search(r" \|\|( \S|$)", line), line


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_goto_has_its_label(name: str) -> None:
    labels = _labels(name)
    assert len(set(labels)) == len(labels)
    ids = {item for menu in _menus(name) for item in menu}
    named = set(re.findall(r"\bgoto ([^\s$]+)", _text(name)))
    assert named | ids <= set(labels)
    assert set(labels) <= named | ids


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_ends_on_purpose(name: str) -> None:
    assert _statements(name)[-1] in ("reboot", "exit 0")


def test_items_of_the_menu_are_what_menu_default_may_name() -> None:
    assert _menus("menu.ipxe")[0] == list(MENU_DEFAULTS)


@pytest.mark.case(78)
def test_the_install_cd_is_offered_to_machines_that_have_one() -> None:
    (line,) = (line for line in _statements("menu.ipxe") if " install-windows " in line)
    assert line.startswith("isset ${cd-iqn} && item install-windows ")


def test_every_other_menu_has_a_way_back() -> None:
    for items in _menus("menu.ipxe")[1:]:
        assert items[-1].endswith("-back")


def test_initiator_names_itself_before_each_san_command() -> None:
    lines = _statements("menu.ipxe")
    san = [
        number
        for number, line in enumerate(lines)
        if line.startswith(("sanboot", "sanhook"))
    ]
    assert len(san) >= 4
    for number in san:
        assert lines[number - 1] == "set initiator-iqn ${base-iqn}:${hostname}"


@pytest.mark.case(40)
def test_no_disk_is_tried_without_a_name_and_a_base() -> None:
    """Else every machine without a name would ask for the same target."""
    tests = ["isset ${hostname} || goto no_name", "isset ${base-iqn} || goto no_disk"]
    tested: list[str] = []
    for line in _statements("menu.ipxe"):
        if line.startswith(":") and line != ":diag_next":
            tested = []
        if line in tests:
            tested.append(line)
        if line.startswith("set san-disk "):
            assert tested == tests, line


@pytest.mark.case(45)
def test_server_and_lun_of_a_system_come_before_those_of_the_default_disk() -> None:
    lines = _statements("menu.ipxe")
    paths = [i for i, line in enumerate(lines) if line.startswith("set san-disk ")]
    assert len(paths) == 4
    for number in paths:
        before = "\n".join(lines[max(0, number - 6) : number])
        for name in ("server", "sep"):
            assert re.search(
                rf"set san-{name} \${{iscsi-{name}}}\n"
                rf"isset \${{iscsi-{name}-(\S+)}} && "
                rf"set san-{name} \${{iscsi-{name}-\1}} \|\|",
                before,
            ), before


def test_variables_are_fetched_last_so_that_they_beat_the_sites_own() -> None:
    lines = _statements("boot.ipxe.cfg")
    fetch = next(i for i, line in enumerate(lines) if line.startswith("chain "))
    assert "/boot-vars?mac=${netX/mac}&hostname=${hostname} " in lines[fetch]
    after = [line for line in lines[fetch:] if line.startswith("set ")]
    assert after == []
    assert "isset ${iscsi-sep} || set iscsi-sep :::1:" in lines[fetch:]


def test_windows_gateway_is_a_setting_and_holds_for_both_ways_into_windows() -> None:
    assert "set windows-gateway 0.0.0.0" in _statements("boot.ipxe.cfg")
    use = "isset ${windows-gateway} && set netX/gateway ${windows-gateway} ||"
    menu = _statements("menu.ipxe")
    assert menu.count(use) == 1
    assert menu.count(f"iseq ${{os}} windows && {use}") == 1
