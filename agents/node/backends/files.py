"""Images without iSCSI: a target table in the process, so that everything but the login can be tried."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from agents.node.backends.base import Backend, Export, access_shown, same
from agents.node.backends.sizes import size_of
from agents.protocol.access import Access
from agents.protocol.answers import Target
from agents.protocol.systems import DISK, FILES, LUN_NUMBER
from ipxeready.errors import ApplicationError, Conflict, Invalid
from ipxeready.said import said


class FilesBackend(Backend):
    """The table; it starts empty and is filled by the rebuild."""

    name = FILES
    cd = False
    persistent = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table: dict[str, Export] = {}

    def check(self) -> None:
        """Always there."""

    def targets(self) -> list[Target]:
        """The table, by IQN."""
        with self._lock:
            exports = sorted(self._table.values(), key=lambda e: e.iqn)
        return [_target(export) for export in exports]

    def export_all(
        self, exports: Sequence[Export]
    ) -> dict[str, ApplicationError | None]:
        """Put each into the table."""
        return {export.iqn: self._add(export) for export in exports}

    def unexport(self, iqn: str, *, force: bool = False) -> None:
        """Take it out of the table."""
        with self._lock:
            self._table.pop(iqn, None)

    def foreign(self) -> int:
        """The table is ours alone."""
        return 0

    def _add(self, export: Export) -> ApplicationError | None:
        if export.cd:
            return Invalid(
                said("the files backend has no CD drive; use a node with stgt.")
            )
        with self._lock:
            known = self._table.setdefault(export.iqn, export)
            if export.access is not None and same(_target(known), export):
                known = self._table[export.iqn] = export
        if same(_target(known), export):
            return None
        return Conflict(
            said("{iqn} exists already, with {path}.", iqn=export.iqn, path=known.path),
            code="target.differs",
        )


def _target(export: Export) -> Target:
    shown = access_shown(export.access or Access())
    return {
        "iqn": export.iqn,
        "luns": [
            {
                "lun": LUN_NUMBER[FILES],
                "backing": export.path,
                "size": size_of(export.path),
                "type": DISK,
            }
        ],
        "sessions": [],
        "access": shown["access"],
        "initiators": shown["initiators"],
    }
