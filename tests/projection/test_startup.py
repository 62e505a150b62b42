"""The start-up times of docs/whatif.md: from two sizes of one step on an H100, and from the files of devices."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from roofline import devices
from roofline.core import shipped
from roofline.core.schema import load
from roofline.projection import startup
from roofline.projection.roofs import roofs

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = " ".join((DOCS / "whatif.md").read_text(encoding="utf-8").split())
DESIGN = " ".join((DOCS / "design.md").read_text(encoding="utf-8").split())
MATMUL = "aten::addmm"

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Step:
    """The ops of a shipped step in order: names, times and times of their work at the ceilings [s], launches."""

    names: list[str]
    seconds: Array
    work: Array
    launches: NDArray[np.int64]

    @classmethod
    def of(cls, name: str) -> Step:
        profile = load(shipped.paths()[f"h100/{name}"])
        seconds = [float(np.mean(op.own_ns)) * 1e-9 for op in profile.ops]
        names = [profile.signatures[op.signature].name for op in profile.ops]
        launches = np.asarray([op.launches or 1 for op in profile.ops])
        return cls(names, np.asarray(seconds), roofs(profile, profile.device).work, launches)


def same_ops(small: Step, large: Step) -> tuple[Step, Step]:
    """Return the ops that both steps run, in one order: a step of training adds its gradients in another order."""
    blocks = SequenceMatcher(None, small.names, large.names, autojunk=False).get_matching_blocks()
    rows = np.asarray([(a + place, b + place) for a, b, size in blocks for place in range(size)]).T
    assert len(rows[0]) > 0.99 * len(small.names)
    first, second = (
        Step([step.names[row] for row in chosen], step.seconds[chosen], step.work[chosen], step.launches[chosen])
        for step, chosen in zip((small, large), rows, strict=True)
    )
    return first, second


def medians(mode: str, precision: str) -> dict[str, float]:
    """Return the median start-up of a kernel [us], weighted by time, of each op that takes longer at batch 32, and "".

    t = (w + s) / e at both sizes: s = (t1 w32 - t32 w1) / (t32 - t1).
    """
    small, large = same_ops(*(Step.of(f"bert-torch-{mode}-b{batch}-{precision}") for batch in (1, 32)))
    more = (large.seconds > small.seconds) & (large.work > small.work)
    rows = np.flatnonzero(more & (large.launches == small.launches))
    assert len(rows) > len(small.names) / 2
    times = small.seconds * large.work - large.seconds * small.work
    times[rows] /= ((large.seconds - small.seconds) * small.launches)[rows]

    def median(chosen: NDArray[np.int64]) -> float:
        order = chosen[np.argsort(times[chosen])]
        weights = np.cumsum(small.seconds[order])
        return float(times[order][np.searchsorted(weights, weights[-1] / 2)]) * 1e6

    names = {small.names[row] for row in rows}
    by_name = {name: median(np.asarray([row for row in rows if small.names[row] == name])) for name in names}
    return {"": median(rows), **by_name}


def test_two_sizes_give_the_start_up() -> None:
    infer, train = medians("infer", "bf16"), medians("train", "bf16")
    assert f"is {infer['']:.1f} µs in inference and {train['']:.1f} µs in training" in PAGE
    attention = infer["aten::_scaled_dot_product_cudnn_attention"]
    assert (
        f"{infer['aten::add']:.1f} µs for additions, {infer['aten::native_layer_norm']:.1f} µs for layer norms, "
        f"{attention:.1f} µs for attention, {infer[MATMUL]:.1f} µs for matmuls"
    ) in PAGE
    latency = devices.load("h100-sxm").ceilings[startup.LATENCY].value * 1e6
    assert min(attention, infer[MATMUL]) == pytest.approx(startup._KERNELS * latency, rel=0.1)
    assert f"start up more slowly ({medians('infer', 'fp32')[MATMUL]:.0f} µs" in PAGE


def test_latencies_are_those_of_the_devices() -> None:
    here, there = (devices.load(name).ceilings[startup.LATENCY].value * 1e6 for name in ("h100-sxm", "mi300x"))
    assert f"`latency.kernel`, {here:.1f} µs on an H100, {there:.1f} µs on an MI300X" in PAGE
    assert f"else it is {startup._ANY_GPU * 1e6:.1f} µs" in PAGE


def test_what_is_reached_of_a_datasheet() -> None:
    sheets, reached = zip(*map(peaks, ("h100-sxm", "mi300x")), strict=True)
    shares = [100 * got / peak for got, peak in zip(reached, sheets, strict=True)]
    assert f"of its BF16 peak {shares[0]:.0f} % on an H100 and {shares[1]:.0f} % on an MI300X" in PAGE
    ratios = [there / here for here, there in (sheets, reached)]
    assert f"an MI300X does {ratios[0]:.2f} times an H100's BF16 matmuls, by benchmarks {ratios[1]:.2f}" in DESIGN


def peaks(name: str) -> tuple[float, float]:
    """Return the BF16 peak of a device by its datasheet, and what was reached of it [FLOP/s]."""
    ceiling = devices.load(name).ceilings["matrix.bf16"]
    assert ceiling.reached is not None
    return ceiling.value, ceiling.reached
