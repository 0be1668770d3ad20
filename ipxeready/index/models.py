"""Index tables and the base of every row that comes from a file. No UNIQUE but primary keys: a hand edit that doubles something must become a visible problem, not a failed refresh."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from ipxeready.said import said
from ipxeready.storage.broken import RecordBroken


class IndexedModel(models.Model):
    """A row made from a record of a file; `record` is the record's key."""

    record = models.CharField(max_length=255, editable=False, db_index=True)

    class Meta:
        abstract = True


class SourceFile(models.Model):
    """What a file looked like when it was indexed, and whether it could be read."""

    name = models.CharField(max_length=32, primary_key=True)
    path = models.CharField(max_length=4096)
    dev = models.BigIntegerField(null=True)
    ino = models.BigIntegerField(null=True)
    size = models.BigIntegerField(null=True)
    mtime_ns = models.BigIntegerField(null=True)
    ctime_ns = models.BigIntegerField(null=True)
    #: Digest of the bytes that the fingerprint belongs to.
    sha256 = models.CharField(max_length=64, default="")
    #: When they were read; with the stamps it tells whether they could have changed unseen.
    indexed_ns = models.BigIntegerField(default=0)
    #: The journal only: how far it was read.
    offset = models.BigIntegerField(default=0)
    lines = models.BigIntegerField(default=0)
    error = models.TextField(default="")
    error_line = models.IntegerField(default=0)
    error_column = models.IntegerField(default=0)

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")


class IndexedRecord(models.Model):
    """Digest of the text of each record, so that only changed ones are parsed again."""

    source = models.CharField(max_length=32, db_index=True)
    key = models.CharField(max_length=2048)
    digest = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(fields=["source", "key"], name="record_by_key")]


class Problem(models.Model):
    """Something wrong in a file, for people: which record, which line, what to do."""

    source = models.CharField(max_length=32, db_index=True)
    record = models.CharField(max_length=2048, default="")
    line = models.IntegerField(default=0)
    code = models.CharField(max_length=64)
    message = models.TextField()

    class Meta:
        verbose_name = _("problem")
        verbose_name_plural = _("problems")


_LONGEST = 2**63


def check_storable(row: models.Model) -> None:
    """RecordBroken for a value that SQLite cannot hold: one odd record must not stop all reading."""
    for field in row._meta.local_concrete_fields:
        value = getattr(row, field.attname)
        if isinstance(value, int) and not -_LONGEST <= value < _LONGEST:
            raise RecordBroken(
                said(
                    "{field}: the number {value} is too large",
                    field=field.name,
                    value=value,
                )
            )
        if isinstance(value, datetime) and not 1 < value.year < 9999:
            # Another zone's year may be none that can be counted.
            raise RecordBroken(
                said("{field}: the year must be between 2 and 9998", field=field.name)
            )
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise RecordBroken(
                    said(
                        "{field}: {value} is not valid Unicode",
                        field=field.name,
                        value=repr(value),
                    )
                ) from None
