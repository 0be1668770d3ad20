"""The lease file only says what was last seen, and no line of it can hurt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipxeready.storage import leases

MAC = "52:54:00:00:00:01"


@pytest.mark.case(15)
def test_leases_of_all_shapes() -> None:
    found = leases.read(
        b"1790000000 52:54:00:00:00:01 10.0.0.5 old-name *\n"
        b"0 01-52:54:00:00:00:02 10.0.0.6 * 01:52:54:00:00:00:02\n"
        b"1790000000 06-52:54:00:00:00:03 10.0.0.7 token-ring *\n"
        b"duid 00:01:00:01:2c:3f:11:22:52:54:00:00:00:01\n"
        b"1790000000 1234567 fd77::5 old-name 00:01:00:01:2c:3f\n"
        b"1790000000 52:54:00:00:00:04 not-an-ip x *\n"
        b"\xff\xfe\n\n"
        b"1790000000 52:54:00:00:00:05 10.0.0."
    )
    assert found == {
        MAC: leases.Lease(MAC, "10.0.0.5", 1790000000, "old-name"),
        "52:54:00:00:00:02": leases.Lease("52:54:00:00:00:02", "10.0.0.6", 0, None),
    }


def test_of_several_leases_the_longest_counts() -> None:
    lines = [
        b"1700 52:54:00:00:00:01 10.0.0.5 a *\n",
        b"1900 52:54:00:00:00:01 10.0.0.6 b *\n",
        b"1800 52:54:00:00:00:01 10.0.0.7 c *\n",
    ]
    assert leases.read(b"".join(lines))[MAC].ip == "10.0.0.6"
    lines.append(b"0 52:54:00:00:00:01 10.0.0.8 d *\n")
    assert leases.read(b"".join(lines))[MAC].ip == "10.0.0.8"


@given(st.binary())
def test_any_bytes_can_be_read(content: bytes) -> None:
    assert isinstance(leases.read(content), dict)
