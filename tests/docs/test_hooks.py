"""docs/hooks: what the site makes of pages that are written for GitHub."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("mkdocs")

ROOT = Path(__file__).resolve().parents[2]


def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"hook_{name}", ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # A list right below a text is one, as in CommonMark.
        ("text\n- a\n- b\n", "text\n\n- a\n- b\n"),
        # What belongs to an item stands four spaces further in.
        ("1. a\n\n   more\n", "1. a\n\n    more\n"),
        ("- a\n  - b\n    - c\n- d\n", "- a\n    - b\n        - c\n- d\n"),
        ("1. a\n\n   more\n2. b\n", "1. a\n\n    more\n\n2. b\n"),
        # Code of an item keeps its own four spaces.
        ("1. a\n\n       code\n\n2. b\n", "1. a\n\n        code\n\n2. b\n"),
        ("- a\n\n  ```sh\n  - no item\n  ```\n", "- a\n\n    ```sh\n    - no item\n    ```\n"),
        # A text after the list is none of its items; code that looks like a list stays code.
        ("- a\n\ntext\n", "- a\n\ntext\n"),
        ("text\n\n    - code\n", "text\n\n    - code\n"),
        # A wrapped line goes on, whatever it begins with.
        ("- a\n  goes on\n", "- a\n    goes on\n"),
    ],
)
def test_lists_are_as_in_commonmark(written: str, expected: str) -> None:
    assert hook("github").lists(written) == expected


def test_bars_of_code_in_tables() -> None:
    cells = hook("github").cells
    assert cells("| `a\\|b` | c \\| d |\n\n`e\\|f`\n") == "| `a|b` | c \\| d |\n\n`e\\|f`\n"


def test_headings_are_called_as_on_github() -> None:
    slug = hook("github").slug
    assert slug("What is checked first?", "-") == "what-is-checked-first"
    assert slug("`roofline check BASELINE CURRENT...`", "-") == "roofline-check-baseline-current"


def test_links_are_rewritten_and_code_is_not() -> None:
    text = "[a](x.md) and `[b](x.md)`\n\n    [c](x.md)\n\n```\n[d](x.md)\n```\n[e](folder) ![f](x.md)\n"
    moved = hook("outside").rewritten(text, lambda link: None if link == "folder" else f"../{link}")
    assert moved == "[a](../x.md) and `[b](x.md)`\n\n    [c](x.md)\n\n```\n[d](x.md)\n```\ne ![f](../x.md)\n"


def test_a_cell_that_failed_is_no_page() -> None:
    shown = hook("notebooks").shown
    assert shown({"output_type": "stream", "text": ["a < b"]}) == "<pre>a &lt; b</pre>"
    assert shown({"output_type": "display_data", "data": {"text/html": ["<b>", "x"], "text/plain": "x"}}) == "<b>x"
    with pytest.raises(ValueError, match="ended in NameError"):
        shown({"output_type": "error", "ename": "NameError", "evalue": "x"})


def test_outputs_keep_their_place() -> None:
    cell = {"cell_type": "code", "source": ["1"], "outputs": [{"output_type": "stream", "text": "one"}]}
    text, outputs = hook("notebooks").page({"cells": [{"cell_type": "markdown", "source": ["# A"]}, cell, cell]})
    assert text == "# A\n\n```python\n1\n```\n\nOUTPUT-0\n\n```python\n1\n```\n\nOUTPUT-1\n"
    assert len(outputs) == 2


def test_an_option_is_as_in_the_help() -> None:
    row = hook("commands")._row("--kind a|b", "What `a|b` is: x|y or <z>.")
    assert row == "| `--kind a\\|b` | What `a\\|b` is: x\\|y or \\<z>. |"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("Does it.", "Does it."),
        (
            "a: as in x.y.\nb: infer\nor train. Note: no name.",
            "- `a`: as in x.y.\n- `b`: infer or train. Note: no name.",
        ),
        ("a, b: both; c: none.", "- `a`, `b`: both\n- `c`: none."),
        ("a   in columns\n    that go on\nb too", "- `a`: in columns that go on\n- `b`: too"),
        (">>> f(1)\n2", "```pycon\n>>> f(1)\n2\n```"),
        ("d: is no parameter.", "d: is no parameter."),
    ],
)
def test_parameters_are_a_list_and_examples_code(told: str, expected: str) -> None:
    pytest.importorskip("griffe")
    assert hook("docstrings").shaped(f"First.\n\n{told}", {"a", "b", "c"}) == f"First.\n\n{expected}"
