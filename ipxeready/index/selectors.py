"""What the index knows about the files themselves: problems and whether a file can be written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from django.db.models import QuerySet

from ipxeready.index.models import IndexedRecord, Problem, SourceFile

#: Keys that are asked for at once.
_PART: Final = 500


def problems() -> QuerySet[Problem]:
    """Everything that is wrong in the files, by file and line."""
    return Problem.objects.order_by("source", "line", "pk")


def files() -> QuerySet[SourceFile]:
    """The files as they were last seen."""
    return SourceFile.objects.exclude(name="").order_by("name")


def record_digest(source: str, key: str) -> str:
    """Digest of the text of a record, empty where there is none: tells whether a form about it is stale."""
    found = IndexedRecord.objects.filter(source=source, key=key).first()
    return found.digest if found else ""


def records_digest(source: str, keys: Sequence[str]) -> str:
    """The same of many records."""
    found = hashlib.blake2b(digest_size=16)
    for start in range(0, len(keys), _PART):
        part = IndexedRecord.objects.filter(
            source=source, key__in=keys[start : start + _PART]
        )
        for key, digest in part.order_by("key").values_list("key", "digest"):
            found.update(f"{key} {digest}\n".encode())
    return found.hexdigest()
