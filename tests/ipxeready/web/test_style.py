"""The style sheet as a browser reads it: a brace that is lost takes all rules behind it along, and nothing complains."""

from __future__ import annotations

import re

from ipxeready.conf import REPOSITORY


def test_every_block_of_the_style_sheet_is_closed() -> None:
    text = (REPOSITORY / "static" / "ipxeready" / "style.css").read_text()
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)  # fmt: skip
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        for brace in re.findall(r"[{}]", line):
            depth += 1 if brace == "{" else -1
            assert 0 <= depth <= 2, f"line {number}: {line}"
        if line.startswith(("@media", ".", "#")) and line.endswith("{"):
            assert depth == 1, f"line {number}: the block before it is open"
    assert depth == 0
