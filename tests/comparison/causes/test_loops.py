"""Ops that a loop or a program runs many times meet those that are written out. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import found, near
from msgspec.structs import replace
from synthetic import (
    LAYER,
    step,
)

from roofline.comparison.causes.findings import explain
from roofline.comparison.segments import segments
from roofline.comparison.terms import compare
from roofline.core.schema import Profile


def repeated(times: int) -> Profile:
    """The four layers as one program that runs four times: each op has the work and the time of all of its runs."""
    rows = tuple(
        change(row, own=times * row.own, flops=times * row.flops, bytes=times * row.bytes, launches=times)
        for row in LAYER
    )
    run = step(rows, backend="jax")
    # What one run of it is called is what the ops of the other step are called.
    shapes = {one.name: one.shapes for one in step().signatures}
    named = tuple(replace(one, shapes=shapes[one.name]) for one in run.signatures)
    return replace(run, signatures=named)


def test_an_op_that_runs_four_times_is_four_pieces_in_turn() -> None:
    run = repeated(4)
    some = segments(compare(run, run).a)
    assert len(some) == 28
    assert some.op[:8].tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    assert some.weight.sum() == pytest.approx(7)
    assert some.flops.sum() == pytest.approx(4 * (3 * 20e6 + 10e6))
    assert some.launches.sum() == pytest.approx(28)


def test_a_loop_over_layers_is_the_layers() -> None:
    comparison = compare(repeated(4), step(backend="jax"))
    assert comparison.difference == pytest.approx(0, abs=1e-9)
    assert explain(comparison) == ()


def test_a_loop_over_layers_with_slower_products_says_so() -> None:
    slow = repeated(4)
    ops = tuple(
        replace(op, own_ns=tuple(2 * own for own in op.own_ns))
        if slow.signatures[op.signature].name == "aten::addmm"
        else op
        for op in slow.ops
    )
    more = 4 * 900e-6
    slow = replace(slow, ops=ops, wall=replace(slow.wall, steps=tuple(each + more for each in slow.wall.steps)))
    slow = replace(slow, profiled=replace(slow.profiled, walls=(0.02,) * 3, corrected=(5.08e-3 + more,) * 3))
    told = found(slow, step(backend="jax"))
    # Twice the 12 * 300 us of linear ops, and no product that only one run does
    assert {rule: finding.seconds for rule, finding in told.items()} == {"efficiency": near(3600)}
