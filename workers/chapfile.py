"""config/chap-secrets.yml: the secret with which each worker logs in. No row, message or log ever carries one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.conf import settings

from agents.protocol.access import NONE, Chap, check_chap
from ipxeready.errors import Invalid
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import Fault, YamlSource
from ipxeready.said import Said, joined, said
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.exposed import exposed
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import YamlText

NAME: Final = "chap-secrets"
#: A secret that is being sent to the nodes: what a crash leaves here, the next change of access sends.
NEXT: Final = "next"


class SecretText(YamlText):
    """The records of the file; what is wrong with it is told by place only, as the parser's words repeat its text."""

    def _load_whole(self, text: str) -> None:
        try:
            super()._load_whole(text)
        except FileBroken as error:
            raise FileBroken(
                said(
                    "this cannot be read here; it must be YAML like secrets: {worker-01: "
                    "{username: ..., secret: ...}}"
                ),
                error.line,
                error.column,
            ) from None

    def put(self, key: str, new: dict[str, Any]) -> None:
        """As its parent; the refusal repeats nothing of the file."""
        try:
            super().put(key, new)
        except RecordBroken as error:
            raise RecordBroken(
                said(
                    "{key}: this record cannot be changed without losing text; write it out "
                    "plainly by hand first",
                    key=key,
                ),
                error.line,
            ) from None


class ChapSecretsSource(YamlSource):
    """The secrets, for their owner's eyes only. The index learns whose there are, never which."""

    name = NAME
    top = "secrets"
    mode = 0o600
    default = b"secrets: {}\n"

    def path(self, layout: Layout) -> Path:
        """config/chap-secrets.yml."""
        return layout.chap_secrets_yml

    def open(self, content: bytes) -> SecretText:
        """The records below `secrets`."""
        return SecretText(content, self.top)

    def salvage(self, content: bytes) -> YamlText:
        """Each record that parses alone."""
        return SecretText.salvage(content, self.top)

    def rows(self, text: Any, key: str) -> list[IndexedModel]:
        """None: checked here, read where it is needed."""
        chap_from(key, text.value(key))
        return []

    def cross_check(self, text: Any) -> list[Fault]:
        """Others must not read it, and no change of a secret stays half done unseen."""
        under_way = [
            Fault(
                "chap.next",
                said(
                    "the secret of {key} was being changed when something failed: which one its "
                    "nodes have is not certain. Set it again: PUT /workers/{key}/access, or "
                    "`manage.py access --worker {key} --rotate`",
                    key=key,
                ),
                record=key,
            )
            for key in text.entries()
            if _is_changing(text, key)
        ]
        return under_way + self._mode()

    def _mode(self) -> list[Fault]:
        path = self.path(settings.IPXE_LAYOUT)
        mode = exposed(path)
        if mode is None:
            return []
        return [
            Fault(
                "chap.mode",
                said(
                    "{path} has mode {mode}: others can read the secrets. chmod 600 {path}",
                    path=path,
                    mode=f"{mode:04o}",
                ),
            )
        ]


def chap_from(key: str, record: dict[str, Any] | None, field: str = "secret") -> Chap:
    """Name and secret of a record; RecordBroken names the field and the rule, never the value."""
    data = record or {}
    given = {name: data.get(name) for name in ("username", field)}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise RecordBroken(
                said("{key} ({name}): is missing, or is no text", key=key, name=name)
            )
    if NEXT in data and field != NEXT:
        chap_from(key, data, NEXT)
    try:
        return check_chap(str(given["username"]), str(given[field]), field=key)
    except Invalid as error:
        # Who swapped the two wrote the secret where a name belongs.
        raise RecordBroken(joined(": ", key, _rule(error.code, field))) from None


def _rule(code: str, field: str) -> Said:
    if code == "chap.username":
        return said("username must be 1 to 255 letters, digits and `. _ : @ -`")
    if code == "chap.secret":
        return said("{field} must be 12 to 16 letters and digits", field=field)
    name = "username" if code == "chap.username.null" else field
    return said(
        "{field} must not begin with {none}, which LIO takes for none: give another one",
        field=name,
        none=NONE,
    )


def _is_changing(text: Any, key: str) -> bool:
    try:
        return NEXT in (text.value(key) or {})
    except RecordBroken:
        return False
