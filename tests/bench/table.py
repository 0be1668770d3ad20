"""Figures by size, side by side."""

from __future__ import annotations

from collections.abc import Sequence


class Table:
    """Rows in the order in which they come; columns fill one after another."""

    def __init__(self, columns: list[str]) -> None:
        self._columns = columns
        self._rows: dict[tuple[str, str], list[str]] = {}
        self._last = ""

    def add(self, title: str, unit: str, values: Sequence[float | None]) -> None:
        """The next column's value of a row; a title that is indented belongs to the row before it."""
        under = self._last if title.startswith(" ") else ""
        if not under:
            self._last = title
        shown = [_number(value) for value in values]
        self._rows.setdefault((under, f"{title} [{unit}]"), []).append(", ".join(shown))

    def __str__(self) -> str:
        titles = [title for _, title in self._rows]
        wide = max(map(len, titles), default=0)
        lines = [[" " * wide, *self._columns]]
        for (_, title), cells in self._rows.items():
            lines.append([title.ljust(wide), *cells])
        width = max(len(cell) for line in lines for cell in line[1:])
        return "\n".join(
            "  ".join([line[0], *(cell.rjust(width) for cell in line[1:])])
            for line in lines
        )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
