"""Pure checks of a worker's values; each raises Invalid with field, value and rule."""

from __future__ import annotations

import re
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.given import one_of, shown
from ipxeready.said import said
from ipxeready.storage.iqn import OSES
from workers.choices import MENU_DEFAULTS

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def check_id(text: Any, field: str) -> str:
    """A worker's or node's id, lower-cased."""
    value = str(text).strip().lower()
    if not str(text).isascii() or not _ID.fullmatch(value):
        raise Invalid(
            said(
                "{text} must be 1 to 63 letters, digits, dots, hyphens or underscores, "
                "beginning with a letter or digit",
                text=shown(text),
            ),
            field=field,
        )
    return value


def check_worker_id(text: Any) -> str:
    """A worker's id, lower-cased."""
    return check_id(text, "worker_id")


def check_os(text: Any, field: str = "os") -> str:
    """A system's name, lower-cased."""
    return one_of(text, OSES, field)


def check_arch(text: Any) -> str:
    """A machine's architecture, lower-cased."""
    value = str(text).strip().lower()
    if not re.fullmatch(r"[a-z0-9_]{1,32}", value):
        raise Invalid(
            said(
                "{text} must be 1 to 32 letters, digits or underscores, such as x86_64",
                text=shown(text),
            ),
            field="arch",
        )
    return value


def check_menu_default(text: Any, field: str = "menu_default") -> str:
    """A system's name or an item of menu.ipxe."""
    return one_of(text, MENU_DEFAULTS, field)


def check_menu_timeout(value: Any, field: str = "menu_timeout") -> int:
    """Whole milliseconds, 0 (wait for a key for ever) or more."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise Invalid(
            said(
                "{text} must be whole milliseconds from 0 to {most}; 0 waits for a key for "
                "ever",
                text=shown(value),
                most=2**31 - 1,
            ),
            field=field,
        )
    return value
