"""Firmware that knows only PXE, on BIOS and on UEFI: a loader first, then the scripts, then the worker's own disk."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from tests.lab.lab_disk import Disk, make_disk
from tests.lab.lab_machine import Machine
from tests.lab.lab_site import Site

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:02:01"
MASTER = "debian_tpl_grub.img"
BASE = "iqn.2026-07.com.controller"
#: For one step, on a machine that others use as well.
SOON = 90.0


@pytest.mark.case(104)
@pytest.mark.parametrize(
    ("firmware", "loader", "platform"),
    [("pxe", "undionly.kpxe", "pc"), ("uefi", "snponly.efi", "efi")],
)
def test_plain_firmware_starts_the_clone_of_a_master_made_for_both(
    site: Site,
    power_on: Callable[..., Machine],
    firmware: str,
    loader: str,
    platform: str,
) -> None:
    master = make_disk(
        site.images / MASTER,
        "echo grub on $grub_platform reads:\ncat /says.txt\n",
    )
    master.write_text("says.txt", "THE MASTER ITSELF\n")
    site.api.send("POST", "/agents", site.agent_record())
    site.api.send("POST", "/workers", {"worker_id": "seat-07", "mac": MAC})
    site.api.send(
        "POST",
        "/workers/seat-07/luns/disk",
        {"type": "master", "os": "debian", "name": MASTER},
    )
    site.api.send(
        "PUT", "/workers/seat-07/default-os", {"os": "debian", "menu_timeout": 1000}
    )
    # What only this clone can say, because it was written after it was made.
    text = f"clone of seat-07, {secrets.token_hex(8)}"
    Disk(site.images / "seat-07.debian.img").write_text("says.txt", f"{text}\n")

    console = power_on("machine", MAC, firmware=firmware).console
    console.wait_for(loader.replace(".", r"\."), SOON)
    console.wait_for(rf"ipxeready: {MAC} seat-07 at 192\.0\.2\.\d+", SOON)
    console.wait_for(r"boot-vars\.\.\. ok", SOON)
    said = console.wait_for(rf"grub on {platform} reads:\s*\n\s*(\S[^\n]*)\n", SOON)
    assert said[1].strip() == text
    assert master.read_text("says.txt") == "THE MASTER ITSELF\n"

    # The firmware's login carries the worker's name, on whichever firmware.
    targets = site.api.get("/agents/node-1/luns")
    assert [target["iqn"] for target in targets] == [f"{BASE}:seat-07.debian"]
    assert f"{BASE}:seat-07" in str(targets[0]["sessions"]), targets
