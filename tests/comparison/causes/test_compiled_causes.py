"""Causes that compilers bring: graph breaks, many small programs, and programs of one op each. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import ADD, LAYER, NORM, UNFUSED_NORM, instead, step

from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.segments import segments
from roofline.comparison.terms import compare
from roofline.core.schema import Compilation, Profile


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {finding.rule: finding for finding in explain(compare(a, b))}


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-6)


def compiled(graphs: int, breaks: int, eager: float = 0.0) -> Compilation:
    """eager: own time of ops outside of graphs [s]."""
    return Compilation(
        compiler="torch.compile",
        graphs=graphs,
        breaks={"call to print": breaks} if breaks else {},
        eager={"forward": (9, eager)} if eager else {},
    )


def test_what_a_broken_graph_no_longer_fuses_is_the_breaks() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4))
    b = step(backend="torch-compile", compilation=compiled(1, 0))
    told = found(a, b)
    assert set(told) == {"graph-breaks"}
    # per layer 180 us of six ops instead of 30 us of one, and 5 * 10 us of the host
    assert told["graph-breaks"].seconds == near(4 * (150 + 50))
    assert "5 compiled graphs per step against 1" in told["graph-breaks"].text
    assert "broken by call to print" in told["graph-breaks"].text


def test_as_many_breaks_in_both_runs_are_no_cause() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4))
    b = step(backend="torch-compile", compilation=compiled(5, 4))
    assert set(found(a, b)) == {"fusion"}


def test_of_a_step_that_is_mostly_eager_graph_breaks_are_not_the_cause() -> None:
    a = step(
        instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(5, 4, eager=5e-3)
    )
    b = step(backend="torch-compile", compilation=compiled(1, 0))
    assert set(found(a, b)) == {"jit-not-in-effect"}


def test_where_neither_was_compiled_that_is_not_the_difference() -> None:
    a = step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), backend="torch-compile", compilation=compiled(0, 0))
    assert set(found(a, step(backend="torch-compile", compilation=compiled(0, 0)))) == {"fusion"}
    assert "jit-not-in-effect" not in found(a, step())


def xla(programs: float, rows: tuple = LAYER * 4, **more: object) -> Profile:  # type: ignore[type-arg]
    return step(rows, backend="jax", conditions={"programs_per_step": programs}, **more)


def test_host_time_of_more_programs_is_dispatching_them() -> None:
    told = found(xla(9.0, host=30), xla(1.0))
    assert set(told) == {"host-bound"}
    assert told["host-bound"].seconds == near(28 * 20)
    assert told["host-bound"].text == (
        "jax (A) runs 9 compiled programs per step and jax (B) 1, which costs 560 µs, 560 µs of it while no op runs."
    )


def test_host_time_of_as_many_programs_is_not() -> None:
    assert set(found(xla(9.0, host=30), xla(8.0))) == {"host-idle"}


def test_small_ops_of_more_programs_are_their_dispatch() -> None:
    # 12 us of each add, of which 2 us are the op
    many = (change(ADD, own=2, bytes=0.02e6),) * 10
    told = found(xla(9.0, instead(LAYER * 4, ADD.name, many)), xla(1.0))
    assert set(told) == {"host-bound"}
    assert told["host-bound"].seconds == near(4 * (10 * 2 - 20 + 9 * 10))


def test_a_program_for_each_op_is_a_step_that_is_not_compiled() -> None:
    told = found(xla(28.0, host=50), xla(1.0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"jit-not-in-effect": near(28 * 40)}
    assert told["jit-not-in-effect"].text.startswith("most of the step of jax (A) was not compiled")


# ------------------------------------------------------------------------------------------------ repeated ops


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


def test_what_a_step_compiles_anew_is_compilation() -> None:
    """Of the 2 ms in which A runs no op more, it compiles for 1.5."""
    conditions = [{"compiling_seconds_per_step": seconds} for seconds in (1.5e-3, 0.0)]
    a, b = step(backend="jax", extra_gap=2000, conditions=conditions[0]), step(backend="jax", conditions=conditions[1])
    told = found(a, b)
    assert told["compilation"].seconds == pytest.approx(1.5e-3)
    assert told["host-idle"].seconds == pytest.approx(0.5e-3)
    assert "compilation" not in found(a, step(backend="jax"))  # nobody counted it in B
