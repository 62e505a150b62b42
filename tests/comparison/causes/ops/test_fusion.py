"""Vector work in more kernels, which moves more through memory. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import numpy as np
import pytest
from explained import findings, found, near, only
from synthetic import (
    GELU,
    LAYER,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.comparison.causes.findings import claimed
from roofline.comparison.terms import compare


def test_a_norm_written_out_is_fusion() -> None:
    found = only(step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)), step())
    # per layer 180 us of six ops instead of 30 us of one, and five launches of 10 us of host time more
    assert found.rule == "fusion"
    assert found.seconds == near(4 * (180 - 30 + 5 * 10))
    assert found.text == (
        "torch (A) spends 800 µs more on normalisation and pointwise ops: 24 launches that move 4.04 MB through memory "
        "(aten::mean, aten::pow, aten::mul), where torch (B) has 4 launches that move 800 kB "
        "(aten::native_layer_norm), 200 µs of it on the host before them."
    )


def test_the_sign_follows_the_order() -> None:
    unfused = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    forth, back = only(unfused, step()), only(step(), unfused)
    assert back.seconds == near(-800)
    assert forth.rule == back.rule
    assert forth.text.replace("(A)", "(?)").replace("(B)", "(A)").replace("(?)", "(B)") == back.text
    # Behind a sign "4.04 MB against 800 kB" would read as A against B: what B has more of is said to be B's.
    assert forth.label == "normalisation and pointwise ops (4.04 MB moved against 800 kB)"
    assert back.label == "normalisation and pointwise ops (4.04 MB moved in torch (B) against 800 kB)"


def test_causes_in_one_stretch_of_opposite_sign() -> None:
    written_gelu = tuple(change(GELU, name=f"aten::{name}", own=60) for name in ("mul", "erf", "add"))
    a = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    b = step(instead(LAYER * 4, "aten::gelu", written_gelu))
    assert [(f.rule, f.seconds) for f in findings(a, b)] == [
        ("fusion", near(800)),
        ("fusion", near(-4 * (180 - 50 + 20))),
    ]


def test_a_little_more_traffic_does_not_explain_slow_kernels() -> None:
    def other(name: str, bytes: float, own: float) -> tuple[Row, ...]:
        return instead(LAYER * 4, "aten::gelu", (Row(name, "pointwise", own, bytes=bytes, block="FFN"),))

    told = found(step(other("aten::slow_gelu", 0.212e6, 250)), step(other("aten::fast_gelu", 0.2e6, 50)))
    # 6 % more bytes of a mean rate of 250/0.212 and 50/0.2 us/MB: 4 * 0.012 * 715 = 34 us of 800
    assert "fusion" not in told
    assert told["efficiency"].seconds > 700e-6


def test_what_is_left_of_an_op_is_given_out_and_no_more() -> None:
    # Between frameworks 3 launches against 2 explain a part of the vector ops; page faults may explain what is left
    a_rows = instead(LAYER * 4, "aten::gelu", (Row("aten::f", "pointwise", 200, bytes=0.2e6, block="FFN"),) * 2)
    b_rows = tuple(change(row, name=f"hlo.{row.name}") for row in LAYER * 4)
    a = step(a_rows, conditions={"page_faults_per_step": 9000.0, "system_seconds_per_step": 1.0})
    b = step(b_rows, backend="jax", conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    attribution = claimed(compare(a, b))
    rules = [entry.claim.rule for entry in attribution.entries if len(entry.a)]
    assert "allocation" in rules
    assert {"fusion", "tiny-ops"} & set(rules)
    given = np.zeros(len(attribution.a.segments))
    for entry in attribution.entries:
        np.add.at(given, entry.a, entry.parts_a)
    assert given == pytest.approx(np.ones(len(given)))
    assert all(part >= 0 for entry in attribution.entries for part in entry.parts_a)


def test_a_finding_is_named_by_the_work_that_it_is_sized_by() -> None:
    # 12 launches of 1.2 MB take longer than 11 of 2.4 MB: neither launches nor bytes are why
    some = tuple(Row(f"hlo.{n}", "pointwise", 100, bytes=0.1e6, block="FFN") for n in range(12))
    other = tuple(Row(f"loop.{n}", "pointwise", 60, bytes=2.4e6 / 11, block="FFN") for n in range(11))
    a, b = (tuple(change(row, name=f"{name}.{row.name}") for row in LAYER * 4) for name in ("one", "two"))
    told = found(step((*a, *some), backend="tensorflow", host=0), step((*b, *other), backend="jax", host=0))
    assert not set(told) & {"tiny-ops", "fusion"}


def test_as_many_ops_that_move_more_are_other_ops_and_no_pieces() -> None:
    """A gather from repeated rows in the place of an index into them: no compiler would take it together with another.

    Of 60 and 120 us; in two ops of 60 us each they would be pieces.
    """
    index = Row("aten::index", "embedding", 60, bytes=0.3e6, block="FFN")
    gather = change(index, name="aten::gather", own=120, bytes=0.6e6)
    b = step(instead(LAYER * 4, GELU.name, (index,)))
    one = only(step(instead(LAYER * 4, GELU.name, (gather,))), b)
    assert (one.rule, one.seconds) == ("more-work", near(4 * 60))
    assert "compiler" not in one.advice
    half = change(gather, own=60, bytes=gather.bytes / 2)
    assert only(step(instead(LAYER * 4, GELU.name, (half, change(half, name="aten::mul")))), b).rule == "fusion"
