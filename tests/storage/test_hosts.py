"""Reading the hosts file and editing it: what is not meant stays, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipxeready.errors import Conflict, Invalid, NotFound
from ipxeready.storage.hosts import HostsText, conflicts, parse

M1, M2, M3 = (f"52:54:00:00:00:0{n}" for n in (1, 2, 3))


def edit(content: bytes) -> HostsText:
    return HostsText(content)


def kinds(content: bytes) -> list[tuple[str, tuple[int, ...]]]:
    return [(found.kind, found.lines) for found in conflicts(parse(content))]


# Reading


@pytest.mark.case(2)
@pytest.mark.parametrize("name", ["101", "12h", "3d", "7W", "45s"])
def test_a_lease_time_is_shown_as_one_and_is_no_name(name: str) -> None:
    [line] = parse(f"{M1},{name}\n".encode())
    assert (line.kind, line.hostname) == ("entry", None)
    assert line.problem == f"no hostname: `{name}` is a lease time"


@pytest.mark.case(4)
def test_ignore_is_dhcp_refused_and_stays_on_every_rewrite() -> None:
    text = edit(b"52:54:00:00:00:09,ignore\n")
    [line] = text.lines
    assert (line.kind, line.hostname) == ("refused", None)
    assert "DHCP refused" in (line.problem or "")
    text.bind(M1, "worker-01")
    text.unbind(M1)
    text.unbind("52:54:00:00:00:09")
    assert text.render() == b"52:54:00:00:00:09,ignore\n"
    with pytest.raises(Conflict, match="ignore"):
        text.bind("52:54:00:00:00:09", "worker-09")


@pytest.mark.case(6)
def test_comments_and_what_only_looks_like_one() -> None:
    content = (
        b"52:54:00:00:00:01,worker-01 #rack 3\n52:54:00:00:00:02,worker-02#rack3\n"
        b"\n   # 52:54:00:00:00:03,worker-03\n#52:54:00:00:00:04,worker-04\n\n"
    )
    lines = parse(content)
    assert [line.kind for line in lines] == [
        *("entry", "invalid", "blank", "comment", "comment", "blank"),
    ]
    assert [line.macs for line in lines if line.macs] == [(M1,)]
    text = edit(content)
    text.bind("52:54:00:00:00:04", "worker-44")
    text.unbind(M1)
    assert text.render() == (
        content.partition(b"\n")[2] + b"52:54:00:00:00:04,worker-44\n"
    )


@pytest.mark.case(7)
def test_a_tag_is_kept_and_warned_about() -> None:
    [line] = parse(b"52:54:00:00:00:01,set:lab,worker-01\n")
    assert (line.kind, line.tags) == ("entry", ("lab",))
    assert "aborts" in (line.problem or "")


@pytest.mark.case(21)
def test_a_long_address_written_by_hand_is_kept_and_no_machine() -> None:
    content = b"00:11:22:33:44:55:66:77,worker-01\n" + b"%s,worker-02\n" % (
        b":".join([b"52"] * 20)
    )
    text = edit(content)
    assert [line.kind for line in text.lines] == ["unmanaged", "unmanaged"]
    assert "6-byte" in (text.lines[0].problem or "")
    text.bind(M1, "worker-01")
    assert text.render() == content + b"52:54:00:00:00:01,worker-01\n"


@pytest.mark.case(49)
@pytest.mark.case(53)
def test_names_that_dnsmasq_takes_but_iscsi_cannot_are_flagged() -> None:
    first, second = parse(
        b"52:54:00:00:00:01,worker_01\n52:54:00:00:00:02," + b"x" * 64 + b"\n"
    )
    assert (first.kind, first.hostname) == ("entry", "worker_01")
    assert "underscore" in (first.problem or "")
    assert second.kind == "invalid"
    assert "drops this line" in (second.problem or "")


@pytest.mark.case(13)
def test_the_cause_of_a_dropped_line_is_named() -> None:
    bom, *_ = parse(b"\xef\xbb\xbf52:54:00:00:00:01,a1\n52:54:00:00:00:02,b1\n")
    assert "BOM" in (bom.problem or "")
    [cr] = parse(b"52:54:00:00:00:01,w1\r52:54:00:00:00:02,w2\r")
    assert "CR" in (cr.problem or "")
    [hyphens] = parse(b"52-54-00-00-00-01,a1\n")
    assert "Write 52:54:00:00:00:01" in (hyphens.problem or "")


# Conflicts


@pytest.mark.case(1)
@pytest.mark.parametrize("second", ["worker-01", "WORKER-01", "worker-01.lab"])
def test_one_name_for_two_machines_is_a_conflict_and_stays_on_disk(second: str) -> None:
    content = f"{M1},worker-01\n{M2},{second}\n".encode()
    assert kinds(content) == [("hostname-twice", (1, 2))]
    assert edit(content).render() == content
    with pytest.raises(Conflict, match="52:54:00:00:00:01"):
        edit(content).bind(M3, "worker-01")


@pytest.mark.case(8)
def test_several_cards_of_one_machine_are_no_conflict() -> None:
    content = b"52:54:00:00:00:01,52:54:00:00:00:02,worker-01\n"
    text = edit(content)
    assert kinds(content) == []
    assert [line.macs for line in text.lines_named("worker-01")] == [(M1, M2)]
    assert text.line_of(M2) == text.line_of(M1)
    text.unbind(M1)
    assert text.render() == b"52:54:00:00:00:02,worker-01\n"


@pytest.mark.case(10)
def test_of_one_mac_twice_the_later_line_counts() -> None:
    content = b"52:54:00:aa:bb:01,first\n52:54:00:AA:BB:01,second\n"
    text = edit(content)
    assert kinds(content) == [("mac-twice", (1, 2))]
    assert (line := text.line_of("52:54:00:aa:bb:01"))
    assert (line.number, line.hostname) == (2, "second")
    gone = text.bind("52-54-00-aa-bb-01", "third")
    assert [(line.number, line.hostname) for line in gone] == [(1, "first")]
    assert text.render() == b"52:54:00:AA:BB:01,third\n"


def test_one_address_twice_voids_the_second_line() -> None:
    content = b"\n52:54:00:00:00:01,10.0.0.5,worker-01\n52:54:00:00:00:02,10.0.0.5,worker-02\n"
    text = edit(content)
    assert kinds(content) == [("ip-twice", (2, 3))]
    assert text.line_of(M2) is None
    assert "line 2" in (text.lines[2].problem or "")
    assert text.lines_of(M2) == [text.lines[2]]
    # The name is free, and binding leaves one line that works.
    text.bind(M3, "worker-02")
    assert [line.number for line in text.bind(M2, "worker-04")] == [3]
    assert (line := text.line_of(M2))
    assert line.hostname == "worker-04"


def test_the_same_machine_twice_with_the_same_name_has_no_second_user_of_its_disk() -> (
    None
):
    assert kinds(b"52:54:00:00:00:01,w1\n52:54:00:00:00:01,w1\n") == [
        ("mac-twice", (1, 2))
    ]


# Binding


@pytest.mark.case(3)
@pytest.mark.parametrize(
    "first",
    [b"52:54:00:00:00:01,worker-01", b"# a comment", b"rubbish,,:", b"\xef\xbb\xbf"],
)
def test_a_last_line_without_its_end_gets_one_first(first: bytes) -> None:
    text = edit(first)
    text.bind(M2, "worker-02")
    assert text.render() == first + b"\n52:54:00:00:00:02,worker-02\n"


@pytest.mark.case(13)
@pytest.mark.parametrize(
    ("content", "end"),
    [
        (b"", b"\n"),
        (b"# a\r\n# b\r\n# c\n", b"\r\n"),
        (b"# a\r\n# b\n# c\n", b"\n"),
        (b"# a\r\n# \xe9", b"\r\n"),
        (b"52:54:00:00:00:09,x\r\xff\r", b"\n"),
    ],
)
def test_new_lines_end_as_most_lines_do(content: bytes, end: bytes) -> None:
    text = edit(content)
    text.bind(M1, "worker-01")
    added = text.render().removeprefix(content).lstrip(b"\r\n")
    assert added == b"52:54:00:00:00:01,worker-01" + end
    assert text.line_of(M1)


@pytest.mark.case(7)
def test_only_the_name_changes_on_a_line_with_other_fields() -> None:
    content = (
        b"# top\r\n52:54:00:00:00:01,set:lab,id:*,10.0.0.51,worker-01,45m # desk\n"
    )
    text = edit(content)
    text.rename("worker-01", "worker-09")
    text.bind(M2, "worker-02")
    expected = content.replace(b"worker-01", b"worker-09")
    assert text.render() == expected + b"52:54:00:00:00:02,worker-02\n"
    text.bind(M1, "worker-10")
    assert b"set:lab,id:*,10.0.0.51,worker-10,45m # desk\n" in text.render()
    [gone] = text.unbind(M1)
    assert (gone.number, gone.ip, gone.tags) == (2, "10.0.0.51", ("lab",))
    assert text.render() == b"# top\r\n52:54:00:00:00:02,worker-02\n"


def test_of_several_names_the_one_that_counts_is_changed() -> None:
    text = edit(b"52:54:00:00:00:01,192.168.1.999,worker-01\n")
    text.rename("worker-01", "worker-02")
    assert text.render() == b"52:54:00:00:00:01,192.168.1.999,worker-02\n"


def test_the_same_binding_again_changes_no_byte() -> None:
    content = b" 52:54:0:0:0:1 , Worker-01.lab , 10.0.0.5 #x"
    text = edit(content)
    assert text.bind(M1, "worker-01") == []
    assert text.render() == content


@pytest.mark.case(1)
def test_a_name_moves_only_when_asked_to() -> None:
    text = edit(b"52:54:00:00:00:01,worker-01\n")
    with pytest.raises(Conflict) as caught:
        text.bind(M2, "Worker-01")
    assert caught.value.extra == {"macs": [M1], "line": 1}
    assert text.render() == b"52:54:00:00:00:01,worker-01\n"
    assert [line.macs for line in text.bind(M2, "worker-01", move=True)] == [(M1,)]
    assert text.render() == b"52:54:00:00:00:02,worker-01\n"


def test_one_card_of_several_gets_a_line_of_its_own_for_another_name() -> None:
    text = edit(b"52:54:00:00:00:01,52:54:00:00:00:02,worker-01\n")
    [gone] = text.bind(M1, "worker-07")
    assert gone.hostname == "worker-01"
    assert text.render() == (
        b"52:54:00:00:00:02,worker-01\n52:54:00:00:00:01,worker-07\n"
    )


def test_a_line_without_a_name_gets_one_behind_its_mac() -> None:
    text = edit(b"52:54:00:00:00:01,10.0.0.5,12h\n52:54:00:00:00:02,101\n")
    text.bind(M1, "worker-01")
    text.bind(M2, "worker-02")
    assert text.render() == (
        b"52:54:00:00:00:01,worker-01,10.0.0.5,12h\n52:54:00:00:00:02,worker-02,101\n"
    )


@pytest.mark.case(2)
@pytest.mark.parametrize("name", ["101", "ignore", "a\nb", "a,b", "worker_01", ""])
def test_nothing_is_written_that_dnsmasq_would_take_for_something_else(
    name: str,
) -> None:
    text = edit(b"")
    with pytest.raises(Invalid):
        text.bind(M1, name)
    assert text.render() == b""


# Other edits


@pytest.mark.case(8)
@pytest.mark.parametrize(
    ("content", "left"),
    [
        (b"A,B,worker-01\n", b"B,worker-01\n"),
        (b"B , A , worker-01 # x\n", b"B , worker-01 # x\n"),
        (b"worker-01,B,A\r\n", b"worker-01,B\r\n"),
        (b"  A, B,worker-01", b"  B,worker-01"),
        (b"A,worker-01,A,B,\n", b"worker-01,B,\n"),
        (b"A,52:54:00:*:*:*,worker-01\n", b"52:54:00:*:*:*,worker-01\n"),
        (b"A,id:*,set:x,10.0.0.1,worker-01\n", b""),
        (b"A,A,worker-01\n# end", b"# end"),
    ],
)
def test_unbinding_one_mac_takes_just_its_field(content: bytes, left: bytes) -> None:
    def fill(line: bytes) -> bytes:
        return line.replace(b"A", M1.encode()).replace(b"B", M2.encode())

    text = edit(fill(content))
    assert len(text.unbind(M1)) == 1
    assert text.render() == fill(left)


def test_a_name_goes_with_all_its_lines() -> None:
    text = edit(
        b"52:54:00:00:00:01,w1\n# keep\n52:54:00:00:00:02,W1.lab\n52:54:00:00:00:03,w2\n"
    )
    assert [line.number for line in text.unbind_hostname("W1")] == [1, 3]
    assert text.render() == b"# keep\n52:54:00:00:00:03,w2\n"


def test_another_mac_takes_the_place_of_the_old_one() -> None:
    text = edit(
        b"52-x\n52:54:00:00:00:01,10.0.0.5,worker-01 #x\n52:54:00:00:00:03,9h\n"
    )
    gone = text.replace_mac("worker-01", M1, "52-54-00-00-00-03")
    assert [line.number for line in gone] == [3]
    assert text.render() == b"52-x\n52:54:00:00:00:03,10.0.0.5,worker-01 #x\n"
    assert text.line_of(M1) is None


def test_a_mac_of_another_name_is_not_taken_away_unasked() -> None:
    text = edit(b"52:54:00:00:00:01,w1\n52:54:00:00:00:02,w2\n")
    with pytest.raises(Conflict, match="w2"):
        text.replace_mac("w1", M1, M2)
    with pytest.raises(NotFound):
        text.replace_mac("w1", M3, M2)
    assert [line.hostname for line in text.replace_mac("w1", M1, M2, move=True)] == [
        "w2"
    ]
    assert text.render() == b"52:54:00:00:00:02,w1\n"


def test_a_name_that_is_taken_is_no_new_name() -> None:
    text = edit(b"52:54:00:00:00:01,w1\n52:54:00:00:00:02,w2\n")
    with pytest.raises(Conflict):
        text.rename("w1", "w2")
    with pytest.raises(NotFound):
        text.rename("w3", "w4")


def test_lines_keep_their_numbers_right_after_edits() -> None:
    text = edit(b"# a\n52:54:00:00:00:01,w1\n\n52:54:00:00:00:02,w2\n")
    text.unbind(M1)
    text.bind(M3, "w3")
    assert (line := text.line_of(M2)) and line.number == 3
    assert text.lines == parse(text.render())
    assert (line := text.line_of(M3)) and line.number == 4


# Whatever the file holds

PIECES = st.sampled_from(
    [
        *(
            b"52:54:00:00:00:01",
            b"52:54:0:0:0:2",
            b"52:54:00:00:00:03",
            b",",
            b",",
            b",",
        ),
        *(b"\n", b"\n", b"\r\n", b"\r", b" ", b"#", b'"', b"worker-01", b"worker-02"),
        *(
            b"10.0.0.1",
            b"12h",
            b"ignore",
            b"set:x",
            b"id:*",
            b"id:01:02",
            b"\xef\xbb\xbf",
        ),
        *(
            b"*",
            b"52:54:*:*:*:*",
            b"\xe9",
            b"\0",
            b"x" * 1100,
            b"tag:y",
            b"[::1]",
            b".",
        ),
    ]
)
CONTENT = st.binary(max_size=200) | st.lists(PIECES, max_size=40).map(b"".join)


@given(CONTENT)
def test_an_untouched_file_comes_back_as_it_was(content: bytes) -> None:
    text = edit(content)
    assert text.render() == content
    assert b"".join(line.raw for line in parse(content)) == content
    assert text.lines == parse(content)
    assert all(found.message.isprintable() for found in conflicts(text.lines))


@given(CONTENT, st.sampled_from([M1, M2, M3]), st.booleans())
def test_what_is_bound_is_bound_and_all_else_stays(
    content: bytes, mac: str, move: bool
) -> None:
    text = edit(content)
    before = text.lines
    try:
        gone = text.bind(mac, "worker-01", move=move)
    except Conflict:
        assert text.render() == content
        return
    after = parse(text.render())
    assert after == text.lines
    holding = [line for line in after if mac in line.macs and line.kind == "entry"]
    assert [line.hostname for line in holding] == ["worker-01"]
    assert (line := text.line_of(mac)) and line == holding[0]
    named = [line for line in after if line.hostname == "worker-01" and line.macs]
    assert all(mac in line.macs for line in named if line.kind == "entry")
    touched = {line.number for line in gone} | {
        line.number for line in before if mac in line.macs
    }
    kept = [line.raw for line in before if line.number not in touched]
    remaining = iter([*(line.raw for line in after)])
    # In order, and whole but for the line end that the last one may have lacked.
    assert all(
        any(raw in (old, old + b"\n", old + b"\r\n") for raw in remaining)
        for old in kept
    )


@given(CONTENT, st.sampled_from([M1, M2, M3]))
def test_what_is_unbound_is_unbound(content: bytes, mac: str) -> None:
    text = edit(content)
    text.unbind(mac)
    assert not [
        line
        for line in parse(text.render())
        if mac in line.macs and line.kind == "entry"
    ]
