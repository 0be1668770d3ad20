"""ISO 8601 on pages too: it sorts, and lines of the audit can be told apart."""

from __future__ import annotations

DATETIME_FORMAT = "Y-m-d H:i:s"
SHORT_DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = "Y-m-d"
