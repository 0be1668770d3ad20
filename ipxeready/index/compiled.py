"""Queries whose SQL is made once: for the few lookups of each boot, making it took ten times as long as running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

#: Stands for the parameter while the SQL is made.
_PLACE = "\x01"


class Compiled(Generic[Row]):
    """A lookup of rows by one text: `Compiled(lambda text: Thing.objects.filter(name=text))`, then call it with a text.

    The queryset may hold no other parameter, and no related objects.
    """

    def __init__(self, make: Callable[[str], QuerySet[Row]]) -> None:
        self._make = make
        self._ready: tuple[str, type[Row], list[str], Any] | None = None

    def __call__(self, text: str) -> list[Row]:
        """The rows, as the queryset would give them."""
        sql, model, names, convert = self._ready or self._prepare()
        connection.ensure_connection()
        with connection.wrap_database_errors:
            rows = connection.connection.execute(sql, (text,)).fetchall()
        return [
            model.from_db(connection.alias, names, values) for values in convert(rows)
        ]

    def first(self, text: str) -> Row | None:
        """The first row, None when there is none."""
        rows = self(text)
        return rows[0] if rows else None

    def _prepare(self) -> tuple[str, type[Row], list[str], Any]:
        queryset = self._make(_PLACE)
        compiler = queryset.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        if tuple(parameters) != (_PLACE,):
            raise ValueError(f"a compiled query takes one parameter: {sql}")
        columns = [column for column, _, _ in compiler.select]
        converters = compiler.get_converters(columns)
        names = [column.target.attname for column in columns]

        def convert(rows: list[Any]) -> Any:
            return compiler.apply_converters(rows, converters) if converters else rows

        # Straight to SQLite, in its own notation.
        sql = sql.replace("%s", "?").replace("%%", "%")
        self._ready = (sql, queryset.model, names, convert)
        return self._ready
