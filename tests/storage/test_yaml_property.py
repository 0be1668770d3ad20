"""YAML records hold for any file: the fast way equals the parser, an edit touches its record only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from ipxeready.storage import yamlload, yamlsplit
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.yamledit import same
from ipxeready.storage.yamlrecords import YamlText
from tests.storage.odd_yaml import VALUES_TO_PUT, files, tame_files

MANY = settings(max_examples=600, deadline=None)


def by_parser(content: bytes) -> dict[str, Any]:
    """What a whole-file strict parse says of the records; FileBroken otherwise."""
    value = yamlload.load(content.decode().removeprefix("\ufeff"))
    if value is None:
        return {}
    if not isinstance(value, dict) or "workers" not in value:
        raise FileBroken("shape")
    records = value["workers"]
    if records is None:
        return {}
    if not isinstance(records, dict):
        raise FileBroken("shape")
    return records


def values(text: YamlText) -> dict[str, Any]:
    """Every record; one that is no mapping is shown as its refusal."""
    found: dict[str, Any] = {}
    for key in text.entries():
        try:
            found[key] = text.value(key)
        except RecordBroken:
            found[key] = "refused"
    return found


def as_shown(records: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {} if value is None else value if isinstance(value, dict) else "refused"
        for key, value in records.items()
    }


@MANY
@given(files())
def test_what_the_fast_way_answers_is_what_the_parser_says(content: bytes) -> None:
    try:
        wanted: dict[str, Any] | None = as_shown(by_parser(content))
    except FileBroken:
        wanted = None
    try:
        text = YamlText(content, "workers")
        text.check(list(text.entries()))
        got: dict[str, Any] | None = values(text)
    except FileBroken:
        got = None
    event("parses" if wanted is not None else "broken")
    assert got == wanted
    if got is not None:
        lines = content.decode().removeprefix("\ufeff").split("\n")
        for key, entry in text.entries().items():
            # A merged key stands on no line of its own.
            line = lines[entry.line - 1] if entry.line else key
            assert key in line or "\\u" in line


@MANY
@given(tame_files(), st.data())
def test_an_edit_changes_the_lines_of_its_record_only(
    content: bytes, data: st.DataObject
) -> None:
    before = YamlText(content, "workers")
    old = values(before)
    key = data.draw(st.sampled_from([*old, "worker-new", "no"]))
    new = data.draw(VALUES_TO_PUT)
    if key in old and data.draw(st.booleans()):
        new = {**old[key], **new}
    text = YamlText(content, "workers")
    try:
        text.put(key, new)
    except RecordBroken:
        event("refused")
        assert text.render() == content
        assert values(text) == old
        return
    event("edited")
    written = text.render()
    assert same(values(text), {**old, key: new})
    assert same(as_shown(by_parser(written)), {**old, key: new})
    only_this_record_differs(content, written, key)


@MANY
@given(tame_files(), st.data())
def test_a_removal_takes_the_lines_of_its_record_only(
    content: bytes, data: st.DataObject
) -> None:
    old = values(YamlText(content, "workers"))
    assume(old)
    key = data.draw(st.sampled_from(list(old)))
    text = YamlText(content, "workers")
    assert text.remove(key)
    left = {name: value for name, value in old.items() if name != key}
    written = text.render()
    assert values(text) == left
    assert as_shown(by_parser(written)) == left
    if left:
        only_this_record_differs(content, written, key)
    assert not text.remove(key)


@settings(MANY, suppress_health_check=[HealthCheck.filter_too_much])
@given(files(), st.data())
def test_an_edit_of_an_odd_file_succeeds_exactly_or_changes_nothing(
    content: bytes, data: st.DataObject
) -> None:
    try:
        text = YamlText(content, "workers")
        text.check(list(text.entries()))
    except FileBroken:
        assume(False)
        return
    old = values(text)
    key = data.draw(st.sampled_from([*old, "worker-new"]))
    new = data.draw(VALUES_TO_PUT)
    try:
        if data.draw(st.booleans()):
            text.put(key, new)
            wanted = {**old, key: new}
        else:
            assume(text.remove(key))
            wanted = {name: value for name, value in old.items() if name != key}
    except RecordBroken:
        assert text.render() == content
        assert values(text) == old
        return
    assert same(values(text), wanted)
    assert same(as_shown(by_parser(text.render())), wanted)


def only_this_record_differs(before: bytes, after: bytes, key: str) -> None:
    """Every byte outside of the record's own lines is where it was (a missing last line end may be added)."""

    def rest(content: bytes) -> str:
        pieces = yamlsplit.split(content.decode(), "workers")
        assert pieces is not None
        return "".join(part.text for part in pieces.parts if part.key != key)

    # A blank line behind a field that went may stand between records now.
    assert rest(after).split() == rest(before).split()
    assert [line for line in rest(after).splitlines() if line.strip()] == [
        line for line in rest(before).splitlines() if line.strip()
    ]


@given(tame_files(), st.data())
def test_going_back_to_a_snapshot_restores_every_byte(
    content: bytes, data: st.DataObject
) -> None:
    text = YamlText(content, "workers")
    old = values(text)
    state = text.snapshot()
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from([*old, "worker-new"]))
        try:
            if data.draw(st.booleans()):
                text.put(key, data.draw(VALUES_TO_PUT))
            else:
                text.remove(key)
        except RecordBroken:
            continue
    text.restore(state)
    assert text.render() == content
    assert values(text) == old
    assert text.entries_of(list(old)) == {
        key: entry for key, entry in text.entries().items() if key in old
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing\n",
        b"---\n",
        b"workers:",
        b"workers: {}\r\n",
        b"---\nworkers:\n",
    ],
)
def test_a_first_record_goes_into_an_empty_file(content: bytes) -> None:
    text = YamlText(content, "workers")
    text.put("worker-01", {"hostname": "worker-01"})
    assert by_parser(text.render()) == {"worker-01": {"hostname": "worker-01"}}
    assert text.remove("worker-01")
    assert by_parser(text.render()) == {}
