"""What pages say of refusals: the English of services, commands and files in the language of the page."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

from django.forms import BaseForm
from django.utils.translation import get_language, gettext
from django.utils.translation.trans_real import translation

from ipxeready.errors import ApplicationError
from ipxeready.said import Said

#: A template with less text of its own than this would be found everywhere.
_LEAST: Final = 3
#: Text that comes from a file is looked at no further than this.
_LONGEST: Final = 4000
#: Sentences in sentences in sentences.
_DEEPEST: Final = 5
#: What stands before a sentence of ours: a name or a field.
_LEAD: Final = re.compile(r"(\S{1,223}?: )(?=\S)")
#: What values look like that sentences with little text of their own have.
_LIKE: Final = {
    "initiator": re.compile(r"\S*[.:]\S*"),
    "iqn": re.compile(r"\S*[.:]\S*"),
    "address": re.compile(r"\S+|an unknown address"),
    "since": re.compile(r"\S+"),
}
#: Text that is so long may have been cut: programs get 200 characters of a node's words, files 500 of any.
_CUT: Final = 200
#: So much of its own a sentence must have before the cut to be known by it.
_ENOUGH: Final = 20
#: What stands for what was cut off.
_GONE: Final = "…"


def in_words(what: object) -> str:
    """A refusal, or its text, in the active language; text that nobody here wrote stays as it is.

    Text that went through a file (a job's, say) or was put together is plain English: its sentence is looked up
    in the catalogue.
    """
    text = what.message if isinstance(what, ApplicationError) else what
    return _worded(text, 0) if isinstance(text, str) else str(text)


def refuse(form: BaseForm, error: ApplicationError) -> None:
    """The refusal beside the field that it names, else above the form."""
    field = error.field if error.field in form.fields else None
    text = in_words(error)
    if field is None and error.field:
        text = f"{error.field}: {text}"
    form.add_error(field, text)


def _worded(text: str, depth: int) -> str:
    if depth > _DEEPEST:
        return str(text)
    if not isinstance(text, Said):
        language = get_language() or "en"
        if language.startswith("en") or not 1 < len(text) <= _LONGEST:
            return str(text)
        return _recognised(str(text), language, depth)
    words = gettext(text.template) if text.template else ""
    return _filled(words, text.values, depth) if text.values else words


def _filled(words: str, values: Mapping[str, Any], depth: int) -> str:
    return words.format(
        **{
            name: _worded(value, depth + 1)
            if isinstance(value, Said) or (isinstance(value, str) and " " in value)
            else value
            for name, value in values.items()
        }
    )


# --- plain text -----------------------------------------------------------------


@dataclass(frozen=True)
class _Sentence:
    """A template of the catalogue: the text around its values, and their names."""

    template: str
    texts: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def own(self) -> int:
        """Letters of its own."""
        return _letters("".join(self.texts))

    def values_in(self, text: str) -> dict[str, str] | None:
        """What stands in the places of the values, or None when it is another text."""
        first, *inner, last = self.texts
        if not (
            len(text) >= len(first) + len(last)
            and text.startswith(first)
            and text.endswith(last)
        ):
            return None
        at, end = len(first), len(text) - len(last)
        places = []
        for each in inner:
            found = text.find(each, at, end)
            if found < 0:
                return None
            places.append(text[at:found])
            at = found + len(each)
        places.append(text[at:end])
        return self._values(places)

    def values_before_a_cut(self, text: str) -> tuple[int, dict[str, str]] | None:
        """The same for a text whose end is missing, with how many letters of the sentence's own it has."""
        first, *others = self.texts
        if not text.startswith(first):
            return None
        at, places, there = len(first), [], first
        for number, each in enumerate(others):
            # The last text must be whole, which it is not: or nothing is missing.
            found = text.find(each, at) if number < len(others) - 1 else -1
            if found < 0:
                start = _start_at_the_end(text, at, each)
                places.append(text[at : len(text) - start] or _GONE)
                there += each[:start]
                break
            places.append(text[at:found])
            there += each
            at = found + len(each)
        places[-1] += _GONE if not start and places[-1] != _GONE else ""
        places += [_GONE] * (len(self.names) - len(places))
        values = self._values(places)
        return None if values is None else (_letters(there), values)

    def _values(self, places: list[str]) -> dict[str, str] | None:
        """By name, unless one name has two values, or one that it cannot have."""
        values: dict[str, str] = {}
        for name, value in zip(self.names, places, strict=True):
            known = values.setdefault(name, value)
            if known != value and _GONE not in value:
                return None
            like = _LIKE.get(name)
            if like is not None and not like.fullmatch(value) and _GONE not in value:
                return None
        return values


@functools.lru_cache(maxsize=2048)
def _recognised(text: str, language: str, depth: int) -> str:
    whole = gettext(text)
    if whole != text:
        return whole
    for sentence in _sentences(language):
        if (values := sentence.values_in(text)) is not None:
            return _filled(gettext(sentence.template), values, depth)
    if (cut := _recognised_before_a_cut(text, language, depth)) is not None:
        return cut
    if lead := _LEAD.match(text):
        return lead[1] + _worded(text[lead.end() :], depth + 1)
    parts = text.split("; ")
    if len(parts) > 1:
        return "; ".join(_worded(part, depth + 1) for part in parts)
    parts = text.split(", ")
    worded = [_worded(part, depth + 1) for part in parts]
    # Sentences have commas, too: only a list of nothing but ours is one.
    if len(parts) > 1 and all(map(str.__ne__, parts, worded)):
        return ", ".join(worded)
    return text


def _recognised_before_a_cut(text: str, language: str, depth: int) -> str | None:
    """A sentence whose end is missing: the one that has most in common with it."""
    if len(text) < _CUT:
        return None
    found = []
    for sentence in _sentences(language):
        if (cut := sentence.values_before_a_cut(text)) is not None:
            found.append((cut[0], sentence.template, cut[1]))
    if not found:
        return None
    letters, template, values = max(found, key=lambda each: each[:2])
    return _filled(gettext(template), values, depth) if letters >= _ENOUGH else None


@functools.cache
def _sentences(language: str) -> tuple[_Sentence, ...]:
    """The templates with values of the catalogue, those with most text of their own first."""
    # As Django's own JavaScriptCatalog reads it.
    found = [
        sentence
        for key in dict(translation(language)._catalog.items())  # type: ignore[attr-defined]
        if isinstance(key, str) and (sentence := _taken_apart(key)) is not None
    ]
    found.sort(key=lambda each: (-each.own, each.template))
    return tuple(each for each in found if each.own >= _LEAST)


def _letters(text: str) -> int:
    return sum(letter.isalpha() for letter in text)


def _start_at_the_end(text: str, at: int, each: str) -> int:
    """How many letters of `each` the text ends with, not before `at`."""
    longest = min(len(each), len(text) - at)
    return next((n for n in range(longest, 0, -1) if text.endswith(each[:n])), 0)


def _taken_apart(template: str) -> _Sentence | None:
    if "{" not in template:
        return None
    texts, names = [""], []
    try:
        for text, name in _pieces(template):
            texts[-1] += text
            if name is not None:
                names.append(name)
                texts.append("")
    except ValueError:  # braces that stand for themselves
        return None
    return _Sentence(template, tuple(texts), tuple(names)) if names else None


def _pieces(template: str) -> Iterator[tuple[str, str | None]]:
    for text, name, spec, conversion in Formatter().parse(template):
        if name is not None and (spec or conversion or not name.isidentifier()):
            raise ValueError(template)
        yield text, name
