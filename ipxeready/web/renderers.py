"""JSON of the API, whatever is in it."""

from __future__ import annotations

from typing import Any

from rest_framework.renderers import JSONRenderer


class AnyJSONRenderer(JSONRenderer):
    """Readable in every language; an answer with half a character (a file name that is no UTF-8 has them) in escapes alone."""

    def render(self, *words: Any, **named: Any) -> bytes:
        """The bytes."""
        try:
            return bytes(super().render(*words, **named))
        except UnicodeEncodeError:
            return bytes(_Escaped().render(*words, **named))


class _Escaped(JSONRenderer):
    ensure_ascii = True
