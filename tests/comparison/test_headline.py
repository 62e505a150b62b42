"""Which of two runs is faster, as far as they tell: what the interval holds, and what the sentence says."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from synthetic import step

from roofline.comparison.headline import Headline, headline
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.terms import compare
from roofline.comparison.turns import RESOLUTION
from roofline.core.executor import QUEUED, QUEUED_WORKER
from roofline.core.schema import Imported, Profile, Turns, Wall


def run(milliseconds: float, *, processes: int = 0, **changes: object) -> Profile:
    """A step whose plain steps all take as long, in so many further processes."""
    steps = (milliseconds * 1e-3,) * 8
    return replace(step(), **{"wall": Wall(steps=steps, processes=(steps,) * processes), **changes})


def said(a: Profile, b: Profile) -> Headline:
    return headline(compare(a, b), ("torch", "jax"))


def in_turns(a: float, b: float, *, turns: int = 4, waited: float = 0.0, disturbed: bool = False) -> Headline:
    """Of steps that take so many milliseconds in each turn."""
    runs = []
    for milliseconds in (a, b):
        medians = (milliseconds * 1e-3,) * turns
        times = Turns(token="1", medians=medians, waited=(waited,) * turns, disturbed=(disturbed,) * turns)
        runs.append(run(milliseconds, wall=Wall(steps=(milliseconds * 1e-3,) * 8, turns=(times,))))
    return said(*runs)


def test_one_process_each_took_longer_and_is_not_slower() -> None:
    head = said(run(9), run(7))
    assert (
        head.text
        == "torch took 1.29x longer than jax in these two runs (9.00 against 7.00 ms a step, one process each)."
    )
    assert head.settled is None
    assert head.factor == pytest.approx(9 / 7)
    assert head.factor_ci95 is not None
    assert head.factor_ci95[0] > 1
    back = said(run(7), run(9))
    assert back.text == head.text.replace("torch", "?").replace("jax", "torch").replace("?", "jax")
    assert back.factor == pytest.approx(7 / 9)


def test_the_interval_holds_what_processes_differ_by() -> None:
    """Steps that do not vary: 10 % of 8 ms and of 7 ms, as of two processes that know nothing of each other."""
    head = said(run(8), run(7))
    wide = PROCESSES * math.hypot(8e-3, 7e-3)
    assert head.ci95 == pytest.approx((1e-3 - wide, 1e-3 + wide))
    assert head.text == (
        "These runs do not say which is faster: torch took 8.00 ms a step and jax 7.00 ms, one process each. torch − "
        "jax is 1.00 ms, 95 % CI -0.0630 to 2.06 ms, which includes 0. The interval holds the 10 % by which processes "
        "of one step differ."
    )
    # Of one run of several processes that do not differ only the other one's spread is left.
    one = said(run(8, processes=2), run(7))
    assert one.ci95 == pytest.approx((0.3e-3, 1.7e-3))
    assert "means of 3 and 1 process)" in one.text
    both = said(run(8, processes=2), run(7, processes=2))
    least = RESOLUTION * math.sqrt(8e-3 * 7e-3)
    assert both.ci95 == pytest.approx((1e-3 - least, 1e-3 + least))
    assert both.settled is None
    assert both.text.endswith("in these two runs (8.00 against 7.00 ms a step, means of 3 processes each).")


def test_the_interval_holds_what_either_waited_for_a_core() -> None:
    waiting = run(9, conditions={QUEUED: 1e-3, QUEUED_WORKER: 2e-3})
    quiet, head = said(run(9), run(7)), said(waiting, run(7))
    assert quiet.ci95 is not None
    # The longest of them, and not their sum; and what A waited makes it no longer.
    assert head.ci95 == pytest.approx((quiet.ci95[0] - 2e-3, quiet.ci95[1]))
    assert head.text.startswith("These runs do not say which is faster: torch took 9.00 ms a step and jax 7.00 ms")
    assert head.text.endswith("Up to 2.00 ms of a step of torch may be spent waiting for a core.")
    back = said(run(7), waiting)
    assert back.ci95 == pytest.approx((-head.ci95[1], -head.ci95[0])) if head.ci95 else False


def test_both_waited_for_a_core() -> None:
    runs = [run(time, conditions={QUEUED: time * 1e-4}) for time in (9, 7)]
    assert said(*runs).text.endswith(
        "Up to 900 µs of a step of torch and 700 µs of a step of jax may be spent waiting for a core."
    )


def test_processes_are_no_closer_than_no_number_of_them_tells_apart() -> None:
    """Three of each that do not vary, 0.1 % apart."""
    head = said(run(7.007, processes=2), run(7, processes=2))
    assert head.slower is None
    assert head.text.startswith("These runs do not say which is faster")


def test_few_steps_of_several_processes_say_no_more_than_those_of_one() -> None:
    few = [
        replace(run(time), wall=Wall(steps=(time * 1e-3,) * 2, processes=((time * 1e-3,) * 2,))) for time in (7.5, 7)
    ]
    assert said(*few).slower is None


def test_the_difference_is_of_all_processes_as_its_interval_is() -> None:
    """The first process of A took 20 ms, and each of five others 10, as all of B: A is not twice as slow."""
    odd = replace(run(20), wall=Wall(steps=(20e-3,) * 8, processes=((10e-3,) * 8,) * 5))
    head = said(odd, run(10, processes=5))
    assert head.ci95 is not None
    middle = 10e-3 * (2 ** (1 / 6) - 1)
    assert head.factor == pytest.approx(2 ** (1 / 6))
    assert head.ci95[0] < middle < head.ci95[1]
    assert "torch took 11.2 ms a step" in head.text
    assert "torch − jax is 1.22 ms" in head.text


def test_a_clock_that_was_held_back_comes_first_too() -> None:
    slow = run(70, flags=("throttled: power cap",))
    head = said(run(7), slow)
    reason = "but the device's clock was held back in jax, which may be why they differ, in part or wholly."
    assert head.text.startswith("These runs do not say which is faster: torch took 7.00 ms")
    assert head.text.endswith(reason)
    assert head.slower is None
    assert said(slow, slow).text.endswith(reason.replace("in jax", "in both"))
    assert said(run(7, flags=("contended",)), slow).text.endswith(
        reason.replace("but", "but other programs ran beside torch and")
    )
    # Of clocks turns say nothing.
    times = Turns(token="1", medians=(7e-3,) * 3, waited=(None,) * 3, disturbed=(False,) * 3)
    turned = [
        replace(one, wall=replace(one.wall, turns=(replace(times, medians=medians),)))
        for one, medians in ((run(7), (7e-3,) * 3), (slow, (70e-3,) * 3))
    ]
    head = said(*turned)
    assert head.settled is False
    assert head.text.endswith(reason)


def test_op_times_that_were_scaled_down_leave_the_step_as_it_is() -> None:
    assert said(run(9, flags=("inflated",)), run(7)).text == said(run(9), run(7)).text


def test_a_time_under_the_profiler_is_said() -> None:
    traced = run(9, wall=Wall(steps=(9e-3,) * 8, source="profiled"), imported=Imported())
    assert said(traced, run(7)).text.endswith(" torch was timed under a profiler, which takes time.")
    assert said(run(7), traced).text.endswith(" jax was timed under a profiler, which takes time.")
    assert "profiler" not in said(traced, traced).text


def test_a_busy_machine_comes_first() -> None:
    busy = run(70, flags=("contended: 3 others",))
    head = said(run(7), busy)
    assert head.text == (
        "These runs do not say which is faster: torch took 7.00 ms a step and jax 70.0 ms, one process each, but other "
        "programs ran beside jax, which may be why they differ, "
        "in part or wholly."
    )
    assert head.slower is None
    assert said(busy, busy).text.endswith(
        "but other programs ran beside both, which may be why they differ, in part or wholly."
    )


def test_a_busy_machine_says_nothing_against_the_run_that_took_less_on_it() -> None:
    """9 against 7 ms, and the 7 may be too long; at 8 against 7 ms processes may differ by as much (15.3 %)."""
    busy = run(7, flags=("contended: 3 others",))
    head = said(run(9), busy)
    assert head.text == (
        "torch took longer than jax: 9.00 against 7.00 ms a step, one process each. The times of jax are too long, if "
        "anything: other programs ran beside jax."
    )
    assert (head.slower, head.settled) == (0, None)
    assert said(busy, run(9)).slower == 1
    close = said(run(8), busy)
    assert close.slower is None
    # Of the one that took less it is no reason why it did.
    assert close.text.endswith("one process each, and other programs ran beside jax.")
    # Of both runs disturbed the slower one's time may be too long by any amount.
    assert said(run(9, flags=("contended",)), busy).slower is None


def test_two_steps_of_a_run_leave_no_interval() -> None:
    few = replace(run(7), wall=Wall(steps=(70e-3, 70e-3)))
    head = said(few, run(7))
    assert (head.ci95, head.factor_ci95, head.settled) == (None, None, None)
    assert head.text.endswith("(70.0 against 7.00 ms a step, one process each, one of fewer than 3 steps).")
    assert said(few, replace(run(7), wall=few.wall)).opening.endswith("one process each, of fewer than 3 steps")
    assert "do not say" in said(replace(few, wall=Wall(steps=(7.1e-3,))), run(7)).text


def test_runs_of_traces() -> None:
    imported = [replace(run(time), imported=Imported()) for time in (9, 7)]
    assert said(*imported).text.endswith("(9.00 against 7.00 ms a step, one run each).")


def test_turns_settle_it() -> None:
    head = in_turns(288, 141)
    assert head.text == (
        "torch is 2.04x slower than jax: 288 against 141 ms a step, difference 147 ms, 95 % CI 145–149 ms, "
        "both run anew 4 times, in turns."
    )
    assert head.settled is True
    assert head.factor == pytest.approx(288 / 141)
    assert head.factor_ci95 == pytest.approx((288 / 141 * 0.99, 288 / 141 * 1.01), rel=1e-3)
    back = in_turns(141, 288)
    assert back.text == head.text.replace("torch", "?").replace("jax", "torch").replace("?", "jax")


def test_turns_may_not_settle_it() -> None:
    head = in_turns(141, 141.5)
    assert head.settled is False
    assert head.text == (
        "These runs do not say which is faster: torch took 141 ms a step and jax 142 ms, both run anew "
        "4 times, in turns. jax − torch is 500 µs, 95 % CI -0.912 to 1.91 ms, which includes 0."
    )
    assert in_turns(9, 7, waited=3e-3).settled is False
    three = in_turns(288, 141, turns=3)
    assert (three.settled, three.slower) == (False, None)
    assert three.text.endswith("147 ms, 95 % CI 145–149 ms. It takes one more turn that says the same.")
    busy = in_turns(9, 7, disturbed=True)
    assert busy.settled is False
    assert busy.text.endswith(
        "both run anew 4 times, in turns, but other programs ran beside both, which may be why they differ, "
        "in part or wholly."
    )


def test_turns_on_a_quiet_machine_outweigh_a_busy_recording() -> None:
    times = Turns(token="1", medians=(9e-3,) * 4, waited=(None,) * 4, disturbed=(False,) * 4)
    other = replace(times, medians=(7e-3,) * 4)
    a = run(70, wall=Wall(steps=(70e-3,) * 8, turns=(times,)), flags=("contended",))
    assert said(a, run(7, wall=Wall(steps=(7e-3,) * 8, turns=(other,)))).settled
