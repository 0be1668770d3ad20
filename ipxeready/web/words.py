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
_LEAD: Final = re.compile(r"([^\s:]{1,80}: )(?=\S)")


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
        return sum(letter.isalpha() for text in self.texts for letter in text)

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
        values: dict[str, str] = {}
        for name, value in zip(self.names, places, strict=True):
            if values.setdefault(name, value) != value:
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
    if lead := _LEAD.match(text):
        return lead[1] + _worded(text[lead.end() :], depth + 1)
    parts = text.split("; ")
    if len(parts) > 1:
        return "; ".join(_worded(part, depth + 1) for part in parts)
    return text


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
