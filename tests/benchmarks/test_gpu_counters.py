"""The table of ops that the driver of `make gpu` writes beside ncu's; how that is read and joined: tests/counters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import counters
import one_step
import pytest
import raw_counters

from roofline.analysis.analysis import analyze
from roofline.core.schema import save
from roofline.counters.nsight_compute import parse


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_rows_and_totals_are_those_of_the_h100(mode: str, tmp_path: Path) -> None:
    """What is kept beside ncu's table is what the driver makes of it."""
    kernels = parse("".join(raw_counters.table(mode)), "ncu.csv")
    nothing, step = kernels[: counters.NOTHING], kernels[counters.NOTHING :]
    rows = counters.rows_of(analyze(raw_counters.profile(mode)), step)
    counters.write(rows, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_bytes() == (raw_counters.H100 / f"ncu-{mode}-none.csv").read_bytes()
    totals = {"cache control": "none", **counters.totals(rows, step, nothing)}
    assert totals == json.loads((raw_counters.H100 / f"ncu-{mode}-none.json").read_text(encoding="utf-8"))
    assert max(kernel.read + kernel.written for kernel in nothing) <= 2048


def test_both_files_mean_the_same_number_of_kernels_on_nothing() -> None:
    """The driver runs counters.py with `-P`, so that it cannot import one_step.py beside it."""
    assert counters.NOTHING == one_step.NOTHING == raw_counters.NOTHING


#: Runs a script as if there were a GPU, and says what is so when the step would be built.
PROGRAM = """
import os, runpy, sys
from roofline.measuring import one_step

def run(request, marks):
    print(type(marks).__name__, os.environ["OF_THE_PROFILE"], {"torch", "jax"}.isdisjoint(sys.modules))

one_step.request_of = lambda profile: None
one_step.variables_of = lambda profile: {"OF_THE_PROFILE": profile.model}
one_step.CudaMarks.__init__ = lambda marks: None
one_step.run = run
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_program_under_counters_loads_no_framework_before_the_step_and_sets_its_variables(tmp_path: Path) -> None:
    """As `python -m roofline.measuring.one_step` does: variables are read when a framework is loaded."""
    save(raw_counters.profile("infer"), tmp_path / "p.json")
    words = [sys.executable, "-c", PROGRAM, one_step.__file__, str(tmp_path / "p.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["Marks", "bert", "True"], "")
