"""Hold the room of comparison to what a reader can keep in mind: short functions, and few numbers by choice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "roofline"
#: The room, and what moved out of it.
FILES = [*sorted((ROOT / "comparison").rglob("*.py")), ROOT / "analysis" / "gap_parts.py"]
#: Numbers that are no constants by choice: indices, halves and doubles, and those of a 95 % interval.
PLAIN = {0, 1, 2, 0.95, 2.5, 97.5}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_function_is_longer_than_a_page(file: Path) -> None:
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno + 1 > 60] == []


def test_fewer_than_ten_numbers_are_chosen() -> None:
    numbers = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in PLAIN
    ]
    assert len(numbers) < 10, numbers
