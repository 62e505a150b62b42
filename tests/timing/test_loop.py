"""Times of a loop by what it calls, on a clock that is set by hand."""

from __future__ import annotations

import time

import pytest

from roofline.timing.loop import Clock, Waits


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in its only element."""
    held = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: held[0])
    return held


def run(now: list[float], clock: Clock, waits: Waits, batches: int, waiting: float) -> None:
    """Each batch: `waiting` for it, 1 s until it begins, 4 s of work (the first: 99 s), 2 s of callbacks."""
    for batch in range(batches):

        def wait() -> str:
            now[0] += waiting
            return "batch"

        assert waits.timed(wait) == "batch"
        now[0] += 1
        clock.begin(batch)
        now[0] += 4 if batch else 99
        clock.end(batch)
        now[0] += 2


def test_the_steps_add_up_to_what_the_benchmark_timed(now: list[float]) -> None:
    """Of 4 batches: 4 s for batch 1, from its begin; then 2 + 0.5 + 1 + 4 = 7.5 s, from end to end."""
    clock, waits = Clock(), Waits()
    run(now, clock, waits, 4, 0.5)
    assert clock.steps == pytest.approx((4, 7.5, 7.5))
    # The window holds the waits for batches 2 and 3, and the mean is over its three steps.
    assert waits.per_step(clock) == pytest.approx((0.5 + 0.5) / 3)


def test_a_loop_that_hides_its_waits_has_none(now: list[float]) -> None:
    """A wait or two while a compiled program is traced do not stand for those of all batches."""
    clock, waits = Clock(), Waits()
    waits.timed(lambda: None)
    run(now, clock, Waits(), 4, 0.5)
    assert waits.per_step(clock) is None
    assert Waits().per_step(Clock()) is None


def test_the_end_of_the_data_is_a_wait(now: list[float]) -> None:
    waits = Waits()

    def ended() -> None:
        now[0] += 3
        raise StopIteration

    with pytest.raises(StopIteration):
        waits.timed(ended)
    assert waits.waits == [(0.0, 3.0)]
