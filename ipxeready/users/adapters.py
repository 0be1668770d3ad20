"""config/users.yml: its records as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipxeready.actors import ROLES
from ipxeready.errors import Invalid
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import YamlSource
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.paths import Layout
from ipxeready.users.models import Operator
from ipxeready.users.validators import check_username, is_password_hash


class UsersFile(YamlSource):
    """People, their roles and hashed passwords; for its owner's eyes only."""

    name = "users"
    top = "users"
    models = (Operator,)
    mode = 0o600
    default = b"users: {}\n"

    def path(self, layout: Layout) -> Path:
        """config/users.yml."""
        return layout.users_yml

    def rows(self, text: Any, key: str) -> list[IndexedModel]:
        """One person a record."""
        data = text.value(key) or {}
        return [operator_from(key, data)]


def operator_from(key: str, data: dict[str, Any]) -> Operator:
    """The row of a record; RecordBroken names what is wrong and what to do."""
    try:
        name = check_username(key)
    except Invalid as error:
        raise RecordBroken(f"the user name {key!r} {error.message}") from None
    if name != key:
        raise RecordBroken(f"the user name {key!r} must be in lower case: {name!r}")
    role = data.get("role")
    if role not in ROLES:
        raise RecordBroken(f"role of {key}: must be one of {', '.join(ROLES)}")
    active = data.get("active", True)
    if not isinstance(active, bool):
        raise RecordBroken(f"active of {key}: must be true or false")
    if not is_password_hash(data.get("password")):
        raise RecordBroken(
            f"password of {key}: must be a hash; set one with `manage.py user password {key}`"
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
