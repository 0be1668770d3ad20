"""The header Prefer as RFC 7240 writes it, and as callers get it wrong."""

from __future__ import annotations

import pytest

from ipxeready.prefer import Preference, preference

NONE = Preference()
ASYNC = Preference(respond_async=True)


@pytest.mark.parametrize(
    ("header", "meant"),
    [
        (None, NONE),
        ("", NONE),
        ("respond-async", ASYNC),
        ("Respond-Async", ASYNC),
        ("respond-async, wait=5", Preference(True, 5)),
        ("respond-async,wait=5", Preference(True, 5)),
        ("wait=5", Preference(False, 5)),
        ("WAIT = 5 , respond-async", Preference(True, 5)),
        ('respond-async, wait="10"', Preference(True, 10)),
        ('respond-async, wait="1\\0"', Preference(True, 10)),
        ("respond-async, wait=0", Preference(True, 0)),
        ("return=minimal; foo=bar, respond-async; x", ASYNC),
        ('a="b, wait=3", respond-async', ASYNC),
        ("respond-async=", ASYNC),
        ('respond-async=""', ASYNC),
        ("respond-async;", ASYNC),
        (", ,respond-async,,", ASYNC),
        # The first of two counts, and what is no number of seconds is none.
        ("wait=3, wait=9", Preference(False, 3)),
        ("respond-async, wait=soon", ASYNC),
        ("respond-async, wait=-1", ASYNC),
        ("respond-async, wait=1.5", ASYNC),
        ("respond-async, wait", ASYNC),
        ("respond-async, wait=99999999999999", ASYNC),
        # Malformed ones do not take the others with them.
        ("=, (x), respond-async", ASYNC),
        ("a b, respond-async", ASYNC),
        ('a="open, respond-async', ASYNC),
        ("respond-asynchronous", NONE),
        ("x-respond-async", NONE),
    ],
)
def test_preference_means(header: str | None, meant: Preference) -> None:
    assert preference(header) == meant


def test_what_we_send_is_what_we_read() -> None:
    for meant in (ASYNC, Preference(True, 5), Preference(False, 0), NONE):
        assert preference(meant.header()) == meant


@pytest.mark.parametrize(
    "piece", ["a;", '"', "a=", ", ", "a;b=", ' \\"', ";;", "wait "]
)
def test_long_nonsense_says_nothing(piece: str) -> None:
    """A pattern that tried every way to read it would not come back."""
    assert preference(piece * (8000 // len(piece))) == NONE
