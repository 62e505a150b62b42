"""Which rows two runs are compared by: blocks, classes, ops or kernels, by what both have."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import ADD, LAYER, LINEAR, NORM, SDPA, Row, step

from roofline.comparison.breakdown.breakdown import breakdown, common_places, observations
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, Wall

NOWHERE = ("(top)",) * 3
#: Their kernels are one class, and 300 + 200 us of them.
PRODUCTS = (change(LINEAR, block="FFN"), Row("aten::mm", "contraction", 200, flops=15e6, bytes=0.5e6))


def nowhere(rows: tuple[Row, ...] = LAYER, **changes: object) -> Profile:
    return step(rows, **({"blocks": NOWHERE} | changes))


def with_kernels(profile: Profile, names: tuple[str, ...]) -> Profile:
    """Each op launches the kernel of its signature's number."""
    ops = tuple(replace(op, kernels=((op.signature, 1000),)) for op in profile.ops)
    return replace(profile, kernels=names, ops=ops)


def chosen(a: Profile, b: Profile) -> str:
    found = breakdown(compare(a, b))
    return "block" if found is None else found.by


def test_blocks_that_both_have_are_what_runs_are_compared_by() -> None:
    assert chosen(step(), step()) == "block"


@pytest.mark.parametrize(
    "blocks", [("",), ("(top)", "(launched before the trace)"), ("forward", "(top)"), ("model", "model")], ids=str
)
def test_blocks_that_tell_nothing_apart_leave_the_class(blocks: tuple[str, ...]) -> None:
    # Attention has 850 us and FFN 350 us: of two words that say nothing neither has nine tenths.
    blocks = (*blocks, *blocks, *blocks)[:3]
    found = breakdown(compare(nowhere(blocks=blocks), nowhere(blocks=blocks)))
    assert found is not None
    assert (found.by, found.common) == ("class", (1.0, 1.0))
    assert found.why == "The runs do not say which part of the model most of their ops belong to"


def test_one_run_with_blocks_is_not_enough() -> None:
    found = breakdown(compare(step(), nowhere()))
    assert found is not None
    assert found.by == "class"
    assert found.why == "Only 0 % of the ops' time is at the same phase and block in both runs"


def test_a_run_has_its_places_in_common_with_itself_alone() -> None:
    # attention 850 us and FFN 350 us against attention 850 us and head 350 us
    assert common_places(compare(step(), step())) == pytest.approx(1.0)
    other = step(blocks=("attention", "head", "FFN"))
    assert common_places(compare(step(), other)) == pytest.approx(850 / 1200)
    assert common_places(compare(step((), extra_gap=10), step())) == 1.0


def test_one_class_tells_nothing_apart_and_its_ops_do() -> None:
    assert chosen(nowhere(PRODUCTS), nowhere(PRODUCTS)) == "op"


def test_a_class_that_is_all_of_one_run_tells_what_the_other_has_besides() -> None:
    assert chosen(nowhere((*LAYER, PRODUCTS[1])), nowhere(PRODUCTS)) == "class"


def test_ops_of_other_names_leave_the_kernels() -> None:
    renamed = tuple(change(row, name=row.name.replace("aten::", "tf.")) for row in PRODUCTS)
    a, b = (with_kernels(nowhere(rows), ("gemm_1", "gemm_2")) for rows in (PRODUCTS, renamed))
    assert chosen(a, b) == "kernel"
    # With nothing in common a class is at least the same word.
    assert chosen(a, with_kernels(b, ("Cijk_1", "Cijk_2"))) == "class"


def test_a_key_that_is_asked_for_is_taken() -> None:
    comparison = compare(step(), step())
    assert breakdown(comparison, "block") is None
    found = breakdown(comparison, "kernel")
    assert found is not None
    assert (found.by, found.why) == ("kernel", "")


def test_ops_are_told_where_no_block_is_or_no_finding_can_be() -> None:
    single = {"wall": Wall(steps=(1.2e-3,))}
    for a, b, by in (
        (step(), step(), None),
        (nowhere(), nowhere(), "op"),
        (step(), step(**single), "op"),
        (nowhere((LINEAR, NORM)), nowhere((SDPA, ADD)), "class"),  # no op is in both
    ):
        comparison = compare(a, b)
        found = observations(comparison, breakdown(comparison))
        assert (None if found is None else found.by) == by
    # Who asks for a key gets what was asked for.
    comparison = compare(nowhere(), nowhere())
    assert observations(comparison, breakdown(comparison, "group")) is None


def test_no_ops_on_one_side_compare_all_the_same() -> None:
    empty = nowhere((), extra_gap=10)
    for a, b in ((empty, nowhere()), (nowhere(), empty), (empty, empty)):
        found = breakdown(compare(a, b), "op")
        assert found is not None
        assert found.common == (0.0, 0.0)
        assert found.seconds == pytest.approx(1200e-6 * (bool(a.ops) - bool(b.ops)), abs=1e-15)
        assert chosen(a, b) in ("block", "class")
