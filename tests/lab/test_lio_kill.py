"""kill -9 of a node over the kernel's LIO, while disks come and go and two machines are at work: nothing half, nothing lost, nobody cut off."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter

import pytest

from tests.lab.lab_guest import Guest

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

_DRIVER = "tests.agents.node.behaviour.kill_driver"
ROUNDS = int(os.environ.get("IPXE_TEST_KILL_LIO_ROUNDS", "30"))


# What a kill leaves in configfs has nothing to do with the file system: once is enough.
@pytest.mark.parametrize("guest", ["xfs"], indirect=True)
@pytest.mark.case(74)
@pytest.mark.case(75)
def test_kills_leave_nothing_half_in_configfs_and_cut_nobody_off(guest: Guest) -> None:
    seed = random.SystemRandom().randrange(10**9)
    sys.stdout.write(f"seed {seed}\n")
    done: Counter[str] = Counter()
    command = guest.python("-m", _DRIVER, str(ROUNDS), str(seed))
    rounds = 0
    for verdict in guest.results(command, name="kills", within=120):
        assert verdict["ok"], f"seed {seed}, round {rounds}:\n{verdict['error']}"
        rounds += 1
        done.update(verdict["done"])
    sys.stdout.write(f"{rounds} kills; {dict(done)} answered\n")
    assert rounds == ROUNDS
    assert {"create", "delete"} <= set(done)
