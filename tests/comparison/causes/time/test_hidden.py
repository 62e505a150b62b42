"""What more work hides of a host that runs ahead. Steps made by hand."""

from __future__ import annotations

import pytest
from explained import found, near
from synthetic import LAYER, Row, step

from roofline.core.executor import ON_CORE, WAITED
from roofline.core.schema import Profile

DRAWN = Row("random", "random", 800, bytes=0.4e6)
#: Of a step of B, in which no op runs [µs]; its host takes as long to dispatch it.
HOST = 1000.0


def run(gap: float, *drawn: Row, on_core: float | None = HOST, asleep: float = 0.0) -> Profile:
    """Four layers behind some ops. gap: no op runs; on_core, asleep: of the host before it waits [µs]."""
    rows = (*drawn, *LAYER * 4)
    wall = (sum(row.own for row in rows) + gap) * 1e-6
    known = {} if on_core is None else {ON_CORE: on_core * 1e-6, WAITED: wall - (on_core + asleep) * 1e-6}
    return step(rows, host=0, extra_gap=gap, backend="jax", conditions=known)


def test_noise_behind_which_the_host_goes_on_lengthens_a_step_by_less_than_it_takes() -> None:
    # 800 us of noise, and 500 us less of a gap beside hosts that do the same: 300 us.
    told = found(run(HOST - 500, DRAWN), run(HOST))
    assert set(told) == {"random"}
    assert told["random"].seconds == near(300)
    assert told["random"].text.endswith(
        " That is 800 µs of ops less 500 µs: behind them the host does what it does in jax (B) while none runs."
    )
    # And the other way around.
    told = found(run(HOST), run(HOST - 500, DRAWN))
    assert told["random"].seconds == near(-300)


def test_it_hides_no_more_than_it_takes() -> None:
    # 1000 us less of a gap, of which 800 us are hidden; so the noise costs nothing, and 200 us are the host's.
    told = found(run(0, DRAWN), run(HOST))
    assert set(told) == {"host-idle"}
    assert told["host-idle"].seconds == near(-200)


@pytest.mark.parametrize(
    "shows",
    [
        run(HOST, on_core=None),  # nothing is known of its host
        run(HOST, on_core=HOST + 500),  # it does so much more itself
        run(HOST, asleep=200),  # it sleeps for more than a quarter of what its gap is longer by, or waits in its step
    ],
)
def test_a_host_that_does_more_itself_or_may_sleep_is_told(shows: Profile) -> None:
    told = found(run(HOST - 500, DRAWN), shows)
    assert told["random"].seconds == near(800)
    assert told["host-idle"].seconds == near(-500)
    assert "That is" not in told["random"].text


def test_as_much_as_a_host_does_more_is_told() -> None:
    told = found(run(HOST - 500, DRAWN), run(HOST, on_core=HOST + 450))
    assert told["random"].seconds == near(800 - 50)
    assert told["host-idle"].seconds == near(-450)


def test_less_of_a_gap_beside_less_work_is_a_host_that_does_less() -> None:
    told = found(run(HOST - 500), run(HOST, DRAWN))
    assert told["random"].seconds == near(-800)
    assert told["host-idle"].seconds == near(-500)
