"""Who has an instant that collectives and computation share. Steps made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from synthetic import LINEAR, Row, step

from roofline.analysis.analysis import analyze
from roofline.comparison.exposure import overlaps
from roofline.core.schema import Imported, Profile

REDUCE = Row("nccl:all_reduce", "communication", 200, bytes=1e6)
COPY_IN = Row("aten::copy_", "transfer", 200, bytes=1e6)


def placed(rows: tuple[Row, ...], at: tuple[float, ...], overlap: tuple[float, ...]) -> Profile:
    """A step of these ops at these starts, with this own time less share of each [µs]; no gap."""
    run = step(rows, host=0)
    ops = tuple(
        replace(op, own_ns=(round(1000 * row.own),) * 3, start_ns=round(1000 * start), overlap_ns=round(1000 * beside))
        for op, row, start, beside in zip(run.ops, rows, at, overlap, strict=True)
    )
    wall = (sum(row.own for row in rows) - sum(overlap)) * 1e-6
    timed = replace(run.profiled, walls=(wall,) * 3, corrected=(wall,) * 3, idle=(0.0,) * 3)
    jitter = tuple(wall * (1 + n * 1e-6) for n in (-2, -1, 0, 0, 1, 2))
    return replace(run, ops=ops, wall=replace(run.wall, steps=jitter), profiled=timed)


@pytest.mark.parametrize("moving", [REDUCE, COPY_IN])
def test_an_instant_of_both_is_the_computations(moving: Row) -> None:
    """300 µs of a product and 200 µs of a collective from 100 µs on: all of it is hidden, and each had 100 µs of it."""
    run = analyze(placed((LINEAR, moving), (0, 100), (100, 100)))
    np.testing.assert_allclose(overlaps(run), (0, 200e-6), atol=1e-12)
    # From 200 µs on, 100 µs of it are exposed: of the 100 µs that both share each had 50.
    run = analyze(placed((LINEAR, moving), (0, 200), (50, 50)))
    np.testing.assert_allclose(overlaps(run), (0, 100e-6), atol=1e-12)


def test_what_is_shared_is_that_of_all_steps() -> None:
    """In the representative step 50 µs of both, in the mean 100, of which each has half."""
    run = placed((LINEAR, REDUCE), (0, 250), (50, 50))
    np.testing.assert_allclose(overlaps(analyze(run)), (0, 100e-6), atol=1e-12)
    # A trace says that 120 of 200 µs are exposed: of its 150 the collective gives 30, more than that of 80.
    for exposed, (product, collective) in ((120e-6, (20e-6, 80e-6)), (80e-6, (0, 100e-6))):
        recorded = replace(run, imported=Imported(communication=200e-6, exposed=exposed))
        np.testing.assert_allclose(overlaps(analyze(recorded)), (product, collective), atol=1e-12)


def test_two_computations_share_what_a_collective_had() -> None:
    """All three run for 200 µs at once, each with a third of it; of products half of it each."""
    rows, third = (LINEAR, LINEAR, REDUCE), 200 * 2 / 3
    # After that the products share 100 µs more: 50 of each are the other one's.
    run = analyze(placed(rows, (0, 0, 0), (third + 50, third + 50, third)))
    np.testing.assert_allclose(overlaps(run), (150e-6, 150e-6, 200e-6), atol=1e-9)


def test_collectives_beside_each_other_and_products_beside_each_other_keep_their_shares() -> None:
    rows = (LINEAR, LINEAR, REDUCE, REDUCE)
    run = analyze(placed(rows, (0, 0, 400, 400), (150, 150, 100, 100)))
    np.testing.assert_allclose(overlaps(run), (150e-6, 150e-6, 100e-6, 100e-6), atol=1e-12)
