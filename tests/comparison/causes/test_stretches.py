"""What stands between the same neighbours, and which cause it is of. Steps made by hand: 4 layers, 10 µs per launch.

Found by a second set of planted causes, on which the rules had not been tried (docs/plants.md).
"""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import ADD, GELU, LAYER, LINEAR, NORM, Row, instead, step

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.host_reads import for_the_host
from roofline.comparison.terms import compare
from roofline.core.schema import Profile

READING, NOT_READING = {"host_reads_per_step": 8.0}, {"host_reads_per_step": 0.0}


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {finding.rule: finding for finding in explain(compare(a, b))}


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-6)


def before(name: str, *rows: Row) -> tuple[Row, ...]:
    """The layers with some rows before each op of a name."""
    return tuple(one for row in LAYER * 4 for one in ((*rows, row) if row.name == name else (row,)))


# ------------------------------------------------------------------------------------------------ copies

COPY = Row("aten::clone", "movement", 100, bytes=1e6, block="FFN")


def test_copies_are_another_layout() -> None:
    told = found(step(before(GELU.name, COPY, COPY)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"layout": near(4 * 2 * 110)}


def reading_nothing(profile: Profile, name: str) -> Profile:
    """The run, with ops of one name that make their result from nothing."""
    table = tuple(replace(one, reads=()) if one.name == name else one for one in profile.signatures)
    ops = tuple(op if table[op.signature].reads else replace(op, reads=()) for op in profile.ops)
    return replace(profile, signatures=table, ops=ops)


def test_what_is_made_from_nothing_in_each_step_is_more_work() -> None:
    fill = Row("aten::full", "movement", 80, bytes=0.8e6)
    mask = (fill, Row("aten::triu", "movement", 200, bytes=2e6), Row("aten::_to_copy", "movement", 60, bytes=1e6))
    told = found(reading_nothing(step(before("aten::sdpa", *mask)), fill.name), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"more-work": near(4 * (340 + 30))}


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


# ------------------------------------------------------------------------------------------------ products


def test_products_that_a_loop_does_are_no_more_work() -> None:
    # One product of 80 MFLOP before the layers, or one of 20 MFLOP in each of them
    whole = change(LINEAR, name="aten::mm", own=900, flops=80e6)
    each = change(LINEAR, name="aten::mm", own=300, flops=20e6)
    told = found(step(before(GELU.name, each)), step((whole, *LAYER * 4)))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(4 * 310 - 910)}


def test_what_puts_products_together_again_belongs_to_them() -> None:
    part = change(LINEAR, own=90, flops=5e6, block="FFN")
    cat = Row("aten::cat", "movement", 20, bytes=0.2e6, block="FFN")
    rows = tuple(
        one for row in LAYER * 4 for one in ((*(part,) * 4, cat) if row == change(LINEAR, block="FFN") else (row,))
    )
    told = found(step(rows), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(4 * (4 * 100 + 30 - 310))}


# ------------------------------------------------------------------------------------------------ types

TO_DOUBLE = Row("aten::_to_copy", "movement", 40, bytes=0.3e6, block="FFN", dtype="fp64")
DOUBLE = change(GELU, own=120, bytes=0.4e6, dtype="fp64")


def test_a_wider_type_that_is_faster_is_not_the_cause() -> None:
    # In fp64, and in half the time: what takes longer are ten small ops in fp32
    many = (Row("aten::mul", "pointwise", 30, bytes=0.1e6, block="FFN"),) * 10
    told = found(step(instead(LAYER * 4, GELU.name, many)), step(instead(LAYER * 4, GELU.name, (DOUBLE,))))
    assert "precision" not in told


def test_copies_beside_another_type_are_another_cause() -> None:
    rows = (TO_DOUBLE, DOUBLE, change(TO_DOUBLE, dtype="fp32"), COPY, COPY)
    told = found(step(instead(LAYER * 4, GELU.name, rows)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "precision": near(4 * (40 + 120 + 40 - 50 + 20)),
        "layout": near(4 * 220),
    }


def test_casts_between_ops_that_both_runs_have_belong_to_the_type() -> None:
    rows = tuple(
        one
        for row in LAYER * 4
        for one in (
            (TO_DOUBLE, DOUBLE) if row.name == GELU.name else (TO_DOUBLE, row) if row.name == NORM.name else (row,)
        )
    )
    told = found(step(rows), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"precision": near(4 * (40 + 70 + 10 + 50))}


def test_a_wider_type_beside_small_ops_of_another_block_is_a_cause_of_its_own() -> None:
    # Between the last linear op of a layer and the first of the next: A's GELU in fp64, with a cast, in the FFN; B's
    # twenty small ops before attention. What takes longer there, in all, is B.
    small = (Row("aten::mul", "pointwise", 20, bytes=0.01e6, block="attention"),) * 20
    a = step(instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE)))
    b = step(instead(LAYER * 4, GELU.name, (GELU, *small)))
    told = found(a, b)
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "tiny-ops": near(-4 * 20 * 30),
        "precision": near(4 * (40 + 120 - 50 + 10)),
    }


def test_what_one_run_puts_in_another_block_is_no_work_of_its_own() -> None:
    """A's GELU in fp64 and its product stand in the FFN; B has the GELU there, and the product in another block."""
    product = Row("aten::mul", "pointwise", 60, bytes=0.2e6, block="FFN")
    wide = change(product, own=130, bytes=0.4e6, dtype="fp64")
    a = step(instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE, wide)))
    b = step(instead(LAYER * 4, GELU.name, (GELU, change(product, block="head"))))
    told = found(a, b)
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "precision": near(4 * (40 + 120 + 130 - 50 - 60 + 10))
    }


def test_a_cast_is_no_layout() -> None:
    # To fp64 a copy writes twice what it reads: 0.1 and 0.2 MB
    cast = Row("aten::_to_copy", "movement", 100, bytes=0.3e6, block="FFN")
    profile = step(before(GELU.name, cast))
    wider = tuple(
        replace(one, cost=replace(one.cost, bytes_read=0.1e6, bytes_written=0.2e6)) if one.name == cast.name else one
        for one in profile.signatures
    )
    assert "layout" in found(profile, step())
    assert "layout" not in found(replace(profile, signatures=wider), step())


def test_runs_in_two_types_still_dispatch_the_same_ops() -> None:
    a, b = step(), step(tuple(change(row, dtype="fp64") for row in LAYER * 4))
    assert Attribution(compare(a, b)).matching.alike


# ------------------------------------------------------------------------------------------------ reads


def with_buffers(profile: Profile, chains: dict[str, tuple[tuple[int, ...], tuple[int, ...], float]]) -> Profile:
    """The run, with the buffers that ops of some names read and write, and the bytes of what they write."""
    table = tuple(
        replace(one, writes=(chains[one.name][2],)) if one.name in chains else one for one in profile.signatures
    )
    ops = tuple(
        replace(op, reads=chains[name][0], writes=chains[name][1]) if name in chains else op
        for op in profile.ops
        for name in (table[op.signature].name,)
    )
    return replace(profile, signatures=table, ops=ops)


CHECK = (
    Row("aten::isfinite", "pointwise", 60, bytes=0.2e6),
    Row("aten::all", "reduction", 20, bytes=0.02e6),
)
CHAIN = {"aten::isfinite": ((7,), (8,), 0.1e6), "aten::all": ((8,), (9,), 1.0)}


def test_what_is_computed_for_the_host_to_read() -> None:
    a = with_buffers(step(before(NORM.name, *CHECK), conditions=READING), CHAIN)
    told = found(a, step(conditions=NOT_READING))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"synchronisation": near(4 * (80 + 20))}


def test_where_nothing_is_read_it_is_no_synchronisation() -> None:
    a = with_buffers(step(before(NORM.name, *CHECK), conditions=NOT_READING), CHAIN)
    assert "synchronisation" not in found(a, step(conditions=NOT_READING))


def test_what_another_op_reads_is_not_for_the_host() -> None:
    run = with_buffers(step((*CHECK, ADD)), {**CHAIN, ADD.name: ((9, 3), (4,), 0.2e6)})
    assert for_the_host(run) == [False, False, False]
    # Written again before anyone read it: what was in it was for the host
    run = with_buffers(
        step((*CHECK, GELU, ADD)), {**CHAIN, GELU.name: ((3,), (9,), 0.2e6), ADD.name: ((9,), (4,), 1e5)}
    )
    assert for_the_host(run) == [True, True, False, False]


def test_a_number_that_is_kept_from_step_to_step_is_not_for_the_host() -> None:
    """An optimizer counts its steps in place; a sum that is divided in place was made for whoever reads it."""
    count, scale = Row("aten::add_", "pointwise", 1, bytes=8), Row("aten::div_", "pointwise", 1, bytes=8)
    run = with_buffers(
        step((count, *CHECK, scale)), {**CHAIN, count.name: ((5,), (5,), 4.0), scale.name: ((9,), (9,), 4.0)}
    )
    table = tuple(replace(one, inplace=one.name in (count.name, scale.name)) for one in run.signatures)
    assert for_the_host(replace(run, signatures=table)) == [False, True, True, True]


def test_a_loss_is_no_number_for_the_host() -> None:
    """Nobody reads it, but the backward pass begins with it: a check before it is for the host, and it is not."""
    square, mean = Row("aten::pow", "pointwise", 40, bytes=0.2e6), Row("aten::mean", "reduction", 30, bytes=0.1e6)
    chains = {**CHAIN, square.name: ((7,), (5,), 0.1e6), mean.name: ((5,), (6,), 4.0)}
    rows = (*CHECK, square, mean)
    backward = change(GELU, phase="backward")
    assert for_the_host(with_buffers(step(rows), chains)) == [True, True, True, True]
    assert for_the_host(with_buffers(step((*rows, backward)), chains)) == [True, True, False, False, False]
    # each of two, as where gradients are added up; and not a check that comes after it, whose result is one byte
    twice = (square, mean, backward, square, mean, backward)
    assert for_the_host(with_buffers(step(twice), chains)) == [False] * 6
    after = with_buffers(step((square, mean, *CHECK, backward)), chains)
    assert for_the_host(after) == [False, False, True, True, False]


# ------------------------------------------------------------------------------------------------ no cause


def test_the_same_optimizer_slower_is_no_other_optimizer() -> None:
    update = Row("aten::_fused_adamw_", "optimizer", 1000, bytes=10e6, phase="optimizer", block="head")
    runs = [step((*LAYER * 4, change(update, own=own)), mode="train") for own in (1200, 4000)]
    faster = step((*LAYER * 4, update), mode="train")
    assert found(runs[0], faster) == {}  # in one process each, a fifth is what processes differ by
    assert {rule: one.seconds for rule, one in found(runs[1], faster).items()} == {"efficiency": near(3000)}


def test_as_many_transfers_a_little_slower_are_no_cause() -> None:
    read = Row("aten::_local_scalar_dense", "transfer", 500, bytes=4)
    a, b = step((*LAYER * 4, change(read, own=620))), step((*LAYER * 4, read))
    assert found(a, b) == {}


def test_a_finding_is_named_by_the_work_that_it_is_sized_by() -> None:
    # 12 launches of 1.2 MB take longer than 11 of 2.4 MB: neither launches nor bytes are why
    some = tuple(Row(f"hlo.{n}", "pointwise", 100, bytes=0.1e6, block="FFN") for n in range(12))
    other = tuple(Row(f"loop.{n}", "pointwise", 60, bytes=2.4e6 / 11, block="FFN") for n in range(11))
    a, b = (tuple(change(row, name=f"{name}.{row.name}") for row in LAYER * 4) for name in ("one", "two"))
    told = found(step((*a, *some), backend="tensorflow", host=0), step((*b, *other), backend="jax", host=0))
    assert not set(told) & {"tiny-ops", "fusion"}


def test_next_to_no_page_faults_are_no_allocation() -> None:
    slow = tuple(change(row, own=2 * row.own) for row in LAYER * 4)
    conditions = {"page_faults_per_step": 0.3, "system_seconds_per_step": 2e-3}
    quiet = {"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0}
    assert "allocation" not in found(step(slow, conditions=conditions), step(conditions=quiet))


def test_a_rate_that_lies_far_apart_explains_no_more_than_there_is() -> None:
    # 200 launches at 10 us against two at 60 us, of the same work: by the mean of both rates 198 more would be 6.9 ms
    small = tuple(Row("while.body", "pointwise", 10, bytes=0.002e6, block="FFN") for _ in range(200))
    a = tuple(change(row, name=f"hlo.{row.name}") for row in LAYER * 4 if row.name != GELU.name)
    b = (*a, *(Row("loop_fusion", "pointwise", 60, bytes=0.2e6, block="FFN"),) * 2)
    told = found(step((*a, *small), backend="jax", host=0), step(b, backend="jax", host=0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(2000 - 120)}


def test_the_systems_time_without_page_faults_is_no_allocation() -> None:
    slow = tuple(change(row, own=2 * row.own) for row in LAYER * 4)
    system = {"page_faults_per_step": 0.0, "system_seconds_per_step": 2e-3}
    told = found(step(slow, conditions=system), step(conditions=system | {"system_seconds_per_step": 0.0}))
    assert set(told) == {"efficiency"}
