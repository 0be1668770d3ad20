"""Commands for workers."""

from __future__ import annotations
