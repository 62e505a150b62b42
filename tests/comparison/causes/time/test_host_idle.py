"""What a host does between ops. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import facts, findings, found, near, only
from msgspec.structs import replace
from synthetic import (
    LAYER,
    UNFUSED_NORM,
    calibrated,
    instead,
    step,
)

from roofline.comparison.causes.order import causes
from roofline.comparison.causes.phrases import counter
from roofline.comparison.causes.time import host_idle
from roofline.core.executor import CALLS, MADE, MAKING, PROGRAMS
from roofline.core.schema import Profile


def test_time_between_ops_that_is_not_dispatch() -> None:
    found = only(step(extra_gap=2000), step())
    assert found.rule == "host-idle"
    assert found.seconds == near(2000)


@pytest.mark.parametrize(
    ("filling", "part", "advice"),
    [
        (1500, "; 1.50 ms of it fills 3 tensors with Python's numbers (torch.tensor), against none.", "from_numpy"),
        (800, "; 800 µs of it fills 3 tensors with Python's numbers (torch.tensor), against none.", "py-spy"),
        (100, "", "py-spy"),
    ],
)
def test_what_of_it_fills_tensors_with_numbers(filling: float, part: str, advice: str) -> None:
    """2 ms more in all; a part below a tenth is not worth a word, one of half or more says what to do."""

    def making(profile: Profile, number: float, microseconds: float) -> Profile:
        return replace(profile, conditions=profile.conditions | {MADE: number, MAKING: microseconds * 1e-6})

    told = only(making(step(extra_gap=2000), 3.0, filling), making(step(), 0.0, 0.0))
    assert told.rule == "host-idle"
    assert told.text.endswith(part or "input between them.")
    assert advice in told.advice
    unknown = only(making(step(extra_gap=2000), 3.0, filling), step())
    assert "torch.tensor" not in unknown.text


def test_what_ops_take_longer_is_not_told_as_time_in_which_none_runs() -> None:
    """Of 100 us none is in the gap: all of it is what ops take longer that the host is late for."""
    late, partly = (host_idle.sentence(facts(dispatch=gap, launches_more=100.0)) for gap in (0.0, 60e-6))
    assert late.startswith("torch takes 100 µs longer in ops that its host is late for, which is not dispatching more")
    assert "no op runs" not in late
    assert "more on its host while no op runs" in partly
    assert "40.0 µs of it is what the ops right after it take longer" in partly


@pytest.mark.parametrize(("pause", "rule"), [(2000.0, "host-idle"), (30.0, "host-bound")])
def test_a_pause_before_the_first_op_is_no_dispatch_where_the_other_run_has_none(pause: float, rule: str) -> None:
    """On a device with a queue, where both begin with the same op after 10 us: 2 ms more, or 30 us for every op."""
    cuda = replace(step().device, kind="cuda")
    rows = tuple(change(row, host=(0.0, 10.0)) for row in LAYER * 4)
    slow = (change(rows[0], host=(0.0, 10.0 + pause)), *rows[1:])
    if rule == "host-bound":
        slow = tuple(change(row, host=(0.0, 10.0 + pause)) for row in rows)
    told = only(step(slow, device=cuda), step(rows, device=cuda))
    assert told.rule == rule
    assert told.seconds == near(pause * (1 if rule == "host-idle" else len(rows)))


def test_two_causes_of_opposite_sign() -> None:
    found = findings(step(extra_gap=1000), step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)))
    assert [(f.rule, f.seconds) for f in found] == [("host-idle", near(1000)), ("fusion", near(-800))]


def test_a_sleep_between_ops_is_no_dispatch_of_another_framework() -> None:
    a = step(LAYER * 4)
    # 1 ms before the tenth op, and all later ops by as much later
    ops = tuple(replace(op, start_ns=op.start_ns + (1_000_000 if n >= 10 else 0)) for n, op in enumerate(a.ops))
    a = replace(
        a,
        ops=ops,
        wall=replace(a.wall, steps=tuple(each + 1e-3 for each in a.wall.steps)),
        profiled=replace(
            a.profiled,
            walls=tuple(each + 1e-3 for each in a.profiled.walls),
            corrected=tuple(each + 1e-3 for each in a.profiled.corrected),
            idle=tuple(each + 1e-3 for each in a.profiled.idle),
            idle_causes={"host dispatch": 1.28e-3},
        ),
    )
    names = tuple(change(row, name=f"hlo.{n}") for n, row in enumerate(LAYER * 4))
    told = found(a, step(names, backend="jax"))
    assert told["host-idle"].seconds == pytest.approx(1e-3, rel=0.02)


def test_python_besides_dispatch_is_known_of_one_run_alone() -> None:
    """62 µs of Python before each of 28 ops, of which an op takes 12 and the first one, with cold caches, 60.

    That is 27 x 50 + 2 µs besides dispatching; the program of the other run waits 28 x 2 µs, whatever for.
    """
    names = tuple(change(row, name=f"hlo.{n}", own=3.0) for n, row in enumerate(LAYER * 4))
    told = found(hosted(62.0), step(names, backend="jax", host=2, environment={"threads": "2"}))
    assert told["host-idle"].seconds == near(27 * 50 + 2 - 28 * 2)
    assert told["host-bound"].seconds == near(28 * 62 - 28 * 2 - (27 * 50 + 2 - 28 * 2))


@pytest.mark.parametrize(("calls", "besides"), [(None, 0), (1.0, 2000), (2.0, 1000), (3.0, 0)])
def test_python_around_few_calls_of_a_graph_is_not_its_dispatch(calls: float | None, besides: float) -> None:
    """3 ms of Python and 0.28 of the executor: a call takes Python 1 ms at most, and a host of which nobody knows how
    often it calls may need all of it. The other run is one program, before which nothing runs for 28 x 2 µs.
    """
    names = tuple(change(row, name=f"hlo.{n}") for n, row in enumerate(LAYER * 4))
    shares = {"host dispatch": 0.28 / 3.28, "host dispatch: Python": 3 / 3.28}
    known = {} if calls is None else {CALLS: calls}
    a = step(backend="tensorflow", extra_gap=3000, causes=shares, conditions=known)
    told = found(a, step(names, backend="jax", host=2, conditions={PROGRAMS: 1.0}))
    assert told["host-bound"].seconds == near(3280 - 56 - besides)
    assert ("host-idle" in told) == bool(besides)
    if besides:
        assert told["host-idle"].seconds == near(besides)


@pytest.mark.parametrize(("less", "told"), [(18.7e-9, "less than 1 µs"), (0.0, "less than 1 µs"), (10.0, "10.0 s")])
def test_a_counter_has_no_nanoseconds(less: float, told: str) -> None:
    assert counter(less) == told
    slept = facts(dispatch=100e-6, about={"host": "asleep"}, about_more="3.24 ms", about_less=counter(less))
    assert f"for 3.24 ms of a step, against {told}:" in causes()["host-idle"].sentence(slept)


def test_a_host_that_sleeps_is_told_without_digits_of_one_that_does_not() -> None:
    away = [{"away_seconds_per_step": seconds} for seconds in (2e-3, 30e-9)]
    a = step(extra_gap=2000, conditions=away[0], environment={"threads": "1"})
    told = only(a, step(conditions=away[1], environment={"threads": "1"}))
    assert "on no core for 2.00 ms of a step, against less than 1 µs: it slept or waited" in told.text


def hosted(python: float, views: int = 0, asleep: float = 0.0, **more: float) -> Profile:
    """28 small ops of 3 µs, before each so much Python [µs] and `views` views; before op `at` so much more [µs]."""
    rows = [change(row, own=3.0, host=(0.0, python)) for row in LAYER * 4]
    for at, longer in more.items():
        number = int(at.removeprefix("at"))
        rows[number] = change(rows[number], host=(0.0, python + longer))
    profile = step(rows, environment={"threads": "2"})
    return calibrated(profile, views=dict.fromkeys(range(28), views), asleep=asleep)


def test_python_around_each_op_is_told_with_what_an_op_takes() -> None:
    # Inside layers an op takes up to 12 us, so that neither host does anything but dispatch
    told = only(hosted(11.0), hosted(4.0))
    assert (told.rule, told.seconds) == ("host-idle", near(28 * 7))
    assert "not dispatching more ops: 28 ops at 11.0 µs each, torch (B) 28 ops at 4.00 µs each" in told.text


def test_views_are_dispatched_too() -> None:
    # 12 us of Python for an op inside layers and 1 for each view
    told = only(hosted(14.0, views=2), hosted(4.0))
    assert (told.rule, told.seconds) == ("host-bound", near(28 * 10))
    assert "28 ops and 56 views at 4.67 µs each, torch (B) 28 ops at 4.00 µs each" in told.text


@pytest.mark.parametrize(
    ("asleep", "words"),
    [(0.0, "on a core all the while"), (900e-6, "it slept or waited"), (450e-6, "Python, sleeping")],
)
def test_a_host_of_many_threads_sleeps_or_works_as_it_does_with_one(asleep: float, words: str) -> None:
    told = only(hosted(4.0, asleep=asleep, at9=900.0), hosted(4.0))
    assert (told.rule, told.seconds) == ("host-idle", near(900))
    assert words in told.text


def test_input_is_told_where_idle_time_and_gap_do_not_agree() -> None:
    b = hosted(4.0)
    a = hosted(4.0)
    # Idle for 1.112 ms in the profiled steps, of it 1 ms of input; the plain steps wait 0.6 ms
    idle = replace(a.profiled, idle=(1.112e-3,) * 3, idle_causes={"host dispatch": 0.112e-3, "data input": 1e-3})
    a = replace(a, profiled=idle, wall=replace(a.wall, steps=tuple(each + 0.6e-3 for each in a.wall.steps)))
    told = only(a, b)
    assert (told.rule, told.seconds) == ("data-input", near(600))
