"""Text that a file, a node or a machine wrote, made fit for a page: nothing in it is invisible, reorders what stands beside it or floods the page."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

#: Characters that one value may take up; the rest is in its title.
LONGEST: Final = 200
#: Of a title; what is longer than this is nobody's to read on a page.
LONGEST_TITLE: Final = 2000

#: Controls, formatting (bidi, zero width, tags), halves of pairs, private use, line and paragraph ends.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: They count as letters or signs, and nothing is seen of them.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@lru_cache(maxsize=4096)
def _seen(character: str) -> str:
    """The character, or its escape when nothing would be seen of it."""
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) not in _HIDDEN and character not in _BLANK:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def visible(value: object) -> str:
    """`value` in one line, as text: what would be invisible or act on the page is written as its escape."""
    text = "" if value is None else str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_seen, text))


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"


def _turns(text: str) -> bool:
    """Whether any of it is written from right to left."""
    return not text.isascii() and any(
        unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text
    )


def shown(value: object, longest: int = LONGEST) -> SafeString:
    """`value` for an element's content: visible, escaped, cut with the whole in a title, and turning nothing beside it.

    Text of ours that is HTML already stays what it is. In an attribute use `plain`.
    """
    if isinstance(value, SafeString):
        return value
    text = visible(value)
    short = cut(text, longest)
    if short != text:
        title = cut(text, LONGEST_TITLE)
        return format_html('<bdi class="cut" title="{}">{}</bdi>', title, short)
    if _turns(text):
        return format_html("<bdi>{}</bdi>", text)
    return conditional_escape(text)
