"""docs/cells.md and docs/one-layer.md are what their scripts write from the kept rows."""

from __future__ import annotations

import kept
import one_layer
import page
import pytest
from cell import Cell


def test_the_pages_are_what_comes_out() -> None:
    rows = kept.load()
    assert page.page(rows) == page.PAGE.read_text(encoding="utf-8"), "run `python benchmarks/cells/run.py --table`"
    assert one_layer.page(rows) == one_layer.PAGE.read_text(encoding="utf-8")


def test_what_of_a_cell_is_not_known_is_listed() -> None:
    row = dict.fromkeys(("FLOPs known", "bytes known", "joined", "placed"), "100.0 %")
    complete = {**row, "unknown work": "", "above": "0", "ms": "2", "forward GFLOP": "1.5", "backward GFLOP": ""}
    lacking = {**complete, "placed": "0.0 %", "unknown work": "`Mul`", "above": "3", "ms": "4", "forward GFLOP": "2"}
    cells = {
        cell: kept.Found(model="bert", backend=cell.backend, mode="infer", size="base", date="2026-11-21", row=line)
        for cell, line in (
            (Cell("bert", "torch", "infer", "base"), complete),
            (Cell("bert", "jax", "infer", "base"), lacking),
        )
    }
    text = page.page(cells)
    assert text
    assert (
        "| bert | infer | 1.5–2 |  | 2 |  |  | 4 |" in text
    )  # GFLOP of two backends; torch, two that did not run, jax
    assert "In 1 of 2 cells" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| bert | infer | published"))
    assert (
        line
        == "| bert | infer | published | jax | known: blocks 0.0 %; unknown: `Mul`; ops faster than their roof: 3 |"
    )
    assert page.page({}) is None


@pytest.mark.parametrize(
    ("numbers", "text"), [(["22.3484", "22.3484"], "22.35"), (["", ""], ""), (["3", "1", "2"], "1–3")]
)
def test_a_range_is_its_ends(numbers: list[str], text: str) -> None:
    assert page._range(numbers) == text
