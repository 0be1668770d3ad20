"""What the index knows about the files themselves: problems and whether a file can be written."""

from __future__ import annotations

from django.db.models import QuerySet

from ipxeready.index.models import Problem, SourceFile


def problems() -> QuerySet[Problem]:
    """Everything that is wrong in the files, by file and line."""
    return Problem.objects.order_by("source", "line", "pk")


def files() -> QuerySet[SourceFile]:
    """The files as they were last seen."""
    return SourceFile.objects.exclude(name="").order_by("name")
