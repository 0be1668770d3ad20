"""YAML read without guessing: keys are text, only null, true, false and plain decimal numbers are more than text."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, ClassVar

import yaml

from ipxeready.said import said
from ipxeready.storage.broken import FileBroken

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
# Resolvers match from the start only, so each pattern ends itself.
# More digits than SQLite holds stay text.
_INT = re.compile(r"(?:0|-?[1-9][0-9]{0,17})\Z")


class StrictLoader(yaml.CSafeLoader):
    """The C parser with our own short list of types: no dates, no octal, no `no`, no duplicate keys, no foreign tags."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    yaml_constructors: ClassVar[dict[Any, Any]] = {}

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """A dict whose keys are the text as typed; a key twice is an error naming both lines."""
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a mapping is needed here", node.start_mark
            )
        check_keys(node)
        self.flatten_mapping(node)
        return {
            key.value: self.construct_object(value, deep=True)
            for key, value in node.value
        }


def check_keys(node: yaml.MappingNode) -> None:
    """Raise ConstructorError for a key that is no plain text or stands twice."""
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be plain text", key.start_mark
            )
        if key.tag == _MERGE:
            continue
        line = key.start_mark.line + 1
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"the key {key.value!r} stands twice, on line {seen[key.value]} and "
                f"line {line}; rename or remove one",
                key.start_mark,
            )
        seen[key.value] = line


def _construct_word(loader: StrictLoader, node: yaml.Node) -> Any:
    text = loader.construct_scalar(node)  # type: ignore[arg-type]
    return {"true": True, "false": False}.get(text)


def _construct_int(loader: StrictLoader, node: yaml.Node) -> Any:
    text = loader.construct_scalar(node)  # type: ignore[arg-type]
    if not _INT.fullmatch(text):
        raise yaml.constructor.ConstructorError(
            None, None, f"{text!r} is no plain whole number", node.start_mark
        )
    return int(text)


def _construct_foreign(loader: StrictLoader, node: yaml.Node) -> Any:
    raise yaml.constructor.ConstructorError(
        None, None, f"the tag {node.tag!r} is not allowed here", node.start_mark
    )


def _construct_map(loader: StrictLoader, node: yaml.Node) -> Any:
    return loader.construct_mapping(node)


def _construct_seq(loader: StrictLoader, node: yaml.Node) -> Any:
    return loader.construct_sequence(node, deep=True)  # type: ignore[arg-type]


StrictLoader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])
StrictLoader.add_implicit_resolver(
    _TAG + "bool", re.compile(r"(?:true|false)\Z"), ["t", "f"]
)
StrictLoader.add_implicit_resolver(
    _TAG + "null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""]
)
StrictLoader.add_implicit_resolver(
    _TAG + "int", _INT, ["-", *(str(digit) for digit in range(10))]
)
for _name in ("null", "bool"):
    StrictLoader.add_constructor(_TAG + _name, _construct_word)
StrictLoader.add_constructor(_TAG + "int", _construct_int)
StrictLoader.add_constructor(
    _TAG + "str",
    lambda loader, node: loader.construct_scalar(node),  # type: ignore[arg-type]
)
StrictLoader.add_constructor(_TAG + "map", _construct_map)
StrictLoader.add_constructor(_TAG + "seq", _construct_seq)
StrictLoader.add_constructor(None, _construct_foreign)


def decode(content: bytes) -> str:
    """The text of a file; FileBroken with line and column where it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise FileBroken(
            said(
                "the byte 0x{byte} is not UTF-8; save the file as UTF-8",
                byte=f"{content[error.start]:02x}",
            ),
            line,
            column,
        ) from None


def broken(error: yaml.YAMLError, text: str, first_line: int = 1) -> FileBroken:
    """The FileBroken of a parser's error, in words that say what to do."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if "end of stream" in str(getattr(error, "problem", "")):
        # A quote that is never closed: name where it begins, not where the file ends.
        mark = getattr(error, "context_mark", None) or mark
    if isinstance(error, yaml.reader.ReaderError):
        # The C parser counts bytes and names the character by its number.
        before = text.encode("utf-8", "surrogatepass")[: error.position].decode(
            "utf-8", "ignore"
        )
        return FileBroken(
            said(
                "the character U+{code} is not allowed in YAML; remove it",
                code=f"{int(error.character):04X}",
            ),
            before.count("\n") + first_line,
            len(before) - (before.rfind("\n") + 1) + 1,
        )
    line = mark.line if mark else 0
    column = mark.column if mark else 0
    tab = _tab_near(text, line)
    if tab:
        return FileBroken(
            said(
                "tab at line {line}, column {column}, use spaces",
                line=tab[0] + first_line,
                column=tab[1] + 1,
            ),
            tab[0] + first_line,
            tab[1] + 1,
        )
    problem = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    message = f"{context}, {problem}" if context else str(problem)
    return FileBroken(message, line + first_line, column + 1)


_TAB = re.compile(r"^[ ]*(\t)|[ ]*(\t)[ \t]*(?:#|$)")


def _tab_near(text: str, line: int) -> tuple[int, int] | None:
    lines = text.splitlines()
    for number in (line, line - 1):
        if 0 <= number < len(lines):
            found = _TAB.search(lines[number])
            if found:
                return number, lines[number].index("\t", found.start())
    return None


def _refuse_tabs(text: str, first_line: int) -> None:
    """FileBroken for a tab outside of values and comments: this parser takes it, others do not."""
    values = [
        (token.start_mark.index, token.end_mark.index)
        for token in yaml.scan(text, Loader=StrictLoader)
        if isinstance(token, yaml.ScalarToken)
    ]
    starts = [start for start, _ in values]

    def in_value(at: int) -> bool:
        before = bisect_right(starts, at) - 1
        return before >= 0 and at < values[before][1]

    for found in re.finditer("\t", text):
        at = found.start()
        if in_value(at):
            continue
        line = text.rfind("\n", 0, at) + 1
        comment = re.compile(r"(?:^|[ \t])#").search(text, line, at + 1)
        while comment is not None and in_value(comment.end() - 1):
            comment = re.compile(r"[ \t]#").search(text, comment.end(), at + 1)
        if comment is None:
            number = text.count("\n", 0, at) + first_line
            raise FileBroken(
                said(
                    "tab at line {line}, column {column}, use spaces",
                    line=number,
                    column=at - line + 1,
                ),
                number,
                at - line + 1,
            )


def load(text: str, first_line: int = 1) -> Any:
    """The value of one document; FileBroken otherwise."""
    try:
        loader = StrictLoader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
        if "\t" in text:
            _refuse_tabs(text, first_line)
        return value
    except yaml.YAMLError as error:
        raise broken(error, text, first_line) from None
    except RecursionError:
        raise FileBroken(said("nested too deeply"), first_line) from None


def compose(text: str) -> yaml.Node | None:
    """The node tree of one document with its marks; FileBroken otherwise."""
    try:
        loader = StrictLoader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise broken(error, text) from None
    except RecursionError:
        raise FileBroken(said("nested too deeply"), 1) from None


def marks(text: str) -> list[int]:
    """Where anchors and aliases stand in a text that parses."""
    if "&" not in text and "*" not in text:
        return []
    return [
        token.start_mark.index
        for token in yaml.scan(text, Loader=StrictLoader)
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken)
    ]


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@+-]*|[0-9]+(?:\.[0-9]+){3}")
_WORDLIKE = re.compile(
    r"y|n|yes|no|on|off|true|false|null|none|inf|nan|infinity", re.IGNORECASE
)


class _Dumper(yaml.SafeDumper):
    """Block style, keys in the order given, text quoted wherever some reader might guess a type."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) and not _WORDLIKE.fullmatch(text)
    return dumper.represent_scalar(_TAG + "str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def dump(value: Any, *, flow: bool = False) -> str:
    """YAML text of `value`: block style, or on one line when `flow`."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        allow_unicode=True,
        sort_keys=False,
        width=1_000_000,
        default_flow_style=flow,
    )
    if text.endswith("...\n"):
        text = text[:-4]
    return text.rstrip("\n")
