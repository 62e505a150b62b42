"""The ranges of the public traces: docs/imports.md says what comes out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from ranges import PAGE, TRACES, page, table


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.is_dir(), reason="the public traces are not here")
def test_the_page_is_what_comes_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, table(TRACES)) == text, "run `python benchmarks/ranges.py`"
