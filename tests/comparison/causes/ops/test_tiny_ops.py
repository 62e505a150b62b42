"""The same result in many small ops. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import COPY, facts, found, near, only
from synthetic import (
    ADD,
    GELU,
    LAYER,
    LINEAR,
    NORM,
    Row,
    instead,
    step,
)

from roofline.comparison.causes.order import causes


def test_small_ops_that_add_up_to_the_same() -> None:
    slices = tuple(change(ADD, name="aten::add_", own=15, bytes=0.03e6) for _ in range(10))
    found = only(step(instead(LAYER * 4, "aten::add", slices)), step())
    assert found.rule == "tiny-ops"
    assert found.seconds == near(4 * (150 - 20 + 9 * 10))


@pytest.mark.parametrize(("pieces", "each", "rule"), [(16, 0.03e6, "tiny-ops"), (6, 0.1e6, "fusion")])
def test_many_launches_for_hardly_more_bytes_are_their_number(pieces: int, each: float, rule: str) -> None:
    """An op in pieces that are not bound by their launch: 16 that move 1.6 times its bytes, or 6 that move 2 times."""
    slices = (change(ADD, name="aten::add_", own=30, bytes=each),) * pieces
    one = only(step(instead(LAYER * 4, "aten::add", slices)), step())
    assert (one.rule, one.seconds) == (rule, near(4 * (30 * pieces - 20 + (pieces - 1) * 10)))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("aten::bucketize", {"more-work": 4 * (2 * 80 + 30 + 3 * 10)}),
        ("aten::neg", {"more-work": 4 * (2 * 80 + 2 * 10), "tiny-ops": 4 * (30 + 10)}),
    ],
)
def test_small_ops_that_elsewhere_stand_among_large_ones_are_part_of_those(name: str, told: dict[str, float]) -> None:
    """Two long ops before attention, and one that its launch bounds before the norm, of the same name or not."""
    long, short = Row("aten::bucketize", "pointwise", 80, bytes=0.8e6), Row(name, "pointwise", 30, bytes=0.01e6)
    rows = tuple(
        one
        for row in LAYER * 4
        for one in {"aten::sdpa": (long, long, row), NORM.name: (short, row)}.get(row.name, (row,))
    )
    causes = found(step(rows), step())
    assert {rule: finding.seconds for rule, finding in causes.items()} == {
        rule: near(seconds) for rule, seconds in told.items()
    }


def test_small_copies_of_slices_belong_to_the_small_ops() -> None:
    # 16 x (2 + 2) us, all of them bound by their launch of 5 us
    piece = (change(COPY, own=2, bytes=0.01e6), Row("aten::sigmoid", "pointwise", 2, bytes=0.01e6, block="FFN"))
    told = found(step(instead(LAYER * 4, GELU.name, piece * 16)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(4 * (64 - 50 + 31 * 10))}


def test_a_copy_beside_many_small_ops_is_part_of_them() -> None:
    slices = (Row("aten::gelu_slice", "pointwise", 20, bytes=0.02e6, block="FFN"),) * 16
    cat = Row("aten::cat", "movement", 40, bytes=0.2e6, block="FFN")
    # 40 of 360 us per layer move data; with one slice it would be 40 of 60
    told = found(step(instead(LAYER * 4, "aten::gelu", (*slices, cat))), step())
    assert set(told) == {"tiny-ops"}
    # per layer 360 us against 50, and 16 launches of 10 us of the host more
    assert told["tiny-ops"].seconds == near(4 * (360 - 50 + 160))
    assert "layout" in found(step(instead(LAYER * 4, "aten::gelu", (slices[0], cat))), step())


def test_what_puts_products_together_again_belongs_to_them() -> None:
    part = change(LINEAR, own=90, flops=5e6, block="FFN")
    cat = Row("aten::cat", "movement", 20, bytes=0.2e6, block="FFN")
    rows = tuple(
        one for row in LAYER * 4 for one in ((*(part,) * 4, cat) if row == change(LINEAR, block="FFN") else (row,))
    )
    told = found(step(rows), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(4 * (4 * 100 + 30 - 310))}


def test_a_rate_that_lies_far_apart_explains_no_more_than_there_is() -> None:
    # 200 launches at 10 us against two at 60 us, of the same work: by the mean of both rates 198 more would be 6.9 ms
    small = tuple(Row("while.body", "pointwise", 10, bytes=0.002e6, block="FFN") for _ in range(200))
    a = tuple(change(row, name=f"hlo.{row.name}") for row in LAYER * 4 if row.name != GELU.name)
    b = (*a, *(Row("loop_fusion", "pointwise", 60, bytes=0.2e6, block="FFN"),) * 2)
    told = found(step((*a, *small), backend="jax", host=0), step(b, backend="jax", host=0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(2000 - 120)}


@pytest.mark.parametrize(
    ("dispatch", "told"),
    [
        (30e-6, ", 30.0 µs of it on the host before them."),
        (100.01e-6, ", 100 µs of it on the host before them."),
        (150e-6, "; that is 150 µs more on the host before them and 50.0 µs less besides."),
        (5e-6, "(mul)."),
        (-50e-6, "(mul)."),
    ],
)
def test_a_part_is_not_larger_than_the_whole(dispatch: float, told: str) -> None:
    assert causes()["tiny-ops"].sentence(facts(dispatch=dispatch)).endswith(told)


@pytest.mark.parametrize(("own", "seconds"), [(120, 4 * (4 * 120 - 300 + 3 * 10)), (40, None)])
def test_what_takes_longer_in_fewer_products_has_another_cause(own: float, seconds: float | None) -> None:
    # One product of 300 us and 10 of its host, as four of a quarter of its FLOPs: of 120 us each they take longer; of
    # 40 us each they take less, and the one is no small ops of the other.
    one = change(LINEAR, name="aten::whole", block="FFN", own=300, flops=16e6)
    parts = (change(one, name="aten::part", own=own, flops=4e6),) * 4
    rows = (*LAYER, GELU) * 4
    runs = [
        step(tuple(each for row in rows for each in (*(made if row.name == NORM.name else ()), row)))
        for made in (parts, (one,))
    ]
    told = found(*runs).get("tiny-ops")
    assert told is None if seconds is None else told is not None and told.seconds == near(seconds)
