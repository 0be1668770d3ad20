"""Making a new index: tables, content types, all rows, beside the old one, then put in place at once."""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.management import create_contenttypes
from django.db import connection, transaction

from ipxeready.index import journal
from ipxeready.index.connection import follow, identity, path, writable
from ipxeready.index.models import SourceFile
from ipxeready.index.refresh import Outcome, refresh, stamp
from ipxeready.index.sources import all_sources
from ipxeready.storage.fingerprint import fingerprint


def schema_digest() -> str:
    """Changes whenever the tables or the adapters do, so that a new release starts a new index."""
    parts = [f"{source.name}={source.version}" for source in all_sources()]
    for model in apps.get_models():
        columns = [
            f"{field.column}:{field.get_internal_type()}:{field.null}:{getattr(field, 'db_index', False)}"
            for field in model._meta.local_concrete_fields
        ]
        parts.append(f"{model._meta.db_table}({','.join(columns)})")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()


def tables_there() -> bool:
    """Whether the present index file has been built."""
    return identity() is not None


def build() -> list[Outcome]:
    """Build the index from the files. The caller holds the state lock."""
    target = path()
    target.parent.mkdir(parents=True, exist_ok=True)
    making = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        outcomes = build_at(making)
        _remove(target)
        making.chmod(0o600)
        making.replace(target)
    finally:
        _remove(making)
    follow(identity())
    return outcomes


def build_at(making: Path) -> list[Outcome]:
    """Build an index of the present files in the file `making`, without a look at the one in use."""
    _remove(making)
    before = connection.settings_dict
    connection.close()
    # A private copy: the dictionary itself is shared by the threads of this process.
    connection.settings_dict = {**before, "NAME": str(making)}
    try:
        with writable(), _no_collector():
            _tables()
            with transaction.atomic():
                outcomes = [
                    refresh(source, settings.IPXE_LAYOUT, None)
                    for source in all_sources()
                ]
                _journal()
    finally:
        connection.close()
        connection.settings_dict = before
    return outcomes


@contextmanager
def _no_collector() -> Iterator[None]:
    """All that is made here is kept: looking for garbage among it took half of the time."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _tables() -> None:
    with connection.schema_editor() as editor:
        for model in apps.get_models(include_auto_created=False):
            if model._meta.managed and not model._meta.proxy:
                editor.create_model(model)
    for config in apps.get_app_configs():
        create_contenttypes(config, verbosity=0, interactive=False)


def _journal() -> None:
    layout = settings.IPXE_LAYOUT
    source = journal.get_journal()
    seen = fingerprint(source.path(layout))
    row = journal.refresh(
        layout, SourceFile(name=source.name, path=str(source.path(layout))), seen
    )
    stamp(row, seen, "")
    row.save()


def _remove(file: Path) -> None:
    """The database and its side files: a stray WAL would be replayed into the next database of that name."""
    for name in (str(file), f"{file}-wal", f"{file}-shm"):
        with suppress(FileNotFoundError):
            Path(name).unlink()
