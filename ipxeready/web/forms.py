"""Fields of forms that take what is written literally, and choices of which some cannot be chosen."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from ipxeready.web.text import cut, visible
from ipxeready.web.words import in_words


class Barred(str):
    """The words of an option that is shown with its reason and cannot be chosen."""

    __slots__ = ()


def choice_words(words: str, problem: str | None) -> str:
    """The words of an option; with a problem they tell it, and the option is `Barred`."""
    if not problem:
        return words
    return Barred(f"{words}: {cut(visible(in_words(problem)), 120)}")


class BarringSelect(forms.Select):
    """A choice that greys what is `Barred`; what was sent all the same stays chosen, beside its refusal."""

    def create_option(
        self,
        name: str,
        value: Any,
        label: Any,
        selected: bool,
        index: int,
        subindex: int | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """As Django's."""
        option = super().create_option(
            name, value, label, selected, index, subindex, attrs
        )
        if isinstance(label, Barred) and not selected:
            option["attrs"]["disabled"] = True
        return option


_DIGITS = re.compile(r"-?[0-9]{1,1000}")


class WholeNumberField(forms.IntegerField):
    """A whole number in plain digits, as the API takes it: Django's own takes `1_0`, `+5` and `5.0` for numbers too."""

    def to_python(self, value: Any) -> int | None:
        """The number; None where nothing is written."""
        text = str(value).strip() if value is not None else ""
        if not text:
            return None
        if not _DIGITS.fullmatch(text):
            raise forms.ValidationError(
                _("%(value)s is no whole number: write it in digits, as 5000"),
                code="invalid",
                params={"value": text[:40]},
            )
        return int(text)
