"""Products that a compiler merged, divided again into those that the other run has."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path

import numpy as np
import pytest
import randomly
from hypothesis import given, settings
from synthetic import LAYER, LINEAR, step

from roofline.comparison.merged_products import one_to_one
from roofline.comparison.segments import Segments
from roofline.comparison.terms import compare
from roofline.core.schema import Profile

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


def test_products_that_only_add_up_elsewhere_or_in_another_order_stay_whole() -> None:
    """10 + 10 + 40 are 60, but one of them stands in another block; two neighbours of 40 are not 60."""
    elsewhere = step((QUERY, change(KEY, block="FFN"), VALUE, *LAYER))
    unequal = step((QUERY, QUERY, *LAYER))
    for a in (elsewhere, unequal):
        assert len(divided(a, step((MERGED, *ELSE), backend="jax"))[1]) == 1 + 7


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
