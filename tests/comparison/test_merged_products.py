"""Products that a compiler merged, divided again into those that the other run has."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path

import numpy as np
import pytest
import randomly
from explained import findings, found, near
from hypothesis import given, settings
from synthetic import LAYER, LINEAR, Row, step

from roofline.comparison.causes.findings import claimed
from roofline.comparison.merged_products import one_to_one
from roofline.comparison.segments import Segments
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, load

H100 = Path(__file__).parents[2] / "profiles" / "h100"
#: Query, key and value of unequal size, and the product of all three.
QUERY = change(LINEAR, own=500, flops=40e6)
KEY = VALUE = change(LINEAR, own=200, flops=10e6)
MERGED = change(LINEAR, name="cublas", own=600, flops=60e6, bytes=1.2e6)
ELSE = tuple(change(row, name=f"dot.{row.name}") for row in LAYER)


def divided(a: Profile, b: Profile) -> tuple[Segments, Segments]:
    comparison = compare(a, b)
    return one_to_one(comparison.work.a.segments, comparison.work.b.segments)


def test_a_merged_product_meets_what_it_was_merged_from() -> None:
    a, b = divided(step((QUERY, KEY, VALUE, *LAYER)), step((MERGED, *ELSE), backend="jax"))
    assert len(a) == 3 + 7
    assert (b.flops[:3] / 1e6).tolist() == [40, 10, 10]
    assert b.weight[:3].tolist() == pytest.approx([4 / 6, 1 / 6, 1 / 6])
    assert (b.own[:3].mean(axis=1) * 1e6).tolist() == pytest.approx([400, 100, 100])
    assert set(b.op[:3].tolist()) == {0}


def test_it_is_the_same_work_at_another_rate() -> None:
    """Three products of 900 µs together, and one of 600 in each of four layers."""
    a, b = step((QUERY, KEY, VALUE, *LAYER) * 4), step((MERGED, *ELSE) * 4, backend="jax")
    assert not found(a, b).keys() & {"tiny-ops", "more-work", "padding", "recomputation"}
    attribution = claimed(compare(a, b))
    same = [attribution.seconds(entry) for entry in attribution.entries if entry.claim.rule == "efficiency"]
    assert sum(same) == near(4 * (900 - 600))


def test_products_that_only_add_up_elsewhere_or_in_another_order_stay_whole() -> None:
    """10 + 10 + 40 are 60, but one of them stands in another block; two neighbours of 40 are not 60."""
    elsewhere = step((QUERY, change(KEY, block="FFN"), VALUE, *LAYER))
    unequal = step((QUERY, QUERY, *LAYER))
    for a in (elsewhere, unequal):
        assert len(divided(a, step((MERGED, *ELSE), backend="jax"))[1]) == 1 + 7


def test_where_the_launch_is_the_floor_of_the_several_they_stay_small_ops() -> None:
    """Of 0.1 MFLOP in 5 µs at least: 1 µs at 100 GFLOP/s."""
    small = [Row("aten::mm", "contraction", 60, flops=0.1e6, bytes=1e3)] * 8
    whole = Row("dot", "contraction", 60, flops=0.8e6, bytes=8e3)
    a, b = step((*small * 4, *LAYER)), step((*[whole] * 4, *ELSE), backend="jax")
    assert len(divided(a, b)[1]) == 4 + 7
    assert found(a, b)["tiny-ops"].text.startswith("torch spends 1.68 ms more on small ops: 32 launches against 4")


def test_in_one_framework_a_merged_product_was_written_so() -> None:
    """Three times as many launches in 300 µs more, and 10 µs of the host for each of two."""
    a, b = step((QUERY, KEY, VALUE, *LAYER) * 4), step((change(MERGED, name="aten::addmm"), *LAYER) * 4)
    assert found(a, b)["tiny-ops"].seconds == near(4 * (300 + 2 * 10))


@settings(deadline=None, max_examples=60)
@given(randomly.profiles(), randomly.profiles())
def test_nothing_is_lost_and_the_runs_are_mirrored(a: Profile, b: Profile) -> None:
    comparison = compare(a, b)
    before = comparison.work.a.segments, comparison.work.b.segments
    for whole, parts in zip(before, one_to_one(*before), strict=True):
        for name in ("weight", "own", "overlap", "floor", "quantity", "launches", "flops", "model_flops", "bytes"):
            assert np.nansum(getattr(parts, name)) == pytest.approx(np.nansum(getattr(whole, name)))
    turned = one_to_one(*before[::-1])[::-1]
    assert [len(one) for one in one_to_one(*before)] == [len(one) for one in turned]


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_on_an_h100_all_products_of_jax_meet_those_of_torch(mode: str) -> None:
    """Query, key and value are one product there, forward and, as gradients of the weights, backward; and both ways."""
    a, b = (load(H100 / f"bert-{name}-{mode}-b32-tf32.json") for name in ("torch", "jax-buffers-on"))
    attribution = claimed(compare(a, b))
    for some, rows in ((attribution.a.segments, 0), (attribution.b.segments, 1)):
        for stretch in attribution.matching.unmatched:
            left = (stretch.a, stretch.b)[rows]
            alone = [row for row in left if some.places[row].op_class == "contraction" and some.flops[row]]
            # But for attention, which torch has in one kernel.
            assert {some.places[row].block for row in alone} <= {"attention core"}
    # All but what the devices take from one queued kernel to the next.
    between = attribution.gap_a * attribution.comparison.a.gap - attribution.gap_b * attribution.comparison.b.gap
    assert sum(attribution.seconds(entry) for entry in attribution.entries) + between == pytest.approx(
        attribution.comparison.difference
    )
    there, back = ({one.rule: one.seconds for one in findings(*pair)} for pair in ((a, b), (b, a)))
    assert there == pytest.approx({rule: -seconds for rule, seconds in back.items()})
