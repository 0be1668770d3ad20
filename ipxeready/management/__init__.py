"""Commands of the project itself."""

from __future__ import annotations
