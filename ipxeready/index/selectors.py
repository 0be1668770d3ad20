"""What the index knows about the files themselves: problems and whether a file can be written."""

from __future__ import annotations

from django.db.models import QuerySet

from ipxeready.index.models import IndexedRecord, Problem, SourceFile


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
