"""A limited time goes where the answer changes: corners, borders, turns along these, and only then the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import handmade
import pytest
import toy_sweeps
from msgspec.structs import replace

from roofline.core.schema import Profile, Turns
from roofline.errors import MeasurementError
from roofline.sweeping import folder, grid
from roofline.sweeping.budget import choose, spend
from roofline.sweeping.plan import Point, corners, points
from roofline.sweeping.run import run

BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def plan(batches: Sequence[int] = BATCHES, seqs: Sequence[int] = (32,)) -> list[Point]:
    return points(["toy"], ["torch", "jax"], ["infer"], ["default"], list(batches), list(seqs))


def quiet(line: str) -> None:
    pass


def in_turns(pair: Sequence[Point], profiles: Sequence[Profile]) -> list[Profile]:
    """Four turns with the times that both have."""
    return [
        replace(
            profile,
            wall=replace(
                profile.wall,
                turns=(
                    Turns(
                        token=pair[0].without("backend").key,
                        medians=(profile.wall.steps[0],) * 4,
                        waited=(0.0,) * 4,
                        disturbed=(False,) * 4,
                    ),
                ),
            ),
        )
        for profile in profiles
    ]


def test_corners_are_the_ends_of_both_axes() -> None:
    cells = list(dict.fromkeys(point.without("backend") for point in plan([1, 2, 4], [8, 16, 32])))
    assert [(cell.batch, cell.seq) for cell in corners(cells)] == [(1, 8), (1, 32), (4, 8), (4, 32)]
    alone = list(dict.fromkeys(point.without("backend") for point in plan([1, 2, 4], [8])))
    assert [cell.batch for cell in corners(alone)] == [1, 4]


def test_a_border_is_found_by_halves_then_its_cells_take_turns_then_the_rest(tmp_path: Path) -> None:
    """jax wins up to batch 8: of 1..256 the ends, the middles 16, 4 and 8, turns in 8 and 16, and then 2, 32 ..."""
    every, said = folder.write_plan(tmp_path, plan()), list[str]()
    ended = spend(tmp_path, every, toy_sweeps.jax_up_to(8 * 32), in_turns, said.append, budget=1e9)
    order = [(line.partition(":")[0], int(line.partition("batch ")[2].partition(",")[0])) for line in said]
    assert list(dict.fromkeys(order)) == [
        ("corner", 1), ("corner", 256), ("border", 16), ("border", 4), ("border", 8),
        ("turns", 8), ("turns", 16), ("rest", 64), ("rest", 2), ("rest", 32), ("rest", 128),
    ]  # fmt: skip
    assert ended == {"measured": 18, "in turns": 2}
    cells = {cell.cell.batch: cell for cell in grid.read(tmp_path).cells}
    assert [cell.cell.batch for cell in cells.values() if cell.in_turns] == [8, 16]
    # What took turns needs no others.
    assert spend(tmp_path, every, toy_sweeps.jax_up_to(8 * 32), in_turns, said.append, budget=1e9) == {}


def test_cells_that_are_not_settled_take_turns(tmp_path: Path) -> None:
    """Two backends that take the same time: no answer changes, and turns may tell."""
    every, turned = folder.write_plan(tmp_path, plan([1, 2])), list[int | None]()

    def settle(pair: Sequence[Point], profiles: Sequence[Profile]) -> list[Profile]:
        turned.append(pair[0].batch)
        if pair[0].batch == 1:
            raise MeasurementError("The process was killed.")
        return list(profiles)

    ended = spend(tmp_path, every, toy_sweeps.measured, settle, quiet, budget=1e9)
    # Neither is asked for twice, though one failed and the other one changed nothing.
    assert turned == [1, 2]
    assert ended == {"measured": 4, "without turns": 1, "in turns": 1}


def test_what_failed_makes_no_border(tmp_path: Path) -> None:
    """From batch 64 on memory runs out in both."""
    every = folder.write_plan(tmp_path, plan())

    def measure(point: Point) -> Profile:
        if (point.batch or 0) >= 64:
            raise MeasurementError("Out of memory on the CPU.")
        return toy_sweeps.jax_up_to(10**9)(point)

    said = list[str]()
    spend(tmp_path, every, measure, in_turns, said.append, budget=1e9)
    assert not [line for line in said if line.startswith(("border", "turns"))]


def test_of_one_backend_the_time_goes_where_its_limit_changes(tmp_path: Path) -> None:
    """Up to batch 8 compute takes over half (6.95 of 12.5 ms, as in test_run.py), then no op runs for 39.3 of 50 ms."""
    every = folder.write_plan(tmp_path, [point for point in plan() if point.backend == "torch"])
    said = list[str]()

    def measure(point: Point) -> Profile:
        is_small = (point.batch or 0) <= 8
        device = handmade.device(**({"function_exp": 1e9} if is_small else {}))
        return toy_sweeps.measured(point, 1.0 if is_small else 4.0, device=device)

    spend(tmp_path, every, measure, in_turns, said.append, budget=1e9)
    order = [(line.partition(":")[0], int(line.partition("batch ")[2].partition(",")[0])) for line in said]
    assert order[:5] == [("corner", 1), ("corner", 256), ("border", 16), ("border", 4), ("border", 8)]
    assert {kind for kind, _ in order[5:]} == {"rest"}


@pytest.mark.parametrize(("budget", "measured"), [(-1.0, 0), (1e9, 18)])
def test_nothing_begins_after_the_budget(tmp_path: Path, budget: float, measured: int) -> None:
    every = folder.write_plan(tmp_path, plan())
    ended = spend(tmp_path, every, toy_sweeps.jax_up_to(64), in_turns, quiet, budget=budget)
    assert ended["measured"] == measured


def test_a_budget_goes_on_where_another_one_ended(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan())
    run(tmp_path, [point for point in every if point.batch in (1, 256)], toy_sweeps.jax_up_to(8 * 32), quiet)
    by_cell = {point.without("backend"): [other for other in every if other.batch == point.batch] for point in every}
    cells = {
        cell: grid.read_cell(tmp_path, cell, of) if cell.batch in (1, 256) else None for cell, of in by_cell.items()
    }
    choice = choose(cells, ())
    assert choice is not None
    assert (choice.kind, choice.cell.batch) == ("border", 16)


def test_failed_points_are_tried_once_more_with_retry(tmp_path: Path) -> None:
    every, tried = folder.write_plan(tmp_path, plan([1])), list[str]()

    def measure(point: Point) -> Profile:
        tried.append(point.backend)
        raise MeasurementError("The process was killed.")

    for retry, number in ((False, 2), (False, 2), (True, 4)):
        spend(tmp_path, every, measure, in_turns, quiet, budget=1e9, retry=retry)
        assert len(tried) == number
