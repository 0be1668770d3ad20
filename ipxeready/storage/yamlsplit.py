"""Taking a YAML file of the usual shape apart by lines: its records, and what stands between them, without parsing."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ipxeready.storage import yamlload
from ipxeready.storage.broken import FileBroken

_KEY = r"""(?:"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\n]|'')*'|[^\s#"'\[\]{},&*!|>%@`?:-][^\n:#\t]*?)"""
#: Characters that YAML refuses or takes for line ends, and tabs. Refused ones may hide in a comment, which nobody
#: parses here.
_ODD = re.compile(
    r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
#: The ASCII characters that are none of these.
_USUAL = bytes([0x0A, 0x0D, *range(0x20, 0x7F)])
_LONE_CR = re.compile(r"\r(?!\n)")
_KEEP = re.compile(r"[|>][0-9]?\+")
_BLANK = re.compile(r"(?:[ ]*(?:#[^\n]*)?\r?(?:\n|\Z))*")
_FIRST = re.compile(r"^( +)[^ \r\n#]", re.MULTILINE)


@dataclass(eq=False)
class Part:
    """A piece of the text: a record when it has a key, else what lies between records. Replaced, never changed."""

    text: str
    key: str | None = None
    line: int = 0
    _digest: str = ""

    @property
    def digest(self) -> str:
        """Digest of the text."""
        if not self._digest:
            self._digest = digest(self.text)
        return self._digest


@dataclass
class Pieces:
    """A file taken apart: `parts` joined are the text; records stand `indent` spaces deep."""

    parts: list[Part]
    indent: int = 2
    #: Keys that stand more than once.
    doubled: set[str] = field(default_factory=set)


def digest(text: str) -> str:
    """A short digest by which a text is known again."""
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _odd(text: str) -> bool:
    """Shapes that the fast way does not understand: documents, directives, kept line ends, odd characters."""
    marks = ("---", "...", "%")
    # Plain searches first: this runs over megabytes at each hand edit.
    return (
        text.startswith(marks)
        or any(f"\n{mark}" in text for mark in marks)
        or ("\r" in text and _LONE_CR.search(text) is not None)
        or ("+" in text and _KEEP.search(text) is not None)
        or _odd_character(text)
    )


def _odd_character(text: str) -> bool:
    if text.isascii():
        return bool(text.encode().translate(None, _USUAL))
    return _ODD.search(text) is not None


def split(text: str, top: str) -> Pieces | None:
    """The records below `top:`, None when the file has a shape that only a parser understands.

    A record's text says what the whole file says of it, provided that it parses alone to its own key.
    """
    if _odd(text):
        return None
    head = re.search(
        rf"^{re.escape(top)}:(?:(?:[ ]+(?P<empty>\{{[ ]*\}}|null|~))?[ ]*|[ ]+#[^\n]*)\r?$",
        text,
        re.MULTILINE,
    )
    if head is None or not _BLANK.fullmatch(text, 0, head.start()):
        return None
    end = text.find("\n", head.end())
    body_at = len(text) if end < 0 else end + 1
    # A pattern that begins with a line end is found by a plain search for that, much faster than `^`.
    if re.compile(r"\n[^\s#]", re.ASCII).search(text, max(0, body_at - 1)):
        return None  # another top key
    first = _FIRST.search(text, body_at)
    if first is None:
        return Pieces([Part(text)])
    if head["empty"]:
        return None
    return _split_body(text, body_at, len(first[1]))


def _split_body(text: str, body_at: int, indent: int) -> Pieces | None:
    head = re.compile(
        rf" {{{indent}}}({_KEY})[ ]*:(?=[ \r\n]|\Z)", re.MULTILINE | re.ASCII
    )
    first_line = text.count("\n", 0, body_at) + 1
    found: list[tuple[int, int, str]] = []
    for at, line in _shallow(text, body_at, indent):
        match = head.match(text, at)
        key = _key_text(match[1]) if match else None
        if key is None:
            return None
        found.append((at, first_line + line, key))
    pieces = Pieces([Part(text[: found[0][0]])], indent)
    seen: set[str] = set()
    stops = [at for at, _, _ in found[1:]] + [len(text)]
    for (at, line, key), stop in zip(found, stops, strict=True):
        segment = text[at:stop]
        if key in seen:
            pieces.doubled.add(key)
        seen.add(key)
        cut = _own(segment, indent)
        pieces.parts.append(Part(segment[:cut], key, line))
        if cut < len(segment):
            pieces.parts.append(Part(segment[cut:]))
    return pieces


def _shallow(text: str, body_at: int, indent: int) -> Iterator[tuple[int, int]]:
    """Offset and number of each line that stands as deep as the records or less deep and says something."""
    line, before = 0, body_at
    pattern = re.compile(rf"\n {{0,{indent}}}[^ \r\n#]")
    for match in pattern.finditer(text, body_at - 1):
        at = match.start() + 1
        line += text.count("\n", before, at)
        before = at
        yield at, line


def _key_text(raw: str) -> str | None:
    """The text of a key as YAML reads it; None when that is not certain."""
    if raw[0] not in "\"'":
        return raw
    try:
        value = yamlload.load(raw)
    except FileBroken:
        return None
    return value if isinstance(value, str) else None


def _own(segment: str, indent: int) -> int:
    """Where the record's own lines end: blank and comment lines behind them belong to nobody."""
    cut = len(segment)
    while True:
        end = cut - 1 if segment[cut - 1] == "\n" else cut
        start = segment.rfind("\n", 0, end) + 1
        line = segment[start:end]
        bare = line.lstrip(" ")
        # Deep spaces on an empty line may be content of a block of text.
        if (
            not start
            or len(line) - len(bare) > indent
            or not (bare.startswith("#") or bare in ("", "\r"))
        ):
            return cut
        cut = start


def salvage(text: str, top: str) -> Pieces:
    """What can be told apart of a file that does not parse: each record that parses alone and stands there once."""
    head = re.search(rf"^{re.escape(top)}:[ ]*(?:#[^\n]*)?\r?$", text, re.MULTILINE)
    found = Pieces([])
    if head is None:
        return found
    first = _FIRST.search(text, head.end())
    if first is None:
        return found
    found.indent = len(first[1])
    pattern = re.compile(
        rf"^(?: {{{found.indent}}}({_KEY})[ ]*:(?=\s|\Z)|[^\s#])",
        re.MULTILINE | re.ASCII,
    )
    heads = list(pattern.finditer(text, first.start()))
    for at, each in enumerate(heads):
        if each[1] is None:
            break  # another top key
        stop = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        segment = text[each.start() : stop]
        key = _key_text(each[1])
        line = text.count("\n", 0, each.start()) + 1
        part = Part(segment[: _own(segment, found.indent)], key, line)
        if key is not None and parsed(part) is not None:
            found.parts.append(part)
    number = Counter(part.key for part in found.parts)
    found.parts = [part for part in found.parts if number[part.key] == 1]
    return found


def parsed(part: Part) -> dict[str, object] | None:
    """The mapping of a record's text with its one key, None when it does not stand alone."""
    try:
        value = yamlload.load(part.text, part.line or 1)
    except FileBroken:
        return None
    return value if isinstance(value, dict) and list(value) == [part.key] else None
