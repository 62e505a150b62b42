"""How many steps go before those that count, and how many are profiled."""

from __future__ import annotations

import pytest

from roofline.recording.protocol import profiled_steps, settling, settling_plain


@pytest.mark.parametrize(
    ("typical", "steps"),
    # 30 ms hold 100 steps of 0.3 ms, of which 6 are enough; 3 steps of 10 ms; no whole one of 0.1 s, so one
    [(0.0, 6), (0.3e-3, 6), (10e-3, 3), (0.1, 1), (0.99, 1), (1.0, 0), (60.0, 0)],
)
def test_short_steps_settle_longer(typical: float, steps: int) -> None:
    assert settling(typical) == steps


@pytest.mark.parametrize(
    ("typical", "steps"),
    # 10 ms hold 100 steps of 0.1 ms, of which 12 are enough, and 10 of 1 ms; from 2 ms on as many as under a profiler
    [(0.0, 12), (0.1e-3, 12), (1e-3, 10), (2e-3, 6), (10e-3, 3), (0.1, 1), (1.0, 0)],
)
def test_short_plain_steps_settle_longer_than_profiled_ones(typical: float, steps: int) -> None:
    assert settling_plain(typical) == steps


@pytest.mark.parametrize(
    ("typical", "plain", "steps"),
    [
        *((0.02, 10, 10), (0.021, 10, 5), (0.001, 9, 5), (0.001, 3, 5), (0.99, 3, 5)),
        *((5.0, 20, 5), (5.0, 4, 4), (1.0, 3, 3), (30.0, 1, 3)),
    ],
)
def test_short_steps_are_profiled_more_often_and_long_ones_no_more_than_timed(
    typical: float, plain: int, steps: int
) -> None:
    assert profiled_steps(typical, plain) == steps
