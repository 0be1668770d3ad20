"""Fields of forms that take what is written literally."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

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
