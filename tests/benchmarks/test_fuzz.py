"""The targets of `make fuzz` on their seeds and a few changes of them, always the same; and what campaigns found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz"


@pytest.mark.slow
def test_no_reader_and_no_usual_renderer_has_a_find_in_a_few_inputs() -> None:
    # In a process of its own: its modules have names that others have, and frameworks are hidden from it.
    ended = subprocess.run([sys.executable, str(FUZZ / "few.py")], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
