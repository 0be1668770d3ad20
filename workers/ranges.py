"""Many names in one word: `lab-[01-30]` is lab-01 to lab-30."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ipxeready.errors import Invalid
from ipxeready.given import shown
from ipxeready.said import said

#: More names in one command are a slip of the finger.
MOST = 100_000
_RANGE = re.compile(r"([^\[\]]*)\[([0-9]{1,9})-([0-9]{1,9})\]([^\[\]]*)")


def expand(word: str, field: str = "range") -> list[str]:
    """The names that a word means; without brackets the word itself. Invalid says what is wrong with it.

    `[01-30]` counts with leading zeros, `[1-30]` without.
    """
    if "[" not in word and "]" not in word:
        return [word]
    found = _RANGE.fullmatch(word)
    if found is None:
        raise Invalid(
            said("{text} must have one range like lab-[01-30]", text=shown(word)),
            field=field,
        )
    before, first, last, after = found.groups()
    low, high = int(first), int(last)
    if high < low:
        raise Invalid(said("{text} must count upwards", text=shown(word)), field=field)
    if high - low >= MOST:
        raise Invalid(
            said(
                "{text} means {count} names; at most {most} are taken",
                text=shown(word),
                count=high - low + 1,
                most=MOST,
            ),
            field=field,
        )
    width = len(first) if first.startswith("0") else 0
    return [f"{before}{n:0{width}d}{after}" for n in range(low, high + 1)]


def expand_all(words: Iterable[str], field: str = "range") -> list[str]:
    """The names of several words, each once, in their order."""
    return list(dict.fromkeys(name for word in words for name in expand(word, field)))
