"""What the host does while no op runs, by hand: before each of 28 ops 2 µs of the framework and 8 of Python."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import LAYER, calibrated, step

from roofline.analysis.analysis import analyze
from roofline.analysis.dispatch_cost import Dispatched
from roofline.analysis.host_cost import HostCost, host_cost
from roofline.content import wording
from roofline.content.facts import host
from roofline.core.executor import MAKING
from roofline.core.schema import Profile
from roofline.renderers import text

ROWS = tuple(change(row, host=(2.0, 8.0)) for row in LAYER * 4)


def cost(profile: Profile) -> HostCost:
    found = host_cost(analyze(profile))
    assert found is not None
    return found


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * 1e-6, rel=1e-6, abs=1e-12)


def longer(before: float, at: int = 5) -> Profile:
    """The step with so much Python before one op [µs]."""
    return step((*ROWS[:at], change(ROWS[at], host=(2.0, before)), *ROWS[at + 1 :]))


def test_all_of_it_is_dispatch_where_no_op_takes_more_than_inside_layers() -> None:
    found = cost(calibrated(step(ROWS)))
    assert found.dispatched == Dispatched(28, 0, 0)
    assert (found.dispatch, found.each) == (near(280), near(10))
    assert (found.input, found.asleep, found.other_python) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("views", "other"),
    [(0, 88), (1, 87), (3, 85)],  # 100 us of Python; inside layers an op takes 12, and a view what an op alone does, 1
)
def test_python_beyond_what_an_op_takes_is_no_dispatch(views: int, other: float) -> None:
    found = cost(calibrated(longer(100), views={5: views}))
    assert (found.other_python, found.dispatch) == (near(other), near(280 + 92 - other))
    assert found.gap == near(372)
    assert found.dispatched.views == views


def test_filling_tensors_with_numbers_of_python_is_no_dispatch() -> None:
    """10 µs of it are less than an op takes inside layers, and known apart: no recorder puts it into Python's part."""
    profile = calibrated(step(ROWS))
    told = cost(replace(profile, conditions=profile.conditions | {MAKING: 10e-6}))
    assert (told.other_python, told.dispatch) == (near(10), near(270))


def test_right_after_a_large_op_the_caches_are_cold() -> None:
    # Op 4, before op 5, moves 0.2 MB: more than a cache of 0.1 MB holds. Cold, an op takes 60 us.
    assert ROWS[4].bytes == 0.2e6
    assert cost(calibrated(longer(100), cache=0.1e6)).other_python == near(40)
    assert cost(calibrated(longer(100), cache=0.3e6)).other_python == near(88)


def test_what_is_long_in_few_steps_was_the_machine() -> None:
    profile = calibrated(longer(100))
    ops = list(profile.ops)
    ops[5] = replace(ops[5], python_ns=8000)  # the median
    assert cost(replace(profile, ops=tuple(ops))).other_python == 0.0


def test_after_the_last_op() -> None:
    assert cost(calibrated(step(ROWS, extra_gap=50))).other_python == near(50 - 12)


def test_a_host_on_no_core_sleeps_or_waits_where_it_does_not_dispatch() -> None:
    found = cost(calibrated(longer(100), asleep=30e-6))
    assert (found.asleep, found.other_python) == (near(30), near(58))
    found = cost(calibrated(step(ROWS), asleep=30e-6))
    assert (found.asleep, found.other_python, found.dispatch) == (0.0, 0.0, near(280))
    unknown = cost(calibrated(longer(100), asleep=None))
    assert (unknown.asleep, unknown.other_python) == (None, near(88))


def test_waiting_for_input_is_no_sleep() -> None:
    # 280 us before ops and 280 of input, in which the thread was on no core
    causes = {"host dispatch": 0.5, "data input": 0.5}
    found = cost(calibrated(step(ROWS, extra_gap=280, causes=causes), asleep=280e-6))
    assert (found.input, found.asleep, found.other_python, found.dispatch) == (near(280), near(0), near(0), near(280))
    # 372 us before ops, 88 of them no dispatch, and 372 of input; on no core for 30 us more than that
    rows = (*ROWS[:5], change(ROWS[5], host=(2.0, 100.0)), *ROWS[6:])
    found = cost(calibrated(step(rows, extra_gap=372, causes=causes), asleep=402e-6))
    assert (found.input, found.asleep, found.other_python) == (near(372), near(30), near(58))


def test_results_read_are_calls_but_no_views() -> None:
    profile = calibrated(step(ROWS, conditions={"host_reads_per_step": 2.0}), views={3: 5})
    assert cost(profile).dispatched.words == "28 ops, 3 views and 2 results read"


def test_more_results_than_calls_before_ops_are_read_after_the_last_op() -> None:
    """Seven results there may take 7 µs beside the 12 of an op: of 50 µs 31 are something else."""
    profile = calibrated(step(ROWS, extra_gap=50, conditions={"host_reads_per_step": 7.0}))
    assert cost(profile).dispatched.words == "28 ops and 7 results read"
    assert cost(profile).other_python == near(50 - 12 - 7)
    assert cost(calibrated(profile, views={3: 5})).other_python == near(50 - 12 - 2)


def test_nothing_is_said_of_what_was_not_recorded() -> None:
    for profile in (step(ROWS), step()):
        assert host_cost(analyze(profile)) is None
        assert host.describe_host(analyze(profile)) == ""


def test_the_first_sentence_says_what_most_of_a_large_gap_is() -> None:
    small = tuple(change(row, own=3.0) for row in ROWS)
    told = text.render(analyze(calibrated(step(small))), None, details=True)
    assert "77 % host time (most of it for 28 ops at 10.0 µs each)" in " ".join(told.split())
    asleep = analyze(calibrated(step(small, extra_gap=500), asleep=500e-6))
    assert host.most(asleep) == "most of it asleep or waiting"
    assert host.most(analyze(calibrated(step(ROWS)))) == ""  # 280 us of 5 ms
    assert "(" not in wording.verdict(asleep).partition("host time")[2].partition(";")[0]


def test_the_words_say_all_that_is_not_little() -> None:
    assert host.describe_host(analyze(calibrated(longer(100), asleep=None))) == (
        "284 µs for 28 ops at 10.1 µs each (dispatch and Python around them) and 88.0 µs in Python besides, asleep or "
        "waiting; dispatch of an empty op: 1.00 µs by itself, 12.0 µs inside layers (Python)"
    )


def test_compiled_programs_take_the_host_no_more_than_all_of_the_gap() -> None:
    def told(programs: float, own: float) -> str:
        rows = tuple(change(row, own=own) for row in LAYER * 4)
        run = step(rows, backend="jax", conditions={"programs_per_step": programs})
        return host.describe_host(analyze(replace(run, profiled=replace(run.profiled, mechanism="xla-thunk"))))

    # 28 launches of 10 us
    assert told(7.0, 3.0) == "7 compiled programs per step, at most 40.0 µs of host time each"
    assert told(1.0, 3.0) == ""
    assert told(7.0, 300.0) == ""  # 280 us of 9 ms
