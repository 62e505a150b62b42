"""A sweep that is stopped goes on where it was, what fails is recorded, and the grid tells what was measured."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
import toy_sweeps
from msgspec.structs import replace

from roofline.core.schema import Profile
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError
from roofline.renderers.sweep import json as as_json
from roofline.renderers.sweep import text
from roofline.sweeping import folder, grid
from roofline.sweeping.plan import Point, points
from roofline.sweeping.run import run

BATCHES = (1, 2, 4, 8)


def plan(backends: tuple[str, ...] = ("torch", "jax"), batches: tuple[int, ...] = BATCHES) -> list[Point]:
    return points(["toy"], backends, ["infer"], ["default"], batches, [32])


def measured(point: Point) -> Profile:
    """A step of the hand-made profile, which takes 12.5 ms; on jax half of that up to batch 2, else twice that."""
    return toy_sweeps.jax_up_to(2 * 32)(point)


def quiet(line: str) -> None:
    pass


def test_each_point_is_measured_once(tmp_path: Path) -> None:
    every, seen = folder.write_plan(tmp_path, plan()), []

    def measure(point: Point) -> Profile:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(point)
        return measured(point)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, every, measure, quiet)
    assert [folder.is_done(tmp_path, point) for point in every] == [True] * 3 + [False] * 5
    again: list[Point] = []
    ended = run(tmp_path, every, lambda point: again.append(point) or measured(point), quiet)
    assert ended == {"measured": 5}
    assert again == every[3:]
    assert run(tmp_path, every, measured, quiet) == {}


def test_a_longer_plan_keeps_what_is_there(tmp_path: Path) -> None:
    run(tmp_path, folder.write_plan(tmp_path, plan(batches=(1, 2))), measured, quiet)
    longer = folder.write_plan(tmp_path, plan(batches=(2, 4)))
    assert len(longer) == 6
    assert run(tmp_path, longer, measured, quiet) == {"measured": 2}
    assert folder.read_plan(tmp_path) == longer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("bert has positions for 512 tokens."), "refused"),
        (MissingError("jax is not installed."), "missing"),
        (MeasurementError("Out of memory on the CPU: use a smaller --batch."), "out of memory"),
        (MeasurementError("The process was killed."), "failed"),
    ],
)
def test_what_fails_is_recorded_and_the_rest_goes_on(tmp_path: Path, error: RooflineError, kind: str) -> None:
    every, tried = folder.write_plan(tmp_path, plan(batches=(1, 2))), 0

    def measure(point: Point) -> Profile:
        nonlocal tried
        tried += 1
        if point is every[1]:
            raise error
        return measured(point)

    assert run(tmp_path, every, measure, quiet) == {"measured": 3, kind: 1}
    record = folder.failure(tmp_path, every[1])
    assert record == folder.Failure(kind, str(error), 1)  # type: ignore[arg-type]
    assert run(tmp_path, every, measure, quiet) == {}
    assert run(tmp_path, every, measure, quiet, retry=True) == {kind: 1}
    again = folder.failure(tmp_path, every[1])
    assert again is not None
    assert again.attempts == 2
    assert run(tmp_path, every, measured, quiet, retry=True) == {"measured": 1}
    assert folder.failure(tmp_path, every[1]) is None
    assert tried == 5


def test_no_point_begins_after_the_budget(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan())
    assert run(tmp_path, every, measured, quiet, budget=-1.0) == {}


def _run_all(path: Path, log: Path) -> None:
    def measure(point: Point) -> Profile:
        with log.open("a") as file:
            file.write(f"{point.key}\n")
        return measured(point)

    run(path, folder.read_plan(path), measure, quiet)


def test_two_runs_of_one_sweep_share_its_points(tmp_path: Path) -> None:
    every, log = folder.write_plan(tmp_path / "sweep", plan()), tmp_path / "log"
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=_run_all, args=(tmp_path / "sweep", log)) for _ in range(2)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert sorted(log.read_text().split()) == sorted(point.key for point in every)


# ------------------------------------------------------------------------------------------------------------ the grid


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    every = folder.write_plan(tmp_path, plan())

    def measure(point: Point) -> Profile:
        if (point.batch, point.backend) == (8, "torch"):
            raise MeasurementError("Out of memory on the CPU.")
        return measured(point)

    run(tmp_path, every, measure, quiet)
    return tmp_path


def test_the_grid_tells_who_is_fastest_where_and_where_that_changes(swept: Path) -> None:
    found = grid.read(swept)
    assert [(cell.fastest, cell.is_settled) for cell in found.cells] == [
        ("jax", True), ("jax", True), ("torch", True), ("jax", False),
    ]  # fmt: skip
    assert found.cells[0].factor == pytest.approx(2.0)
    assert found.cells[3].factor is None
    (border,) = [one for one in found.borders if one.kind == "winner"]
    assert (border.axis, border.low, border.high, border.before, border.after) == ("batch", 2, 4, "jax", "torch")
    assert found.missing == 0
    results = [result for cell in found.cells for result in cell.results]
    assert [result.failure and result.failure.kind for result in results[-2:]] == ["out of memory", None]


def test_disturbed_runs_draw_no_border_of_limits(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan(("torch",), (1, 2)))
    limits = {1: ("contended",), 2: ()}

    def measure(point: Point) -> Profile:
        return replace(measured(point), flags=limits[point.batch or 0])

    run(tmp_path, every, measure, quiet)
    first, second = (cell.results[0] for cell in grid.read(tmp_path).cells)
    assert (first.is_disturbed, second.is_disturbed) == (True, False)
    assert first.mostly is None
    assert not grid.read(tmp_path).borders


def test_the_screen_of_a_sweep(swept: Path, golden: Callable[[str, str], None]) -> None:
    golden("sweep.txt", text.render(grid.read(swept)))


def test_json_has_the_same_numbers(swept: Path) -> None:
    found, document = grid.read(swept), json.loads(as_json.render(grid.read(swept)))
    assert [cell["factor"] for cell in document["cells"]] == [cell.factor for cell in found.cells]
    assert [run["wall"] for cell in document["cells"] for run in cell["runs"]] == [
        result.wall for cell in found.cells for result in cell.results
    ]
    assert [run["disturbed"] for cell in document["cells"] for run in cell["runs"]] == [False] * 8
    assert document["cells"][3]["runs"][0]["failure"]["kind"] == "out of memory"
    assert document["borders"][0]["id"] == "winner"


@pytest.mark.parametrize("record_text", [b"{", b"\xff", b"[" * 100_000, b'{"kind": "odd", "text": ""}'])
def test_a_damaged_record_is_named(swept: Path, record_text: bytes) -> None:
    (record,) = (swept / "points").glob("*.failed.json")
    record.write_bytes(record_text)
    with pytest.raises(InputError, match="is no record of a failure"):
        grid.read(swept)


def test_names_in_a_plan_are_only_names(tmp_path: Path) -> None:
    evil = "\x1b[31mred\n"
    every = points([evil], [evil, "jax"], [evil], [evil], BATCHES, [32], size=evil)
    run(tmp_path, folder.write_plan(tmp_path, every), lambda point: measured(Point(model="", backend="x")), quiet)
    for rendered in (text.render(grid.read(tmp_path)), as_json.render(grid.read(tmp_path))):
        assert "\x1b" not in rendered
