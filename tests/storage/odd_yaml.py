"""Files that people write: strategies of hypothesis for YAML of usual and odd shapes."""

from __future__ import annotations

from hypothesis import strategies as st

KEYS = (
    "w1",
    "w2",
    "worker-03",
    '"w4"',
    "'w5'",
    '"w\\u0031"',
    "no",
    "012",
    "null",
    "~",
    "<<",
    "机房",
    "a b",
    "a#b",
    "52:54:00:12:34:56",
    "- w",
    "? w",
    "&k w6",
    "!!str w7",
    "w8 ",
    "{w9",
    "w\u30001",
)
VALUES = (
    "",
    " {}",
    " {hostname: a, arch: x}",
    " {hostname: a,\n      arch: b}",
    " {hostname: a,\n  w2: 3}",
    " null",
    " text",
    " 5",
    " &d {os: ubuntu}",
    " *d",
    " # only a comment",
    ' "quoted: text"',
    ' "over\n  w2: lines"',
    ' "unclosed',
    " |\n      block\n      # no comment",
    " |\n      block\n\n         \n",
    " |+\n      keep\n\n",
    " >2\n      folded\n",
    " [1, 2]",
    " !!python/object/apply:os.system [x]",
)
FIELDS = (
    "hostname: a",
    "hostname: worker-03 # why",
    "arch: x86_64",
    "note: 机房 A",
    'note: "two\n      lines"',
    "note: plain\n      goes on",
    "note: |\n      block\n      # content",
    "note: |\n      block\n         \n",
    "note: |2\n        deep",
    "note: x\t# tab",
    "<<: *d",
    "<<: {a: 1}",
    "asset_tag: X7",
    "mac: 52:54:00:12:34:56",
    "code: 012",
    "flag: no",
    "when: 2026-07-12",
    "n: 42",
    "hostname: again",
    "disks:\n    - agent: s1\n      iqn: a.b\n    - agent: s2",
    "disks: [{agent: s1}]",
    "boot: {menu_default: ubuntu}",
    "boot:\n      menu_timeout: 5000",
    "cd: null",
    "# a comment",
    "",
    "big: 123456789012345678901234567890",
)
BETWEEN = (
    "",
    "# a header",
    "  # an inner comment",
    "    # a deep comment",
    "   ",
    "      ",
    "# ctl \x07",
    "# nel \x85 ps \u2028 ideographic \u3000",
    "\u00a0 w: 1",
    "---",
    "...",
    "%YAML 1.1",
    "other: 1",
    "stray",
    "  stray",
    "\u3000wide",
    "\ttab",
)
TOPS = (
    "workers:",
    "workers: # c",
    "workers: {}",
    "workers: {} # c",
    "workers: null",
    "workers: ~",
    "workers: 5",
    '"workers":',
    "workers :",
    "worker:",
    "workers: &a",
    "defaults: &d {os: ubuntu}\nworkers:",
    "  stray: 1\nworkers:",
    "---\nworkers:",
    "",
)


@st.composite
def records(draw: st.DrawFn, tame: bool = False) -> str:
    """Lines of one record; a tame one is of shapes that everybody writes."""
    indent = "  " if tame else draw(st.sampled_from(["  ", "  ", "  ", "    ", " "]))
    if tame:
        key = f"worker-{draw(st.integers(1, 99)):02d}"
        fields = draw(
            st.lists(
                st.sampled_from(FIELDS[:9] + FIELDS[11:24]),
                max_size=5,
                unique_by=lambda field: field.split(":")[0],
            )
        )
    else:
        key = draw(st.sampled_from(KEYS))
        if draw(st.booleans()):
            return f"{indent}{key}:{draw(st.sampled_from(VALUES))}\n"
        fields = draw(st.lists(st.sampled_from(FIELDS), max_size=5))
    body = "".join(f"{indent}  {field}\n" for field in fields)
    return f"{indent}{key}:\n{body}"


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file of any shape; many of them do not parse."""
    # One odd thing at a time is what slips through; two are refused for either.
    usual = draw(st.booleans())
    pieces = ["workers:\n" if usual else draw(st.sampled_from(TOPS)) + "\n"]
    for _ in range(draw(st.integers(0, 4))):
        pieces.append(draw(records(tame=draw(st.booleans()))))
        if draw(st.integers(0, 3)) == 0:
            pieces.append(draw(st.sampled_from(BETWEEN)) + "\n")
    text = "".join(pieces)
    if draw(st.integers(0, 3)) == 0 and text:
        at = draw(st.integers(0, len(text) - 1))
        with_ = draw(
            st.sampled_from(["", " ", "\n", '"', "'", ":", "#", "{", "\t", "-"])
        )
        text = text[:at] + with_ + text[at + 1 :]
    if draw(st.booleans()):
        text = text.rstrip("\n")
    if draw(st.integers(0, 3)) == 0:
        text = text.replace("\n", "\r\n")
    if draw(st.integers(0, 5)) == 0:
        text = "\ufeff" + text
    return text.encode()


@st.composite
def tame_files(draw: st.DrawFn) -> bytes:
    """A file that parses, with comments everywhere, of the shapes that people write."""
    pieces = draw(st.sampled_from(["", "# header\n# more\n\n"])) + "workers:\n"
    names: set[str] = set()
    for _ in range(draw(st.integers(0, 5))):
        piece = draw(records(tame=True))
        name = piece.split(":")[0]
        if name in names:
            continue
        names.add(name)
        pieces += piece
        pieces += draw(st.sampled_from(["", "\n", "  # between\n", "# low\n\n"]))
    if draw(st.integers(0, 3)) == 0:
        pieces = pieces.rstrip("\n")
    if draw(st.integers(0, 3)) == 0:
        pieces = pieces.replace("\n", "\r\n")
    return pieces.encode()


VALUES_TO_PUT = st.dictionaries(
    st.sampled_from(["hostname", "arch", "note", "boot", "disks", "cd", "flag", "n"]),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 10**12),
        st.sampled_from(
            ["a", "no", "012", "52:54:00:12:34:56", "机房", "", "a: b # c", "=", "x\ny"]
        ),
        st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2),
        st.lists(
            st.fixed_dictionaries({"agent": st.sampled_from(["s1", "s2"])}), max_size=3
        ),
    ),
    min_size=1,
    max_size=5,
)
