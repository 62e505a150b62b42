"""The figures of docs/counters.md are those of the steps that were counted on an H100 (docs/measured/h100)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import raw_counters
from msgspec.structs import replace
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import Profile

PAGE = " ".join((Path(__file__).resolve().parents[2] / "docs" / "counters.md").read_text(encoding="utf-8").split())
CLASSES = ("contraction", "attention", "normalisation", "pointwise", "random", "reduction")


def counted_alone(mode: str) -> Profile:
    """Return the step with the bytes of the ops that were joined on the H100, and of no other."""
    step, ops = raw_counters.profile(mode), raw_counters.of_ops(mode)
    counters = raw_counters.counted(mode).counters
    assert counters is not None
    columns = [tuple(ops[op][place] if op in ops else None for op in range(len(step.ops))) for place in range(3)]
    return replace(step, counters=replace(counters, read=columns[0], written=columns[1], through_cache=columns[2]))


def of_roof(analysis: Analysis, mode: str, op_class: str) -> str:
    """Return the minimum over the time of the joined ops of a class, in percent, as a range where it is one."""
    profile, table = analysis.profile, analysis.table
    rows = [
        op for op in raw_counters.of_ops(mode) if profile.signatures[profile.ops[op].signature].op_class == op_class
    ]
    if not rows:
        return "–"
    floors: list[NDArray[np.float64]] = [table.floor[rows], table.floor_high[rows]]
    ends = [f"{100 * floor.sum() / table.own[rows].sum():.1f}" for floor in floors]
    return f"{'–'.join(dict.fromkeys(ends))} %"


def test_the_table_is_what_was_counted() -> None:
    for op_class in CLASSES:
        cells = [
            of_roof(analyze(profile), mode, op_class)
            for mode in ("infer", "train")
            for profile in (raw_counters.profile(mode), counted_alone(mode))
        ]
        assert f"| {op_class} | {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_no_op_is_above_its_ceiling_by_counted_bytes(mode: str) -> None:
    assert analyze(counted_alone(mode)).above_ceiling == 0


def test_bytes_through_the_cache_are_no_roof() -> None:
    """Over the bandwidth of the cache they take longer than the op did: by more than the 3 % of a ceiling's spread."""
    said, least, most = [], [], []
    for mode, name in (("infer", "inference"), ("train", "training")):
        step, ops = raw_counters.profile(mode), raw_counters.of_ops(mode)
        bandwidth = step.device.ceilings["cache.llc"].value
        own = analyze(step).table.own
        ratios = np.asarray([through / bandwidth / own[op] for op, (_, _, through) in ops.items()])
        said.append(f"{(ratios > 1.03).sum()} of {len(ratios)} {name}")
        most.append(ratios.max())
        least.append(min(through for _, _, through in ops.values()))
    assert (
        f"put {' and '.join(said)} ops above the ceiling of the cache, by up to {100 * (max(most) - 1):.0f} %" in PAGE
    )
    assert f"moves {min(least) / 1e6:.1f} MB by this metric" in PAGE
