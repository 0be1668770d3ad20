"""The rules for people: who may make, change and remove them, and the first administrator."""

from __future__ import annotations

import ipaddress
import logging
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, SYSTEM, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound
from ipxeready.said import said
from ipxeready.storage import atomic
from ipxeready.users import selectors, throttle
from ipxeready.users.models import Operator
from ipxeready.users.validators import RESERVED, check_role, check_username

logger = logging.getLogger(__name__)

FIRST_NAME = "admin"


def _hash(password: str, username: str) -> str:
    try:
        validate_password(password, Operator(username=username))
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from None
    return make_password(password)


def _forget_first_login(username: str) -> None:
    """The file with the first password goes once that password is no more."""
    if username == FIRST_NAME:
        settings.IPXE_LAYOUT.first_login.unlink(missing_ok=True)


def first_password_holds(username: str) -> bool:
    """Whether this is the first administrator, with the password that lies in a file."""
    first: Path = settings.IPXE_LAYOUT.first_login
    return username == FIRST_NAME and first.exists()


def _existing(tx: Any, username: str) -> dict[str, Any]:
    record: dict[str, Any] | None = tx.yaml("users").get(username)
    if record is None:
        raise NotFound(said("there is no user {username}", username=username))
    return record


def _keep_an_administrator(username: str) -> None:
    if not selectors.other_administrators(username).exists():
        raise Conflict(
            said(
                "{username} is the only administrator who can log in; make another one an "
                "administrator first",
                username=username,
            )
        )


def user_create(*, actor: Actor, username: str, password: str, role: str) -> Operator:
    """Add a person."""
    actor.require(ADMINISTRATOR)
    name = check_username(username)
    if name in RESERVED:
        raise Invalid(
            said("{name} is what the audit calls a caller who is no person", name=name),
            field="username",
        )
    check_role(role)
    hashed = _hash(password, name)
    with index.writing(actor=actor, op="user.create") as tx:
        if tx.yaml("users").get(name) is not None:
            raise Conflict(
                said("there is a user {name} already", name=name), field="username"
            )
        tx.yaml("users").put(name, {"role": role, "password": hashed, "active": True})
        tx.log(op="user.create", status="ok", user_changed=name, role=role)
    return selectors.user_get(name)


def user_update(
    *,
    actor: Actor,
    username: str,
    role: str | None = None,
    is_active: bool | None = None,
) -> Operator:
    """Change the role, or whether the person may log in; a change ends their sessions."""
    actor.require(ADMINISTRATOR)
    changes: dict[str, Any] = {}
    if role is not None:
        changes["role"] = check_role(role)
    if is_active is not None:
        changes["active"] = is_active
    with index.writing(actor=actor, op="user.update") as tx:
        record = _existing(tx, username)
        changed = {
            name: value
            for name, value in changes.items()
            if record.get(name, True if name == "active" else None) != value
        }
        if changed:
            weaker = changes.get("role", ADMINISTRATOR) != ADMINISTRATOR
            if weaker or changes.get("active") is False:
                _keep_an_administrator(username)
            nonce = secrets.token_urlsafe(16)
            tx.yaml("users").put(username, {**record, **changed, "nonce": nonce})
            tx.log(op="user.update", status="ok", user_changed=username, **changed)
    return selectors.user_get(username)


def user_set_password(*, actor: Actor, username: str, password: str) -> Operator:
    """Set a password: one's own, or as an administrator anybody's; ends the person's sessions."""
    if not actor.is_person(username):
        actor.require(ADMINISTRATOR)
    hashed = _hash(password, username)
    with index.writing(actor=actor, op="user.password") as tx:
        record = _existing(tx, username)
        tx.yaml("users").put(username, {**record, "password": hashed})
        tx.log(op="user.password", status="ok", user_changed=username)
        tx.on_commit(lambda: _forget_first_login(username))
    return selectors.user_get(username)


def user_end_sessions(*, actor: Actor, username: str) -> None:
    """Log a person out everywhere."""
    if not actor.is_person(username):
        actor.require(ADMINISTRATOR)
    with index.writing(actor=actor, op="user.logout") as tx:
        record = _existing(tx, username)
        tx.yaml("users").put(username, {**record, "nonce": secrets.token_urlsafe(16)})
        tx.log(op="user.logout", status="ok", user_changed=username)


def logins_unlock(*, actor: Actor, username: str = "", address: str = "") -> int:
    """Lift the wait after failed logins: everybody's, one person's, one address's; how many counts went."""
    actor.require(ADMINISTRATOR)
    if username:
        selectors.user_get(username)
    if address:
        try:
            address = str(ipaddress.ip_address(address))
        except ValueError:
            raise Invalid(said("must be an IP address"), field="address") from None
    gone = throttle.forget(username, address)
    index.append_log(
        actor=actor,
        op="user.unlock",
        status="ok",
        user_changed=username or None,
        address=address or None,
        count=gone,
    )
    return gone


def user_delete(*, actor: Actor, username: str) -> None:
    """Remove a person; the last administrator stays."""
    actor.require(ADMINISTRATOR)
    with index.writing(actor=actor, op="user.delete") as tx:
        _existing(tx, username)
        _keep_an_administrator(username)
        tx.yaml("users").remove(username)
        tx.log(op="user.delete", status="ok", user_changed=username)
        tx.on_commit(lambda: _forget_first_login(username))


def first_administrator() -> None:
    """Make `admin` when nobody can log in yet; the password lies in state/first-login.

    A users.yml that is broken at start is no reason not to boot machines: it is said and left.
    """
    if Operator.objects.exists():
        return
    password = secrets.token_urlsafe(12)
    layout = settings.IPXE_LAYOUT
    try:
        with index.writing(actor=SYSTEM, op="user.create") as tx:
            if tx.yaml("users").text.entries():
                return
            # The password first: a crash in between leaves a file that the next start replaces.
            atomic.write_replace(layout.first_login, f"{password}\n".encode(), 0o600)
            record = {
                "role": ADMINISTRATOR,
                "password": make_password(password),
                "active": True,
            }
            tx.yaml("users").put(FIRST_NAME, record)
            tx.log(
                op="user.create",
                status="ok",
                user_changed=FIRST_NAME,
                role=ADMINISTRATOR,
            )
    except ApplicationError as error:
        logger.warning("no first administrator was made: %s", error.message)
