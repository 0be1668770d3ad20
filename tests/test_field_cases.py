"""Every field case that this product answers for is a test, marked with its number."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from ipxeready.conf import REPOSITORY

TESTS = REPOSITORY / "tests"


def _numbers(*parts: int | range) -> set[int]:
    return {n for part in parts for n in ([part] if isinstance(part, int) else part)}


#: The one room: who a machine is, files, names, boots.
FIRST = _numbers(
    range(1, 5), range(6, 9), 10, 13, range(15, 18), 20, 21, 24, range(26, 31), 32, 33
) | _numbers(
    35, 37, range(39, 44), range(48, 51), range(52, 57), 85, range(89, 93), 101, 102
)
#: Nodes, images, batches, firmware.
SECOND = _numbers(45, 46, 58, 60, 61, 63, 64, 69, 70, 72, range(74, 77), 86) | _numbers(
    93, 94, range(96, 101), 104
)
#: A storage node under every fault: clones, jobs, target systems. (There is no case 62.)
THIRD = _numbers(59, range(65, 68), 71, 73, 78, 81, 83)


def _marked(path: Path) -> dict[int, set[str]]:
    """The case numbers of a file's tests; a mark on anything but a test, or without a number, fails."""
    found: dict[int, set[str]] = defaultdict(set)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marks = {
        id(node): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.case"
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        for decorator in node.decorator_list:
            # A parameter's own mark lies inside the decorator.
            for call in ast.walk(decorator):
                if id(call) in marks:
                    del marks[id(call)]
                    (number,) = call.args  # type: ignore[attr-defined]
                    found[number.value].add(node.name)
    assert not marks, f"{path}: {[node.lineno for node in marks.values()]}"
    return found


def test_each_case_is_a_test_by_its_number() -> None:
    found: dict[int, set[str]] = defaultdict(set)
    for path in TESTS.rglob("test_*.py"):
        for number, names in _marked(path).items():
            assert isinstance(number, int)
            found[number] |= names
    missing = sorted((FIRST | SECOND | THIRD) - set(found))
    assert not missing, f"no test is marked with {missing}"
    assert all(1 <= number <= 104 for number in found)


def test_the_lists_are_those_of_the_plan() -> None:
    """A number that falls out of the lists would go unnoticed."""
    assert len(FIRST) == 44
    assert len(SECOND) == 22
    assert len(THIRD) == 9
    assert not FIRST & SECOND
    assert not (FIRST | SECOND) & THIRD
