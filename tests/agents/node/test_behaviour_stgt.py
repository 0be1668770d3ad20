"""The behaviour that every target system must have, over a real tgtd; tests/lab/test_lio_behaviour.py has the same over LIO."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.node import node_lab
from tests.agents.node.behaviour.cases import CASES, cases_for
from tests.agents.node.behaviour.stgt_rig import StgtRig

pytestmark = pytest.mark.tgtd


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[StgtRig]:
    """A node over a tgtd of this test's own."""
    with node_lab.tgtd() as daemon:
        rig = StgtRig(tmp_path / "node", daemon)
        yield rig
        rig.stop()


@pytest.mark.parametrize(
    "name",
    [
        "a_disk_is_made_listed_read_written_and_deleted",
        pytest.param(
            "a_disk_is_never_made_over_one_that_is_there", marks=pytest.mark.case(60)
        ),
        pytest.param(
            "an_empty_disk_takes_no_room_and_is_as_large_as_it_was_asked_for",
            marks=pytest.mark.case(64),
        ),
        pytest.param("more_may_be_promised_than_there_is", marks=pytest.mark.case(71)),
        "the_serial_number_stays_when_a_target_is_made_anew_and_differs_from_disk_to_disk",
        pytest.param(
            "an_image_with_capitals_has_a_target_in_lower_case",
            marks=pytest.mark.case(48),
        ),
        "a_hundred_disks_cost_each_what_the_first_did",
        "an_image_that_somebody_exports_by_hand_is_not_taken_for_free",
        pytest.param(
            "a_disk_in_use_is_not_deleted_unless_by_force", marks=pytest.mark.case(72)
        ),
        pytest.param(
            "scans_and_restarts_change_nothing_and_cut_no_session",
            marks=pytest.mark.case(74),
        ),
        pytest.param(
            "a_start_adopts_what_is_there_and_makes_the_rest",
            marks=pytest.mark.case(74),
        ),
        "what_somebody_cleared_is_made_again",
        "a_file_that_is_renamed_under_a_machine_goes_on_serving_it",
        pytest.param("a_missing_image_is_never_invented", marks=pytest.mark.case(73)),
        pytest.param(
            "an_image_of_no_whole_size_or_kind_is_refused", marks=pytest.mark.case(73)
        ),
        pytest.param(
            "an_image_that_cannot_be_written_is_no_disk", marks=pytest.mark.case(81)
        ),
        pytest.param("an_iso_is_a_cd_or_it_is_refused", marks=pytest.mark.case(78)),
        pytest.param("targets_of_others_stay_as_they_are", marks=pytest.mark.case(86)),
        pytest.param(
            "what_a_call_left_that_died_is_finished_by_the_next",
            marks=pytest.mark.case(75),
        ),
        pytest.param(
            "what_is_half_there_is_deleted_in_full", marks=pytest.mark.case(75)
        ),
        pytest.param(
            "a_kill_at_any_moment_is_mended_by_the_next_start",
            marks=pytest.mark.case(75),
        ),
        pytest.param("done_already_is_done", marks=pytest.mark.case(76)),
        pytest.param(
            "one_failure_does_not_stop_the_others_and_leaves_nothing",
            marks=pytest.mark.case(76),
        ),
        pytest.param(
            "a_target_system_that_hangs_costs_one_limit_and_not_one_for_each_call",
            marks=pytest.mark.case(83),
        ),
        "every_access_lets_in_whom_it_says_and_no_other",
        "a_new_secret_takes_the_place_of_the_old_one",
        "changing_access_never_cuts_a_session",
        "a_closed_target_forgets_who_came_while_it_was_open",
        "who_is_inside_is_told_by_name_and_address",
    ],
)
def test_over_tgtd(rig: StgtRig, name: str) -> None:
    CASES[name].run(rig)


def test_every_case_is_run_by_its_number() -> None:
    """Those of the list above are all that there are, and the numbers are those of the cases."""
    (mark,) = [m for m in test_over_tgtd.pytestmark if m.name == "parametrize"]  # type: ignore[attr-defined]
    listed = {}
    for parameter in mark.args[1]:
        name, numbers = (
            (parameter, [])
            if isinstance(parameter, str)
            else (parameter.values[0], [m.args[0] for m in parameter.marks])
        )
        listed[name] = numbers
    assert listed == {
        case.name: [] if case.number is None else [case.number]
        for case in cases_for("stgt")
    }
