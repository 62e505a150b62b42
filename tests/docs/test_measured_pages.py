"""The tables of pages about measured runs, from the profiles in docs/measured and profiles/."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from roofline import units
from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.ranking import rank
from roofline.core import shipped
from roofline.core.schema import load

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = DOCS / "measured"


def words(page: str) -> str:
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


@cache
def ten(folder: str) -> tuple[Analysis, ...]:
    """Analyze the ten backends under the best ceilings that any of them saw, the fastest first."""
    runs = rank([load(path) for path in sorted((MEASURED / folder).glob("*.json"))]).runs
    assert len(runs) == 10
    return tuple(sorted(runs, key=lambda run: run.wall))


def row(run: Analysis) -> str:
    """Return a line of a table of backends: step, matmuls and how close they are to the roof, host, minimum."""
    matmul = run.by("group")["matmul"]
    assert matmul.attained is not None
    cells = [
        f"{run.profile.backend}{' !' if 'contended' in ' '.join(run.flags) else ''}",
        units.seconds(run.wall),
        f"{100 * matmul.seconds / run.wall:.0f} %",
        f"{100 * matmul.attained:.0f} %",
        f"{100 * run.gap / run.wall:.0f} %",
        f"{run.wall / run.total.floor:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize(
    ("page", "folder"),
    [
        ("cpu-comparison.md", "bert-infer-1-thread"),
        ("simplechains.md", "mlp-train-1-thread"),
        ("simplechains.md", "mlp-infer-1-thread"),
    ],
)
def test_the_table_of_ten_backends(page: str, folder: str) -> None:
    assert "\n".join(map(row, ten(folder))) in (DOCS / page).read_text(encoding="utf-8")


def test_what_is_asked_of_bert() -> None:
    """The same model FLOPs and parameters on all ten, and minimum times that differ by what is fused."""
    runs = ten("bert-infer-1-thread")
    (flops,) = {sum(matmul.model for matmul in run.products.values()) for run in runs}
    (parameters,) = {run.profile.parameters for run in runs}
    floors = sorted(1e3 * run.total.floor for run in runs)
    page = words("cpu-comparison.md")
    assert f"the same {flops / 1e9:.2f} GFLOP and have the same {parameters:,} parameters" in page
    assert f"is {floors[0]:.0f} to {floors[-1]:.0f} ms on all ten" in page


def test_the_rows_of_small_networks() -> None:
    lines = []
    for name in ("mlp-train-b10000", "lenet5-train-b16"):
        for backend in ("jax", "torch"):
            run = analyze(load(shipped.paths()[f"simplechains/{name}-{backend}"]))
            conditions, floor = run.profile.conditions, run.total.floor
            system, faults = (conditions[key] for key in ("system_seconds_per_step", "page_faults_per_step"))
            assert run.total.floor_high in (None, floor)
            cells = [
                f"{'MLP' if name.startswith('mlp') else 'LeNet5'}, {backend}",
                units.seconds(run.wall),
                f"{units.seconds(floor)}, {100 * floor / run.wall:.0f} %",
                f"{100 * (1 - floor / run.wall - run.gap / run.wall):.0f} %",
                f"{100 * run.gap / run.wall:.0f} %",
                f"{units.seconds(system)}, {faults:.0f} faults",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    assert "\n".join(lines) in (DOCS / "simplechains.md").read_text(encoding="utf-8")


def test_the_training_step_of_the_mlp_by_what_takes_its_time() -> None:
    """PyTorch's, op by op: dispatch, tanh, narrow matmuls, page faults."""
    run = next(run for run in ten("mlp-train-1-thread") if run.profile.backend == "torch")
    page, conditions, matmul = words("simplechains.md"), run.profile.conditions, run.by("group")["matmul"]
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
        assert said in page, said
