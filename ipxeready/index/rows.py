"""Rows put in and taken out in plain SQL: Django's ways weigh ten times as much as what SQLite does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import AutoField, Field, Model


def insert(model: type[Model], rows: Sequence[Model]) -> None:
    """Put these rows into the model's table; the objects do not learn their numbers."""
    if not rows:
        return
    sql, fields = _insertion(model)
    values = [
        [
            field.get_db_prep_save(getattr(row, field.attname), connection)
            for field in fields
        ]
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(sql, values)


@lru_cache(maxsize=64)
def _insertion(model: type[Model]) -> tuple[str, list[Field[Any, Any]]]:
    meta = model._meta
    fields = [
        field
        for field in meta.local_concrete_fields
        if not isinstance(field, AutoField)
    ]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    places = ", ".join(["%s"] * len(fields))
    return f'INSERT INTO "{meta.db_table}" ({columns}) VALUES ({places})', fields  # noqa: S608 - our own names


def delete(model: type[Model], column: str, keys: Sequence[str], **equal: str) -> None:
    """Take out the rows whose `column` is one of `keys` (at most some hundred) and whose other columns are equal."""
    if not keys:
        return
    places = ", ".join(["%s"] * len(keys))
    terms = "".join(f' AND "{name}" = %s' for name in equal)
    table = model._meta.db_table
    sql = f'DELETE FROM "{table}" WHERE "{column}" IN ({places}){terms}'  # noqa: S608 - our own names
    with connection.cursor() as cursor:
        cursor.execute(sql, [*keys, *equal.values()])
