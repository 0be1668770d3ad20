"""One YAML file of named records: split by lines, parsed record by record, changed without touching the rest.

The fast way takes a file of the usual shape (one top key, records at one indent, no anchors) apart with one
regular expression and parses each record alone; any other shape is parsed whole. Where the fast way answers, it
answers what a whole-file parse would (a property that the tests check).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

import yaml

from ipxeready.storage import yamledit, yamlload
from ipxeready.storage.broken import FileBroken, RecordBroken

_KEY = r"""(?:"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\n]|'')*'|[^\s#"'\[\]{},&*!|>%@`?:-][^\n:#\t]*?|[0-9][^\n:#\t]*?)"""
#: Shapes that the fast way does not understand: documents, directives, tabs, anchors, keep-chomping, odd white space.
_ODD = re.compile(
    r"^(?:---|\.\.\.|%)|\t|[|>][0-9]?\+|\r(?!\n)|[\x85\xa0\u2028\u2029\ufeff]",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Entry:
    """Where a record stands and a digest of its text (of its value, when the file is parsed whole)."""

    key: str
    line: int
    digest: str


@dataclass
class _Part:
    """A piece of the text: a record when it has a key, else what lies between records."""

    text: str
    key: str | None = None
    digest: str = ""

    def entry(self, line: int = 0) -> Entry:
        """The record's entry; the digest is kept until the text changes."""
        if not self.digest:
            self.digest = _digest(self.text)
        return Entry(self.key or "", line, self.digest)


def _digest(text: str) -> str:
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


class YamlText:
    """The records below one top key of a YAML file; FileBroken when the file is no such thing."""

    def __init__(self, content: bytes, top: str) -> None:
        self.top = top
        text = yamlload.decode(content)
        self._bom = text.startswith("\ufeff")
        text = text.removeprefix("\ufeff")
        self.newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
        self._values: dict[str, Any] = {}
        self._by_key: dict[str, _Part] | None = None
        self._lines: dict[str, int] = {}
        self._indent = 2
        self._parts: list[_Part] | None = self._split(text)
        self._whole: str | None = None
        if self._parts is None:
            self._load_whole(text)

    # --- reading ----------------------------------------------------------
    def _split(self, text: str) -> list[_Part] | None:
        if _ODD.search(text):
            return None
        heads = re.findall(r"^[^\s#][^\n]*", text, re.MULTILINE)
        if len(heads) != 1:
            return None
        top = re.search(
            rf"^{re.escape(self.top)}:[ ]*(\{{[ ]*\}}|null|~)?[ ]*\r?$",
            text,
            re.MULTILINE,
        )
        commented = re.search(
            rf"^{re.escape(self.top)}:[ ]+#[^\n]*$", text, re.MULTILINE
        )
        found = top or commented
        if not found:
            return None
        end = text.find("\n", found.end())
        body_at = len(text) if end < 0 else end + 1
        first = re.search(r"^( +)[^\s#]", text[body_at:], re.MULTILINE)
        if not first:
            return [_Part(text)]
        if top and top.group(1):
            return None
        indent = len(first.group(1))
        return self._split_body(text, body_at, indent)

    def _split_body(self, text: str, body_at: int, indent: int) -> list[_Part] | None:
        body = text[body_at:]
        pattern = re.compile(rf"^ {{{indent}}}({_KEY})[ ]*:(?=\s|$)", re.MULTILINE)
        shallow = re.compile(rf"^ {{0,{indent}}}[^\s#]", re.MULTILINE)
        matches = list(pattern.finditer(body))
        if len(matches) != len(shallow.findall(body)):
            return None
        parts = [_Part(text[: body_at + matches[0].start()])]
        self._lines = {}
        line = parts[0].text.count("\n") + 1
        for number, match in enumerate(matches):
            stop = (
                matches[number + 1].start() if number + 1 < len(matches) else len(body)
            )
            segment = body[match.start() : stop]
            key = _key_text(match.group(1))
            if key is None:
                return None
            if key in self._lines:
                raise FileBroken(
                    f"the key {key!r} stands twice, on line {self._lines[key]} and line "
                    f"{line}; rename or remove one",
                    line,
                    indent + 1,
                )
            self._lines[key] = line
            own, rest = _trim(segment, indent)
            parts.append(_Part(own, key))
            if rest:
                parts.append(_Part(rest))
            line += segment.count("\n")
        # Any span that does not parse alone to its own key sends us to the whole file.
        self._indent = indent
        return parts

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
                f"the file must be a mapping with the key `{self.top}`", 1, 1
            )
        if self.top not in value:
            first = node.value[0][0] if node.value else node
            raise FileBroken(
                f"the top-level key `{self.top}:` is missing",
                first.start_mark.line + 1,
                first.start_mark.column + 1,
            )
        records = value[self.top]
        where = self._top_node(node)
        if records is None:
            records = {}
        if not isinstance(records, dict):
            raise FileBroken(
                f"`{self.top}:` must hold a mapping of records",
                where.start_mark.line + 1,
                where.start_mark.column + 1,
            )
        self._values = records
        self._lines = {}
        if isinstance(where, yaml.MappingNode):
            for key, _ in where.value:
                self._lines[key.value] = key.start_mark.line + 1

    def _top_node(self, node: yaml.MappingNode) -> yaml.Node:
        found: yaml.Node = next(v for k, v in node.value if k.value == self.top)
        return found

    def entries(self) -> dict[str, Entry]:
        """Every record with its line (from 1) and digest."""
        if self._parts is None:
            return {
                key: Entry(
                    key,
                    self._lines.get(key, 0),
                    _digest("=" + json.dumps(value, sort_keys=True, default=str)),
                )
                for key, value in self._values.items()
            }
        found: dict[str, Entry] = {}
        line = 1
        for part in self._parts:
            if part.key is not None:
                found[part.key] = part.entry(line)
            line += part.text.count("\n")
        return found

    def entries_of(self, keys: list[str]) -> dict[str, Entry]:
        """The same for a few keys, without their lines and without a look at the others."""
        if self._parts is None:
            every = self.entries()
            return {key: every[key] for key in keys if key in every}
        found = {}
        for key in keys:
            part = self._part(key)
            if part is not None:
                found[key] = part.entry()
        return found

    def value(self, key: str) -> dict[str, Any] | None:
        """The record `key` as typed values, None when absent; RecordBroken when it is no mapping."""
        if self._parts is not None and key not in self._values:
            part = self._part(key)
            if part is None:
                return None
            self._values[key] = self._parse_part(part, key)
        found = self._values.get(key)
        if key in self._values and found is None:
            return {}
        if found is not None and not isinstance(found, dict):
            raise RecordBroken(
                f"{key}: a record must be a mapping of fields", self._lines.get(key, 0)
            )
        return found

    def _part(self, key: str) -> _Part | None:
        if self._by_key is None:
            self._by_key = {part.key: part for part in self._parts or () if part.key}
        return self._by_key.get(key)

    def check(self, keys: list[str]) -> None:
        """Parse the named records now; a file whose spans do not stand alone is parsed whole instead.

        Raises FileBroken when the whole file does not parse either.
        """
        if self._parts is None:
            return
        wanted = set(keys)
        for part in self._parts:
            if part.key is None or part.key not in wanted:
                continue
            try:
                self._values[part.key] = self._parse_part(part, part.key)
            except FileBroken:
                self._load_whole("".join(each.text for each in self._parts))
                return

    def _parse_part(self, part: _Part, key: str) -> Any:
        value = yamlload.load(part.text, self._lines.get(key, 1))
        if not isinstance(value, dict) or list(value) != [key]:
            raise FileBroken(f"{key}: not one record", self._lines.get(key, 0))
        return value[key]

    # --- writing ------------------------------------------------------------
    def put(self, key: str, new: dict[str, Any]) -> None:
        """Make the record `key` say `new`, changing only the lines that differ.

        RecordBroken when the record is written in a way that cannot be changed without losing something.
        """
        old = self.value(key)
        if old == new:
            return
        if self._parts is None:
            self._put_whole(key, old, new)
        elif old is None:
            self._append(key, new)
        else:
            part = self._part(key)
            assert part is not None  # noqa: S101 - value() found it
            part.text = self._edited(part.text, [key], old, new, {key: new})
            part.digest = ""
            self._values[key] = new

    def _edited(
        self,
        text: str,
        path: list[str],
        old: dict[str, Any],
        new: dict[str, Any],
        wanted: Any,
    ) -> str:
        root = yamlload.compose(text)
        node: yaml.Node | None = root
        parent: yaml.Node | None = None
        for step in path:
            if not isinstance(node, yaml.MappingNode):
                raise RecordBroken(f"{path[-1]}: cannot be edited here")
            parent, node = next(
                (pair for pair in node.value if pair[0].value == step), (None, None)
            )
        editor = yamledit.Editor(text, self.newline)
        if isinstance(node, yaml.MappingNode) and (old or node.flow_style):
            editor.mapping(node, old, new)
        elif node is not None and parent is not None:
            editor.whole_value(parent, node, new)
        result = yamledit.apply(text, editor.edits)
        try:
            same = yamlload.load(result) == wanted
        except FileBroken:
            same = False
        if not same:
            raise RecordBroken(
                f"{path[-1]}: this record cannot be changed without losing text "
                "(anchors in use?); write it out plainly by hand first"
            )
        return result

    def _append(self, key: str, new: dict[str, Any]) -> None:
        assert self._parts is not None  # noqa: S101 - guarded by put
        indent = self._indent
        lines = yamlload.dump({key: new}).split("\n")
        text = "".join(" " * indent + line + self.newline for line in lines)
        last = self._parts[-1]
        if len(self._parts) == 1 and last.key is None:
            last.text = self._opened(last.text)
        if last.text and not last.text.endswith("\n"):
            last.text += self.newline
        part = _Part(text, key)
        self._parts.append(part)
        if self._by_key is not None:
            self._by_key[key] = part
        self._values[key] = new

    def _opened(self, text: str) -> str:
        """The text of a file without records, ready for its first one."""
        return re.sub(
            rf"^({re.escape(self.top)}:)[ ]*(?:\{{[ ]*\}}|null|~)",
            r"\1",
            text,
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
            self._restart(text + f"{self.top}:{self.newline}")
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

    def _restart(self, text: str) -> None:
        self._whole = None
        self._values = {}
        self._by_key = None
        self._parts = self._split(text)
        if self._parts is None:
            self._load_whole(text)

    def remove(self, key: str) -> bool:
        """Take the record `key` out; False when it is not there."""
        if self._parts is None:
            if key not in self._values:
                return False
            text = self._whole or ""
            root = yamlload.load(text)
            left = {name: v for name, v in root[self.top].items() if name != key}
            wanted = {**root, self.top: left}
            self._load_whole(
                self._edited(text, [self.top], root[self.top], left, wanted)
            )
            return True
        part = self._part(key)
        if part is None:
            return False
        self._parts = [each for each in self._parts if each is not part]
        self._by_key = None
        self._values.pop(key, None)
        if not any(each.key for each in self._parts):
            # `workers:` with nothing below it reads as null: say {} where that fits.
            head = self._parts[0]
            head.text = re.sub(
                rf"^({re.escape(self.top)}:)[ ]*(?=\r?$)",
                r"\1 {}",
                head.text,
                flags=re.MULTILINE,
            )
            self._parts = [_Part("".join(each.text for each in self._parts))]
        return True

    def snapshot(self) -> Any:
        """State to go back to with `restore`."""
        parts = None
        if self._parts is not None:
            parts = [_Part(part.text, part.key, part.digest) for part in self._parts]
        return parts, self._whole, dict(self._values), dict(self._lines)

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""
        self._parts, self._whole, self._values, self._lines = state
        self._by_key = None

    def render(self) -> bytes:
        """The file's bytes as they should be written."""
        text = (
            self._whole or ""
            if self._parts is None
            else "".join(part.text for part in self._parts)
        )
        return (("\ufeff" if self._bom else "") + text).encode("utf-8")


def _key_text(raw: str) -> str | None:
    """The text of a key as YAML reads it; None when that is not certain."""
    if raw[0] not in "\"'":
        return raw
    try:
        value = yamlload.load(raw)
    except FileBroken:
        return None
    return value if isinstance(value, str) else None


def _trim(segment: str, indent: int) -> tuple[str, str]:
    """The record's own lines, and the blank and comment lines behind them that belong to nobody."""
    lines = segment.splitlines(keepends=True)
    cut = len(lines)
    while cut > 1:
        bare = lines[cut - 1].lstrip(" ")
        width = len(lines[cut - 1]) - len(bare)
        if bare.strip() and not (bare.startswith("#") and width <= indent):
            break
        cut -= 1
    return "".join(lines[:cut]), "".join(lines[cut:])
