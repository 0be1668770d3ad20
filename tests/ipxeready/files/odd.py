"""Names that a file system allows and a page might stumble over."""

from __future__ import annotations

import os

ODD = (
    "two words.txt",
    "a#b?c&d=e;f+g.txt",
    "100%.txt",
    "%41.txt",
    "%ff.txt",
    "\"quoted\" 'name'.txt",
    "<script>alert(1)</script>.txt".replace("/", "\N{DIVISION SLASH}"),
    "<img src=x onerror=alert(1)>.txt",
    "back\\slash.txt",
    "line\nend\ttab\rreturn.txt",
    "end of line\n",
    "esc\x1b[31m\x7f.txt",
    "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe",
    "zero\N{ZERO WIDTH SPACE}width.txt",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}.txt",
    "机房.txt",
    "{{ name }}{% now %}.txt",
    " blank at both ends ",
    "x" * 250,
    os.fsdecode(b"latin-\xe9.txt"),
    os.fsdecode(b"\xff\xfe"),
)
