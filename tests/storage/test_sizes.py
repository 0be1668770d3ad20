"""Sizes: binary units or bytes, whole sectors, a limit."""

from __future__ import annotations

import pytest

from ipxeready.errors import Invalid
from ipxeready.storage.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("40G", 40 << 30),
        ("512M", 512 << 20),
        ("1T", 1 << 40),
        ("40g", 40 << 30),
        (" 40G ", 40 << 30),
        ("40GiB", 40 << 30),
        ("40GB", 40 << 30),
        ("512", 512),
        (1024, 1024),
    ],
)
def test_sizes_that_are_taken(value: object, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value",
    [
        "",
        "G",
        "40 G B",
        "1.5G",
        "-1G",
        "0",
        0,
        -512,
        511,
        "513",
        True,
        None,
        1.0,
        [],
        "1e9",
        "٤٠G",
        "9" * 30,
        "100000T",
    ],
)
def test_sizes_that_are_refused_by_field(value: object) -> None:
    with pytest.raises(Invalid) as caught:
        parse_size(value)
    assert caught.value.field == "size"


def test_a_limit_is_named() -> None:
    assert parse_size("1G", limit=1 << 30) == 1 << 30
    with pytest.raises(Invalid, match="1 GiB"):
        parse_size((1 << 30) + 512, limit=1 << 30)


def test_sizes_for_people() -> None:
    assert [format_size(n) for n in (0, 511, 1024, 3 << 19, 40 << 30)] == [
        "0 B",
        "511 B",
        "1 KiB",
        "1.5 MiB",
        "40 GiB",
    ]
