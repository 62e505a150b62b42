"""The accounts of docs/h100.md are those of the profiles that ship (`make annotations` writes them)."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "h100_accounts.py"


def test_the_page_has_the_accounts_of_the_profiles() -> None:
    spec = spec_from_file_location("h100_accounts", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    text = module.written()
    assert module.PAGE.read_text(encoding="utf-8") == text
    # The first row of each pair is of ops or a part of the gap that both runs' numbers stand beside.
    section = text.partition(module.BEGIN)[2].partition(module.END)[0]
    assert section.count("| A − B | row |") == len(module.PAIRS)
