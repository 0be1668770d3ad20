"""The wire between control plane and storage node, used by both ends: addresses, bodies, names and the rules for them."""

from __future__ import annotations
