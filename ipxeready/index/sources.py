"""The files that the index shows: each app registers its own with the text adapter and the rows it makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ipxeready.index.models import IndexedModel
from ipxeready.said import said
from ipxeready.storage.broken import FileBroken
from ipxeready.storage.jsonrecords import JsonText
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import Entry, YamlText


class Text(Protocol):
    """A file's content as records: read, changed, rendered."""

    def entries(self) -> dict[str, Entry]:
        """Every record with its digest."""

    def entries_of(self, keys: list[str]) -> dict[str, Entry]:
        """The same for a few keys; absent ones are left out."""

    def check(self, keys: list[str]) -> bool:
        """Make sure that the named records can be read; True when all entries have changed; may raise FileBroken."""

    def value(self, key: str) -> Any:
        """One record, None when absent."""

    def snapshot(self) -> Any:
        """State to go back to."""

    def restore(self, state: Any) -> None:
        """Go back to a snapshot."""

    def render(self) -> bytes:
        """The bytes to write."""


@dataclass(frozen=True)
class Fault:
    """A problem across records, found after a change."""

    code: str
    message: str
    record: str = ""
    line: int = 0


class Source:
    """One file of records. Subclasses name the file and turn a record into rows."""

    name: str
    models: tuple[type[IndexedModel], ...] = ()
    #: Mode of a newly made file.
    mode = 0o640
    #: The inode must live (dhcp-hosts.conf may be a bind mount).
    in_place = False
    #: Content of a newly made file.
    default = b""
    #: Raise it when the same text must give other rows: a new index is started.
    version = 1

    def path(self, layout: Layout) -> Path:
        """Where the file lies."""
        raise NotImplementedError

    def open(self, content: bytes) -> Text:
        """The text adapter; raises FileBroken."""
        raise NotImplementedError

    def rows(self, text: Any, key: str) -> list[IndexedModel]:
        """Rows of one record; raises RecordBroken when it does not validate."""
        raise NotImplementedError

    def salvage(self, content: bytes) -> Text | None:
        """The intact records of a file that does not parse, None where they cannot be told apart."""
        return None

    def cross_check(self, text: Any) -> list[Fault]:
        """Problems across records; the rows are in the index already."""
        return []

    def damaged(self, content: bytes, backup: bytes | None) -> FileBroken | None:
        """A file of zero bytes where we once wrote records: power was lost, or a disk was full."""
        if content or not backup:
            return None
        try:
            lost = len(self.open(backup).entries())
        except FileBroken:
            return None
        if not lost:
            return None
        return FileBroken(
            said(
                "the file is empty, but its backup holds {lost} records; copy "
                "state/backup/{backup} over it, or write a comment line into it if empty is "
                "meant",
                lost=lost,
                backup=self.name_of_backup,
            ),
            1,
            1,
        )

    @property
    def name_of_backup(self) -> str:
        """The name under state/backup."""
        return self.path(Layout(Path("/"))).name


class YamlSource(Source):
    """A YAML file with records below one top key."""

    top: str

    def open(self, content: bytes) -> YamlText:
        """The records below the top key."""
        return YamlText(content, self.top)

    def salvage(self, content: bytes) -> YamlText:
        """Each record that parses alone."""
        return YamlText.salvage(content, self.top)


class JsonSource(Source):
    """A JSON object whose keys are the records."""

    def open(self, content: bytes) -> JsonText:
        """The keys of the object."""
        return JsonText(content)


_sources: dict[str, Source] = {}


def register(source: Source) -> None:
    """Make a file known to the index (once, at start)."""
    _sources[source.name] = source


def all_sources() -> list[Source]:
    """Every registered file, in the order of registration."""
    return list(_sources.values())


def get_source(name: str) -> Source:
    """The registered file of that name."""
    return _sources[name]
