"""Texts for people that can be shown in another language later: English wherever they are stored, told to programs or logged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Said(str):
    """English text that still knows its sentence and what was put into it, so that a page can say it in its own language.

    It is a plain `str` for everybody else. Slices, sums and f-strings of it are plain text: see `joined`.
    """

    template: str
    values: Mapping[str, Any]

    def __new__(
        cls,
        text: str,
        template: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Said:
        """Use `said()`, which the catalogue is made from."""
        self = super().__new__(cls, text)
        self.template = text if template is None else template
        self.values = values or {}
        return self


def said(template: str, /, **values: Any) -> Said:
    """A sentence for people. `template` is a literal: `manage.py translations` takes it into the catalogue.

    A value that is itself Said is translated with it. Without values braces stand for themselves.
    """
    return Said(template.format(**values) if values else template, template, values)


def clipped(text: str, most: int) -> str:
    """At most so many characters of a text for programs; a page says the whole of it."""
    return text if len(text) <= most else Said(text[:most], "{whole}", {"whole": text})


def joined(separator: str, *parts: str) -> Said:
    """Several texts as one, each of which is translated for itself."""
    values = {f"part_{number}": part for number, part in enumerate(parts)}
    return Said(
        separator.join(parts), separator.join(f"{{{name}}}" for name in values), values
    )
