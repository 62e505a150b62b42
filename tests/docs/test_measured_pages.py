"""The tables of pages about measured runs, from the profiles in docs/measured and profiles/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from roofline import units

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from measured_tables import DOCS, TABLES, page, ten


def words(name: str) -> str:
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_what_comes_out(name: str) -> None:
    """Where they are not: `python benchmarks/measured_tables.py`."""
    assert page(name) == (DOCS / name).read_text(encoding="utf-8")


def test_what_is_asked_of_bert() -> None:
    """The same model FLOPs and parameters on all ten, and minimum times that differ by what is fused."""
    runs = ten("bert-infer-1-thread")
    (flops,) = {sum(matmul.model for matmul in run.products.values()) for run in runs}
    (parameters,) = {run.profile.parameters for run in runs}
    floors = sorted(1e3 * run.total.floor for run in runs)
    text = words("cpu-comparison.md")
    assert f"the same {flops / 1e9:.2f} GFLOP and have the same {parameters:,} parameters" in text
    assert f"is {floors[0]:.0f} to {floors[-1]:.0f} ms on all ten" in text


def test_the_training_step_of_the_mlp_by_what_takes_its_time() -> None:
    """PyTorch's, op by op: dispatch, tanh, narrow matmuls, page faults."""
    run = next(run for run in ten("mlp-train-1-thread") if run.profile.backend == "torch")
    text, conditions, matmul = words("simplechains.md"), run.profile.conditions, run.by("group")["matmul"]
    tanh = sum(total.seconds for name, total in run.by("op").items() if name.startswith("aten::tanh ["))
    compiled = next(run for run in ten("mlp-train-1-thread") if run.profile.backend == "torch-compile")
    overhead = run.gap / run.wall
    assert matmul.attained is not None
    for said in (
        f"Of PyTorch's {units.seconds(run.wall)} no op runs for {units.seconds(run.gap)}, {100 * overhead:.0f} %",
        f"The least time of its kernels is {units.seconds(run.total.floor)}",
        f"Two `tanh` take {units.seconds(tanh)}",
        f"Matmuls take {units.seconds(matmul.seconds)}, at {100 * matmul.attained:.0f} % of the roof",
        f"{conditions['page_faults_per_step']:.0f} page faults a step, with "
        f"{units.seconds(conditions['system_seconds_per_step'])} of system time",
        f"`torch-compile` takes {units.seconds(compiled.wall)}",
    ):
        assert said in text, said
