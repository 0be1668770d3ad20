"""The guest that the target of the kernel (LIO) is tested in: it is up in seconds, and has what the tests count on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.lab.lab_guest import Guest
from tests.lab.lab_verdicts import Verdicts

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]


def test_the_guest_has_the_kernels_target(guest: Guest) -> None:
    loaded = guest.run(["lsmod"]).stdout
    for module in ("target_core_mod", "target_core_file", "iscsi_target_mod"):
        assert module in loaded
    assert guest.run(["findmnt", "-n", "-o", "FSTYPE", "/sys/kernel/config"]).stdout
    assert guest.run(["ls", "/sys/kernel/config/target"]).stdout
    # rtslib wants it; to make it is the product's business.
    assert guest.run(["test", "-e", "/etc/target"], check=False).returncode == 1


def test_the_guest_runs_the_product_with_its_packages(guest: Guest) -> None:
    done = guest.run(
        guest.python("-c", "import rtslib_fb, agents.node; print(rtslib_fb.__file__)")
    )
    assert done.stdout.startswith("/opt/ipxeready/.venv/")


def test_clones_on_its_data_disk_are_reflinks(guest: Guest) -> None:
    script = "cd /data && head -c 9999999 /dev/zero >a && cp --reflink=always a b && cmp a b && rm a b"
    guest.run(["sh", "-c", script])


def test_a_program_in_it_is_heard_line_by_line_told_to_end_and_asked_how_it_ended(
    guest: Guest,
) -> None:
    said = guest.results(
        ["sh", "-c", """echo '{"a": "\u00e9"}'; echo aside; echo '{"b": 2}'; exit 3"""]
    )
    assert next(said) == {"a": "\u00e9"}
    assert next(said) == {"b": 2}
    with pytest.raises(AssertionError, match=": 3\n"):
        next(said)

    echo = guest.run(["cat"], typed="as it is: \u00e9\n")
    assert echo.stdout == "as it is: \u00e9\n"
    failed = guest.run(["sh", "-c", "echo no >&2; exit 4"], check=False)
    assert (failed.returncode, failed.stdout, failed.stderr) == (4, "", "no\n")
    assert guest.run(["/no/such/program"], check=False).returncode == 127

    stays = guest.start(["sh", "-c", "echo here; exec sleep 600"])
    stays.wait_for("here", 10)
    assert stays.running
    stays.stop()
    assert stays.wait(1) == -15


def test_a_driver_in_it_is_asked_case_by_case(guest: Guest) -> None:
    script = """echo '{"case": "one", "ok": true}'; echo '{"case": "two", "ok": false, "error": "so it was"}'
    sleep 1; echo '{"case": "three", "ok": true}'; echo gone >&2; exit 1"""
    verdicts = Verdicts(guest.results(["sh", "-c", script]))
    verdicts.check("one")
    verdicts.check("three")
    with pytest.raises(AssertionError, match="so it was"):
        verdicts.check("two")
    for _ in range(2):
        with pytest.raises(AssertionError, match="gone"):
            verdicts.check("four")


def test_a_guest_that_dies_takes_its_programs_with_it(artifacts: Path) -> None:
    with Guest(artifacts) as guest:
        stays = guest.start(["sleep", "600"])
        guest.console.signal(signal.SIGKILL)
        with pytest.raises(AssertionError, match="the guest ended before sleep"):
            stays.wait(10)
        assert not stays.running


def test_on_its_disk_again_a_guest_finds_what_was_written(
    artifacts: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk.img"
    with Guest(artifacts, fs="btrfs", disk=disk, modules=()) as guest:
        guest.run(["sh", "-c", "echo kept >/data/file; sync"])
    with Guest(artifacts, fs="btrfs", disk=disk, modules=()) as guest:
        assert guest.run(["cat", "/data/file"]).stdout == "kept\n"
        assert not guest.run(["ls", "/sys/kernel/config"]).stdout
