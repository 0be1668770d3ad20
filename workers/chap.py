"""The secrets of workers: made, changed and forgotten inside a write, read from the file itself where one is needed."""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterable
from typing import Final

from django.conf import settings

from agents.protocol.access import NONE, Chap
from ipxeready.actors import Actor
from ipxeready.errors import Unavailable
from ipxeready.index import writing
from ipxeready.index.models import IndexedRecord
from ipxeready.index.writer import Transaction
from ipxeready.said import said
from ipxeready.storage.broken import FileBroken, RecordBroken, unbroken
from ipxeready.storage.watched import Watched
from ipxeready.storage.yamlrecords import YamlText
from workers.chapfile import NAME, NEXT, ChapSecretsSource, SecretText, chap_from

#: Windows takes 12 to 16 characters; every firmware takes letters and digits.
LENGTH: Final = 16
_LETTERS: Final = string.ascii_letters + string.digits


def make_secret() -> str:
    """A new secret; none that LIO takes for no secret."""
    while True:
        text = "".join(secrets.choice(_LETTERS) for _ in range(LENGTH))
        if not text.startswith(NONE):
            return text


# --- inside a write ------------------------------------------------------------


def ensure(tx: Transaction, worker_id: str, hostname: str) -> Chap:
    """The worker's secret, made with this write where there is none; Unavailable when the file is broken."""
    draft = tx.yaml(NAME)
    record = draft.get(worker_id)
    if record is None:
        record = {"username": hostname, "secret": make_secret()}
        draft.put(worker_id, record)
    return _checked(worker_id, record)


def change(tx: Transaction, worker_id: str, hostname: str) -> Chap:
    """A new secret, written as the next one until `settle` says that the nodes have it."""
    draft = tx.yaml(NAME)
    record = draft.get(worker_id)
    if record is None:
        return ensure(tx, worker_id, hostname)
    record[NEXT] = make_secret()
    draft.put(worker_id, record)
    return _checked(worker_id, record)


def settle(tx: Transaction, worker_id: str, *, taken: bool) -> None:
    """The nodes have the next secret (or not one of them has): it is the secret (or is dropped)."""
    if not has_secret(worker_id):
        return
    draft = tx.yaml(NAME)
    record = draft.get(worker_id)
    if record is None or NEXT not in record:
        return
    following = record.pop(NEXT)
    if taken:
        record["secret"] = following
    draft.put(worker_id, record)


def forget(tx: Transaction, worker_ids: Iterable[str]) -> None:
    """Take the secrets of these workers out; the file is not touched, nor needed, where there are none."""
    gone = [worker_id for worker_id in worker_ids if has_secret(worker_id)]
    if gone:
        tx.yaml(NAME).remove_many(gone)


def ensured(actor: Actor, worker_id: str, hostname: str) -> Chap:
    """`ensure` in a write of its own, for what is asked of a node before the ledger says so."""
    with writing(actor=actor, op="worker.access.set") as tx:
        known = has_secret(worker_id)
        chap = ensure(tx, worker_id, hostname)
        if not known:
            tx.log(worker_id=worker_id, secret_made=True)
        return chap


def has_secret(worker_id: str) -> bool:
    """Whether the file has a record of this worker."""
    return IndexedRecord.objects.filter(source=NAME, key=worker_id).exists()


def _checked(worker_id: str, record: dict[str, str]) -> Chap:
    with unbroken(settings.IPXE_LAYOUT.chap_secrets_yml):
        return chap_from(worker_id, record, NEXT if NEXT in record else "secret")


# --- for a boot ------------------------------------------------------------------


def secret_of(worker_id: str) -> Chap | None:
    """The worker's name and secret as the file has them now, None without; Unavailable when it cannot be read."""
    try:
        record = _file.get(settings.IPXE_LAYOUT.chap_secrets_yml).value(worker_id)
        if record is None:
            return None
        return chap_from(worker_id, record, NEXT if NEXT in record else "secret")
    except (OSError, FileBroken, RecordBroken):
        # The words stay out: this goes to a console.
        raise Unavailable(
            said(
                "config/chap-secrets.yml cannot be read here, or its record of this machine "
                "is broken"
            ),
            code="state.invalid",
        ) from None


def _parsed(content: bytes) -> YamlText:
    text = SecretText(content, ChapSecretsSource.top)
    text.check(list(text.entries()))
    return text


_file: Watched[YamlText] = Watched(_parsed)
