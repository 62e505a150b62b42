"""A sweep that is stopped goes on where it was, what fails is recorded, and the grid tells what was measured."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import handmade
import pytest
import toy_sweeps
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import rank
from roofline.content.facts import sweep
from roofline.core import shipped
from roofline.core.schema import Profile, Turns, load
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError
from roofline.renderers.sweep import json as as_json
from roofline.renderers.sweep import text
from roofline.sweeping import folder, grid
from roofline.sweeping.plan import Point, points
from roofline.sweeping.run import run, time_left

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


def test_the_time_left_is_that_of_measured_points() -> None:
    """Two of five points took 30 s each, one was refused at once: the other two take 60 s, and not 2 x 60 / 3."""
    assert "(60.0 s left" in time_left(measured=2, left=2, seconds=60.0)
    assert time_left(measured=0, left=4, seconds=0.1) == ""


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


def _run_slowly(path: Path, log: Path) -> None:
    def measure(point: Point) -> Profile:
        for event in ("begin", "end"):
            with log.open("a") as file:
                file.write(f"{path.name} {event}\n")
            time.sleep(0.02)
        return measured(point)

    run(path, folder.read_plan(path), measure, quiet)


def test_sweeps_of_one_machine_measure_one_at_a_time(tmp_path: Path) -> None:
    """Whatever their folders: what one of them begins it ends before another one begins."""
    log, context = tmp_path / "log", multiprocessing.get_context("fork")
    for name in ("a", "b"):
        folder.write_plan(tmp_path / name, plan())
    runs = [context.Process(target=_run_slowly, args=(tmp_path / name, log)) for name in ("a", "b")]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    events = log.read_text().splitlines()
    assert len(events) == 2 * 8 * 2
    assert all(events[at + 1] == events[at].replace("begin", "end") for at in range(0, len(events), 2))


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


def test_a_factor_has_the_interval_of_the_headline(swept: Path) -> None:
    """What two processes of a step differ by is all of it: 12.5 ms against 6.25 ms."""
    cell = grid.read(swept).cells[0]
    runs = [analyze(measured(result.point)) for result in cell.results]
    head = rank([run.profile for run in runs], as_given=True).pairs[0].headline
    assert cell.factor_ci95 == head.factor_ci95
    assert cell.factor_ci95 is not None
    assert 1 < cell.factor_ci95[0] < 2.0 < cell.factor_ci95[1]


def test_in_turns_the_winner_is_that_of_the_turns(tmp_path: Path) -> None:
    """Of the profiled processes torch took 12.5 ms and jax 13 ms; in four turns torch 12.5 ms and jax 6.25 ms."""
    every = folder.write_plan(tmp_path, plan(batches=(1,)))

    def measure(point: Point) -> Profile:
        is_jax = point.backend == "jax"
        profile = toy_sweeps.measured(point, 1.04 if is_jax else 1.0)
        step = toy_sweeps.STEP * (0.5 if is_jax else 1.0)
        turns = Turns(token="t", medians=(step,) * 4, waited=(0.0,) * 4, disturbed=(False,) * 4)
        return replace(profile, wall=replace(profile.wall, turns=(turns,)))

    run(tmp_path, every, measure, quiet)
    (cell,) = grid.read(tmp_path).cells
    assert (cell.fastest, cell.next, cell.is_settled) == ("jax", "torch", True)
    assert cell.factor == pytest.approx(2.0)
    assert cell.factor_ci95 is not None
    assert cell.factor_ci95[0] < 2.0 < cell.factor_ci95[1]


def test_a_longer_first_step_pays_after_so_many_steps(tmp_path: Path) -> None:
    """torch: 1 s, then 12.5 ms a step; jax: 2 s, then 6.25 ms. 1 + (2 - 1) / (0.0125 - 0.00625) = 161 steps."""
    every = folder.write_plan(tmp_path, plan(batches=(1,)))

    def measure(point: Point) -> Profile:
        return toy_sweeps.measured(point, *((1.0, 1.0) if point.backend == "torch" else (0.5, 2.0)))

    run(tmp_path, every, measure, quiet)
    found = grid.read(tmp_path)
    assert found.cells[0].break_even == grid.BreakEven("torch", pytest.approx(161))
    assert (
        "break-even",
        "toy infer: jax, whose first step is longer, is ahead of torch after 161 steps (in 1 cell).",
    ) in [*sweep.sentences(found)]
    document = json.loads(as_json.render(found))["cells"][0]
    assert document["break_even"] == {"against": "torch", "steps": pytest.approx(161)}
    assert [one["first"] for one in document["runs"]] == [1.0, 2.0]


def test_compute_takes_over_from_memory_where_neither_takes_half(tmp_path: Path) -> None:
    """Of 15 ms memory limits 5.375 ms and compute 5 ms. Where exp is a tenth as fast, softmax (1 M of them) would take
    1 ms for these and 0.7 ms for its bytes: its 1.95 ms are limited by compute, 6.95 ms with the matmuls.
    """
    every = folder.write_plan(tmp_path, plan(("torch",), (1, 2)))

    def measure(point: Point) -> Profile:
        device = handmade.device(**({"function_exp": 1e9} if point.batch == 2 else {}))
        return toy_sweeps.measured(point, 1.2, device=device)

    run(tmp_path, every, measure, quiet)
    found = grid.read(tmp_path)
    results = [cell.results[0] for cell in found.cells]
    assert [result.times["compute"] for result in results] == pytest.approx([5e-3, 6.95e-3])
    assert [result.mostly for result in results] == [None, None]
    (border,) = found.borders
    assert (border.kind, border.low, border.high, border.before, border.after) == ("roof", 1, 2, "memory", "compute")
    assert [*sweep.sentences(found)] == [
        ("roof", "toy infer, 32 tokens, torch: memory limits more of the step than compute up to batch 1, less from "
                 "batch 2 on.")
    ]  # fmt: skip


def test_no_roof_limits_more_of_a_step_that_is_mostly_idle(tmp_path: Path) -> None:
    """Memory and compute limit 10.4 of 25 ms."""
    every = folder.write_plan(tmp_path, plan(("torch",), (1,)))
    run(tmp_path, every, lambda point: toy_sweeps.measured(point, 2.0), quiet)
    assert grid.read(tmp_path).cells[0].results[0].roof is None


def test_a_border_of_several_rows_is_one_sentence(tmp_path: Path) -> None:
    """jax wins with batch 1 alone, at each of three lengths."""
    every = folder.write_plan(tmp_path, points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1, 2], [8, 16, 32]))
    run(tmp_path, every, lambda point: toy_sweeps.jax_up_to(point.seq or 0)(point), quiet)
    found = grid.read(tmp_path)
    assert [border.cell.seq for border in found.borders] == [8, 16, 32]
    ((kind, sentence),) = [pair for pair in sweep.sentences(found) if pair[0] == "winner"]
    assert kind == "winner"
    assert sentence.startswith("toy infer, 8, 16 and 32 tokens: jax is fastest up to batch 1, torch from batch 2 on")


def test_a_border_names_the_cells_between_that_are_not_settled(tmp_path: Path) -> None:
    """jax takes half of torch's step with batch 1, as long with batch 2, and twice as long with batch 4."""
    every = folder.write_plan(tmp_path, plan(("torch", "jax"), (1, 2, 4)))
    factors = {1: 0.5, 2: 1.0, 4: 2.0}

    def measure(point: Point) -> Profile:
        return toy_sweeps.measured(point, factors[point.batch or 1] if point.backend == "jax" else 1.0)

    run(tmp_path, every, measure, quiet)
    found = grid.read(tmp_path)
    (border,) = [border for border in found.borders if border.kind == "winner"]
    assert (border.low, border.between, border.high) == (1, (2,), 4)
    assert "(batch 2: not settled)" in sweep.border(border)


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


def test_runs_of_different_devices_are_not_compared(tmp_path: Path) -> None:
    """On `b`, where jax ran with batch 2 and both did with batch 4, torch is fastest; on `a`, with batch 1, jax is.

    Neither a cell of both devices has a winner, nor is there a border between two cells of different ones.
    """
    on_b = {("jax", 2), ("jax", 4), ("torch", 4)}

    def measure(point: Point) -> Profile:
        profile = measured(point)
        name = "b" if (point.backend, point.batch) in on_b else "a"
        return replace(profile, device=replace(profile.device, name=name))

    found = toy_sweeps.sweep(tmp_path, plan(batches=(1, 2, 4)), measure)
    assert [(cell.fastest, cell.factor, cell.is_settled) for cell in found.cells] == [
        ("jax", pytest.approx(2.0), True), (None, None, False), ("torch", pytest.approx(2.0), True),
    ]  # fmt: skip
    assert found.borders == ()
    assert next(line.split()[-1] for line in text.render(found).splitlines() if line.startswith("batch 2")) == "≠"
    runs = [run for cell in json.loads(as_json.render(found))["cells"] for run in cell["runs"]]
    assert [run["device"] for run in runs] == ["a", "a", "a", "b", "b", "b"]


@pytest.mark.parametrize(("names", "borders", "is_predicted"), [(("a", "a"), 1, True), (("a", "b"), 0, False)])
def test_devices_have_no_border_and_predict_nothing_together(
    tmp_path: Path, names: tuple[str, str], borders: int, is_predicted: bool
) -> None:
    """With batch 1 compute takes over half (6.95 of 12.5 ms), with batch 4 no op runs for 39.3 of 50 ms."""
    every = folder.write_plan(tmp_path, plan(("torch",), (1, 2, 4)))

    def measure(point: Point) -> Profile:
        is_small = point.batch == 1
        device = handmade.device(**({"function_exp": 1e9} if is_small else {}))
        device = replace(device, name=names[not is_small])
        return toy_sweeps.measured(point, 1.0 if is_small else 4.0, device=device)

    run(tmp_path, [every[0], every[2]], measure, quiet)
    found = grid.read(tmp_path)
    assert len(found.borders) == borders
    assert (found.cells[1].results[0].predicted is not None) == is_predicted


def test_a_gap_is_a_part_of_the_step_only_where_it_is_known(tmp_path: Path) -> None:
    """Of 12.5 ms ops take 10.7 ms. Ops of a profiled step on an H100 took longer than a plain step: they hide it."""
    hidden = load(shipped.paths()["h100/bert-jax-buffers-on-infer-b32-tf32"])
    found = toy_sweeps.sweep(
        tmp_path, plan(("torch", "jax"), (1,)), lambda point: measured(point) if point.backend == "torch" else hidden
    )
    times = [result.times.get(grid.GAP) for result in found.cells[0].results]
    assert times == [pytest.approx(1.8e-3), None]


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
