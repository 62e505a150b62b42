"""Results that the host reads, and what is computed for that. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import before, findings, found, near, only
from msgspec.structs import replace
from synthetic import (
    ADD,
    GELU,
    LAYER,
    NORM,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.comparison.host_reads import for_the_host
from roofline.comparison.terms import compare
from roofline.core.schema import Profile

READING, NOT_READING = {"host_reads_per_step": 8.0}, {"host_reads_per_step": 0.0}
CHECK = (
    Row("aten::isfinite", "pointwise", 60, bytes=0.2e6),
    Row("aten::all", "reduction", 20, bytes=0.02e6),
)
CHAIN = {"aten::isfinite": ((7,), (8,), 0.1e6), "aten::all": ((8,), (9,), 1.0)}


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


def test_waiting_for_results() -> None:
    read = Row("aten::_local_scalar_dense", "transfer", 5, bytes=4)
    slow = step((*LAYER, read) * 4, extra_gap=1000, causes={"host dispatch": 0.2, "synchronisation": 0.8})
    first = findings(slow, step())[0]
    # 32 launches of 10 us and 1000 us more: 1320 us of gap, 80 % of it waiting; and 4 ops of 5 us, with what is before
    # each of them of the dispatch, a fifth of 10 us
    assert first.rule == "synchronisation"
    assert first.seconds == near(0.8 * 1320 + 4 * (5 + 0.2 * 10))


def test_waiting_is_not_charged_to_dispatch_again() -> None:
    unfused = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    causes = {"host dispatch": 0.2, "synchronisation": 0.8}
    a = step(unfused, extra_gap=2000, causes=causes)
    told = found(a, step())
    # 48 launches of 10 us and 2000 us: 80 % of 2480 us are waiting; the rest of the gap is dispatch
    assert told["synchronisation"].seconds == near(0.8 * 2480)
    assert sum(f.seconds for f in told.values()) == pytest.approx(compare(a, step()).difference, rel=0.05)


@pytest.mark.parametrize(("pause", "waits"), [(400, False), (0, True)])
def test_the_same_pause_after_the_same_read_is_no_reading(pause: float, waits: bool) -> None:
    """In both one result is read, and the host takes 400 us before the next op: "waiting" in A alone.

    Where B has no such pause, A does wait for so much longer: 400 us, and before the read for that part of 10 us that
    is not called waiting, less the 10 us of B.
    """
    read = Row("aten::_local_scalar_dense", "transfer", 5, bytes=4)
    rows = [change(row, host=(0.0, 10.0)) for row in (*LAYER * 4, read)]
    a, b = (
        step(
            (change(rows[0], host=(0.0, 10.0 + after)), *rows[1:]),
            causes={"host dispatch": 1 - held, "synchronisation": held},
        )
        for after, held in ((400, 400 / 690), (pause, 0.0))
    )
    told = found(a, b)
    assert ("synchronisation" in told) == waits
    if waits:
        assert told["synchronisation"].seconds == near(400 + 10 * (1 - 400 / 690) - 10)


def test_results_read_on_a_cpu() -> None:
    reading, none = {"host_reads_per_step": 16.0}, {"host_reads_per_step": 0.0}
    found = only(step(extra_gap=200, conditions=reading), step(conditions=none))
    # 12.5 us for each of 16 reads; a sleep as long as a hundred of them is none
    assert found.rule == "synchronisation"
    assert "16 per step, torch (B) 0" in found.text
    assert only(step(extra_gap=1600, conditions=reading), step(conditions=none)).rule == "host-idle"
    # nor is anything said of reads where one run did not count them
    assert only(step(extra_gap=200, conditions=reading), step()).rule == "host-idle"


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


def test_as_many_transfers_a_little_slower_are_no_cause() -> None:
    read = Row("aten::_local_scalar_dense", "transfer", 500, bytes=4)
    a, b = step((*LAYER * 4, change(read, own=620))), step((*LAYER * 4, read))
    assert found(a, b) == {}
