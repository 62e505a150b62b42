"""What ops that run at once attain together. Two ops that move 6 MB at 10 GB/s, 600 µs, in 1250 µs each: 48 %."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from synthetic import Row, step

from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.side_by_side import at_once
from roofline.content import wording

ADD = Row("aten::add", "pointwise", 1250, bytes=6e6)


def beside(later: int) -> Analysis:
    """Of two ops of 1250 µs the second starts so much later [µs]."""
    made = step([ADD, ADD])
    shared = max(0, 1250 - later) * 500
    starts = (0, later * 1000)
    ops = tuple(
        replace(op, start_ns=start, overlap_ns=shared, own_ns=(1_250_000,) * len(op.own_ns))
        for op, start in zip(made.ops, starts, strict=True)
    )
    return analyze(replace(made, ops=ops), made.device.without_caches)


@pytest.mark.parametrize(("later", "times"), [(0, 2.0), (750, 2500 / 2000), (1200, 1.0), (1250, 1.0)])
def test_own_times_beside_the_time_in_which_any_of_them_ran(later: int, times: float) -> None:
    # 1200: 50 µs of both are within 5 % of 2450, which may be the clock's
    assert at_once(beside(later), "memory") == pytest.approx(times)
    assert at_once(beside(later), "compute") == 1.0


def test_it_stands_behind_what_each_attains() -> None:
    for later, told in ((0, " by each op, 96 % together"), (1250, "")):
        assert f"memory-limited, at 48 % of DRAM bandwidth{told};" in f"{wording.verdict(beside(later))[:-1]};"
