"""How much the two ends take from each other, and how often."""

from __future__ import annotations

#: No request of this API is longer; a node refuses more with 413.
MAX_BODY = 64 * 1024
#: The one exception: a piece of an upload. More is 413 with this figure.
MAX_PIECE = 64 << 20
#: The control plane hands on at most this much of a node's words.
MAX_ERROR = 200
#: So much of them it reads at all: its pages have room for whole sentences.
MAX_WORDS = 1000
#: Seconds after which a node renews its list of masters by itself.
MASTERS_PERIOD = 30
