"""Intervals: fixed seed, known cases."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.core import statistics


def test_equal_steps_leave_no_doubt() -> None:
    assert statistics.median_interval([2.0] * 5) == (2.0, 2.0)
    assert statistics.median_interval([1.0, 2.0]) is None


def test_further_processes_widen_the_interval_to_what_lies_between_them() -> None:
    # Within each process every step is equal; only which processes are drawn varies.
    alone = statistics.median_interval([2.0] * 5)
    several = statistics.median_interval([2.0] * 5, ([3.0] * 5, [4.0] * 5))
    assert alone == (2.0, 2.0)
    assert several is not None
    assert several == (2.0, 4.0)


def test_the_gap_of_a_scaled_profile_follows_its_scale() -> None:
    # Plain steps of 10, profiled ones of 20 of which 16 are busy: scale 10/20, gap 10 - 0.5 * 16 = 2, without spread
    assert statistics.gap_interval([10.0] * 4, [16.0] * 3, [20.0] * 3) == pytest.approx((2.0, 2.0))
    # Profiled steps faster than plain ones are not scaled up: 10 - 8 = 2
    assert statistics.gap_interval([10.0] * 4, [8.0] * 3, [9.0] * 3) == pytest.approx((2.0, 2.0))
    assert statistics.gap_interval([10.0] * 2, [8.0] * 3, [9.0] * 3) is None


def test_the_gap_of_steps_that_took_nothing_is_the_wall() -> None:
    """Beside a GPU a profiled step can be all idle: nothing is scaled, and median 1 - mean 0 is the gap."""
    nothing = np.zeros(4)
    interval = statistics.gap_interval((1.0, 1.0, 1.0), nothing, nothing)
    assert interval == (1.0, 1.0)


@pytest.mark.parametrize("number", [100, 101])
def test_medians_of_many_values_are_drawn_as_those_of_few(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).lognormal(size=number)
    few = statistics.medians(values, statistics.generator(), 20_000)
    monkeypatch.setattr(statistics, "_MANY", 0)
    many = statistics.medians(values, statistics.generator(), 20_000)
    points = (2.5, 25, 50, 75, 97.5)
    # Between neighbours of a hundred values a point of the distribution may jump, by 3 % of its width.
    width = np.ptp(np.percentile(few, (2.5, 97.5)))
    assert np.percentile(many, points) == pytest.approx(np.percentile(few, points), abs=0.08 * width)
    assert many.std() == pytest.approx(few.std(), rel=0.03)


def test_a_million_steps_take_no_table_of_their_resamples() -> None:
    # Evenly between 0 and 1: the median of n of them is 1/2, with a standard deviation of 1 / (2 sqrt(n)) = 0.5e-3.
    low, high = statistics.median_interval(np.linspace(0, 1, 1_000_001)) or (0.0, 0.0)
    assert (low, high) == pytest.approx((0.5 - 1.96 * 0.5e-3, 0.5 + 1.96 * 0.5e-3), abs=1e-4)


@pytest.mark.parametrize(
    ("freedom", "level", "expected"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (4, 0.99, 4.604), (11, 0.995, 3.497), (30, 0.95, 2.042)],
)
def test_the_t_of_student(freedom: int, level: float, expected: float) -> None:
    """From tables of the two-sided quantiles."""
    assert statistics.student(freedom, level) == pytest.approx(expected, rel=2e-4)
