"""Changing one mapping inside YAML text by replacing only what differs: comments, order, quotes and unknown keys stay."""

from __future__ import annotations

import json
from typing import Any

import yaml

from ipxeready.storage import yamlload

Edit = tuple[int, int, str]


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same in YAML: 1 is not true, the order of keys does not matter."""
    return one == other and _typed(one) == _typed(other)


def _typed(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def apply(text: str, edits: list[Edit]) -> str:
    """`text` with the edits (start, end, replacement) made, last first; insertions at one place keep their order."""
    ordered = sorted(enumerate(edits), key=lambda item: (item[1][0], item[0]))
    for _, (start, end, new) in reversed(ordered):
        text = text[:start] + new + text[end:]
    return text


class Editor:
    """Edits for one text and its node tree; `newline` is the file's own line end."""

    def __init__(self, text: str, newline: str) -> None:
        self.text = text
        self.newline = newline
        self.edits: list[Edit] = []

    # --- geometry -------------------------------------------------------
    def content_end(self, node: yaml.Node) -> int:
        """Where the last visible character of `node` ends (marks of block nodes run on to the next token)."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            if isinstance(node, yaml.MappingNode):
                key, value = last
                end: int = key.end_mark.index
                return max(end, self.content_end(value))
            return self.content_end(last)
        start: int = node.start_mark.index
        return start + len(self.text[start : node.end_mark.index].rstrip())

    def line_end(self, index: int) -> int:
        """The offset behind the line that holds `index`."""
        found = self.text.find("\n", index)
        return len(self.text) if found < 0 else found + 1

    def line_start(self, index: int) -> int:
        """The offset at which the line of `index` begins."""
        return self.text.rfind("\n", 0, index) + 1

    def block(self, value: Any, indent: int) -> str:
        """Block text of `value`, each line indented and ended."""
        lines = yamlload.dump(value).split("\n")
        return "".join(" " * indent + line + self.newline for line in lines)

    def insert(self, at: int, lines: str) -> None:
        """Put whole lines at `at`, ending an unended line first."""
        if at == len(self.text) and self.text and not self.text.endswith("\n"):
            lines = self.newline + lines
        self.edits.append((at, at, lines))

    # --- edits ----------------------------------------------------------
    def mapping(
        self, node: yaml.MappingNode, old: dict[str, Any], new: dict[str, Any]
    ) -> None:
        """Turn the block mapping `node`, whose value is `old`, into `new`."""
        if node.flow_style or not new:
            end = self.content_end(node)
            text = yamlload.dump(new, flow=True)
            self.edits.append((node.start_mark.index, end, text))
            return
        indent: int = node.start_mark.column
        present = set()
        for key, value in node.value:
            present.add(key.value)
            if key.value not in new:
                if key.value in old:
                    self.drop(node, key, value)
                continue
            if key.value not in old or not same(new[key.value], old[key.value]):
                self.value(key, value, old.get(key.value), new[key.value])
        last_key, last_value = node.value[-1]
        at = self.line_end(
            max(last_key.end_mark.index, self.content_end(last_value)) - 1
        )
        for name, value in new.items():
            if name not in present and not (name in old and same(old[name], value)):
                self.insert(at, self.block({name: value}, indent))

    def drop(self, node: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> None:
        """Remove the lines of one entry; behind the dash of a list the next entry moves up."""
        start: int = key.start_mark.index
        line = self.line_start(start)
        end = self.line_end(max(key.end_mark.index, self.content_end(value)) - 1)
        if self.text[line:start].strip():
            after = [k.start_mark.index for k, _ in node.value]
            end = next((each for each in after if each > start), end)
            self.edits.append((start, end, ""))
            return
        self.edits.append((line, end, ""))

    def would_lose(self) -> str:
        """What the edits would take away unasked: an anchor written out, a comment inside braces; empty if nothing."""
        marks = yamlload.marks(self.text)
        for start, end, new in self.edits:
            if new and any(start <= mark < end for mark in marks):
                return "anchors in use"
            old = self.text[start:end]
            if new.lstrip().startswith("{") and "\n" in old and "#" in old:
                return "comments inside braces"
        return ""

    def value(self, key: yaml.Node, node: yaml.Node, old: Any, new: Any) -> None:
        """Replace the value of one key."""
        block = isinstance(node, yaml.CollectionNode) and not node.flow_style
        if block and isinstance(new, dict) and isinstance(old, dict) and new:
            self.mapping(node, old, new)  # type: ignore[arg-type]
        elif block and isinstance(new, list) and isinstance(old, list) and new:
            self.sequence(node, old, new)  # type: ignore[arg-type]
        else:
            self.whole_value(key, node, new)

    def whole_value(self, key: yaml.Node, node: yaml.Node, new: Any) -> None:
        """Put `new` behind the colon of `key`, as one line where it fits on one."""
        colon = self.text.index(":", key.end_mark.index) + 1
        end = max(colon, self.content_end(node))
        if isinstance(new, dict | list) and new:
            indent = key.start_mark.column + 2
            self.edits.append((colon, end, ""))
            self.insert(self.line_end(max(end - 1, colon)), self.block(new, indent))
        else:
            self.edits.append((colon, end, " " + yamlload.dump(new, flow=True)))

    def sequence(self, node: yaml.SequenceNode, old: list[Any], new: list[Any]) -> None:
        """Turn the block sequence `node` from `old` into `new`, keeping equal items at both ends."""
        head = 0
        while head < min(len(old), len(new)) and same(old[head], new[head]):
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and same(
            old[len(old) - 1 - tail], new[len(new) - 1 - tail]
        ):
            tail += 1
        gone = node.value[head : len(old) - tail]
        came = new[head : len(new) - tail]
        if len(gone) == len(came):
            for item, before, after in zip(gone, old[head:], came, strict=False):
                if not same(before, after):
                    self.item(item, before, after)
            return
        indent: int = node.start_mark.column
        at = self.line_start(self.dash(node.value[head])) if gone else None
        if at is None:
            at = (
                self.line_end(self.content_end(node.value[head - 1]) - 1)
                if head
                else self.line_start(self.dash(node.value[0]))
            )
        if came:
            self.insert(at, self.block(came, indent))
        for item in gone:
            self.edits.append(
                (
                    self.line_start(self.dash(item)),
                    self.line_end(self.content_end(item) - 1),
                    "",
                )
            )

    def dash(self, item: yaml.Node) -> int:
        """Where the dash of a block sequence's item stands."""
        return self.text.rfind("-", 0, item.start_mark.index)

    def item(self, node: yaml.Node, old: Any, new: Any) -> None:
        """Change one item of a sequence."""
        block = isinstance(node, yaml.MappingNode) and not node.flow_style
        if block and isinstance(old, dict) and isinstance(new, dict) and new:
            self.mapping(node, old, new)  # type: ignore[arg-type]
            return
        text = yamlload.dump(new, flow=True)
        self.edits.append((node.start_mark.index, self.content_end(node), text))
