"""The tests' own addresses, and an index that is always fresh."""

from __future__ import annotations

from typing import Any

import pytest

from ipxeready import index


@pytest.fixture
def own_urls(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the addresses of urls_for_tests; none of their views reads the index."""
    settings.ROOT_URLCONF = "tests.ipxeready.web.urls_for_tests"
    monkeypatch.setattr(index, "ensure_fresh", lambda wait=False: None, raising=False)
