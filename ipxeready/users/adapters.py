"""config/users.yml: its records as rows."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from django.utils import timezone

from ipxeready.actors import ROLES
from ipxeready.errors import Invalid
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import YamlSource
from ipxeready.said import said
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.paths import Layout
from ipxeready.users.models import Operator, Token
from ipxeready.users.validators import check_username, is_password_hash

_TOKEN_ID = re.compile(r"[a-f][0-9a-f]{11}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class UsersFile(YamlSource):
    """People, their roles and hashed passwords; for its owner's eyes only."""

    name = "users"
    top = "users"
    models = (Operator, Token)
    mode = 0o600
    default = b"users: {}\n"

    def path(self, layout: Layout) -> Path:
        """config/users.yml."""
        return layout.users_yml

    def rows(self, text: Any, key: str) -> list[IndexedModel]:
        """One person a record, and the person's tokens."""
        data = text.value(key) or {}
        return [operator_from(key, data), *tokens_from(key, data)]


def tokens_from(key: str, data: dict[str, Any]) -> list[Token]:
    """The rows of a person's tokens; RecordBroken names the one that is wrong."""
    tokens = data.get("tokens")
    if tokens is None:
        return []
    if not isinstance(tokens, dict):
        raise RecordBroken(said("tokens of {key}: must be a mapping by id", key=key))
    return [_token(key, str(token_id), each) for token_id, each in tokens.items()]


def _token(owner: str, token_id: str, data: Any) -> Token:
    where = f"token {token_id} of {owner}"
    if not isinstance(data, dict):
        raise RecordBroken(
            said("{where}: must have name, role and sha256", where=where)
        )
    if not _TOKEN_ID.fullmatch(token_id):
        raise RecordBroken(
            said(
                "{where}: the id must be 12 of 0-9, a-f, the first a letter",
                where=where,
            )
        )
    name, role, digest = data.get("name"), data.get("role"), data.get("sha256")
    if not isinstance(name, str) or not name:
        raise RecordBroken(said("{where}: name must be a text", where=where))
    if role not in ROLES:
        raise RecordBroken(
            said(
                "{where}: role must be one of {choices}",
                where=where,
                choices=", ".join(ROLES),
            )
        )
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise RecordBroken(
            said(
                "{where}: sha256 must be 64 of 0-9, a-f; make tokens with `manage.py token "
                "create`",
                where=where,
            )
        )
    return Token(
        key=f"{owner}/{token_id}",
        record=owner,
        token_id=token_id,
        username=owner,
        name=name[:64],
        role=role,
        sha256=digest,
        created=_time(where, "created", data),
        expires=_time(where, "expires", data),
    )


def _time(where: str, field: str, data: dict[str, Any]) -> datetime | None:
    text = data.get(field)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        raise RecordBroken(
            said(
                "{where}: {field} must be a time such as 2027-01-31T12:00:00+08:00",
                where=where,
                field=field,
            )
        ) from None
    if not 1 < found.year < 9999:
        # Another zone's year may be none that can be counted.
        raise RecordBroken(
            said(
                "{field}: the year must be between 2 and 9998",
                field=f"{where}: {field}",
            )
        )
    return found if found.tzinfo else timezone.make_aware(found)


def operator_from(key: str, data: dict[str, Any]) -> Operator:
    """The row of a record; RecordBroken names what is wrong and what to do."""
    try:
        name = check_username(key)
    except Invalid as error:
        raise RecordBroken(
            said("the user name {key} {error}", key=repr(key), error=error.message)
        ) from None
    if name != key:
        raise RecordBroken(
            said(
                "the user name {key} must be in lower case: {name}",
                key=repr(key),
                name=repr(name),
            )
        )
    role = data.get("role")
    if role not in ROLES:
        raise RecordBroken(
            said(
                "role of {key}: must be one of {choices}",
                key=key,
                choices=", ".join(ROLES),
            )
        )
    active = data.get("active", True)
    if not isinstance(active, bool):
        raise RecordBroken(said("active of {key}: must be true or false", key=key))
    if not is_password_hash(data.get("password")):
        raise RecordBroken(
            said(
                "password of {key}: must be a hash; set one with `manage.py user password "
                "{key}`",
                key=key,
            )
        )
    nonce = data.get("nonce", "")
    return Operator(
        username=key,
        record=key,
        role=role,
        is_active=active,
        password=data["password"],
        nonce="" if nonce is None else str(nonce),
    )
