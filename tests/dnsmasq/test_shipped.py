"""The shipped dnsmasq configuration: what stands in it, and what real requests get from it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready.storage.paths import Layout
from tests.dnsmasq.wire import INTERFACE, RANGE, SERVER, Wire, needs_dnsmasq
from workers import dnsmasq_options

SHIPPED = Path(__file__).resolve().parents[2] / "dnsmasq"
PLACES = {
    *("interface", "listen-address", "dhcp-hostsfile", "dhcp-hostsdir", "tftp-root"),
    *("dhcp-leasefile", "pid-file", "conf-file", "conf-dir", "log-facility", "user"),
}


def _directives(name: str) -> list[tuple[str, str]]:
    lines = (SHIPPED / name).read_text("ascii").splitlines()
    live = [line.strip() for line in lines if line.strip() and line.strip()[0] != "#"]
    return [(line.partition("=")[0], line.partition("=")[2]) for line in live]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A root with the shipped files and an empty hosts file."""
    layout = Layout(tmp_path / "root")
    shutil.copytree(SHIPPED, layout.dnsmasq, ignore=shutil.ignore_patterns("site.conf"))
    layout.tftp.mkdir()
    layout.dhcp_hosts.write_text("")
    return layout


def _command(layout: Layout, *, fast_start: bool = True) -> list[str]:
    return dnsmasq_options.command(
        layout,
        interface=INTERFACE,
        dhcp_range=RANGE,
        lease_file=layout.root / "leases",
        pid_file=layout.root / "dnsmasq.pid",
        fast_start=fast_start,
    )


@pytest.fixture
def wire(layout: Layout, tmp_path: Path) -> Iterator[Wire]:
    """dnsmasq as `make run` starts it."""
    with Wire(_command(layout), tmp_path / "dnsmasq.log") as wire:
        yield wire


@pytest.mark.parametrize("name", ["dnsmasq.conf", "fast-start.conf"])
def test_no_address_interface_or_path_is_shipped(name: str) -> None:
    directives = _directives(name)
    assert directives
    assert PLACES.isdisjoint(option for option, _ in directives)
    for option, value in directives:
        assert "/" not in value, option
        assert not re.search(r"\d+\.\d+\.\d+\.\d+|[0-9a-f]+::", value), option


def test_hosts_example_has_no_live_line_and_no_tag() -> None:
    assert _directives("dhcp-hosts.conf.example") == []


@needs_dnsmasq
def test_dnsmasq_accepts_the_shipped_files_together() -> None:
    files = ("dnsmasq.conf", "fast-start.conf", "site.conf.example")
    done = subprocess.run(
        ["dnsmasq", "--test", *(f"--conf-file={SHIPPED / name}" for name in files)],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stderr
    assert "syntax check OK" in done.stderr


def test_fast_start_can_be_left_out(layout: Layout) -> None:
    part = f"--conf-file={layout.dnsmasq / 'fast-start.conf'}"
    assert part in _command(layout)
    assert part not in _command(layout, fast_start=False)


def test_root_is_kept_only_where_the_files_are_closed_to_others(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_folders: dict[Path, int] = {}

    def stat(path: Path) -> os.stat_result:
        return os.stat_result((open_folders.get(path, 0o755), *[0] * 9))

    monkeypatch.setattr(Path, "stat", stat)
    assert "--user=root" not in _command(layout)
    open_folders[layout.root] = 0o700
    assert "--user=root" in _command(layout)


@needs_dnsmasq
@pytest.mark.case(104)
@pytest.mark.parametrize(
    ("arch", "loader"),
    [
        (0, "undionly.kpxe"),
        (7, "snponly.efi"),
        (9, "snponly.efi"),
        (6, ""),
        (11, ""),
        (16, ""),
    ],
)
def test_firmware_gets_its_loader_and_ipxe_the_script(
    wire: Wire, arch: int, loader: str
) -> None:
    firmware = wire.boot(arch)
    assert firmware["file"] == loader
    ipxe = wire.boot(arch, ipxe=True)
    assert (ipxe["file"], ipxe["server"]) == ("boot.ipxe", SERVER)


@needs_dnsmasq
@pytest.mark.case(104)
@pytest.mark.parametrize("reverse", [False, True])
def test_order_of_the_boot_lines_does_not_matter(
    layout: Layout, tmp_path: Path, reverse: bool
) -> None:
    path = layout.dnsmasq / "dnsmasq.conf"
    lines = path.read_text().splitlines()
    boot = [line for line in lines if line.startswith("dhcp-boot=")]
    assert len(boot) == 3
    rest = [line for line in lines if line not in boot]
    path.write_text("\n".join([*rest, *(reversed(boot) if reverse else boot), ""]))
    with Wire(_command(layout), tmp_path / "dnsmasq.log") as wire:
        assert wire.boot(0, ipxe=True)["file"] == "boot.ipxe"
        assert wire.boot(7, ipxe=True)["file"] == "boot.ipxe"
        assert wire.boot(0)["file"] == "undionly.kpxe"
        assert wire.boot(7)["file"] == "snponly.efi"


@needs_dnsmasq
def test_nobody_takes_us_for_a_router(wire: Wire) -> None:
    assert wire.boot(0)["router"] is None
    assert wire.advertisement() == {"lifetime": 0}


@needs_dnsmasq
@pytest.mark.parametrize(
    ("line", "router"),
    [("option:router", None), ("option:router,192.0.2.254", "192.0.2.254")],
)
def test_site_file_says_where_the_gateway_is(
    layout: Layout, tmp_path: Path, line: str, router: str | None
) -> None:
    """The files as dnsmasq.conf says that they are read together, without our options."""
    example = (layout.dnsmasq / "site.conf.example").read_text()
    assert example.count("\ndhcp-option=option:router\n") == 1
    values = {
        "interface": INTERFACE,
        "dhcp-range": RANGE,
        "dhcp-option": line,
        "tftp-root": layout.tftp,
        "dhcp-hostsfile": layout.dhcp_hosts,
        "dhcp-leasefile": tmp_path / "leases",
        "pid-file": tmp_path / "pid",
    }
    for option, value in values.items():
        example, found = re.subn(
            rf"^{option}=.*$", f"{option}={value}", example, flags=re.M
        )
        assert found == 1, option
    site = layout.dnsmasq / "site.conf"
    site.write_text(example)
    names = ("dnsmasq.conf", "fast-start.conf", "site.conf")
    files = [f"--conf-file={layout.dnsmasq / name}" for name in names]
    command = ["dnsmasq", "--keep-in-foreground", "--log-facility=-", *files]
    with Wire(command, tmp_path / "site.log") as wire:
        offer = wire.boot(7, ipxe=True)
        assert (offer["file"], offer["router"]) == ("boot.ipxe", router)


@needs_dnsmasq
def test_name_that_a_machine_gives_itself_does_not_stick(wire: Wire) -> None:
    assert wire.boot(0, hostname="worker-01")["hostname"] == ""


@needs_dnsmasq
def test_fast_start_is_gone_when_left_out(layout: Layout, tmp_path: Path) -> None:
    no_pxedhcp = "b00101"
    with Wire(_command(layout), tmp_path / "fast.log") as wire:
        assert no_pxedhcp in wire.boot(0, ipxe=True)["ipxe"]
    command = _command(layout, fast_start=False)
    with Wire(command, tmp_path / "plain.log") as wire:
        assert wire.boot(0, ipxe=True)["ipxe"] == ""
        assert wire.advertisement() == {}


@needs_dnsmasq
def test_fast_start_does_no_harm_without_an_ipv6_address(
    layout: Layout, tmp_path: Path
) -> None:
    log = tmp_path / "dnsmasq.log"
    with Wire(_command(layout), log, addressed=False) as wire:
        assert wire.boot(0)["file"] == "undionly.kpxe"
        assert wire.advertisement() == {}
