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
