"""Is the index what a new one would be? A second one is built beside it and compared row by row."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.db.models import Model

from ipxeready.index import build, freshness, journal
from ipxeready.index.connection import path
from ipxeready.index.models import Problem
from ipxeready.index.selectors import files
from ipxeready.index.sources import Source, all_sources

#: Differences told of each table; more are counted only.
_SHOWN = 5


def verify_index(wait: float = freshness.WAIT) -> list[str]:
    """What differs between the index and a new one made of the same files; empty when nothing does.

    Rows that the index keeps on purpose are left out: those of a file or a record that is broken now, and
    audit lines of files that were rotated away.
    """
    beside = path().with_name(f"{path().name}.{os.getpid()}.verify")
    with freshness.lock().held("check of the index", wait):
        freshness.refresh_locked()
        broken = {file.name for file in files() if file.error}
        kept = set(
            Problem.objects.filter(code="record.broken").values_list("source", "record")
        )
        try:
            build.build_at(beside)
            found: list[str] = []
            for source in all_sources():
                if source.name not in broken:
                    found += _compare(source, beside, kept)
            return found + _compare_journal(beside)
        finally:
            for name in (beside, f"{beside}-wal", f"{beside}-shm"):
                with suppress(FileNotFoundError):
                    Path(name).unlink()


def _compare(source: Source, beside: Path, kept: set[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    for model in source.models:
        columns = _columns(model)
        at = columns.index("record")
        have, want = (
            Counter(
                row
                for row in _rows(file, model, columns, "1")
                if (source.name, row[at]) not in kept
            )
            for file in (path(), beside)
        )
        found += _told(model, have, want)
    have, want = (
        Counter(_plain(file, f"index_indexedrecord WHERE source = '{source.name}'"))
        for file in (path(), beside)
    )
    return found + [
        f"{source.name}: {word} the record {key}"
        for word, each in (("too much:", have - want), ("missing:", want - have))
        for key in list(each)[:_SHOWN]
    ]


def _plain(file: Path, what: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as database:
        return database.execute(f"SELECT key, digest FROM {what}").fetchall()  # noqa: S608 - our own names


def _compare_journal(beside: Path) -> list[str]:
    model = journal.get_journal().model
    columns = _columns(model, with_key=True)
    want = _rows(beside, model, columns, "1")
    first = min((row[columns.index("id")] for row in want), default=2**62)
    have = _rows(path(), model, columns, f"id >= {first}")
    return _told(model, Counter(have), Counter(want))


def _columns(model: type[Model], with_key: bool = False) -> list[str]:
    return [
        str(field.column)
        for field in model._meta.local_concrete_fields
        if with_key or field.name != "id" or field.get_internal_type() == "CharField"
    ]


def _rows(
    file: Path, model: type[Model], columns: list[str], where: str
) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'"{column}"' for column in columns)
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute(
            f'SELECT {listed} FROM "{model._meta.db_table}" WHERE {where}'  # noqa: S608 - our own names
        ).fetchall()
    return [tuple(_canonical(value) for value in row) for row in rows]


def _canonical(value: Any) -> Any:
    """JSON columns are equal when their values are, whatever the order of keys."""
    if isinstance(value, str) and value[:1] in "{[":
        with suppress(ValueError):
            return json.dumps(json.loads(value), sort_keys=True)
    return value


def _told(model: type[Model], have: Counter[Any], want: Counter[Any]) -> list[str]:
    found: list[str] = []
    for word, rows in (("too much", have - want), ("missing", want - have)):
        if rows:
            shown = "; ".join(repr(row) for row in list(rows)[:_SHOWN])
            table = model._meta.db_table
            found.append(f"{table}: {rows.total()} rows {word}: {shown}")
    return found
