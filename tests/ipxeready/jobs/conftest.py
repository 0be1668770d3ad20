"""Workers for the tests of jobs."""

from __future__ import annotations

from tests.workers.conftest import worker

__all__ = ["worker"]
