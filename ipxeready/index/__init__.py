"""The throw-away projection of the files: freshness, resync, and the one writer.

Import from here inside functions or after apps are ready; models load late by Django's rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipxeready.index.freshness import ensure_fresh, rebuild
    from ipxeready.index.grouped import Grouped
    from ipxeready.index.journal import JournalSource, register_journal
    from ipxeready.index.selectors import files, problems
    from ipxeready.index.sources import Fault, JsonSource, Source, YamlSource, register
    from ipxeready.index.verify import verify_index
    from ipxeready.index.writer import Draft, Transaction, append_log, writing

__all__ = [
    "Draft",
    "Fault",
    "Grouped",
    "JournalSource",
    "JsonSource",
    "Source",
    "Transaction",
    "YamlSource",
    "append_log",
    "ensure_fresh",
    "files",
    "problems",
    "rebuild",
    "register",
    "register_journal",
    "verify_index",
    "writing",
]

_HOMES = {
    "freshness": ("ensure_fresh", "rebuild"),
    "grouped": ("Grouped",),
    "journal": ("JournalSource", "register_journal"),
    "selectors": ("files", "problems"),
    "sources": ("Fault", "JsonSource", "Source", "YamlSource", "register"),
    "verify": ("verify_index",),
    "writer": ("Draft", "Transaction", "append_log", "writing"),
}


def __getattr__(name: str) -> Any:
    """Load the part that holds `name`: models may only be imported once the apps are there."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"ipxeready.index.{module}"), name)
    raise AttributeError(name)
