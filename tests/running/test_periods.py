"""The period of a sequence of calls, and where in it a step begins."""

from __future__ import annotations

import random

from roofline.running.periods import Period, Periods


def ends(keys: str) -> tuple[str, list[int]]:
    """Follow a sequence as `Steps` does; return the last block, and how many keys had come at each end of one."""
    periods, before, at = Periods(), None, []
    for number, key in enumerate(keys, 1):
        period = periods.add(key)
        if period is not before:
            before, at = period, []
        if period is not None and period.at_end:
            at.append(number)
    return "" if before is None else "".join(map(str, before.keys)), at


def test_one_call_that_repeats() -> None:
    assert ends("a") == ("", [])
    assert ends("aaaa") == ("a", [2, 3, 4])


def test_a_round_begins_with_what_was_called_first() -> None:
    assert ends("ababab") == ("ab", [4, 6])
    assert ends("xababab") == ("ab", [5, 7])


def test_a_call_that_comes_late_is_part_of_the_next_period() -> None:
    """Three times a looks like a loop of a; the round is found when it was there twice in whole."""
    block, at = ends("aaab" * 5)
    assert block == "aaab"
    assert at == [8, 12, 16, 20]


def test_the_first_round_may_be_another_one() -> None:
    """A generator that is updated in step 0, 3, 6 ...: its rounds begin with the first critic behind it."""
    block, at = ends("ab" + "aaab" * 5)
    assert block == "aaab"
    assert at[-3:] == [14, 18, 22]


def test_what_never_repeats_has_no_period() -> None:
    """Of two keys by chance a block may be there twice; 200 calls of 100 functions in any order never are."""
    keys = random.Random(0).sample(range(1000), 200)
    periods = Periods()
    assert [period for period in map(periods.add, keys) if period is not None] == []


def test_a_long_period_is_found() -> None:
    keys = [*range(150)] * 4
    periods = Periods()
    number = next(number for number, key in enumerate(keys) if periods.add(key) is not None)
    period = periods.period
    assert period is not None
    assert period.keys == tuple(range(150))
    assert 299 <= number <= 310
    assert all(periods.add(key) is period for key in keys[number + 1 :])


def test_a_second_loop_is_found_when_it_lasts_longer_than_the_first() -> None:
    """Ten times a, and eleven times b."""
    assert ends("a" * 10 + "b" * 10) == ("", [])
    assert ends("a" * 10 + "b" * 12) == ("b", [21, 22])


def test_a_known_block_goes_on_with_any_of_its_keys() -> None:
    """A key of another loop, and then a round with one a: its b ends it all the same."""
    period = Period("aab", 0)
    assert [period.resume(key) and period.at_end for key in "aabxabaab"] == [key == "b" for key in "aabxabaab"]
