"""What is wrong right now, in kinds: how many, the first few, how to mend it. The pages and /healthz tell the same.

Each app names its kinds and adds a source when it is ready; a source reads what is known and asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.utils.functional import Promise

T = TypeVar("T")

#: So many are named; more are counted.
NAMED: Final = 5


@dataclass(frozen=True)
class Kind:
    """A kind of trouble. Its words are lazy: a trouble is told in the language of who reads it."""

    name: str
    title: Any
    """With %(count)s, from `ngettext_lazy(..., "count")`."""
    mend: str | Promise
    grave: bool = True
    """Something does not work, or is open to others; else it may be meant."""
    codes: tuple[str, ...] = ()
    """Codes of problems in the files that are of this kind; `hosts.` stands for all that begin so."""


@dataclass(frozen=True)
class Item:
    """One of them: text as a file, a node or a machine has it, and the page where it is mended."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Trouble:
    """All of one kind."""

    kind: Kind
    count: int
    items: tuple[Item, ...]
    url: str = ""
    """The page that shows them all."""

    @property
    def title(self) -> str:
        """What is wrong."""
        return str(self.kind.title % {"count": self.count})

    @property
    def mend(self) -> str:
        """What to do."""
        return str(self.kind.mend)

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.count - len(self.items)

    def told(self) -> dict[str, Any]:
        """For callers."""
        return {
            "kind": self.kind.name,
            "grave": self.kind.grave,
            "count": self.count,
            "title": self.title,
            "mend": self.mend,
            "named": [item.text for item in self.items],
        }


Source = Callable[[], Iterable[Trouble]]

KINDS: dict[str, Kind] = {}
_SOURCES: list[Source] = []


def kind(name: str, **words: Any) -> Kind:
    """Make a kind known."""
    return KINDS.setdefault(name, Kind(name, **words))


def trouble_source(source: Source) -> None:
    """Add a source; adding it again changes nothing."""
    if source not in _SOURCES:
        _SOURCES.append(source)


def kind_of_code(code: str) -> Kind | None:
    """The kind of a problem in a file: the one that names its code, else the longest beginning of it."""
    found = [
        (len(each), kind)
        for kind in KINDS.values()
        for each in kind.codes
        if each == code or (each.endswith(".") and code.startswith(each))
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def many(
    kind: Kind, things: Sequence[T], item: Callable[[T], Item], *, url: str = ""
) -> list[Trouble]:
    """A trouble of these things, none when there are none; only those that are named become items."""
    if not things:
        return []
    return [Trouble(kind, len(things), tuple(map(item, things[:NAMED])), url)]


def troubles() -> list[Trouble]:
    """What is wrong, the grave first."""
    found = [trouble for source in _SOURCES for trouble in source()]
    return sorted(found, key=lambda trouble: not trouble.kind.grave)
