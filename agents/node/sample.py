"""A look at a fresh clone: do its bytes agree with its source's, at a few places that cost the same for every image?"""

from __future__ import annotations

import os
import secrets

from agents.node.extents import data_at

BLOCK = 4096
#: Places that are compared: 32 blocks are a few milliseconds, on a cold spinning disk a quarter of a second.
PLACES = 32


def differs(source: int, clone: int) -> int | None:
    """The offset of a block of `source` that `clone` has otherwise; None when no block of the sample differs.

    The sample is the first and the last block, blocks anywhere (holes among them) and blocks with data.
    They are drawn anew each time, so that the clones for a room look at a good part of their master.
    """
    places = _places(source)
    for file in (source, clone):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    try:
        for place in places:
            if os.pread(source, BLOCK, place) != os.pread(clone, BLOCK, place):
                return place
    finally:
        for file in (source, clone):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_NORMAL)
    return None


def _places(source: int) -> list[int]:
    blocks = -(-os.fstat(source).st_size // BLOCK)
    if blocks <= PLACES:
        return [block * BLOCK for block in range(blocks)]
    places = {0, blocks - 1}
    for turn in range(PLACES - len(places)):
        block = secrets.randbelow(blocks)
        if turn % 2:
            data = data_at(source, block * BLOCK)
            block = block if data is None else data // BLOCK
        places.add(block)
    return sorted(block * BLOCK for block in places)
