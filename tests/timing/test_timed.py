"""What a profile keeps of a profiled run."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.timing.timed import Timed, profiled


def run(walls: list[float], corrected: list[float], events: int) -> Timed:
    """A run of one op, of which only the walls are looked at."""
    steps = len(walls)
    return Timed(
        own=np.ones((1, steps)),
        overlap=np.zeros(1),
        start=np.zeros(1),
        walls=np.asarray(walls),
        corrected=np.asarray(corrected),
        idle=np.zeros(steps),
        host=np.zeros((1, 2)),
        causes={},
        joined=1.0,
        events=events,
        dropped=0,
        unmatched={},
        kernels=[()],
    )


def test_what_was_taken_off_is_told_per_event() -> None:
    # 1 and 2 µs of 10 events each
    assert profiled(run([11e-6, 12e-6], [10e-6, 10e-6], 10), "eager").event_cost == pytest.approx(1.5e-7)
    assert profiled(run([11e-6], [10e-6], 0), "eager").event_cost == 0


def test_a_step_that_its_ops_fill_by_rounding_more_than_whole_costs_nothing() -> None:
    assert profiled(run([1e-3], [np.nextafter(1e-3, 1)], 10), "xla-gpu").event_cost == 0
