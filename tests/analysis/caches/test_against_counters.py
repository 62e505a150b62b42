"""The rule for caches against hardware counters: steps of BERT-base on an H100, counted kernel by kernel.

Nsight Compute counted them on 2026-11-22. The tables hold one line per op; the JSON beside them holds the sums over all
kernels, also those that were not joined to an op.
"""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core.schema import Profile, load

COUNTED = Path(__file__).resolve().parents[3] / "docs" / "measured" / "h100"
SHIPPED = Path(__file__).resolve().parents[3] / "profiles"
GB = 1e9
#: Counted on the whole step: bytes read from and written to main memory [GB].
WHOLE_STEP = {"infer": (2.54, 2.99), "train": (18.1, 12.6)}

Array = NDArray[np.float64]


@cache
def counted_step(mode: str) -> Profile:
    return load(COUNTED / f"ncu-{mode}-profile.json")


def by_rule(mode: str) -> tuple[Array, Array]:
    """Bytes of each op that the rule sends from and to main memory, at the upper end."""
    profile = counted_step(mode)
    cold = cold_traffic(profile, profile.device)
    assert cold.high is not None
    return cold.read, cold.high - cold.read


def counters(mode: str) -> tuple[Array, Array, list[str]]:
    """Bytes of each op by the counters, NaN where not all of its kernels were joined, and its class."""
    with (COUNTED / f"ncu-{mode}-none.csv").open(encoding="utf-8") as table:
        lines = list(csv.DictReader(table))
    ops = counted_step(mode).ops
    in_order = sorted(range(len(ops)), key=lambda row: ops[row].start_ns)
    assert len(lines) == len(ops)
    columns = np.full((2, len(ops)), np.nan)
    classes = [""] * len(ops)
    for row, line in zip(in_order, lines, strict=True):
        classes[row] = line["op_class"]
        if line["read"] and line["dram_read"]:
            columns[:, row] = float(line["dram_read"]), float(line["dram_written"])
    return columns[0], columns[1], classes


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_all_kernels_of_a_step(mode: str) -> None:
    """The rule moves less than was counted, and three quarters of it or more."""
    sums = json.loads((COUNTED / f"ncu-{mode}-none.json").read_text(encoding="utf-8"))["all kernels"]
    assert (sums["dram_read"] / GB, sums["dram_written"] / GB) == pytest.approx(WHOLE_STEP[mode], rel=5e-3)
    for moved, counted in zip(by_rule(mode), (sums["dram_read"], sums["dram_written"]), strict=True):
        assert 0.75 * counted < moved.sum() < 1.03 * counted


@pytest.mark.parametrize(
    ("mode", "joined", "read", "written"),
    # Of what ops write in training the rule has 70 %: less than the three quarters that were aimed at (docs/h100.md).
    [("infer", 155, 0.75, 0.75), ("train", 497, 0.75, 0.69)],
)
def test_ops_that_were_joined(mode: str, joined: int, read: float, written: float) -> None:
    dram_read, dram_written, _ = counters(mode)
    known = ~np.isnan(dram_read)
    assert known.sum() == joined
    for moved, counted, least in zip(by_rule(mode), (dram_read, dram_written), (read, written), strict=True):
        assert least * counted[known].sum() < moved[known].sum() < 1.03 * counted[known].sum()


def test_the_aim_that_is_missed_is_told() -> None:
    """Of the joined ops in training: what they wrote, their results, and what of these the rule sends to memory."""
    _, dram_written, _ = counters("train")
    known = ~np.isnan(dram_written)
    profile = counted_step("train")
    results = np.asarray([sum(profile.signatures[op.signature].writes) for op in profile.ops])
    counted, most, by_the_rule = (each[known].sum() for each in (dram_written, results, by_rule("train")[1]))
    assert by_the_rule < 0.75 * counted < most < counted
    page = " ".join((COUNTED.parents[1] / "h100.md").read_text(encoding="utf-8").split())
    for words in (
        f"has {by_the_rule / GB:.2f} GB of {counted / GB:.2f}, {100 * (1 - by_the_rule / counted):.0f} % below",
        f"results are {most / GB:.2f} GB, {100 * (1 - most / counted):.0f} % below what was counted",
        f"The other {(counted - most) / GB:.2f} GB",
    ):
        assert words in page


def test_what_is_written_is_written_to_memory() -> None:
    """Pointwise ops of the inference step: 0.75 GB counted, 0.77 by the rule, where dead results were taken to stay."""
    _, dram_written, classes = counters("infer")
    pointwise = np.asarray([op_class == "pointwise" for op_class in classes]) & ~np.isnan(dram_written)
    written = by_rule("infer")[1][pointwise].sum()
    assert written == pytest.approx(dram_written[pointwise].sum(), rel=0.05)
    assert cold_traffic(counted_step("infer"), counted_step("infer").device).written[pointwise].sum() < 0.1 * written


@cache
def shipped(name: str) -> Analysis:
    return analyze(load(SHIPPED / "h100" / f"{name}.json"))


@pytest.mark.parametrize(
    ("name", "counted"), [("bert-torch-infer-b32-tf32", 0.82), ("bert-torch-train-b32-tf32", 0.89)]
)
def test_pointwise_ops_of_a_step_are_memory_bound(name: str, counted: float) -> None:
    """Counters saw 82 and 89 % of the bandwidth: the upper end comes near it, where 51 % was said before."""
    pointwise = shipped(name).by("class")["pointwise"]
    assert pointwise.bound == "memory"
    assert pointwise.attained is not None
    assert pointwise.attained_high is not None
    assert pointwise.attained < counted
    assert 0.70 <= pointwise.attained_high <= 1.03


def test_few_ops_are_faster_than_their_traffic() -> None:
    """By the lower end at most 1 in 50 ops of each step that was kept, and 1 in 1000 of all."""
    files = [*sorted(COUNTED.parent.glob("*/*.json")), *sorted(SHIPPED.rglob("*.json"))]
    steps = [analyze(load(file)) for file in files if b'"schema"' in file.read_bytes()[:20]]
    faster = [int((step.table.above & (step.table.memory == step.table.floor)).sum()) for step in steps]
    ops = [len(step.profile.ops) for step in steps]
    assert sum(ops) > 20_000
    assert all(50 * number <= max(count, 50) for number, count in zip(faster, ops, strict=True))
    assert 1000 * sum(faster) <= sum(ops)
