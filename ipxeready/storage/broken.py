"""What is wrong with a file or with one record of it, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipxeready.errors import Unavailable
from ipxeready.said import said


class FileBroken(Exception):
    """A file that does not parse or has another shape: nothing may be written to it until it is mended."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def where(self) -> str:
        """`line 7, column 9: message`, as far as known."""
        if not self.line:
            return self.message
        return f"line {self.line}, column {self.column or 1}: {self.message}"


class RecordBroken(Exception):
    """One record that does not validate: it is quarantined, the others go on."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@contextmanager
def unbroken(file: Path) -> Iterator[None]:
    """Unavailable where the block finds that somebody's hand has broken a record of `file`: what it says is not known."""
    try:
        yield
    except RecordBroken as error:
        raise Unavailable(
            said(
                "{file}: {error}; mend this record first",
                file=file,
                error=error.message,
            ),
            code="state.invalid",
        ) from None
