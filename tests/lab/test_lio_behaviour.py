"""The behaviour that every target system must have, over the kernel's LIO, with the images on XFS and on Btrfs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.node.behaviour.cases import cases_for
from tests.lab.lab_guest import Guest
from tests.lab.lab_verdicts import Verdicts

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

_DRIVER = "tests.agents.node.behaviour.guest_driver"


@pytest.fixture(scope="module")
def verdicts(guest: Guest) -> Iterator[Verdicts]:
    """All cases in one run of the driver; each is reported when it is over."""
    said = guest.results(guest.python("-m", _DRIVER), name="driver", within=240)
    yield Verdicts(said)
    said.close()


@pytest.mark.parametrize("name", [case.name for case in cases_for("lio")])
def test_over_lio(verdicts: Verdicts, name: str) -> None:
    verdicts.check(name)
