"""Commands for storage nodes."""

from __future__ import annotations
