"""What plain steps show: growth from step to step, jumps, steadiness, and how often a test of them is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from roofline.analysis.step_times import FALSE_ALARM, MISTAKEN, far_steps, spread, trend
from roofline.core.schema import Wall

RUNS = 1000


def noisy(size: int, share: float, seed: int = 1) -> np.ndarray:
    """Times around 1 s that vary by this share."""
    return np.exp(share * np.random.default_rng(seed).standard_normal(size))


def wall(times: object, **more: object) -> Wall:
    return Wall(steps=tuple(np.asarray(times, np.float64).tolist()), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [6, 20, 100, 1000])
@pytest.mark.parametrize("per_step", [0.02, -0.004])
def test_a_trend_is_found_with_its_interval(size: int, per_step: float) -> None:
    per_step /= max(1, size / 20)
    times = noisy(size, 0.003) + per_step * (np.arange(size) - (size - 1) / 2)
    found = trend(wall(times))
    if abs(per_step) * size < 0.05:
        assert found is None, "less than a machine drifts by"
        return
    assert found is not None
    assert found.low <= per_step <= found.high
    assert found.change == pytest.approx(per_step, rel=0.15)


def test_growth_is_of_each_step_that_ran_whether_it_was_timed_or_not() -> None:
    """Two plain steps, then eight others, and so on, of a step that grows by a thousandth of its first time."""
    numbers = [number for number in range(100) if number % 10 < 2]
    times = 1 + 0.001 * np.asarray(numbers)
    found = trend(wall(times, numbers=tuple(numbers)))
    assert found is not None
    assert found.change == pytest.approx(0.001 / np.median(times))


@pytest.mark.parametrize(
    "times",
    [
        [1.0],
        [1.0, 2.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],  # one of 60 orders is as even
        [1.0] * 20,
        [1.0, 1.001] * 10,
        [*noisy(10, 0.002), *1.3 * noisy(10, 0.002, 2)],  # a machine that became slower
        [*3 * noisy(3, 0.01), *noisy(17, 0.01, 2)],  # steps that warm up
        1 + 0.001 * np.arange(20),  # 2 %, as much as machines drift
    ],
    ids=["one", "two", "five", "equal", "in turns", "a jump", "warming up", "little"],
)
def test_no_trend(times: object) -> None:
    assert trend(wall(times)) is None


@pytest.mark.parametrize("size", [8, 20, 60])
def test_false_alarms_of_a_trend_are_as_rare_as_is_said(size: int) -> None:
    """Of steps that vary so much that any trend in them would be large."""
    found = sum(trend(wall(noisy(size, 0.5, seed))) is not None for seed in range(RUNS))
    assert found <= FALSE_ALARM * RUNS + 3 * np.sqrt(FALSE_ALARM * RUNS)


def test_steady_and_uneven_steps() -> None:
    assert spread(wall([1.0] * 20)) == "steady"
    assert spread(wall([1.0] * 18 + [1.2] * 2)) is None
    assert spread(wall([1.0] * 10 + [1.5] * 10)) == "uneven"
    assert far_steps(wall([1.0] * 11 + [1.2] * 9)) == 9
    assert spread(wall([0.031, 5.5, 0.04, 0.9, 2.0, 0.05])) == "uneven"
    for size in range(11):
        assert spread(wall([1.0] * size)) is None, "so few steps do not say it"
    assert spread(wall([1.0] * 100_000)) == "steady"


@pytest.mark.parametrize("size", [12, 20, 40, 100])
def test_steps_of_which_a_quarter_is_far_are_as_rarely_called_steady_or_uneven_as_is_said(size: int) -> None:
    """Of 20 and 100 normal times around 1 a quarter is over a tenth away with a deviation of 0.0869."""
    rng = np.random.default_rng(3)
    runs = [spread(wall(1 + 0.0869 * rng.standard_normal(size))) for _ in range(RUNS)]
    for name in ("steady", "uneven"):
        assert runs.count(name) <= MISTAKEN * RUNS + 3 * np.sqrt(MISTAKEN * RUNS), name
