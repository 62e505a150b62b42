"""A - B of a row as ceilings + kernels + other: on paper (synthetic.py), for any two profiles (randomly.py).

The device: matrix 100 GFLOP/s, DRAM 10 GB/s, 40 GB/s in a cache of 1 MB. The fast one does everything twice as fast.
"""

from __future__ import annotations

from dataclasses import replace as change

import handmade
import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import ADD, LINEAR, NORM, Row, step

from roofline.analysis.analysis import KEYS
from roofline.comparison.breakdown.rows import Ends, rows
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import Imported, Profile

FAST = replace(
    handmade.device(
        matrix_fp32=200e9, vector_fp32=100e9, dram_copy=20e9, cache_llc=80e9, **{"launch_torch-eager": 5e-6}
    ),
    name="Fast Device",
)


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-9, abs=1e-15)


def split(comparison: Comparison, key: str, label: str) -> tuple[float, Ends, Ends, float]:
    (row,) = (row for row in rows(comparison, key) if row.label == label)
    assert row.split is not None
    return row.seconds, row.split.ceilings, row.split.kernels, row.split.unshared


def test_ceilings_kernels_and_other_work_by_hand() -> None:
    a, b = step([LINEAR] * 3 + [NORM]), step([change(LINEAR, own=250)] * 2 + [NORM], device=FAST)
    # 3 of 300 us on a floor of 20 MFLOP / 100 GFLOP/s = 200 us against 2 of 250 us on 100 us: 2.5 in the mean. B
    # attains less than half of its roof, so that the ceilings' part is what the floors differ by
    seconds, ceilings, kernels, other = split(compare(a, b), "class", "contraction")
    assert seconds == near(900 - 500)
    assert ceilings == (near((200 - 100) * 2.5),) * 2
    assert kernels == (near(((300 - 200) - (250 - 100)) * 2.5),) * 2
    assert other == near((3 - 2) * (300 + 250) / 2)


def test_a_range_of_floors_is_a_range_of_ceilings_whose_ends_belong_together() -> None:
    add = Row("aten::add", "pointwise", 100, bytes=0.6e6)
    a, b = (
        step([LINEAR, change(add, own=own)], device=device, imported=Imported())
        for own, device in ((100, handmade.device()), (40, FAST))
    )
    # 0.6 MB fit the cache of 1 MB: 15 us at 40 GB/s against 7.5 at 80, or 60 at 10 GB/s against 30 at 20
    seconds, ceilings, kernels, other = split(compare(a, b), "op", "aten::add [0] [600000]")
    assert seconds == near(60)
    # At the low end both attain less than half; at the high end they miss their floors by 100 / 60 and 40 / 30
    of_high = (60 - 30) * (100 / 60 + 40 / 30) / 2
    assert ceilings == (near(15 - 7.5), near(of_high))
    assert kernels == (near(60 - 7.5), near(60 - of_high))
    assert other == near(0)


def test_an_upper_end_is_no_more_than_an_op_took() -> None:
    # Cold 60 us, and it took 50: what took less did not come from main memory.
    add = Row("aten::add", "pointwise", 50, bytes=0.6e6)
    a, b = (step([add], device=device, imported=Imported()) for device in (handmade.device(), FAST))
    assert split(compare(a, b), "class", "pointwise")[1] == (
        near(15 - 7.5),
        near((50 - 30) * (50 / 50 + 50 / 30) / 2),
    )


@pytest.mark.parametrize("changes", [{"known": False}, {"arithmetic": None}, {"arithmetic": "tf32"}])
def test_what_has_no_floor_in_one_run_is_other_work(changes: dict[str, object]) -> None:
    a, b = step([LINEAR]), step([change(LINEAR, own=100, **changes)], device=FAST)
    assert split(compare(a, b), "class", "contraction") == (near(200), (0.0, 0.0), (0.0, 0.0), near(200))


def test_another_name_is_the_same_work_of_a_class_and_no_common_op() -> None:
    comparison = compare(step([LINEAR]), step([change(LINEAR, name="dot", own=100)], device=FAST))
    # 300 us on a floor of 200 and 100 us on one of 100
    part = (200 - 100) * (300 / 200 + 100 / 100) / 2
    assert split(comparison, "class", "contraction") == (near(200), (near(part),) * 2, (near(200 - part),) * 2, near(0))
    found = {row.label: row for row in rows(comparison, "op")}
    assert [label.partition(" ")[0] for label in found] == ["aten::addmm", "dot"]
    mine, other = found.values()
    assert mine.parts[1] is None is other.parts[0]
    assert (mine.seconds, other.seconds) == (near(300), near(-100))
    assert mine.split is not None
    assert mine.split.unshared == near(300)


def test_a_fused_kernel_is_divided_over_classes_and_not_over_ops() -> None:
    whole = Row("triton", "pointwise", 90, bytes=0.5e6, parts=(ADD, NORM))
    comparison = compare(step([whole]), step([ADD, NORM]))
    # By their floors alone, 0.3 and 0.2 MB: 54 and 36 us of 90, against 20 and 30
    assert {row.label: row.seconds for row in rows(comparison, "class")} == {
        "pointwise": near(54 - 20), "normalisation": near(36 - 30),
    }  # fmt: skip
    assert {row.label.partition(" ")[0]: row.seconds for row in rows(comparison, "op")} == {
        "triton": near(90), "aten::native_layer_norm": near(-30), "aten::add": near(-20),
    }  # fmt: skip


def test_without_ceilings_nothing_is_split() -> None:
    blank = replace(handmade.device(), name="Unheard of", ceilings={})
    assert {row.split for row in rows(compare(step(), step(device=blank)), "class")} == {None}


def test_rows_have_the_intervals_that_their_terms_have() -> None:
    # Softmax shares 50 us of its 2000 with another op.
    comparison = compare(handmade.profile(ops=handmade.OPS[:6]), handmade.profile(device=FAST, ops=handmade.OPS[5:]))
    for row in rows(comparison, "class"):
        drawn = np.zeros(1000)
        for side, sign in ((comparison.work.a, 1), (comparison.work.b, -1)):
            here = np.flatnonzero([place.op_class == row.label for place in side.segments.places])
            drawn += sign * side.drawn(here)
        assert row.ci95 == pytest.approx(tuple(np.percentile(drawn, (2.5, 97.5))), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(randomly.profiles(), randomly.profiles(), st.sampled_from(KEYS))
def test_rows_and_gap_are_the_difference(a: Profile, b: Profile, key: str) -> None:
    comparison = compare(a, b)
    found = rows(comparison, key)
    close = {
        "rel": 1e-9,
        "abs": 1e-12 * (comparison.a.wall + comparison.b.wall + comparison.a.busy + comparison.b.busy),
    }
    gap = comparison.a.gap - comparison.b.gap
    assert sum(row.seconds for row in found) + gap == pytest.approx(comparison.difference, **close)
    for side, run in enumerate((comparison.a, comparison.b)):
        parts = [part for row in found if (part := row.parts[side]) is not None]
        assert sum(part.seconds for part in parts) == pytest.approx(run.busy, **close)
        assert sum(part.ops for part in parts) == pytest.approx(len(run.profile.ops))
        assert sum(part.floor[0] for part in parts) == pytest.approx(run.total.floor, **close)
        assert sum(part.floor[1] for part in parts) == pytest.approx(run.total.floor_reach, **close)
    for row in found:
        assert any(row.parts)
        assert row.ci95 is None or row.ci95[0] <= row.ci95[1]
        if row.split is not None:
            for ceilings, kernels in zip(row.split.ceilings, row.split.kernels, strict=True):
                assert ceilings + kernels + row.split.unshared == pytest.approx(row.seconds, **close)
    back = {row.label: row for row in rows(compare(b, a), key)}
    assert all(row.seconds == pytest.approx(-back[row.label].seconds, **close) for row in found)
