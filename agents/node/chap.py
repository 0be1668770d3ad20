"""The CHAP secrets of this node's initiators, in a file that only its owner may read. They leave it towards the target system only."""

from __future__ import annotations

from agents.node.folder import Folder
from agents.node.hidden import HiddenFile
from agents.protocol.access import Chap, check_chap
from ipxeready.errors import Conflict, Invalid
from ipxeready.said import said

NAME = ".chap.json"

_KEYS = {"username", "secret"}


class Secrets:
    """`.chap.json` in the image directory: initiator -> name and secret. Callers hold the node's lock around read and write."""

    def __init__(self, folder: Folder) -> None:
        self._file = HiddenFile(
            folder,
            NAME,
            mode=0o600,
            code="chap",
            mend=said(
                "Mend it, or delete it and set the access of the targets again; targets with CHAP "
                "stay shut meanwhile."
            ),
        )

    def read(self) -> dict[str, Chap]:
        """All secrets; a file that is broken or that others may read is Unavailable, and is never written over."""
        data = self._file.read()
        if data is None:
            return {}
        entries = data.get("secrets")
        if not isinstance(entries, dict):
            raise self._file.broken(said('"secrets" must map initiators to secrets'))
        return {name: self._entry(name, entry) for name, entry in entries.items()}

    def set(self, initiator: str, chap: Chap | None) -> Chap | None:
        """Remember the secret of an initiator, or forget it, and return what was there before.

        A name stands for one initiator: target systems keep one secret for each name.
        """
        secrets = self.read()
        before = secrets.get(initiator)
        if before == chap:
            return before
        if chap is None:
            del secrets[initiator]
        else:
            other = next(
                (
                    name
                    for name, known in secrets.items()
                    if known.username == chap.username and name != initiator
                ),
                None,
            )
            if other is not None:
                raise Conflict(
                    said(
                        "chap.username {username} is that of {other} already; each initiator needs a "
                        "username of its own.",
                        username=repr(chap.username),
                        other=other,
                    ),
                    code="chap.taken",
                )
            secrets[initiator] = chap
        self._file.write(
            {
                "version": 1,
                "secrets": {
                    name: {"username": known.username, "secret": known.secret}
                    for name, known in sorted(secrets.items())
                },
            }
        )
        return before

    def _entry(self, name: str, entry: object) -> Chap:
        problem: str = said('needs exactly "username" and "secret", both texts')
        if (
            isinstance(entry, dict)
            and set(entry) == _KEYS
            and all(isinstance(value, str) for value in entry.values())
        ):
            try:
                return check_chap(entry["username"], entry["secret"])
            except Invalid as error:
                problem = error.message
        raise self._file.broken(
            said("the entry of {name}: {problem}", name=name, problem=problem)
        )
