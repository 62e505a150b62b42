"""Predictions between measured points: exact where a step follows the law, with an interval, and none elsewhere."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import toy_sweeps

from roofline.core.schema import Profile
from roofline.core.statistics import student
from roofline.errors import MeasurementError
from roofline.projection.startup import between
from roofline.renderers.sweep import json as as_json
from roofline.renderers.sweep import text
from roofline.sweeping import folder, grid
from roofline.sweeping.plan import Point, points
from roofline.sweeping.prediction import MeasuredPoint, Place, left_out, predict
from roofline.sweeping.run import run

BATCHES, SEQS = (1, 2, 4, 8), (8, 16, 32, 64)


def step(place: Place, startup: float = 2e-3, rate: float = 0.5) -> MeasuredPoint:
    """Products of tokens, and attention of tokens squared: 10 us + (1 us S + 10 ns S^2) B at half of the ceilings."""
    batch, seq = place
    work = 1e-5 + batch * (1e-6 * seq + 1e-8 * seq * seq)
    return MeasuredPoint(work, (work + startup) / rate)


def full() -> dict[Place, MeasuredPoint]:
    return {(batch, seq): step((batch, seq)) for batch in BATCHES for seq in SEQS}


def test_a_step_that_follows_the_law_is_predicted_exactly() -> None:
    """Whatever the startup, between two points along either axis."""
    everything = full()
    for place in ((2, 32), (1, 16), (8, 32)):
        known = {other: one for other, one in everything.items() if other != place}
        (estimate,) = predict(known, [place]).values()
        assert estimate.seconds == pytest.approx(everything[place].seconds)
        assert estimate.ci95 == pytest.approx((estimate.seconds, estimate.seconds))


def test_along_one_axis_too() -> None:
    """Work of batches is a line, through two points; of lengths a parabola, through three."""
    batches = {(batch, 0): MeasuredPoint(1e-5 + batch * 1e-6, 2e-3 + batch * 2e-6) for batch in (1, 4)}
    assert predict(batches, [(2, 0)])[2, 0].seconds == pytest.approx(2e-3 + 2 * 2e-6)
    seqs = {(0, seq): step((1, seq)) for seq in (8, 16, 64)}
    assert predict(seqs, [(0, 32)])[0, 32].seconds == pytest.approx(step((1, 32)).seconds)
    del seqs[0, 16]
    assert predict(seqs, [(0, 32)]) == {}


def test_nothing_is_predicted_beyond_the_measured_points() -> None:
    assert predict(full(), [(16, 32), (2, 128), (1, 4)]) == {}
    assert predict({}, [(1, 4)]) == {}


def test_too_few_points_do_not_fix_the_work() -> None:
    """Six numbers need six points that are not all in five rows and columns: corners are four."""
    corners = {place: one for place, one in full().items() if place[0] in (1, 8) and place[1] in (8, 64)}
    assert predict(corners, [(1, 16), (2, 8)]) == {}


def test_the_interval_is_what_points_left_out_are_off_by() -> None:
    """Along three batches with the same work a step, only the middle one can be left out; of four, two."""
    times = {1: 1.0, 2: 1.5, 4: 2.5, 8: 4.5}
    known = {(batch, 0): MeasuredPoint(float(batch), times[batch] * (1.2 if batch == 2 else 1.0)) for batch in times}
    errors = left_out(known)
    # 0.5 + 0.5 B is a line in the work: from 1 and 4, batch 2 is 1.5 and was 1.8; from 2 and 8, batch 4 is
    # 1.8 + (4 - 2) / (8 - 2) * (4.5 - 1.8) = 2.7, and was 2.5.
    assert errors == {(2, 0): pytest.approx(math.log(1.2)), (4, 0): pytest.approx(math.log(2.5 / 2.7))}
    scale = math.sqrt((errors[2, 0] ** 2 + errors[4, 0] ** 2) / 2 * 1.5) * student(2)
    estimate = predict(known, [(3, 0)])[3, 0]
    assert estimate.seconds == pytest.approx(1.8 + (2.5 - 1.8) / 2)
    assert estimate.ci95 == pytest.approx((estimate.seconds * math.exp(-scale), estimate.seconds * math.exp(scale)))
    assert predict({place: known[place] for place in ((1, 0), (8, 0))}, [(4, 0)])[4, 0].ci95 is None


def test_the_law_between_two_sizes() -> None:
    assert between(2.0, (1.0, 10.0), (5.0, 30.0)) == pytest.approx(15.0)
    assert between(1.0, (1.0, 10.0), (1.0, 40.0)) == pytest.approx(20.0)


# ------------------------------------------------------------------------------------------------------ in the folder


def measure(point: Point) -> Profile:
    if point.batch == 8 and point.backend == "jax":
        raise MeasurementError("Out of memory on the CPU.")
    return toy_sweeps.measured(point, (1.0 if point.backend == "torch" else 0.4) * (1 + (point.batch or 0) / 8))


def test_what_is_not_measured_is_predicted_and_marked(tmp_path: Path) -> None:
    """The work of the hand-made step is the same at all batches, so a step between two is their geometric mean."""
    every = folder.write_plan(
        tmp_path, points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1, 2, 4, 6, 8], [32])
    )
    run(tmp_path, [point for point in every if point.batch != 4], measure, lambda line: None)
    found = grid.read(tmp_path)
    torch, jax = found.cells[2].results
    assert torch.predicted is not None
    assert torch.predicted.seconds == pytest.approx(toy_sweeps.STEP * math.sqrt(1.25 * 1.75))
    # jax at batch 8 ran out of memory, and 4 lies between 2 and 6.
    assert jax.predicted is not None
    assert found.cells[2].fastest is None
    assert found.missing == 2
    screen = text.render(found)
    assert "≈18.5 ms" in screen
    assert "≈: not measured; predicted" in screen
    document = json.loads(as_json.render(found))["cells"]
    assert document[2]["runs"][0]["predicted"]["seconds"] == torch.predicted.seconds
    assert [run["predicted"] for cell in (*document[:2], *document[3:]) for run in cell["runs"]] == [None] * 8


def test_disturbed_points_predict_nothing(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, points(["toy"], ["torch"], ["infer"], ["default"], [1, 2, 4], [32]))
    run(
        tmp_path,
        [point for point in every if point.batch != 2],
        lambda point: toy_sweeps.measured(point, flags=("contended",) if point.batch == 4 else ()),
        lambda line: None,
    )
    assert grid.read(tmp_path).cells[1].results[0].predicted is None


def test_a_cell_names_the_predicted_winner_only_where_the_intervals_are_apart(tmp_path: Path) -> None:
    """Steps along the law, so that intervals are narrow; and the same backend twice, whose intervals are the same."""
    for factor, winner in ((0.5, "jax"), (1.0, None)):
        at = tmp_path / str(factor)
        every = points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1, 2, 3, 4, 6, 8], [32])

        def one(point: Point, factor: float = factor) -> Profile:
            return toy_sweeps.measured(point, factor if point.backend == "jax" else 1.0)

        folder.write_plan(at, every)
        run(at, [point for point in every if point.batch != 4], one, lambda line: None)
        assert grid.read(at).cells[3].predicted == winner
