"""Steps that took turns: the interval of their difference, when it is settled, and when no turns would settle it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import step

from roofline.analysis.bootstrap import FEWEST
from roofline.comparison.turns import MOST, RESOLUTION, judge_turns, ratio_apart, seconds_apart, settle
from roofline.core.schema import Turns

#: t of 2 and of 5 degrees of freedom at 99.5 %: 95 % over the judgements of 3 to 12 turns, of which there are ten.
T2, T5 = 14.089, 4.773


def turns(
    medians: Sequence[float | None], *, waited: float | None = None, disturbed: Sequence[int] = (), token: str = "1"
) -> Turns:
    """Medians of the turns [s]."""
    number = len(medians)
    busy = tuple(turn in disturbed for turn in range(number))
    return Turns(token=token, medians=tuple(medians), waited=(waited,) * number, disturbed=busy)


def around(middle: float, spread: float) -> list[float]:
    """Three times whose logarithms have that mean and standard deviation."""
    return [middle * math.exp(way * spread) for way in (-1, 0, 1)]


def test_the_interval_is_that_of_student_over_turns() -> None:
    """A takes 2 ms, 1 % more and 1 % less, B 1 ms in each turn: log 2 +- t 0.01 / sqrt(3) +- 1 %, of sqrt(2) ms."""
    paired = judge_turns(turns(around(2e-3, 0.01)), turns([1e-3] * 3))
    assert paired is not None
    assert (paired.a, paired.b, paired.number) == (pytest.approx(2e-3), pytest.approx(1e-3), 3)
    half = T2 * 0.01 / math.sqrt(3) + RESOLUTION
    ends = [2 * math.sqrt(2) * 1e-3 * math.sinh((math.log(2) + way * half) / 2) for way in (-1, 1)]
    assert paired.ci95 == pytest.approx(ends, rel=1e-3)
    assert (paired.sign, paired.settled, paired.busy) == (1, False, (False, False))  # one more turn has to say the same


def test_turns_that_agree_by_chance_settle_nothing() -> None:
    """Three turns 3.2, 3.4 and 3.7 % apart leave an interval above 0, and the fourth, of equal steps, takes it back."""
    apart = [1.032, 1.034, 1.037]
    for more, signs, settled in ((1.0, (1, 0), False), (1.035, (1, 1), True)):
        judged = [judge_turns(turns(each), turns([1.0] * len(each))) for each in (apart, [*apart, more])]
        assert [paired and paired.sign for paired in judged] == list(signs)
        assert [paired and paired.settled for paired in judged] == [False, settled]


def test_how_many_nulls_are_settled_by_chance() -> None:
    """Of equal steps whose processes are 5 % apart, as docs/plants.md says: 1.2 % by one judgement, 0.3 % by two."""
    drawn, nulls = random.Random(0), 2000
    by_one = by_two = 0
    for _ in range(nulls):
        a, b = ([math.exp(drawn.gauss(0, 0.05)) for _ in range(MOST)] for _ in "ab")
        judged = [judge_turns(turns(a[:number]), turns(b[:number])) for number in range(FEWEST, MOST + 1)]
        by_one += any(paired and paired.sign for paired in judged)
        by_two += any(paired and paired.settled for paired in judged)
    # Within three standard deviations of a count of 24, and of one of 6.
    assert by_one == pytest.approx(0.012 * nulls, abs=3 * math.sqrt(0.012 * nulls))
    assert by_two == pytest.approx(0.003 * nulls, abs=3 * math.sqrt(0.003 * nulls))


def test_what_a_turn_slows_alike_is_no_spread() -> None:
    """A machine that is twice as slow in the second turn and three times in the third."""
    slower = [1.0, 2.0, 3.0]
    paired = judge_turns(turns([1.5e-3 * factor for factor in slower]), turns([1e-3 * factor for factor in slower]))
    assert paired is not None
    low, high = paired.ci95
    assert (paired.a - paired.b) / paired.b == pytest.approx(0.5)
    assert high - low == pytest.approx(2 * RESOLUTION * math.sqrt(paired.a * paired.b), rel=0.05)


def test_what_is_within_the_resolution_is_never_settled() -> None:
    for factor, settled in ((1.009, False), (1.011, True)):
        paired = judge_turns(turns([factor * 1e-3] * 12), turns([1e-3] * 12))
        assert paired is not None
        assert paired.settled == settled
        assert paired.hopeless != settled


def test_waiting_for_a_core_is_in_the_interval() -> None:
    """A takes 2 ms and waited 1.2 of them for a core: without that it may take 0.8 ms, less than B's 1 ms."""
    quiet, waiting = turns([2e-3] * 4), turns([2e-3] * 4, waited=1.2e-3)
    one, other = (judge_turns(each, turns([1e-3] * 4)) for each in (quiet, waiting))
    assert one is not None
    assert other is not None
    assert other.ci95 == pytest.approx((one.ci95[0] - 1.2e-3, one.ci95[1]))
    assert (one.settled, other.settled) == (True, False)
    assert other.hopeless  # as long as it waits so long
    back = judge_turns(turns([1e-3] * 4), waiting)
    assert back is not None
    assert back.ci95 == pytest.approx((-other.ci95[1], -other.ci95[0]))


def test_turns_that_others_disturbed_do_not_count_where_enough_are_left() -> None:
    a, b = [2e-3, 9e-3, 2e-3, 2e-3], turns([1e-3] * 4)
    paired = judge_turns(turns([*a, 2e-3], disturbed=(1,)), turns([1e-3] * 5))
    assert paired is not None
    assert (paired.number, paired.a, paired.settled, paired.busy) == (4, pytest.approx(2e-3), True, (False, False))
    # Two that are left say too little: all count, and nothing is settled. More turns may be quiet.
    paired = judge_turns(turns(a, disturbed=(0, 1)), b)
    assert paired is not None
    assert (paired.number, paired.settled, paired.busy, paired.hopeless) == (4, False, (True, False), False)
    paired = judge_turns(turns(a, disturbed=(0, 1, 2)), b)
    assert paired is not None
    assert (paired.settled, paired.hopeless) == (False, True)


def test_two_turns_say_nothing() -> None:
    assert judge_turns(turns([2e-3, None, 2e-3]), turns([1e-3, 1e-3, 1e-3])) is None


def test_turns_end_where_the_last_one_would_not_settle_them() -> None:
    """Equal steps, 3 % apart: six turns leave 1.1 % to the far end, twelve would leave an interval of +- 4 %."""
    noise = [1e-3 * math.exp(0.03 * way) for way in (-1, 1, -1, 1, -1, 1)]
    equal = judge_turns(turns(noise), turns([1e-3] * 6))
    assert equal is not None
    assert (equal.settled, equal.hopeless) == (False, True)
    # What is 15 % apart is settled by then: 14 % less t 3.3 % / sqrt(6) less 1 %.
    apart = judge_turns(turns([1.15 * each for each in noise]), turns([1e-3] * 6))
    assert apart is not None
    half = T5 * 0.03 * math.sqrt(6 / 5) / math.sqrt(6) + RESOLUTION
    assert ratio_apart(apart.ci95[0], math.sqrt(apart.a * apart.b)) == pytest.approx(1.15 * math.exp(-half), rel=1e-3)
    assert apart.settled
    # And what is 6 % apart may be settled yet.
    less = judge_turns(turns([1.06 * each for each in noise]), turns([1e-3] * 6))
    assert less is not None
    assert (less.settled, less.hopeless) == (False, False)


def test_profiles_know_the_turns_that_they_took_together() -> None:
    first, then = turns([2e-3] * 3, token="1"), turns([3e-3] * 3, token="2")
    a = replace(step(), wall=replace(step().wall, turns=(first, then)))
    b = replace(step(), wall=replace(step().wall, turns=(turns([1e-3] * 3, token="1"),)))
    paired = settle(a, b)
    assert paired is not None
    assert (paired.a, paired.b) == (pytest.approx(2e-3), pytest.approx(1e-3))
    assert settle(a, step()) is None
    assert settle(b, replace(step(), wall=replace(step().wall, turns=(then,)))) is None


@given(st.lists(st.tuples(*[st.floats(1e-9, 1e7)] * 2), min_size=3, max_size=MOST))
def test_swapping_the_steps_swaps_the_interval(times: list[tuple[float, float]]) -> None:
    a, b = (turns(each) for each in zip(*times, strict=True))
    forth, back = judge_turns(a, b), judge_turns(b, a)
    assert forth is not None
    assert back is not None
    size = math.sqrt(forth.a * forth.b)
    assert forth.ci95[0] <= forth.a - forth.b + 1e-6 * size
    assert forth.ci95 == pytest.approx((-back.ci95[1], -back.ci95[0]), rel=1e-6, abs=1e-6 * size)
    assert forth.settled == back.settled


@given(st.floats(0.01, 100))
def test_seconds_and_ratios_are_two_ways_to_say_it(ratio: float) -> None:
    """Of 1 s and `ratio` s."""
    assert seconds_apart(math.log(ratio), math.sqrt(ratio)) == pytest.approx(ratio - 1, abs=1e-9)
    assert ratio_apart(ratio - 1, math.sqrt(ratio)) == pytest.approx(ratio)
