"""One YAML file of named records: split by lines, parsed record by record, changed without touching the rest.

The fast way takes a file of the usual shape (one top key, records at one indent, no anchors) apart with one
regular expression and parses each record alone; any other shape is parsed whole. Where the fast way answers, it
answers what a whole-file parse would (a property that the tests check).
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any, NamedTuple

import yaml

from ipxeready.said import said
from ipxeready.storage import yamledit, yamlload, yamlsplit
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.yamlsplit import Part


class Entry(NamedTuple):
    """Where a record stands and a digest of its text (of its value, when the file is parsed whole)."""

    key: str
    line: int
    digest: str


class YamlText:
    """The records below one top key of a YAML file; FileBroken when the file is no such thing."""

    def __init__(self, content: bytes, top: str) -> None:
        self.top = top
        text = yamlload.decode(content)
        self._bom = text.startswith("\ufeff")
        text = text.removeprefix("\ufeff")
        self.newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        self._start(text)

    def _start(self, text: str) -> None:
        self._values: dict[str, Any] = {}
        self._by_key: dict[str, Part] | None = None
        #: Lines of the records of a file that was parsed whole.
        self._lines: dict[str, int] = {}
        self._whole: str | None = None
        pieces = yamlsplit.split(text, self.top)
        if pieces is None or pieces.doubled:
            self._parts: list[Part] | None = None
            self._indent = 2
            self._load_whole(text)
        else:
            self._parts, self._indent = pieces.parts, pieces.indent

    @classmethod
    def salvage(cls, content: bytes, top: str) -> YamlText:
        """The intact records of a file that does not parse, for reading only."""
        self = cls(b"", top)
        text = content.decode("utf-8", "replace").removeprefix("\ufeff")
        self._parts, self._whole = yamlsplit.salvage(text, top).parts, None
        return self

    # --- reading ----------------------------------------------------------
    def _load_whole(self, text: str) -> None:
        """Parse everything; keeps the values of all records."""
        self._parts = None
        self._by_key = None
        self._whole = text
        node = yamlload.compose(text)
        value = yamlload.load(text)
        if value is None:
            self._values, self._lines = {}, {}
            return
        if not isinstance(node, yaml.MappingNode):
            raise FileBroken(
                said("the file must be a mapping with the key `{top}`", top=self.top),
                1,
                1,
            )
        if self.top not in value:
            first = node.value[0][0] if node.value else node
            raise FileBroken(
                said("the top-level key `{top}:` is missing", top=self.top),
                first.start_mark.line + 1,
                first.start_mark.column + 1,
            )
        records = value[self.top]
        where = next((v for k, v in node.value if k.value == self.top), node)
        if records is None:
            records = {}
        if not isinstance(records, dict):
            raise FileBroken(
                said("`{top}:` must hold a mapping of records", top=self.top),
                where.start_mark.line + 1,
                where.start_mark.column + 1,
            )
        self._values = records
        self._lines = {}
        if isinstance(where, yaml.MappingNode):
            for key, _ in where.value:
                self._lines[key.value] = key.start_mark.line + 1

    def entries(self) -> dict[str, Entry]:
        """Every record with its line (from 1) and digest."""
        if self._parts is None:
            return {
                key: Entry(
                    key,
                    self._lines.get(key, 0),
                    yamlsplit.digest(
                        "=" + json.dumps(value, sort_keys=True, default=str)
                    ),
                )
                for key, value in self._values.items()
            }
        return {
            part.key: Entry(part.key, part.line, part.digest)
            for part in self._parts
            if part.key is not None
        }

    def entries_of(self, keys: list[str]) -> dict[str, Entry]:
        """The same for a few keys, without a look at the others; lines may be those before the last edits."""
        if self._parts is None:
            every = self.entries()
            return {key: every[key] for key in keys if key in every}
        found = {}
        for key in keys:
            part = self._part(key)
            if part is not None:
                found[key] = Entry(key, part.line, part.digest)
        return found

    def value(self, key: str) -> dict[str, Any] | None:
        """The record `key` as typed values, not to be changed; None when absent, RecordBroken when it is no mapping."""
        line = self._lines.get(key, 0)
        if self._parts is not None:
            part = self._part(key)
            if part is None:
                return None
            line = part.line
            if key not in self._values:
                self._values[key] = _parse(part)
        if key not in self._values:
            return None
        found = self._values[key]
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise RecordBroken(
                said("{key}: a record must be a mapping of fields", key=key), line
            )
        return found

    def _part(self, key: str) -> Part | None:
        if self._by_key is None:
            self._by_key = {
                part.key: part for part in self._parts or () if part.key is not None
            }
        return self._by_key.get(key)

    def check(self, keys: list[str]) -> bool:
        """Parse the named records now; a file whose spans do not stand alone is parsed whole instead.

        True when it came to that: all entries are others then. Raises FileBroken when the whole file does not
        parse either.
        """
        if self._parts is None:
            return False
        wanted = set(keys)
        for part in self._parts:
            if part.key is None or part.key not in wanted:
                continue
            try:
                self._values[part.key] = _parse(part)
            except FileBroken:
                self._load_whole(self._text())
                return True
        return False

    # --- writing ------------------------------------------------------------
    def put(self, key: str, new: dict[str, Any]) -> None:
        """Make the record `key` say `new`, changing only the lines that differ.

        RecordBroken when the record is written in a way that cannot be changed without losing something; then
        nothing is changed.
        """
        old = self.value(key)
        if old is not None and yamledit.same(old, new):
            return
        new = copy.deepcopy(new)
        before = self.snapshot()
        try:
            if self._parts is None:
                self._put_whole(key, old, new)
            elif old is None:
                self._append(key, new)
            else:
                part = self._part(key)
                assert part is not None  # noqa: S101 - value() found it
                text = self._edited(part.text, [key], old, new, {key: new})
                self._replace(part, [Part(text, key, part.line)])
                self._values[key] = new
        except FileBroken as error:
            self.restore(before)
            raise _uneditable(key, error.where()) from None
        except RecordBroken:
            self.restore(before)
            raise

    def _replace(self, part: Part, new: list[Part]) -> None:
        parts = self._parts or []
        at = parts.index(part)
        self._parts = [*parts[:at], *new, *parts[at + 1 :]]
        if self._by_key is not None and part.key is not None:
            self._by_key.pop(part.key, None)
            self._by_key.update({each.key: each for each in new if each.key})

    def _edited(
        self,
        text: str,
        path: list[str],
        old: dict[str, Any],
        new: dict[str, Any],
        wanted: Any,
    ) -> str:
        node: yaml.Node | None = yamlload.compose(text)
        parent: yaml.Node | None = None
        for step in path:
            if not isinstance(node, yaml.MappingNode):
                raise _uneditable(path[-1], "anchors in use?")
            parent, node = next(
                (pair for pair in node.value if pair[0].value == step), (None, None)
            )
        editor = yamledit.Editor(text, self.newline)
        if isinstance(node, yaml.MappingNode) and (old or node.flow_style):
            editor.mapping(node, old, new)
        elif node is not None and parent is not None:
            editor.whole_value(parent, node, new)
        lost = editor.would_lose()
        if lost:
            raise _uneditable(path[-1], lost)
        result = yamledit.apply(text, editor.edits)
        try:
            same = yamledit.same(yamlload.load(result), wanted)
        except FileBroken:
            same = False
        if not same:
            raise _uneditable(path[-1], "anchors in use?")
        return result

    def _append(self, key: str, new: dict[str, Any]) -> None:
        parts = list(self._parts or ())
        lines = yamlload.dump({key: new}).split("\n")
        text = "".join(" " * self._indent + line + self.newline for line in lines)
        last = parts[-1]
        if len(parts) == 1 and last.key is None:
            last = parts[-1] = Part(self._opened(last.text))
        if last.text and not last.text.endswith("\n"):
            ended = Part(last.text + self.newline, last.key, last.line)
            if last.key is not None and _parse(ended) != _parse(last):
                raise _uneditable(last.key, "its last line has no end; end it")
            parts[-1] = ended
            self._by_key = None
        part = Part(text, key, _end(parts))
        if not yamledit.same(_parse(part), new):
            raise _uneditable(key, "its fields have types that YAML text cannot carry")
        self._parts = [*parts, part]
        if self._by_key is not None:
            self._by_key[key] = part
        self._values[key] = new

    def _opened(self, text: str) -> str:
        """The text of a file without records, ready for its first one."""
        return re.sub(
            rf"^({re.escape(self.top)}:)[ ]+(?:\{{[ ]*\}}|null|~)",
            r"\1",
            text,
            count=1,
            flags=re.MULTILINE,
        )

    def _put_whole(
        self, key: str, old: dict[str, Any] | None, new: dict[str, Any]
    ) -> None:
        text = self._whole or ""
        root = yamlload.load(text)
        if root is None:
            if text and not text.endswith("\n"):
                text += self.newline
            self._start(text + f"{self.top}:{self.newline}")
            if self._parts is None:
                self._put_whole(key, None, new)
            else:
                self._append(key, new)
            return
        records = dict(root[self.top] or {})
        wanted = {**root, self.top: {**records, key: new}}
        if old is not None:
            text = self._edited(text, [self.top, key], old, new, wanted)
        else:
            text = self._edited(
                text, [self.top], records, {**records, key: new}, wanted
            )
        self._load_whole(text)

    def remove(self, key: str) -> bool:
        """Take the record `key` out; False when it is not there, RecordBroken when the rest would change with it."""
        if self._parts is None:
            return self._remove_whole(key)
        part = self._part(key)
        if part is None:
            return False
        self._replace(part, [])
        self._values.pop(key, None)
        if not any(each.key is not None for each in self._parts):
            # `workers:` with nothing below it reads as null: say {} where that fits.
            text = re.sub(
                rf"^({re.escape(self.top)}:)[ ]*(?=\r?$)",
                r"\1 {}",
                self._text(),
                count=1,
                flags=re.MULTILINE,
            )
            self._parts = [Part(text)]
        return True

    def _remove_whole(self, key: str) -> bool:
        if key not in self._values:
            return False
        text = self._whole or ""
        root = yamlload.load(text)
        left = {name: v for name, v in root[self.top].items() if name != key}
        wanted = {**root, self.top: left}
        before = self.snapshot()
        try:
            self._load_whole(
                self._edited(text, [self.top], root[self.top], left, wanted)
            )
        except FileBroken as error:
            self.restore(before)
            raise _uneditable(key, error.where()) from None
        return True

    def snapshot(self) -> Any:
        """State to go back to with `restore`."""
        return self._parts, self._whole, dict(self._values), self._lines, self._indent

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._parts, self._whole, values, self._lines, self._indent = state
        self._values = dict(values)
        self._by_key = None

    def _text(self) -> str:
        if self._parts is None:
            return self._whole or ""
        return "".join(part.text for part in self._parts)

    def render(self) -> bytes:
        """The file's bytes as they should be written."""
        return (("\ufeff" if self._bom else "") + self._text()).encode("utf-8")


def _parse(part: Part) -> Any:
    value = yamlsplit.parsed(part)
    if value is None:
        raise FileBroken(said("{key}: not one record", key=part.key), part.line)
    return value[part.key or ""]


def _end(parts: list[Part]) -> int:
    """The number of the line behind the last part."""
    lines = 0
    for part in reversed(parts):
        lines += part.text.count("\n")
        if part.line:
            return part.line + lines
    return lines + 1


def _uneditable(key: str, why: str) -> RecordBroken:
    return RecordBroken(
        said(
            "{key}: this record cannot be changed without losing text ({why}); write it "
            "out plainly by hand first",
            key=key,
            why=why,
        )
    )
