"""Personal API tokens: made, shown once, found again by their public part, revoked.

`ipx_<id>_<secret>`: the id says which record, the secret has 256 random bits. users.yml keeps its SHA-256 only. A slow
hash, as for passwords, protects what people choose and others can guess; nobody tries 2^256 secrets, and each request
is checked, so a fast one is right here.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, ROLES, Actor, weaker
from ipxeready.errors import Conflict, Forbidden, Invalid, NotFound
from ipxeready.index import Transaction
from ipxeready.said import said
from ipxeready.storage.broken import unbroken
from ipxeready.users import selectors
from ipxeready.users.adapters import operator_from, tokens_from
from ipxeready.users.models import Operator, Token
from ipxeready.users.validators import check_role, check_token_name

PREFIX: Final = "ipx"
#: More than anybody needs; forgotten ones should be noticed.
MOST: Final = 50
LONGEST_DAYS: Final = 3650
#: Seconds for which a use is not noted again: a busy script must not write with each request.
NOTED: Final = 3600.0
_SHAPE: Final = re.compile(rf"{PREFIX}_([a-f][0-9a-f]{{11}})_([A-Za-z0-9_-]{{43}})")
#: Compared with when there is no such token, so that this takes as long.
_NO_DIGEST: Final = "0" * 64
_noted: dict[str, float] = {}


@dataclass(frozen=True)
class Made:
    """A new token; `text` is what its owner keeps, and is nowhere else."""

    token: Token
    text: str


@dataclass(frozen=True)
class Caller:
    """Who a token speaks for."""

    owner: Operator
    token: Token

    @property
    def role(self) -> str:
        """What it may do: never more than its owner may at present."""
        return weaker(self.token.role, self.owner.role)


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _allowed(actor: Actor, username: str) -> None:
    """One's own tokens, but not with a token: a stolen one must not be able to outlive its end."""
    if actor.is_person(username) or actor.may(ADMINISTRATOR):
        return
    if actor.name == username and actor.via:
        raise Forbidden(
            said(
                "{via} may not make or revoke tokens; log in with your password",
                via=actor.via,
            )
        )
    actor.require(ADMINISTRATOR)


def token_create(
    *,
    actor: Actor,
    username: str,
    name: str,
    role: str | None = None,
    days: int | None = None,
) -> Made:
    """Make a token for a person: one's own, or as an administrator anybody's."""
    _allowed(actor, username)
    label = check_token_name(name)
    if role is not None:
        check_role(role)
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise Invalid(said("must be 1 to {most}", most=LONGEST_DAYS), field="days")
    secret = secrets.token_urlsafe(32)
    # A letter first: YAML must never take it for a number.
    token_id = secrets.choice("abcdef") + secrets.token_hex(6)[:11]
    now = timezone.localtime().replace(microsecond=0)
    with index.writing(actor=actor, op="token.create") as tx:
        record, tokens = _tokens(tx, username)
        _whole(username, record)
        wanted = role or str(record.get("role"))
        if ROLES.index(wanted) > ROLES.index(str(record.get("role"))):
            raise Invalid(
                said(
                    "{username} is {role}: a token may not do more",
                    username=username,
                    role=record.get("role"),
                ),
                field="role",
            )
        if any(each.get("name") == label for each in tokens.values()):
            raise Conflict(
                said(
                    "{username} has a token {label} already; revoke it or take another name",
                    username=username,
                    label=label,
                ),
                field="name",
            )
        if len(tokens) >= MOST:
            raise Conflict(
                said(
                    "{username} has {most} tokens; revoke one first",
                    username=username,
                    most=MOST,
                )
            )
        made: dict[str, Any] = {
            "name": label,
            "role": wanted,
            "sha256": digest_of(secret),
            "created": now.isoformat(),
        }
        if days is not None:
            made["expires"] = (now + timedelta(days=days)).isoformat()
        tx.yaml("users").put(username, {**record, "tokens": {**tokens, token_id: made}})
        tx.log(
            op="token.create",
            user_changed=username,
            token=token_id,
            name=label,
            role=wanted,
            expires=made.get("expires"),
        )
    return Made(selectors.token_get(token_id), f"{PREFIX}_{token_id}_{secret}")


def token_revoke(*, actor: Actor, token_id: str) -> str:
    """Make a token worthless at once: one's own, or as an administrator anybody's. Returns its id."""
    token = selectors.token_get(token_id)
    if actor.name != token.username and not actor.may(ADMINISTRATOR):
        # Others' tokens are nobody's business, not even that they are there.
        raise NotFound(said("there is no token {token}", token=repr(token_id[:63])))
    _allowed(actor, token.username)
    with index.writing(actor=actor, op="token.revoke") as tx:
        record, tokens = _tokens(tx, token.username)
        if token_id not in tokens:
            raise NotFound(said("there is no token {token}", token=repr(token_id)))
        left = {key: value for key, value in tokens.items() if key != token_id}
        changed = {key: value for key, value in record.items() if key != "tokens"}
        if left:
            changed["tokens"] = left
        tx.yaml("users").put(token.username, changed)
        tx.log(
            op="token.revoke",
            user_changed=token.username,
            token=token_id,
            name=token.name,
        )
        tx.on_commit(lambda: forget_use(token_id))
    return token_id


def _whole(username: str, record: dict[str, Any]) -> None:
    """Unavailable for a record that somebody's hand has broken: what it allows is not known."""
    with unbroken(settings.IPXE_LAYOUT.users_yml):
        operator_from(username, record)
        tokens_from(username, record)


def _tokens(tx: Transaction, username: str) -> tuple[dict[str, Any], dict[str, Any]]:
    record: dict[str, Any] | None = tx.yaml("users").get(username)
    if record is None:
        raise NotFound(said("there is no user {username}", username=username[:63]))
    tokens = record.get("tokens")
    return record, dict(tokens) if isinstance(tokens, Mapping) else {}


def token_owner(text: str) -> Caller | None:
    """Whose token this is, None when it is nobody's, has expired, or its owner may not log in.

    Found by its public part; the secret is compared in constant time, also where there is no such token.
    """
    shape = _SHAPE.fullmatch(text)
    found = list(Token.objects.filter(token_id=shape[1])[:2]) if shape else []
    # A copy by hand into another record makes the id ambiguous: then it is nobody's.
    token = found[0] if len(found) == 1 else None
    expected = token.sha256 if token else _NO_DIGEST
    same = hmac.compare_digest(digest_of(shape[2] if shape else text), expected)
    if token is None or not same:
        return None
    if token.expires is not None and token.expires <= timezone.now():
        return None
    owner = Operator.objects.filter(pk=token.username, is_active=True).first()
    if owner is None:
        return None
    note_use(token.token_id)
    return Caller(owner, token)


# --- last used: the time of an empty file, outside of the ledger ------------------
def _stamp(token_id: str) -> Path:
    folder: Path = settings.IPXE_LAYOUT.token_use
    return folder / token_id


def note_use(token_id: str) -> None:
    """Note the use, at most once an hour."""
    now = time.time()
    stamp = _stamp(token_id)
    if now - _noted.get(str(stamp), 0.0) < NOTED:
        return
    _noted[str(stamp)] = now
    with contextlib.suppress(OSError):
        stamp.parent.mkdir(mode=0o700, exist_ok=True)
        stamp.touch(mode=0o600)
        os.utime(stamp)


def last_used(token_id: str) -> datetime | None:
    """The hour of its last use; None when it was never used."""
    try:
        seconds = _stamp(token_id).stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(
        seconds - seconds % NOTED, timezone.get_current_timezone()
    )


def forget_use(token_id: str) -> None:
    """Take the file away with the token."""
    _noted.pop(str(_stamp(token_id)), None)
    with contextlib.suppress(OSError):
        _stamp(token_id).unlink()
