"""How hosts dispatch. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import handmade
import pytest
from explained import facts, findings, found, near, xla
from msgspec.structs import replace
from synthetic import (
    ADD,
    GELU,
    LAYER,
    LINEAR,
    NORM,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.analysis.analysis import analyze
from roofline.comparison.causes.order import causes
from roofline.core.schema import Profile


def test_a_compiler_that_fuses_and_dispatches_less() -> None:
    kernel = Row("fused_add_norm", "normalisation", 30, bytes=0.3e6, parts=(ADD, change(ADD, name="aten::norm")))
    layer = (LINEAR, change(LINEAR, own=200, flops=10e6), LINEAR, kernel, change(LINEAR, block="FFN"), GELU)
    eager = (LINEAR, change(LINEAR, own=200, flops=10e6), LINEAR, ADD, *UNFUSED_NORM, change(LINEAR, block="FFN"), GELU)
    a, b = step(eager * 4), step(layer * 4, backend="torch-compile", host=2)
    found = {finding.rule: finding for finding in findings(a, b)}
    # vector ops per layer: 20 + 180 us against 30 us; gap: 4 * 12 * 10 us against 4 * 6 * 2 us
    assert set(found) == {"fusion", "host-bound"}
    assert found["fusion"].seconds == near(4 * 170)
    assert found["host-bound"].seconds == near(480 - 48)
    assert found["host-bound"].text == (
        "torch spends 432 µs more in which no op runs: 480 µs with 48 launches, torch-compile 48.0 µs with 24; each "
        "launch costs its host 10.0 µs against 2.00 µs."
    )


def test_host_time_of_more_programs_is_dispatching_them() -> None:
    told = found(xla(9.0, host=30), xla(1.0))
    assert set(told) == {"host-bound"}
    assert told["host-bound"].seconds == near(28 * 20)
    assert told["host-bound"].text == (
        "jax (A) runs 9 compiled programs per step and jax (B) 1, which costs 560 µs, 560 µs of it while no op runs."
    )


def graphs(calls: float, python: float = 0.0, **more: object) -> Profile:
    """28 ops of graphs that Python calls so often; python: the share of the gap that is Python's."""
    shares = {"host dispatch": 1 - python, "host dispatch: Python": python}
    run = step(backend="tensorflow", conditions={"calls_per_step": calls}, causes=shares, **more)
    return replace(run, profiled=replace(run.profiled, mechanism="tensorflow-graph"))


def test_host_time_of_more_graphs_is_calling_them() -> None:
    """9 calls and 28 x 200 us more: 700 us a call, where up to a millisecond is one."""
    told = found(graphs(9.0, host=210), graphs(1.0))
    assert set(told) == {"host-bound"}
    assert told["host-bound"].seconds == near(28 * 200)
    assert "tensorflow (A) calls 9 graphs from Python per step and tensorflow (B) 1" in told["host-bound"].text
    assert told["host-bound"].advice == "put the whole step into one tf.function, with its gradients and its update"
    assert told["host-bound"].label == "dispatching on the host (9 graphs against 1)"
    assert set(found(graphs(9.0, host=210), graphs(8.0))) == {"host-idle"}


def test_calls_of_one_run_and_python_of_the_other_are_told_apart() -> None:
    """Both gaps are 28 x 210 us: of 9 calls, and of 1 with Python of all of it, but for the millisecond of a call."""
    told = found(graphs(9.0, host=210), graphs(1.0, python=1.0, host=210))
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "host-idle": near(-(28 * 210 - 1000)),
        "host-bound": near(28 * 210 - 1000),
    }


def test_host_time_of_as_many_programs_is_not() -> None:
    assert set(found(xla(9.0, host=30), xla(8.0))) == {"host-idle"}


def test_one_program_more_takes_no_milliseconds_to_dispatch() -> None:
    # 28 ops with 110 us more before each: 3.08 ms for one program
    assert set(found(xla(2.0, host=120), xla(1.0))) == {"host-idle"}
    assert set(found(xla(2.0, host=40), xla(1.0))) == {"host-bound"}  # 0.84 ms


def test_what_one_compiled_program_waits_for_is_not_its_dispatch() -> None:
    # A gap of 28 * 200 us before one program is 4.6 ms of something else; a host of which nothing is known is idle for
    # 28 * 10 us at most
    told = found(xla(1.0, host=200), step())
    assert told["host-idle"].seconds == near(28 * 200 - 1000 - 28 * 10)
    assert told["host-bound"].seconds == near(1000)
    assert "with 1 compiled program, " in told["host-bound"].text
    assert "each launch" not in told["host-bound"].text


def test_small_ops_of_more_programs_are_their_dispatch() -> None:
    # 12 us of each add, of which 2 us are the op
    many = (change(ADD, own=2, bytes=0.02e6),) * 10
    told = found(xla(9.0, instead(LAYER * 4, ADD.name, many)), xla(1.0))
    assert set(told) == {"host-bound"}
    assert told["host-bound"].seconds == near(4 * (10 * 2 - 20 + 9 * 10))


@pytest.mark.parametrize(
    ("dispatch", "told"),
    [
        (90e-6, "costs 100 µs, 90.0 µs of it while no op runs."),
        (120e-6, "costs 100 µs; that is 120 µs more while no op runs and 20.0 µs less besides."),
        (-20e-6, "costs 100 µs."),
    ],
)
def test_programs(dispatch: float, told: str) -> None:
    programs = facts(dispatch=dispatch, run_more=analyze(xla(32.0)), run_less=analyze(xla(1.0)))
    assert causes()["host-bound"].sentence(programs).endswith(told)
    assert causes()["host-bound"].labelled(programs) == "dispatching on the host (32 programs against 1)"


def test_launches_are_named_where_they_are_more() -> None:
    label = causes()["host-bound"].labelled
    assert label(facts()) == "dispatching on the host (200 launches against 100)"
    full = facts(run_less=analyze(handmade.filled()))  # its gap is some nanoseconds less than nothing
    assert causes()["host-bound"].sentence(full).endswith("280 µs with 200 launches, jax 0 s with 100.")
    assert label(change(full, launches_more=90.0)).endswith("(280 µs in which no op runs against 0 s)")
    fewer = label(facts(launches_more=90.0))
    assert fewer == "dispatching on the host (280 µs in which no op runs against 140 µs)"


def test_a_host_that_is_late_is_not_blamed_on_an_op_that_its_run_lacks() -> None:
    """A host takes 60 µs before each norm, where the other one dispatches a power of 12 µs and the norm in 20.

    The 112 µs that it takes longer in all (4 x (60 - 20 - 12)) are no work "on none", which is what the run lacks.
    """
    power = Row("aten::pow", "pointwise", 12, bytes=0.2e6, host=(0.0, 10.0))
    steady = [change(row, host=(0.0, 10.0)) for row in LAYER]
    late = [change(row, host=(0.0, 60.0)) if row.name == NORM.name else row for row in steady]
    more = [one for row in steady for one in ((power, row) if row.name == NORM.name else (row,))]
    told = found(step((*late,) * 4), step((*more,) * 4))
    assert "more-work" not in told
    assert not any(": none" in one.text for one in told.values())


def test_what_a_device_waits_for_by_itself_is_not_its_hosts_in_the_sentence() -> None:
    """28 launches of 10 us: 280 us of gap in both, in A its host's, in B nine tenths the device's own."""
    device = replace(step().device, kind="cuda")
    a = step(device=device)
    b = step(device=device, causes={"host dispatch": 0.1, "other": 0.9})
    told = found(a, b)["host-bound"]
    assert told.seconds == near(280 - 28)
    assert "252 µs more in which its device waits for launches: 280 µs with 28 launches, torch (B) 28.0 µs" in told.text
    assert "280 µs in which its device waits for launches against 28.0 µs" in told.label
