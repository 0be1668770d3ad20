"""Who may log in to a target: the modes, CHAP, and the rules that both ends hold a request to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

#: Who may log in to a target: everybody, only its own initiator, that one with CHAP.
OFF = "off"
ACL = "acl"
CHAP = "chap"
ACCESS = (OFF, ACL, CHAP)


@dataclass(frozen=True)
class Chap:
    """The name and secret with which an initiator proves itself; never shown, not even by `repr`."""

    username: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Access:
    """Who may log in to one target. `initiator` for acl and chap, `chap` for chap only."""

    mode: str = OFF
    initiator: str | None = None
    chap: Chap | None = None


def access_of(target: str, mode: str, chap: Chap | None = None) -> Access:
    """The access to `target` (an IQN) in `mode`: the initiator follows from the target's name."""
    if mode == OFF:
        return Access()
    return Access(mode, iqns.initiator_of(target), chap if mode == CHAP else None)


# What target systems, initiators and files take alike: tgtd ends a name at a comma.
_USERNAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}")
_SECRET = re.compile(r"[A-Za-z0-9]{12,16}")
#: What begins so is no name and no secret to LIO: the target would be open.
NONE = "NULL"


def check_access(mode: str, *, field: str = "access") -> str:
    """`mode` if it is one of ours, else Invalid."""
    if mode not in ACCESS:
        raise Invalid(
            said(
                "{field} {mode} is not one of {choices}.",
                field=field,
                mode=repr(mode),
                choices=", ".join(ACCESS),
            ),
            code="access.unknown",
            field=field,
        )
    return mode


def check_chap(username: str, secret: str, *, field: str = "chap") -> Chap:
    """The pair if every initiator and target system takes it, else Invalid, which never repeats the secret."""
    if not _USERNAME.fullmatch(username):
        raise Invalid(
            said(
                "{field}.username {username} must be 1 to 255 letters, digits and `. _ : @ "
                "-`, and begin with a letter or digit.",
                field=field,
                username=repr(username),
            ),
            code="chap.username",
            field=field,
        )
    if not _SECRET.fullmatch(secret):
        raise Invalid(
            said(
                "{field}.secret must be 12 to 16 letters and digits: Windows takes no other "
                "length, and not every firmware other characters. This one has {count} "
                "characters.",
                field=field,
                count=len(secret),
            ),
            code="chap.secret",
            field=field,
        )
    for name, value in (("username", username), ("secret", secret)):
        if value.startswith(NONE):
            raise Invalid(
                said(
                    "{field} must not begin with {none}, which LIO takes for none: give another one",
                    field=f"{field}.{name}",
                    none=NONE,
                ),
                code=f"chap.{name}.null",
                field=field,
            )
    return Chap(username, secret)
