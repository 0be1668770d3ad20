"""What is wrong with a file or with one record of it, where, and what to do."""

from __future__ import annotations


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
