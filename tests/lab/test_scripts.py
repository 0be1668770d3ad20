"""The shipped scripts on real firmware: loaders, cards, a controller that is not there, and where each item leads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipxeready.storage.paths import Layout
from tests.lab import lab_stub
from tests.lab.lab_machine import Machine
from tests.lab.lab_master import write_cd, write_master
from tests.lab.lab_network import STORAGE, Network
from tests.lab.lab_process import Process, python, run
from tests.lab.lab_site import Dnsmasq, Tgtd, prepare_root

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:01:01"
BASE = "iqn.2026-07.com.controller"
UP, DOWN, ENTER = "\x1b[A", "\x1b[B", "\r"
SOON = 60.0
#: The last line of the menu: then it is there to be used.
MENU = "Next boot device"


class Chain:
    """dnsmasq with the shipped files, and whatever stands in for the product."""

    def __init__(self, network: Network, folder: Path, artifacts: Path) -> None:
        self.layout: Layout = prepare_root(folder / "root")
        self.answers = folder / "answers"
        self.answers.mkdir()
        self._network = network
        self._folder = folder
        self._artifacts = artifacts
        self._parts: list[Process] = []
        self._add(Dnsmasq(network, self.layout, artifacts, folder=folder))

    def _add(self, part: Process) -> None:
        self._parts.append(part)

    def answer(self, *variables: str) -> None:
        """From now on `/boot-vars` says this."""
        lines = ["#!ipxe", *(f"set {variable}" for variable in variables), ""]
        (self.answers / "boot-vars").write_text("\n".join(lines))

    def controller(self, *, silent: bool = False) -> Process:
        """Something listens on the controller's port."""
        what = "silent" if silent else str(self.answers)
        stub = Process(
            "stub",
            [python(), lab_stub.__file__, what],
            artifacts=self._artifacts,
            namespace=self._network.controller,
        )
        self._add(stub)
        stub.wait_for("listening", 10)
        return stub

    def tgtd(self) -> Tgtd:
        """A storage node's target daemon."""
        tgtd = Tgtd(self._network, self._artifacts, folder=self._folder)
        self._add(tgtd)
        return tgtd

    def edit(self, script: str, old: str, new: str) -> None:
        """Change one line of a script as a site may, here to wait less."""
        path = self.layout.tftp / script
        text = path.read_text()
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new))

    def stop(self) -> None:
        """End all of it."""
        for part in reversed(self._parts):
            part.stop()


@pytest.fixture
def chain(network: Network, tmp_path: Path, artifacts: Path) -> Iterator[Chain]:
    """DHCP and TFTP as deployed, without the product."""
    chain = Chain(network, tmp_path, artifacts)
    yield chain
    chain.stop()


def _export(tgtd: Tgtd, tid: int, name: str, *lun: str) -> None:
    target = ("--tid", str(tid))
    tgtd.adm("--op", "new", "--mode", "target", *target, "-T", f"{BASE}:{name}")
    tgtd.adm("--op", "new", "--mode", "logicalunit", *target, "--lun", "1", *lun)
    tgtd.adm("--op", "bind", "--mode", "target", *target, "-I", "ALL")


@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "never answers"])
def test_machine_tries_three_times_then_shows_the_menu_and_starts_over(
    chain: Chain, power_on: Callable[..., Machine], silent: bool
) -> None:
    chain.edit("boot.ipxe.cfg", "set menu-timeout 30000", "set menu-timeout 1500")
    chain.edit("boot.ipxe.cfg", "--timeout 5000", "--timeout 1500")
    stub = chain.controller(silent=True) if silent else None
    console = power_on("machine", MAC).console
    console.wait_for("No boot variables", SOON)
    console.wait_for("No boot variables", SOON)
    console.wait_for(r"controller at 192\.0\.2\.1:4839 does not answer", SOON)
    console.wait_for(MENU, SOON)
    if stub:
        assert stub.text.count("asked") == 3
    console.wait_for("SeaBIOS", SOON)


def test_machine_without_a_menu_says_so_and_starts_over(
    chain: Chain, power_on: Callable[..., Machine]
) -> None:
    (chain.layout.tftp / "menu.ipxe").unlink()
    chain.edit("boot.ipxe", "sleep 30\n", "sleep 4\n")
    chain.answer("menu-default exit")
    chain.controller()
    console = power_on("machine", MAC).console
    console.wait_for(r"menu\.ipxe cannot be read from 192\.0\.2\.1", SOON)
    console.wait_for("SeaBIOS", SOON)


@pytest.mark.case(40)
def test_every_item_of_a_machine_without_a_name_leads_back(
    chain: Chain, power_on: Callable[..., Machine]
) -> None:
    chain.answer("menu-default windows", "menu-timeout 0")
    chain.controller()
    console = power_on("machine", MAC).console

    def back() -> None:
        console.wait_for("Press a key for the menu", SOON)
        console.type(" ")
        console.wait_for(MENU, SOON)

    console.wait_for(MENU, SOON)
    for steps in range(5):  # the systems
        console.type(*[DOWN] * steps, ENTER)
        console.wait_for("has no name yet", SOON)
        back()
    console.type(*[DOWN] * 5, ENTER)  # diagnostics: cards, what to boot, disks, memory
    for up, said in ((4, "controller 192"), (3, "menu-default windows")):
        console.wait_for(r"Back\s+Back", SOON)
        console.type(*[UP] * up, ENTER)
        console.wait_for(said, SOON)
        console.wait_for("Press a key to go back", SOON)
        console.type(" ")
    console.wait_for(r"Back\s+Back", SOON)
    console.type(UP, UP, ENTER)
    console.wait_for("has no name yet", SOON)
    back()
    console.type(*[DOWN] * 5, ENTER)
    console.wait_for(r"Back\s+Back", SOON)
    console.type(UP, ENTER)
    console.wait_for("tools/memtest did not start", SOON)
    back()
    console.type(*[DOWN] * 6, ENTER)  # install: back, then each
    console.wait_for(r"Back\s+Back", SOON)
    console.type(ENTER)
    console.wait_for(MENU, SOON)
    for up in range(1, 5):  # without a CD there is no Windows to install
        console.type(*[DOWN] * 6, ENTER)
        console.wait_for(r"Back\s+Back", SOON)
        console.type(*[UP] * up, ENTER)
        console.wait_for("has no name yet", SOON)
        back()
    console.type(*[DOWN] * 7, ENTER)  # iPXE's settings; Ctrl-X leaves them
    console.wait_for("exit configuration utility", SOON)
    console.type("\x18")
    console.wait_for(MENU, SOON)
    console.type(*[DOWN] * 8, ENTER)
    console.wait_for("iPXE>", SOON)
    console.type("exit", ENTER)
    console.wait_for(MENU, SOON)
    console.type(*[DOWN] * 10, ENTER)
    console.wait_for("No more network devices", SOON)


@pytest.mark.case(45)
def test_system_on_another_node_is_taken_from_there_and_a_fault_is_no_fast_loop(
    chain: Chain, power_on: Callable[..., Machine]
) -> None:
    chain.answer(
        "hostname pc1",
        f"base-iqn {BASE}",
        "iscsi-server 192.0.2.9",
        f"iscsi-server-debian {STORAGE}",
        "iscsi-sep-debian ::::",
        "menu-default debian",
        "menu-timeout 1000",
    )
    chain.controller()
    console = power_on("machine", MAC).console
    console.wait_for(rf"Starting debian from iscsi:{STORAGE}::::{BASE}:pc1\.", SOON)
    console.wait_for("did not start", SOON)
    console.wait_for("reboots in 15 seconds", SOON)
    silence = time.monotonic()
    console.wait_for("SeaBIOS", SOON)
    assert time.monotonic() - silence > 10


@pytest.mark.case(78)
def test_windows_is_installed_from_its_cd_with_the_disk_as_first_drive(
    chain: Chain, power_on: Callable[..., Machine], tmp_path: Path
) -> None:
    tgtd = chain.tgtd()
    write_master(tmp_path / "pc1.windows.img", "THE DISK")
    write_cd(tmp_path / "install.iso", "THE INSTALL CD")
    _export(tgtd, 1, "pc1.windows", "-b", str(tmp_path / "pc1.windows.img"))
    cd = ("-b", str(tmp_path / "install.iso"), "--device-type", "cd")
    _export(tgtd, 2, "pc1.windows.iso", *cd)
    chain.answer(
        "hostname pc1",
        f"base-iqn {BASE}",
        f"iscsi-server {STORAGE}",
        f"cd-server {STORAGE}",
        "cd-sep :::1:",
        f"cd-iqn {BASE}:pc1.windows.iso",
        "menu-default menu-install",
        "menu-timeout 1000",
    )
    chain.controller()
    console = power_on("machine", MAC).console
    console.wait_for(r"Back\s+Back", SOON)
    console.type(*[UP] * 5, ENTER)
    console.wait_for("Registered SAN device 0x80", SOON)
    console.wait_for(r"boot sector on drive 81\s+THE INSTALL CD", SOON)
    sessions = tgtd.adm("--op", "show", "--mode", "target")
    assert sessions.count(f"Initiator: {BASE}:pc1 ") == 2


@pytest.mark.case(17)
def test_machine_is_known_by_the_card_that_has_the_cable(
    chain: Chain, power_on: Callable[..., Machine]
) -> None:
    chain.answer("menu-default shell", "menu-timeout 0")
    chain.controller()
    console = power_on("machine", MAC, uncabled=("52:54:00:7a:01:ff",)).console
    console.wait_for(rf"ipxeready: {MAC} +at 192\.0\.2\.\d+", SOON)
    console.wait_for(MENU, SOON)
    console.type(ENTER)
    console.wait_for("iPXE>", SOON)
    console.type("ifstat", ENTER)
    console.wait_for(r"net0: 52:54:00:7a:01:ff[^(]*\(closed\)", SOON)


@pytest.mark.case(104)
@pytest.mark.parametrize(
    ("firmware", "loader", "platform"),
    [("pxe", "undionly.kpxe", "pcbios"), ("uefi", "snponly.efi", "efi")],
)
def test_plain_firmware_gets_a_loader_once_and_then_the_scripts(
    chain: Chain,
    power_on: Callable[..., Machine],
    firmware: str,
    loader: str,
    platform: str,
) -> None:
    chain.answer("menu-default shell", "menu-timeout 0")
    chain.controller()
    console = power_on("machine", MAC, firmware=firmware).console
    console.wait_for(loader.replace(".", r"\."), SOON)
    console.wait_for(rf"ipxeready: {MAC} [^\n]*{platform}", SOON)
    console.wait_for(MENU, SOON)
    console.type(ENTER)
    console.wait_for("iPXE>", SOON)
    console.type("dhcp", ENTER)
    console.wait_for("ok", SOON)
    console.type("echo now told ${filename}", ENTER)
    console.wait_for(r"now told boot\.ipxe", SOON)


def test_boot_sector_is_what_its_source_says(tmp_path: Path) -> None:
    source = Path(__file__).with_name("bootsector.S")
    try:
        run("as", "--32", "-o", f"{tmp_path}/b.o", str(source))
    except FileNotFoundError:
        pytest.skip("needs binutils")
    layout = ("-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary")
    run("ld", *layout, "-o", f"{tmp_path}/b.bin", f"{tmp_path}/b.o")
    write_master(tmp_path / "master", "any")
    made = (tmp_path / "master").read_bytes()[:512]
    assert made == (tmp_path / "b.bin").read_bytes()
