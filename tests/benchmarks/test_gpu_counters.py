"""The table of ops that the driver of `make gpu` writes beside ncu's; how that is read and joined: tests/counters."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import counters
import one_step
import pytest
import raw_counters

from roofline.analysis.analysis import analyze
from roofline.core.schema import save
from roofline.counters.nsight_compute import Kernel, parse


def test_rows_and_totals_are_those_of_the_h100(tmp_path: Path) -> None:
    """The table of the inference step again, from a table of ncu's with its bytes; all 158 kernels are joined."""
    step = parse(raw_counters.raw(raw_counters.launches("infer")), "ncu.csv")
    rows = counters.rows_of(analyze(raw_counters.profile("infer")), step)
    counters.write(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    with (raw_counters.H100 / "ncu-infer-none.csv").open(newline="", encoding="utf-8") as file:
        then = list(csv.DictReader(file))
    assert [(row["op"], row["kernels"]) for row in written] == [(row["op"], row["kernels"]) for row in then]
    for row, before in zip(written, then, strict=True):
        if before["dram_read"]:
            assert float(row["dram_read"]) == pytest.approx(float(before["dram_read"]), abs=0.01)
    nothing = [Kernel("nothing", 10.0 * number, 5.0, 20.0) for number in range(3)]
    totals = counters.totals(rows, step, nothing)
    assert totals["kernels"] == {"of the profile": 158, "of the counters": 158, "joined": 158}
    assert totals["of a kernel on one element"] == {"dram_read": 10, "dram_written": 5, "l2": 20}
    assert totals["all kernels"]["dram_read"] == pytest.approx(raw_counters.sums("infer")["dram_read"], rel=1e-6)


def test_both_files_mean_the_same_number_of_kernels_on_nothing() -> None:
    """The driver runs counters.py with `-P`, so that it cannot import one_step.py beside it."""
    assert counters.NOTHING == one_step.NOTHING


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
