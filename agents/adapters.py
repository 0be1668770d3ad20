"""config/agents.yml: a record becomes a node; a node becomes a record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from agents.models import Agent
from agents.protocol.access import OFF
from agents.validators import (
    check_access,
    check_agent_id,
    check_base_url,
    check_iscsi_server,
    check_tags,
    check_token,
    variable_of,
)
from ipxeready.errors import Invalid
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import YamlSource
from ipxeready.said import joined, said
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import YamlText

T = TypeVar("T")

#: Fields of a record in the order in which we write them.
FIELDS = ("base_url", "token", "iscsi_server", "role", "tags", "enabled", "access")
DEFAULT_ROLE = {"disk": True, "cd": False}


class AgentsSource(YamlSource):
    """The registry of storage nodes; for its owner's eyes only, as it holds tokens."""

    name = "agents"
    top = "agents"
    models = (Agent,)
    mode = 0o600
    default = b"agents: {}\n"

    def path(self, layout: Layout) -> Path:
        """config/agents.yml."""
        return layout.agents_yml

    def rows(self, text: YamlText, key: str) -> list[IndexedModel]:
        """One node a record."""
        value = text.value(key)
        if value is None:
            raise RecordBroken(said("{key}: there is no such record", key=key))
        return [agent_from(key, value)]


def agent_from(key: str, data: dict[str, Any]) -> Agent:
    """The row of a record; RecordBroken names the field and what to do."""
    if _checked(key, "id", check_agent_id, key) != key:
        raise RecordBroken(said("{key}: a node's id is written in lower case", key=key))
    base_url = data.get("base_url")
    if base_url in (None, ""):
        raise RecordBroken(
            said("{key} (base_url): is missing; write http://host:4840", key=key)
        )
    token = _checked(
        key, "token", check_token, _text(key, "token", data.get("token"), secret=True)
    )
    if "${" in token and variable_of(token) is None:
        raise RecordBroken(
            said(
                "{key} (token): write ${{NAME}} alone, with a variable of the environment, "
                "or the token",
                key=key,
            )
        )
    role = _role(key, data.get("role"))
    tags = data.get("tags")
    if tags is not None and not isinstance(tags, list):
        raise RecordBroken(said("{key} (tags): must be a list of words", key=key))
    return Agent(
        record=key,
        id=key,
        base_url=_checked(
            key, "base_url", check_base_url, _text(key, "base_url", base_url)
        ),
        token=token,
        iscsi_server=_checked(
            key,
            "iscsi_server",
            check_iscsi_server,
            _text(key, "iscsi_server", data.get("iscsi_server")),
        ),
        role_disk=role["disk"],
        role_cd=role["cd"],
        tags=_checked(
            key, "tags", check_tags, [_text(key, "tags", tag) for tag in tags or []]
        ),
        enabled=_flag(key, "enabled", data.get("enabled"), True),
        # Nothing said: a node that was there before access control stays as it was.
        access=_access(key, data.get("access")),
        data={name: value for name, value in data.items() if name != "token"},
    )


def _role(key: str, value: Any) -> dict[str, bool]:
    if value is None:
        return dict(DEFAULT_ROLE)
    if not isinstance(value, dict):
        raise RecordBroken(
            said(
                "{key} (role): must be a mapping like {{disk: true, cd: false}}",
                key=key,
            )
        )
    return {
        name: _flag(key, f"role.{name}", value.get(name), default)
        for name, default in DEFAULT_ROLE.items()
    }


def _access(key: str, value: Any) -> str:
    # `off` without quotes is text here, false what another YAML writer makes of it.
    if value is None or value is False:
        return OFF
    return _checked(key, "access", check_access, _text(key, "access", value))


def _flag(key: str, field: str, value: Any, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise RecordBroken(
            said("{key} ({field}): must be true or false", key=key, field=field)
        )
    return value


def _text(key: str, field: str, value: Any, *, secret: bool = False) -> str:
    """The text as typed: a number in the file is text here, nothing is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    what = "it" if secret else repr(value)
    raise RecordBroken(
        said("{key} ({field}): {what} must be text", key=key, field=field, what=what)
    )


def _checked(key: str, field: str, check: Callable[[Any], T], value: Any) -> T:
    try:
        return check(value)
    except Invalid as error:
        raise RecordBroken(joined(": ", f"{key} ({field})", error.message)) from None
