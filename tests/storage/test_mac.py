"""One spelling of a MAC comes out, whichever goes in; what no card may own is refused with its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipxeready.errors import Invalid
from ipxeready.storage.mac import normalize_mac


@pytest.mark.case(16)
@pytest.mark.parametrize(
    "text",
    [
        "52:54:00:ab:cd:ef",
        "52:54:00:AB:CD:EF",
        "52-54-00-ab-cd-ef",
        "52-54-00-AB-CD-EF",
        "525400ABCDEF",
        "5254.00ab.cdef",
        "5254.00AB.CDEF",
        "  52:54:00:ab:cd:ef\t",
        "52:54:00:ab:cd:ef\r\n",
        "+52:54:00:ab:cd:ef+",
    ],
)
def test_every_spelling_gives_one(text: str) -> None:
    assert normalize_mac(text) == "52:54:00:ab:cd:ef"


@pytest.mark.case(24)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "${mac}",
        "undefined",
        "a" * 8000,
        "\0",
        "52:54:00:ab:cd:ef\0",
        "52:54:00:ab:cd:\ufffd",
        "52:54:00:ab:cd",
        "52:54:00:ab:cd:e",
        "52:54:0:0:0:1",
        "52:54-00:ab:cd:ef",
        "52:54:00:ab:cd:gg",
        "52:54:00:ab:cd:ef 52:54:00:ab:cd:ef",
        "٥٢:54:00:ab:cd:ef",
    ],
)
def test_anything_else_is_malformed_and_said_in_short(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        normalize_mac(text)
    assert caught.value.code == "mac.malformed"
    assert caught.value.field == "mac"
    assert len(caught.value.message) < 250
    assert caught.value.message.isprintable()


def test_a_number_is_no_address() -> None:
    with pytest.raises(Invalid, match="not a MAC"):
        normalize_mac(41135085296)  # type: ignore[arg-type]


@pytest.mark.case(21)
@pytest.mark.parametrize("size", [7, 8, 20])
@pytest.mark.parametrize("separator", [":", "-", ""])
def test_longer_addresses_are_never_cut(size: int, separator: str) -> None:
    with pytest.raises(Invalid, match="only 6-byte addresses") as caught:
        normalize_mac(separator.join(["52"] * size))
    assert caught.value.code == "mac.length"


@pytest.mark.case(20)
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("00:00:00:00:00:00", "mac.zero"),
        ("000000000000", "mac.zero"),
        ("FF-FF-FF-FF-FF-FF", "mac.broadcast"),
        ("01:00:5e:00:00:01", "mac.multicast"),
        ("ff:00:00:00:00:01", "mac.multicast"),
        ("3333.0000.0001", "mac.multicast"),
    ],
)
def test_addresses_that_no_card_may_own(text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        normalize_mac(text)
    assert caught.value.code == code


@pytest.mark.case(20)
def test_locally_administered_addresses_are_fine() -> None:
    assert normalize_mac("02:00:00:00:00:01") == "02:00:00:00:00:01"


@given(st.binary(min_size=6, max_size=6))
def test_all_spellings_of_all_addresses_agree(octets: bytes) -> None:
    dotted = ".".join(octets.hex()[i : i + 4] for i in (0, 4, 8))
    spellings = [octets.hex(":"), octets.hex("-"), octets.hex(), dotted]
    found = set()
    for text in (*spellings, *(text.upper() for text in spellings)):
        try:
            found.add(normalize_mac(text))
        except Invalid as error:
            found.add(error.code)
    assert len(found) == 1


@given(st.text(max_size=60))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        mac = normalize_mac(text)
    except Invalid:
        return
    assert normalize_mac(mac) == mac
