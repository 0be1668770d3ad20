"""The filters that every template has without loading anything (settings: `builtins`)."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from ipxeready.storage.sizes import format_size
from ipxeready.web import text
from ipxeready.web.words import in_words as _in_words

register = template.Library()


@register.filter(is_safe=True)
def shown(value: object, longest: int = text.LONGEST) -> SafeString:
    """Text that a file, a node or a machine wrote, as an element's content."""
    return text.shown(value, longest)


@register.filter
def plain(value: object, longest: int = text.LONGEST_TITLE) -> str:
    """The same for an attribute: a title, a label, an option; never for a value that a form sends back."""
    return text.cut(text.visible(value), longest)


@register.filter
def in_words(value: object) -> str:
    """A refusal or a reason, as services tell it and files keep it, in the language of the page."""
    return "" if value is None else _in_words(value)


@register.filter
def size(value: object) -> str:
    """Bytes as people write them; nothing for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return ""
    return format_size(value)
