"""Values that people give: how an error shows one, and one that must be of a closed list."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.said import said


def shown(value: Any) -> str:
    """A value for an error message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def one_of(value: Any, choices: Collection[str], field: str) -> str:
    """`value`, lower-cased, if it is one of these, else Invalid."""
    word = str(value).strip().lower()
    if word not in choices:
        raise Invalid(
            said(
                "{text} must be one of {choices}",
                text=shown(value),
                choices=", ".join(choices),
            ),
            field=field,
        )
    return word
