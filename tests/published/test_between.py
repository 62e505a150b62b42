"""What lies between the function that a benchmark timed and the bare step: its parts and when it is resolved."""

from __future__ import annotations

import pytest

from roofline.core.schema import Api, Wall
from roofline.core.statistics import mean_difference_interval
from roofline.published.presets.between import between

WALL = Wall(steps=(0.09, 0.10, 0.11))


def api(*steps: float, after: tuple[float, ...] = (0.09, 0.10, 0.11), waiting: float | None = None) -> Api:
    return Api(name="fit", steps=steps, after=after, waiting=waiting)


def test_its_parts_add_up() -> None:
    """Means of 150 and 100 ms: 50 ms, of which it waits 20 ms for data."""
    found = between(api(0.14, 0.15, 0.16, waiting=0.02), WALL)
    assert found.seconds == pytest.approx(0.05)
    assert found.resolved
    assert found.rest == pytest.approx(0.03)
    low, high = found.ci95 or (0, 0)
    assert 0.03 < low < 0.05 < high < 0.07, "no draw is outside of 140 - 110 and 160 - 90 ms"


def test_what_the_library_hides_is_one_number() -> None:
    found = between(api(0.14, 0.15, 0.16), WALL)
    assert (found.input, found.rest) == (None, None)


def test_less_than_the_bare_step_is_resolved_too() -> None:
    found = between(api(0.04, 0.05, 0.06), WALL)
    assert found.seconds == pytest.approx(-0.05)
    assert found.resolved


def test_the_same_is_not_resolved() -> None:
    assert not between(api(0.09, 0.10, 0.11), WALL).resolved


def test_a_machine_that_became_slower_meanwhile_is_in_the_interval() -> None:
    """fit 150 ms, plain steps 100 ms before and 160 ms after it: from -10 to 50 ms, which holds 0."""
    slower = between(api(0.15, 0.15, 0.15, after=(0.16, 0.16, 0.16)), Wall(steps=(0.1, 0.1, 0.1)))
    assert slower.seconds == pytest.approx(0.05)
    assert slower.ci95 == pytest.approx((-0.01, 0.05))
    assert not slower.resolved


def test_few_steps_have_no_interval() -> None:
    """Below three of either. Plain steps behind it that are fewer are left out."""
    few = between(api(0.15, 0.15), WALL)
    assert few.seconds == pytest.approx(0.05)
    assert (few.ci95, few.resolved) == (None, False)
    assert between(api(0.15, 0.15, 0.15), Wall(steps=(0.1, 0.1))).ci95 is not None, "those behind it are three"
    assert mean_difference_interval((0.2,) * 3, (0.1,) * 3, (0.5,)) == pytest.approx((0.1, 0.1))
