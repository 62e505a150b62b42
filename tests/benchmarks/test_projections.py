"""Projections against what ran: docs/whatif.md says what they come to, and they come to what the issue of them asks."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from projections import PAGE, RECORDED, TRACES, page, projections


@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")
def test_the_page_is_what_comes_out_and_holds() -> None:
    found = list(projections(TRACES))
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, found) == text, "run `python benchmarks/projections.py`"
    assert statistics.median(abs(one.off) for one in found) <= 0.12
    assert sum(one.holds for one in found) >= 0.9 * len(found)
    spans = {one: one.interval[1] / one.interval[0] for one in found}
    assert statistics.median(spans.values()) <= 2
    # Of a trace with one step calls within it are drawn as well, and may widen it by more.
    lone = {step for step, *_ in RECORDED}
    assert max(span for one, span in spans.items() if one.step not in lone) <= 2
