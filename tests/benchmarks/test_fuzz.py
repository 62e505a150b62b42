"""The targets of `make fuzz` on their seeds and a few changes of them, always the same; and what campaigns found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz"


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [(), ("show-text", "show-csv", "check", "random-profile")], ids=["readers", "some renderers"]
)
def test_no_target_has_a_find_in_a_few_inputs(names: tuple[str, ...]) -> None:
    # In a process of its own: its modules have names that others have, and frameworks are hidden from it.
    ended = subprocess.run([sys.executable, str(FUZZ / "few.py"), *names], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
