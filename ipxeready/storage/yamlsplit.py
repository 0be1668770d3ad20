"""Taking a YAML file of the usual shape apart by lines: its records, and what stands between them, without parsing."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field

from ipxeready.storage import yamlload
from ipxeready.storage.broken import FileBroken

_KEY = r"""(?:"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\n]|'')*'|[^\s#"'\[\]{},&*!|>%@`?:-][^\n:#\t]*?)"""
#: Characters that YAML refuses or takes for line ends; refused ones may hide in a comment, which nobody parses here.
_REFUSED = re.compile(
    r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
#: The ASCII characters that are none of these.
_PLAIN = bytes([0x0A, 0x0D, *range(0x20, 0x7F)])
_KEEP = re.compile(r"[|>][0-9]?\+")
_RETURN = re.compile(r"\r(?!\n)")
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
    # Patterns that begin with a line end are found by a plain search for that, a hundred times as fast as `^`.
    if re.compile(r"\n[^\s#]", re.ASCII).search(text, max(0, body_at - 1)):
        return None  # another top key
    first = _FIRST.search(text, body_at)
    if first is None:
        return Pieces([Part(text)])
    if head["empty"]:
        return None
    return _split_body(text, body_at, len(first[1]))


def _odd(text: str) -> bool:
    """Shapes that the fast way does not understand: documents, directives, tabs, keep-chomping, odd characters."""
    if text.startswith(("---", "...", "%")):
        return True
    if any(mark in text for mark in ("\n---", "\n...", "\n%")):
        return True
    if text.isascii():
        refused = bool(text.encode().translate(None, _PLAIN))
    else:
        refused = _REFUSED.search(text) is not None
    return (
        refused
        or ("+" in text and _KEEP.search(text) is not None)
        or ("\r" in text and _RETURN.search(text) is not None)
    )


def _split_body(text: str, body_at: int, indent: int) -> Pieces | None:
    heads = list(
        re.compile(rf"\n {{{indent}}}({_KEY})[ ]*:(?=[ \r\n]|\Z)", re.ASCII).finditer(
            text, body_at - 1
        )
    )
    shallow = re.compile(rf"\n {{0,{indent}}}[^ \r\n#]")
    if len(heads) != sum(1 for _ in shallow.finditer(text, body_at - 1)):
        return None
    starts = [head.start() + 1 for head in heads]
    pieces = Pieces([Part(text[: starts[0]])], indent)
    line = pieces.parts[0].text.count("\n") + 1
    seen: set[str] = set()
    for head, start, stop in zip(heads, starts, [*starts[1:], len(text)], strict=True):
        segment = text[start:stop]
        key = _key_text(head[1])
        if key is None:
            return None
        if key in seen:
            pieces.doubled.add(key)
        seen.add(key)
        cut = _own(segment, indent)
        pieces.parts.append(Part(segment[:cut], key, line))
        if cut < len(segment):
            pieces.parts.append(Part(segment[cut:]))
        line += segment.count("\n")
    return pieces


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
    while start := segment.rfind("\n", 0, cut - 1) + 1:
        line = segment[start:cut]
        bare = line.lstrip(" ")
        width = len(line) - len(bare)
        # Deep spaces on an empty line may be content of a block of text.
        if width > indent or not (bare.startswith("#") or bare in ("", "\n", "\r\n")):
            break
        cut = start
    return cut


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
