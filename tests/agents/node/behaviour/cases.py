"""What every target system must do, over a rig: plain functions, run by pytest over tgtd and by the guest's driver over LIO."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agents.node import startup, withdraw
from agents.node.backends.base import Export
from agents.protocol.access import Access, Chap, access_of
from agents.protocol.systems import LIO, LUN_NUMBER, STGT
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound, Unavailable
from tests.agents.node.behaviour import initiator as initiators
from tests.agents.node.behaviour.lio_rig import LioRig
from tests.agents.node.behaviour.rig import BASE, FOREIGN, MIB, Rig, immutable, iqn_of
from tests.processes import eventually

ONE = "worker-01.debian"
TWO = "worker-02.debian"
ME = f"{BASE}:worker-01"
STRANGER = f"{BASE}:worker-02"
SECRET = Chap("worker-01", "Abcdefghijkl0123")
OTHER = Chap("worker-01", "Zyxwvutsrqpo9876")


@dataclass(frozen=True)
class Case:
    """One behaviour; `on` names the only target system that has it, `number` the field case."""

    name: str
    run: Callable[[Rig], None]
    number: int | None = None
    on: str | None = None


CASES: dict[str, Case] = {}


def behaviour(
    number: int | None = None, *, on: str | None = None
) -> Callable[[Callable[[Rig], None]], Callable[[Rig], None]]:
    """Put a function among the cases."""

    def add(run: Callable[[Rig], None]) -> Callable[[Rig], None]:
        name = run.__name__.removeprefix("case_")
        CASES[name] = Case(name, run, number, on)
        return run

    return add


def cases_for(kind: str) -> list[Case]:
    """Those that a target system must pass."""
    return [case for case in CASES.values() if case.on in (None, kind)]


@contextlib.contextmanager
def refused(kind: type[ApplicationError], *words: str) -> Iterator[None]:
    """The block must be refused, in these words."""
    try:
        yield
    except kind as error:
        for word in words:
            assert word in error.message, error.message
        return
    raise AssertionError(f"not refused with {kind.__name__}")


# -- the ordinary way ---------------------------------------------------------


@behaviour()
def case_a_disk_is_made_listed_read_written_and_deleted(rig: Rig) -> None:
    made = rig.disk(ONE, size=8 * MIB)
    assert made["backing"] == str(rig.folder / f"{ONE}.img")
    (target,) = rig.backend.targets()
    assert target["iqn"] == iqn_of(ONE)
    number = LUN_NUMBER[rig.kind]
    lun = {"lun": number, "backing": made["backing"], "size": 8 * MIB, "type": "disk"}
    assert target["luns"] == [lun]
    assert target["sessions"] == []
    assert (target["access"], target["initiators"]) == ("off", [])
    with rig.session(ONE, ME) as session:
        session.writes(0xAB, 4096)
    image = rig.folder / f"{ONE}.img"
    assert image.read_bytes()[4096:8192] == b"\xab" * 4096
    rig.delete(ONE, delete_file=True)
    assert rig.backend.targets() == []
    assert not image.exists()


@behaviour(60)
def case_a_disk_is_never_made_over_one_that_is_there(rig: Rig) -> None:
    rig.image("win_tpl_v1.img", content=b"master")
    rig.disk(ONE, master="win_tpl_v1.img")
    rig.image(f"{TWO}.img", content=b"somebody's")
    before = rig.files()
    with rig.session(ONE, ME) as session:
        for name in (ONE, TWO):
            for source in ({"master": "win_tpl_v1.img"}, {"size": MIB}):
                with refused(Conflict, "exists already"):
                    rig.disk(name, **source)
        assert rig.files() == before
        session.reads()


@behaviour(64)
def case_an_empty_disk_takes_no_room_and_is_as_large_as_it_was_asked_for(
    rig: Rig,
) -> None:
    rig.disk(ONE, size=60 << 30)
    seen = initiators.capacity(rig.unit(ONE), ME)
    assert (seen.size, seen.block) == (60 << 30, 512)
    assert os.stat(rig.folder / f"{ONE}.img").st_blocks * 512 < MIB


@behaviour(71)
def case_more_may_be_promised_than_there_is(rig: Rig) -> None:
    size = 1 << 40
    for number in range(3):
        rig.disk(f"worker-{number}.debian", size=size)
    _, total = rig.node.images.room()
    assert total < 3 * size
    assert [t["luns"][0]["size"] for t in rig.backend.targets()] == [size] * 3
    assert rig.may_log_in("worker-2.debian", ME)


@behaviour()
def case_the_serial_number_stays_when_a_target_is_made_anew_and_differs_from_disk_to_disk(
    rig: Rig,
) -> None:
    rig.disk(ONE, size=MIB)
    rig.disk(TWO, size=MIB)
    first = initiators.serial(rig.unit(ONE), ME)
    assert len(first) >= 16
    assert initiators.serial(rig.unit(TWO), ME) != first
    rig.delete(ONE)
    rig.disk(ONE, existing=True)
    assert initiators.serial(rig.unit(ONE), ME) == first


@behaviour(48)
def case_an_image_with_capitals_has_a_target_in_lower_case(rig: Rig) -> None:
    rig.image("Worker-01.Debian.img")
    assert [made["iqn"] for made in rig.scan()["created"]] == [iqn_of(ONE)]
    assert rig.targets() == {ONE: "Worker-01.Debian.img"}
    assert rig.may_log_in(ONE, ME)
    rig.image("worker-01.debian.img")
    assert "only in case" in rig.skipped()["worker-01.debian.img"]
    assert rig.targets() == {ONE: "Worker-01.Debian.img"}


@behaviour()
def case_a_hundred_disks_cost_each_what_the_first_did(rig: Rig) -> None:
    names = [f"worker-{number:03}.debian" for number in range(100)]
    first, between, last = names[:20], names[20:80], names[80:]

    def cost(work: Callable[[str], object], names: list[str]) -> float:
        costs = []
        for name in names:
            with rig.counting() as steps:
                work(name)
                costs.append(steps())
        return statistics.median(costs)

    made = [cost(lambda name: rig.disk(name, size=MIB), first)]
    for name in between:
        rig.image(f"{name}.img")
        rig.export(name)
    made += [cost(lambda name: rig.disk(name, size=MIB), last)]
    assert len(rig.backend.targets()) == 100
    gone = [cost(rig.delete, first)]
    for name in between:
        rig.backend.unexport(iqn_of(name))
    gone += [cost(rig.delete, last)]
    # How long a step takes is for `make bench` to say: here other work on the machine would be measured too.
    for costs in (made, gone):
        assert 0 < max(costs) <= 1.5 * min(costs), (made, gone)


@behaviour()
def case_an_image_that_somebody_exports_by_hand_is_not_taken_for_free(rig: Rig) -> None:
    rig.image("win_tpl_v1.img")
    rig.image(f"{ONE}.img")
    rig.by_hand("somebodys", "win_tpl_v1.img")
    rig.by_hand("others", f"{ONE}.img")
    with refused(Conflict, iqn_of("somebodys")):
        rig.disk(TWO, master="win_tpl_v1.img")
    with refused(Conflict, iqn_of("others")):
        rig.disk(ONE, existing=True)
    assert iqn_of("others") in rig.skipped()[f"{ONE}.img"]
    assert sorted(rig.targets()) == ["others", "somebodys"]


# -- a machine is connected ------------------------------------------------------


@behaviour(72)
def case_a_disk_in_use_is_not_deleted_unless_by_force(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    before = rig.files()
    with rig.session(ONE, ME) as session:
        for work in (lambda: rig.delete(ONE, delete_file=True), lambda: rig.backend.unexport(iqn_of(ONE))):  # fmt: skip
            with refused(Conflict, f"in use by {ME}", "force=true"):
                work()
        assert rig.files() == before
        session.reads()
        gone = rig.delete(ONE, delete_file=True, force=True)
        assert [s["initiator"] for s in gone["closed"]] == [ME]
    assert rig.target(ONE) is None
    assert rig.files() == {}


@behaviour(74)
def case_scans_and_restarts_change_nothing_and_cut_no_session(rig: Rig) -> None:
    for name in (ONE, TWO):
        rig.disk(name, size=MIB)
    with rig.session(ONE, ME) as one, rig.session(TWO, STRANGER) as two:
        before = rig.backend.targets()
        for _ in range(3):
            assert rig.scan() == {"created": [], "skipped": []}
            rig.restart()
            assert rig.backend.targets() == before
        one.reads()
        two.writes(1)


@behaviour(74)
def case_a_start_adopts_what_is_there_and_makes_the_rest(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    rig.image(f"{TWO}.img")
    rig.image("worker-03.debian.img")
    with rig.session(ONE, ME) as session:
        rig.restart()
        assert sorted(rig.targets()) == [ONE, TWO, "worker-03.debian"]
        session.reads()


@behaviour()
def case_what_somebody_cleared_is_made_again(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    rig.disk(TWO, size=MIB, access="acl")
    rig.lose_all()
    assert rig.backend.targets() == []
    startup.watch_targets(rig.node)
    assert sorted(rig.targets()) == [ONE, TWO]
    assert rig.may_log_in(TWO, STRANGER)
    assert not rig.may_log_in(TWO, ME)


@behaviour()
def case_a_file_that_is_renamed_under_a_machine_goes_on_serving_it(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    image = rig.folder / f"{ONE}.img"
    with rig.session(ONE, ME) as session:
        image.rename(rig.folder / "old.raw")
        assert "is gone" in rig.skipped()[iqn_of(ONE)]
        session.writes(7)
        assert not image.exists()
        with refused(Conflict, "in use"):
            rig.backend.unexport(iqn_of(ONE))
    assert (rig.folder / "old.raw").read_bytes()[:4096] == b"\x07" * 4096
    rig.delete(ONE)
    assert rig.backend.targets() == []
    assert sorted(rig.files()) == ["old.raw"]


# -- images that are not fit -------------------------------------------------------


@behaviour(73)
def case_a_missing_image_is_never_invented(rig: Rig) -> None:
    with refused(ApplicationError):
        rig.export(ONE)
    with refused(NotFound, f"{ONE}.img"):
        rig.disk(ONE, existing=True)
    rig.disk(TWO, size=MIB)
    rig.delete(TWO)
    (rig.folder / f"{TWO}.img").unlink()
    rig.scan()
    rig.restart()
    assert rig.files() == {}
    assert rig.backend.targets() == []
    # Its directory may be gone with it, as that of a pool that is not mounted.
    shutil.rmtree(rig.folder)
    with refused(ApplicationError):
        rig.export(ONE)
    with refused(Unavailable, "image directory"):
        rig.scan()
    assert not rig.folder.exists()
    rig.folder.mkdir()


@behaviour(73)
def case_an_image_of_no_whole_size_or_kind_is_refused(rig: Rig) -> None:
    rig.image("empty.debian.img", 0)
    rig.image("odd.debian.img", MIB + 1)
    (rig.folder / "folder.debian.img").mkdir()
    rig.image("real.raw")
    (rig.folder / "link.debian.img").symlink_to(rig.folder / "real.raw")
    skipped = rig.skipped()
    for name in ("empty", "odd", "folder", "link"):
        assert f"{name}.debian.img" in skipped
    if rig.kind == LIO:  # tgtd takes them; the services do not
        for name in ("empty", "odd", "folder", "link"):
            with refused(Conflict, f"{name}.debian.img"):
                rig.export(f"{name}.debian")
        assert rig.left() == []
    assert rig.backend.targets() == []
    os.rmdir(rig.folder / "folder.debian.img")


@behaviour(81)
def case_an_image_that_cannot_be_written_is_no_disk(rig: Rig) -> None:
    image = rig.image(f"{ONE}.img")
    with immutable(image):
        assert "read-write" in rig.skipped()[image.name]
        with refused(ApplicationError):
            rig.export(ONE)
        assert rig.backend.targets() == []
    rig.scan()
    with rig.session(ONE, ME) as session:
        session.writes(1)


@behaviour(78)
def case_an_iso_is_a_cd_or_it_is_refused(rig: Rig) -> None:
    rig.image("windows.iso", content=b"CD")
    if rig.backend.cd:
        services_made = rig.scan()["created"]
        assert services_made == [{"iqn": iqn_of("windows.iso"), "cd": True}]
        target = rig.target("windows.iso")
        assert target
        assert target["luns"][0]["type"] == "cd"
        return
    assert "no CD drive" in rig.skipped()["windows.iso"]
    path = str(rig.folder / "windows.iso")
    with refused(Invalid, "CD"):
        rig.backend.export(Export(iqn_of("windows.iso"), path, cd=True))
    assert rig.backend.targets() == []


# -- others, leftovers, faults ----------------------------------------------------


@behaviour(86)
def case_targets_of_others_stay_as_they_are(rig: Rig) -> None:
    rig.make_foreign()
    before = rig.foreign_state()
    assert before
    rig.disk(ONE, size=MIB)
    rig.disk(TWO, size=MIB, access="acl")
    rig.delete(ONE, delete_file=True)
    rig.scan()
    rig.restart()
    withdraw.withdraw(rig.backend)
    assert rig.foreign_state() == before
    assert rig.backend.foreign() == 1
    assert FOREIGN not in {t["iqn"] for t in rig.backend.targets()}
    assert rig.backend.targets() == []


@behaviour(75)
def case_what_a_call_left_that_died_is_finished_by_the_next(rig: Rig) -> None:
    for where, leave in {**rig.half_made(), **rig.damaged()}.items():
        rig.image(f"{ONE}.img")
        leave(ONE)
        assert rig.scan()["skipped"] == [], where
        assert rig.targets() == {ONE: f"{ONE}.img"}, where
        assert rig.may_log_in(ONE, ME), where
        assert rig.scan() == {"created": [], "skipped": []}, where
        rig.delete(ONE, delete_file=True)
        assert rig.left() == [], where


@behaviour(75)
def case_what_is_half_there_is_deleted_in_full(rig: Rig) -> None:
    for where, leave in {**rig.half_made(), **rig.damaged()}.items():
        rig.image(f"{ONE}.img")
        leave(ONE)
        rig.backend.unexport(iqn_of(ONE))
        assert rig.left() == [], where
        os.unlink(rig.folder / f"{ONE}.img")


@behaviour(75, on="lio")
def case_what_is_half_there_without_an_image_is_swept_up_by_a_scan(rig: Rig) -> None:
    for where, leave in rig.half_made().items():
        rig.image(f"{ONE}.img")
        leave(ONE)
        os.unlink(rig.folder / f"{ONE}.img")
        assert rig.scan() == {"created": [], "skipped": []}, where
        assert rig.left() == [], where


@behaviour(75)
def case_a_kill_at_any_moment_is_mended_by_the_next_start(rig: Rig) -> None:
    rig.image("win_tpl_v1.img", 2 * MIB, content=os.urandom(2 * MIB))
    rig.disk(ONE, size=MIB)
    with rig.session(ONE, ME) as session:
        for number in range(8):
            _killed(rig, after=random.uniform(0.02, 0.25) * rig.slowness)
            rig.restart()
            skipped = rig.skipped()
            files = {n: s for n, (_, s) in rig.files().items() if "_tpl_" not in n}
            for name, file in rig.targets().items():
                assert files[file] == (MIB if name == ONE else 2 * MIB), number
                assert rig.target(name)["luns"][0]["size"] == files[file]  # type: ignore[index]
            for name in set(files) - set(rig.targets().values()):
                assert "taken off on purpose" in skipped[name], number
            session.reads()
            for name in rig.targets():
                if name != ONE:
                    rig.delete(name, delete_file=True)
            for name in set(files) - {f"{ONE}.img"}:
                (rig.folder / name).unlink(missing_ok=True)
            assert len(rig.left()) == (1 if rig.kind == STGT else 2), number


def _killed(rig: Rig, *, after: float) -> None:
    """Have another process make and delete disks, and kill it."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            for number in itertools.count():
                rig.disk(f"pc-{number}.debian", master="win_tpl_v1.img")
                if number:
                    rig.delete(f"pc-{number - 1}.debian", delete_file=True)
        os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it gave up by itself"


@behaviour(76)
def case_done_already_is_done(rig: Rig) -> None:
    rig.backend.unexport(iqn_of(ONE))
    rig.backend.unexport(iqn_of(ONE), force=True)
    rig.disk(ONE, size=MIB)
    before = rig.backend.targets()
    for _ in range(2):
        rig.export(ONE)
    assert rig.backend.targets() == before
    rig.image("other.raw")
    with refused(Conflict, "other.raw", f"{ONE}.img"):
        rig.backend.export(Export(iqn_of(ONE), str(rig.folder / "other.raw")))
    assert rig.backend.targets() == before


@behaviour(76)
def case_one_failure_does_not_stop_the_others_and_leaves_nothing(rig: Rig) -> None:
    rig.image(f"{ONE}.img")
    rig.image("worker-03.debian.img")
    exports = [
        Export(iqn_of(name), str(rig.folder / f"{name}.img"))
        for name in (ONE, TWO, "worker-03.debian")
    ]
    result = rig.backend.export_all(exports)
    assert {iqn for iqn, error in result.items() if error} == {iqn_of(TWO)}
    assert sorted(rig.targets()) == [ONE, "worker-03.debian"]
    assert rig.target(TWO) is None


@behaviour(83)
def case_a_target_system_that_hangs_costs_one_limit_and_not_one_for_each_call(
    rig: Rig,
) -> None:
    rig.disk(ONE, size=MIB)
    threads = threading.active_count()
    with rig.hanging(ONE) as call:
        began = time.monotonic()
        for _ in range(10):
            with refused(Unavailable, "did not"):
                call()
        with refused(Unavailable, "did not"):
            rig.backend.check()
        assert time.monotonic() - began < 5
        assert threading.active_count() <= threads + 1
    eventually(lambda: _works(rig), initiators.PATIENCE)
    rig.backend.unexport(iqn_of(ONE), force=True)
    rig.export(ONE)
    assert rig.may_log_in(ONE, ME)


def _works(rig: Rig) -> bool:
    try:
        rig.backend.check()
    except Unavailable:
        return False
    return True


# -- who may log in ------------------------------------------------------------------


@behaviour()
def case_every_access_lets_in_whom_it_says_and_no_other(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    modes = {
        "off": (True, True, True, True, True),
        "acl": (True, True, True, False, False),
        "chap": (False, True, False, False, False),
    }
    for first in modes:
        for then in modes:
            for mode in (first, then):
                rig.export(ONE, _access(mode))
                target = rig.target(ONE)
                assert target
                names = [] if mode == "off" else [ME]
                assert (target["access"], target["initiators"]) == (mode, names)
            seen = (
                rig.may_log_in(ONE, ME),
                rig.may_log_in(ONE, ME, SECRET),
                rig.may_log_in(ONE, ME, OTHER),
                rig.may_log_in(ONE, STRANGER),
                rig.may_log_in(ONE, STRANGER, SECRET),
            )
            assert seen == modes[then], (first, then, seen)


def _access(mode: str, chap: Chap = SECRET) -> Access:
    return access_of(iqn_of(ONE), mode, chap if mode == "chap" else None)


@behaviour()
def case_a_new_secret_takes_the_place_of_the_old_one(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    rig.export(ONE, _access("chap"))
    rig.export(ONE, _access("chap", OTHER))
    assert rig.may_log_in(ONE, ME, OTHER)
    assert not rig.may_log_in(ONE, ME, SECRET)


@behaviour()
def case_changing_access_never_cuts_a_session(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    with rig.session(ONE, ME) as mine, rig.session(ONE, STRANGER) as theirs:
        for mode in ("acl", "chap", "acl", "off", "chap", "off"):
            rig.export(ONE, _access(mode))
            target = rig.target(ONE)
            assert target
            assert target["access"] == mode
            names = sorted(s["initiator"] for s in target["sessions"])
            assert names == [ME, STRANGER], mode
            mine.reads()
            theirs.reads()


@behaviour()
def case_a_closed_target_forgets_who_came_while_it_was_open(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    assert rig.may_log_in(ONE, STRANGER)
    rig.export(ONE, _access("acl"))
    assert not rig.may_log_in(ONE, STRANGER)
    # The same with a machine inside: at the latest when that is gone.
    rig.export(ONE, _access("off"))
    assert rig.may_log_in(ONE, STRANGER)
    with rig.session(ONE, ME) as session:
        rig.export(ONE, _access("acl"))
        startup.watch_targets(rig.node)
        session.reads()
    startup.watch_targets(rig.node)
    assert not rig.backend.unsettled
    assert not rig.may_log_in(ONE, STRANGER)
    assert rig.may_log_in(ONE, ME)


@behaviour()
def case_who_is_inside_is_told_by_name_and_address(rig: Rig) -> None:
    rig.disk(ONE, size=MIB, access="acl")
    with rig.session(ONE, ME):
        target = rig.target(ONE)
        assert target
        (session,) = target["sessions"]
        assert (session["initiator"], session["address"]) == (ME, "127.0.0.1")
        first = session["id"]
    with rig.session(ONE, ME):
        (session,) = (rig.target(ONE) or target)["sessions"]
        assert session["id"] != first


# -- LIO alone -------------------------------------------------------------------------


@behaviour(on="lio")
def case_space_that_a_machine_frees_comes_back(rig: Rig) -> None:
    rig.image(f"{ONE}.img", content=os.urandom(16 * MIB), size=16 * MIB)
    rig.scan()
    assert initiators.capacity(rig.unit(ONE), ME).thin
    image = rig.folder / f"{ONE}.img"
    os.sync()
    before = image.stat().st_blocks
    with rig.session(ONE, ME) as session:
        session.discards(4 * MIB, 8 * MIB)
        session.reads()
    os.sync()
    assert before - image.stat().st_blocks >= 7 * MIB // 512
    content = image.read_bytes()
    assert content[4 * MIB : 12 * MIB] == bytes(8 * MIB)
    assert any(content[: 4 * MIB])


@behaviour(on="lio")
def case_an_image_that_was_grown_or_replaced_is_served_as_it_is_now(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    image = rig.folder / f"{ONE}.img"
    with rig.session(ONE, ME) as session:
        os.truncate(image, 2 * MIB)
        with refused(Conflict, f"in use by {ME}", "1048576 bytes"):
            rig.export(ONE)
        rig.scan()
        session.reads()
    assert rig.skipped() == {}
    assert initiators.capacity(rig.unit(ONE), ME).size == 2 * MIB
    new = rig.image("new.raw", 2 * MIB, content=b"new")
    new.rename(image)
    assert rig.skipped() == {}
    with rig.session(ONE, ME) as session:
        session.writes(9, MIB)
    assert image.read_bytes()[MIB : MIB + 4] == b"\x09" * 4


@behaviour(on="lio")
def case_a_write_is_on_the_disk_when_it_is_answered_unless_told_otherwise(
    rig: Rig,
) -> None:
    assert isinstance(rig, LioRig)
    rig.disk(ONE, size=MIB)
    assert "O_DSYNC" in rig.info(ONE)
    rig.restart(IPXE_LIO_WRITE_BACK="true")
    rig.disk(TWO, size=MIB)
    assert "Buffered-WCE" in rig.info(TWO)
    assert "O_DSYNC" in rig.info(ONE)


@behaviour(on="lio")
def case_a_portal_that_was_changed_moves_all_targets_and_cuts_nobody(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    rig.disk(TWO, size=MIB)
    with rig.session(ONE, ME) as session:
        rig.restart(IPXE_ISCSI_PORTAL="0.0.0.0:3260")
        rig.disk("worker-03.debian", size=MIB)
        session.reads()
        for name in (ONE, TWO, "worker-03.debian"):
            assert rig.may_log_in(name, STRANGER)


@behaviour(on="lio")
def case_a_portal_that_others_have_is_said_and_nothing_is_left(rig: Rig) -> None:
    assert isinstance(rig, LioRig)
    rig.image(f"{ONE}.img")
    rig.make_foreign()
    with refused(ApplicationError, "IPXE_ISCSI_PORTAL", "127.0.0.1:3260"):
        rig.other_portal("0.0.0.0:3260").check()
    with refused(ApplicationError, "203.0.113.9", "no such address"):
        rig.other_portal("203.0.113.9:3260").check()
    left = rig.left()
    late = rig.other_portal("127.0.0.1:3261")
    late.check()
    late._objects.portal = "0.0.0.0:3260"
    with refused(Conflict, "something else listens there", "127.0.0.1:3260"):
        late.export(Export(iqn_of(ONE), str(rig.folder / f"{ONE}.img")))
    assert rig.left() == left


@behaviour(on="lio")
def case_leaving_takes_our_targets_off_and_a_start_brings_them_back(rig: Rig) -> None:
    assert isinstance(rig, LioRig)
    rig.disk(ONE, size=MIB, access="acl")
    rig.disk(TWO, size=MIB)
    with rig.session(TWO, STRANGER):
        assert withdraw.withdraw(rig.backend) == []
        assert rig.left() == []
    rig.restart()
    assert sorted(rig.targets()) == [ONE, TWO]
    target = rig.target(ONE)
    assert target
    assert target["access"] == "acl"


@behaviour(on="lio")
def case_the_kernels_modules_are_loaded_when_they_are_not(rig: Rig) -> None:
    assert isinstance(rig, LioRig)
    rig.unload()
    assert rig.restart(IPXE_AGENT_BACKEND="auto").backend.name == "lio"
    rig.disk(ONE, size=MIB)
    assert rig.may_log_in(ONE, ME)


@behaviour(on="lio")
def case_a_secret_is_in_no_message_and_no_log(rig: Rig) -> None:
    rig.disk(ONE, size=MIB)
    bad = Chap("worker-01", "NULLdefghijk0123")
    try:
        rig.export(ONE, _access("chap", bad))
    except Invalid as error:
        assert "NULL" in error.message
        assert bad.secret not in f"{error.message} {error!r} {error.extra}"
    else:
        raise AssertionError("the kernel takes this secret for none")
    rig.export(ONE, _access("chap"))
    seen = (
        f"{rig.backend.targets()} {(rig.place / 'state/agent-ops.jsonl').read_text()}"
    )
    for secret in (bad.secret, SECRET.secret):
        assert secret not in seen
