"""What a node is asked to make or change, body by body."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from agents.protocol.access import Chap


@dataclass(frozen=True)
class DiskRequest:
    """`POST /lun/disk`: clone `master`, make an empty disk of `size`, export what is there, or give another image this name.

    `access` None leaves it to the node: what it remembers of that target, else its default.
    """

    iqn: str
    master: str | None = None
    size: int | str | None = None
    existing: bool = False
    import_: str | None = None
    filename: str | None = None
    access: str | None = None
    chap: Chap | None = None

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {
            "iqn": self.iqn,
            "master": self.master,
            "size": self.size,
            "import": self.import_,
            "filename": self.filename,
        }
        if self.existing:
            fields["existing"] = True
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


@dataclass(frozen=True)
class CdRequest:
    """`POST /lun/cd`: attach an ISO of the image directory, under its own name unless `iqn` says another."""

    iso: str
    iqn: str | None = None
    access: str | None = None
    chap: Chap | None = None

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {"iso": self.iso, "iqn": self.iqn}
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


@dataclass(frozen=True)
class AccessRequest:
    """`POST /lun/access`: who may log in to a target that is there.

    `force` also where a machine that is connected could not come back after a break of its connection.
    """

    iqn: str
    access: str
    chap: Chap | None = None
    force: bool = False

    def body(self) -> dict[str, Any]:
        """The JSON body, without what is not set."""
        fields: dict[str, Any] = {"iqn": self.iqn}
        if self.force:
            fields["force"] = True
        fields |= access_body(self.access, self.chap)
        return {key: value for key, value in fields.items() if value is not None}

    def told(self) -> dict[str, Any]:
        """What an audit line may say of it: all but the secret."""
        return without_secret(self.body())


def access_body(access: str | None, chap: Chap | None) -> dict[str, Any]:
    """The fields of a body that say who may log in; None where nothing is said."""
    secret = None if chap is None else dataclasses.asdict(chap)
    return {"access": access, "chap": secret}


def without_secret(body: dict[str, Any]) -> dict[str, Any]:
    """A body for a log."""
    return {name: value for name, value in body.items() if name != "chap"}
