"""Whatever stands in the hosts file, we say the same as a real dnsmasq says to a real DISCOVER."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready.storage import hosts
from tests.dhcplab import Lab, needs_dnsmasq

pytestmark = needs_dnsmasq

# M stands for the MAC of the line: one of its own for each, so that one dnsmasq answers for all.
LINES = [
    b"M,worker-01",
    b"M,Worker-01",
    b"M,101",
    b"M,12h",
    b"M,3d",
    b"M,7W",
    b"M,45s",
    b"M,5m,2h",
    b"M,12 h",
    b"M,0x10",
    b"M,1a",
    b"M,w",
    b"M,hm",
    b"M,localhost",
    b"M,infinite",
    b"M,INFINITE",
    b"M,ignore",
    b"M,Ignore",
    b"M,ignore,worker-01",
    b"M,worker_01",
    b"M,Worker_01",
    b"M,worker-",
    b"M,Worker-",
    b"M,AB--CD",
    b"M,_worker",
    b"M,-worker",
    b"M,worker 01",
    b"M," + b"a" * 63,
    b"M," + b"a" * 64,
    b"M," + b"a" * 63 + b"." + b"b" * 63,
    b"M,worker-01.lab.lan",
    b"M,worker-01." + b"b" * 64,
    b"M,worker-01.",
    b"M,.lab",
    b"M,.",
    b"M,a..b",
    "M,机房01".encode(),
    "M,机房_01".encode(),
    "M,worker-01\u200b".encode(),
    "M,worker\u00a001".encode(),
    b"M,caf\xe9",
    b"M,worker-01,worker-02",
    b"M,worker-01,",
    b"M,,worker-01,,",
    b"M",
    b"M,",
    b"M , worker-01 , 10.77.1.77",
    b"M,10.77.1.78,worker-01,45m",
    b"M,010.77.1.79,worker-01",
    b"worker-01,M",
    b"   M,worker-01   ",
    b"M,192.168.1.999,worker-01",
    b"M,192.168.1.999",
    b"dhcp-host=M,worker-01",
    b"M,worker-01 #rack3",
    b"M,worker-01\t# rack 3, M,other",
    b"M,worker-01#rack3",
    b"   # M,worker-03",
    b"#M,worker-04",
    b'"M",worker-01',
    b'M,"worker-01"',
    b'M,"worker-01","worker-02"',
    b'M,"101"',
    b'M,"12h"',
    b'M,"infinite"',
    b'M,"worker 01"',
    b'M,"worker-01',
    b'M,"10.77.1.80",worker-01',
    b'M,"worker\\t01"',
    b'M,"a#b"',
    b'"M,worker-01"',
    b"M,worker-0\x01",
    b"M,worker-\x1301",
    b"M,worker\x0b",
    b"M,work\x00er-01",
    b"\x00M,worker-01",
    b"M,worker-01\x7f",
    b"M;worker-01",
    b"M\tworker-01",
    "M，worker-01".encode(),
    "M,\u00a0worker-01".encode(),
    b"M,\tworker-01",
    b"M worker-01",
    b"M,id:*,worker-01",
    b"M,id:01:02:03,worker-01",
    b"M,id:zz:01,worker-01",
    b"M,id:abc,worker-01",
    b"M,ID:*x,worker-01",
    b"M,set:lab,worker-01,2h",
    b"M,net:lab,worker-01",
    b"M,SET:lab,worker-01",
    b"M,[2001:db8::1],worker-01",
    b"M,[2001:db8::zz],worker-01",
    b"M,[2001:db8::]/64,worker-01",
    b"M,[::1:2/120],worker-01",
    b"M,52:54:00:aa:bb,worker-01",
    b"M,52:54:00:aa:bb:cc:dd,worker-01",
    b"M,52:54:00:aa:bb:*,worker-01",
    b"M,52:5*:00:aa:bb:cc,worker-01",
    b"01-M,worker-01",
    b"06-M,worker-01",
    b"M,worker-01 # " + b"x" * 900,
    b"# " + b"x" * 1100,
    b"M,worker-01" + b" " * 1100 + b"# far",
    b"\xef\xbb\xbfM,worker-01",
    b"M,worker-01\r",
    b"M,worker-01\rM,worker-02",
]


def mac_number(number: int) -> str:
    return f"52:54:00:{number >> 8:02x}:{number & 255:02x}:01"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("dnsmasq"), b"") as lab:
        yield lab


def said(content: bytes, mac: str) -> str | None:
    """What we say dnsmasq offers: a name, "" for an address without a name, None for nothing."""
    line = hosts.HostsText(content).line_of(mac)
    if line is None:
        return ""
    assert line in hosts.parse(content)
    return None if line.kind == "refused" else line.hostname or ""


def differences(lab: Lab, content: bytes, macs: list[str]) -> list[object]:
    lab.serve(content)
    return compare(lab, content, macs)


def compare(lab: Lab, content: bytes, macs: list[str]) -> list[object]:
    offers = lab.discover(*macs)
    return [
        (mac, said(content, mac), real)
        for mac in macs
        for offer in [offers[mac]]
        for real in [None if offer is None else offer.hostname or ""]
        if real != said(content, mac)
    ]


@pytest.mark.case(2)
@pytest.mark.case(4)
@pytest.mark.case(6)
@pytest.mark.case(13)
def test_every_line_means_to_us_what_it_means_to_dnsmasq(tmp_path: Path) -> None:
    macs = [mac_number(number) for number in range(len(LINES))]
    content = b"".join(
        line.replace(b"M", mac.encode()) + b"\n"
        for mac, line in zip(macs, LINES, strict=True)
    )
    # A dnsmasq of its own: a reload after lines with tags would end it.
    with Lab(tmp_path, content) as lab:
        wrong = compare(lab, content, macs)
    assert not wrong, [
        (LINES[macs.index(mac)], ours, theirs) for mac, ours, theirs in wrong
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"A,first\nB,first\n",
        b"A,first\nA,second\n",
        b"a,first\n\nA,second\nB,\n",
        b"A,B,worker-01\n",
        b"A,B,A,worker-01\n",
        b"A,10.77.1.1,first\nB,10.77.1.1,second\n",
        b"A,10.77.1.1,10.77.1.2,first\nB,10.77.1.1,second\n",
        b"A,10.77.1.2,first\nB,10.77.1.1,10.77.1.2,second\n",
        b"A,10.77.1.1,-bad\nB,10.77.1.1,second\n",
        b"A,ignore,10.77.1.1\nB,10.77.1.1,second\n",
        b"A,first\nB,10.77.1.1,x\nA,10.77.1.1,second\n",
        b"A,first\nA,ignore\nB,ignore\nB,second\n",
        b"\xef\xbb\xbfA,first\nB,second\n",
        b"\xef\xbb\xbf# comment\nB,second\n",
        b"A,first\r\nB,second\r\n",
        b"A,first\rB,second\r",
        b"A,first\nB,second",
        b"A,first\nrubbish : here\n;;;\nB,second\n",
        b"",
    ],
    ids=range(19),
)
@pytest.mark.case(1)
@pytest.mark.case(8)
@pytest.mark.case(10)
@pytest.mark.case(13)
def test_lines_together_mean_to_us_what_they_mean_to_dnsmasq(
    lab: Lab, content: bytes
) -> None:
    one, two = "52:54:00:aa:bb:01", "52:54:00:aa:bb:02"
    for letter, mac in ((b"A", one), (b"a", one.upper()), (b"B", two)):
        content = content.replace(letter + b",", mac.encode() + b",")
    assert not differences(lab, content, [one, two])


def test_other_spellings_of_an_address_match_as_dnsmasq_matches_them(lab: Lab) -> None:
    content = (
        b"52:54:0:0:1:1,short\n52-54-00-00-02-01,hyphen\n525400000301,bare\n"
        b"52:54:00:0A:04:01,upper\n5254:0000:0501,groups\n52:54 00:00:06:01,space\n"
        b"52:54-00-00-07-01,mixed\n52-54:00:00:08:01,typed\n:52:54::00:00:09:01,empty\n"
        b"52:54:00:00:0a:01:,trailing\n"
    )
    macs = [f"52:54:00:{'0a' if n == 4 else '00'}:{n:02x}:01" for n in range(1, 11)]
    assert not differences(lab, content, macs)


def test_wildcards_bind_no_machine_although_dnsmasq_names_it(lab: Lab) -> None:
    content = b"52:54:00:*:*:*,anyvm\n52:54:00:00:00:01,worker-01\n"
    lab.serve(content)
    offers = lab.discover("52:54:00:00:00:01", "52:54:00:00:00:02")
    assert [offer and offer.hostname for offer in offers.values()] == [
        "worker-01",
        "anyvm",
    ]
    text = hosts.HostsText(content)
    assert text.line_of("52:54:00:00:00:02") is None
    assert text.lines[0].kind == "unmanaged"


@pytest.mark.case(12)
def test_an_address_outside_the_range_loses_the_name_in_dhcp_but_not_here(
    lab: Lab,
) -> None:
    mac = "52:54:00:00:00:01"
    content = b"52:54:00:00:00:01,10.9.9.9,worker-01\n"
    lab.serve(content)
    offer = lab.discover(mac)[mac]
    assert offer is not None
    assert offer.hostname is None
    assert said(content, mac) == "worker-01"


def test_lines_of_chance_mean_to_us_what_they_mean_to_dnsmasq(tmp_path: Path) -> None:
    # Pieces that mean something, put together without sense; the same ones each time.
    chance = random.Random(20261130)
    pieces = [
        *(
            b"M",
            b"M",
            b"M",
            b",",
            b",",
            b",",
            b",",
            b" ",
            b"#",
            b'"',
            b"\\",
            b":",
            b"-",
        ),
        *(
            b".",
            b"worker-01",
            b"Pc",
            b"12",
            b"h",
            b"3d",
            b"ignore",
            b"infinite",
            b"id:",
        ),
        *(b"set:", b"tag", b"[", b"]", b"*", b"\t", b"\r", b"10.77.3.", b"7", b"_"),
        *("机".encode(), b"\xff", b"\x02", b"net:x", b"52:54", b"ff", b"lab.lan"),
    ]
    macs, content = [], b""
    for number in range(600):
        macs.append(mac_number(number))
        line = b"".join(chance.choices(pieces, k=chance.randint(2, 9)))
        if chance.random() < 0.7:
            line = b"M," + line
        content += line.replace(b"M", macs[-1].encode()) + b"\n"
    with Lab(tmp_path, content) as lab:
        wrong = compare(lab, content, macs)
    lines = content.split(b"\n")
    assert not wrong, [
        (lines[macs.index(mac)], ours, theirs) for mac, ours, theirs in wrong
    ]
