"""The map of a sweep: a cell says who is fastest and by how much, what has no time is marked, and texts stand clear."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import handmade
import pytest
import toy_sweeps
from figure_faults import faults
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from msgspec.structs import replace

import roofline
from roofline import cli
from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.errors import InputError, MeasurementError
from roofline.renderers import figures
from roofline.renderers.figures import _style
from roofline.sweeping import folder
from roofline.sweeping.grid import Cell, Grid
from roofline.sweeping.plan import Point, numbers, points

BACKENDS = ("torch", "jax")


def plan(
    batches: str = "1..4", seqs: str = "32..128", backends: tuple[str, ...] = BACKENDS, **axes: Any
) -> list[Point]:
    modes, precisions = axes.get("modes", ["infer"]), axes.get("precisions", ["default"])
    models = axes.get("models", ["toy"])
    return points(models, backends, modes, precisions, numbers(batches, "batch"), numbers(seqs, "seq"))


def built(grid: Grid, width: float = 7.0, by: str | None = None) -> Any:
    with _style.applied():
        return figures.build("sweep", [grid], width, by)


def texts(figure: Any) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.fixture(scope="module")
def grid_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep") / "grid"


@pytest.fixture(scope="module")
def grid(grid_folder: Path) -> Grid:
    """jax wins where batch x length is at most 64; at batch 4 and 128 tokens memory runs out in torch."""

    def measure(point: Point) -> Profile:
        if (point.batch, point.seq, point.backend) == (4, 128, "torch"):
            raise MeasurementError("Out of memory on the CPU.")
        return toy_sweeps.jax_up_to(64)(point)

    return toy_sweeps.sweep(grid_folder, plan(), measure)


def test_a_cell_has_the_factor_and_the_mark_of_what_failed(grid: Grid) -> None:
    figure, caption = built(grid)
    assert [text for text in texts(figure) if re.fullmatch(r"[\d.]+x", text)] == ["2.00x"] * 8
    # Of nine cells one has a backend alone; jax wins (1, 32), (1, 64) and (2, 32).
    assert caption.title == "toy infer: torch is fastest in 5 of 8 cells, jax in 3"
    assert "out of memory" in texts(figure)
    assert not {"failed", "refused", "missing", "not measured", "disturbed", "not settled"} & set(texts(figure))
    drawn, _ = figures.render("sweep", [grid], ".svg", 7.0)
    assert drawn.count(b"changes here") == 1
    assert "jax is fastest up to 64 tokens, torch from 128 tokens on" in caption.long


def test_backends_differ_in_hatch_for_a_grey_print(grid: Grid) -> None:
    """In cells and in the key, whatever their colours are in grey; the names of both stand there."""
    from matplotlib.patches import Patch, PathPatch

    figure, _ = built(grid)
    colours = [_style.SERIES[grid.backends.index(name)][0] for name in BACKENDS]
    hatches = [
        {patch.get_hatch() for patch in figure.findobj(kind) if to_hex(patch.get_facecolor()) == colour.lower()}
        for kind in (PathPatch, Patch)
        for colour in colours
    ]
    assert [len(of_backend) for of_backend in hatches] == [1] * 4
    assert hatches[:2] == hatches[2:]
    assert hatches[0] != hatches[1]
    assert set(BACKENDS) <= set(texts(figure))


def test_borders_lie_where_the_answer_changes(grid: Grid) -> None:
    """Below (1, 64) and (2, 32), and right of them; cells are as wide as each other."""
    from roofline.renderers.figures import sweep

    (panel,) = sweep._of_fastest(grid)
    assert {(start, end) for start, end, _ in panel.lines} == {
        ((0, 2), (1, 2)), ((1, 1), (2, 1)),  # in the rows of batch 1 and 2
        ((2, 0), (2, 1)), ((1, 1), (1, 2)),  # in the columns of 32 and 64 tokens
    }  # fmt: skip
    assert all(is_there for *_, is_there in panel.lines)


def test_a_border_between_cells_that_do_not_tell_is_two_lines(tmp_path: Path) -> None:
    from roofline.renderers.figures import sweep

    def measure(point: Point) -> Profile:
        factors = {1: 0.5, 2: 1.0, 4: 2.0}
        return toy_sweeps.measured(point, factors[point.batch or 0] if point.backend == "jax" else 1.0)

    found = toy_sweeps.sweep(tmp_path, plan(seqs=""), measure)
    (panel,) = sweep._of_fastest(found)
    assert panel.columns == ("1", "2", "4")
    assert panel.lines == [((0, 1), (1, 1), False), ((0, 2), (1, 2), False)]
    assert panel.squares[0, 1].fill.label == "not settled"
    assert "changes between" in texts(built(found)[0])


def test_so_is_one_between_rows(tmp_path: Path) -> None:
    from roofline.renderers.figures import sweep

    def measure(point: Point) -> Profile:
        factors = {1: 0.5, 2: 1.0, 4: 2.0}
        return toy_sweeps.measured(point, factors[point.batch or 0] if point.backend == "jax" else 1.0)

    (panel,) = sweep._of_fastest(toy_sweeps.sweep(tmp_path, plan(seqs="8,16"), measure))
    below = [((1, 0), (1, 1)), ((2, 0), (2, 1)), ((1, 1), (1, 2)), ((2, 1), (2, 2))]
    assert sorted(panel.lines) == sorted((*ends, False) for ends in below)


@pytest.mark.parametrize("flag", ["contended", "throttled"])
def test_disturbed_runs_are_marked(tmp_path: Path, flag: str) -> None:
    def measure(point: Point) -> Profile:
        return replace(toy_sweeps.jax_up_to(64)(point), flags=(flag,) if point.backend == "jax" else ())

    figure, _ = built(toy_sweeps.sweep(tmp_path, plan("1", "32,64"), measure))
    assert "disturbed" in texts(figure)


def test_of_one_backend_cells_say_what_limits_it(tmp_path: Path) -> None:
    found = toy_sweeps.sweep(tmp_path, plan("1,2", "32,64", ("torch",)), lambda point: toy_sweeps.measured(point, 4.0))
    figure, caption = built(found)
    # 50 ms less 10.7 ms of ops: no op runs for more than half of it.
    assert caption.title == "toy infer: over half is idle or host time in 4 of 4 steps"
    assert texts(figure).count("50.0 ms") == 4
    assert "idle or host time" in texts(figure)


def test_a_narrow_cell_has_its_unit_below_the_number(tmp_path: Path) -> None:
    """On one column, eight cells are too narrow for three digits and "ms" beside each other. 13.44 steps of 12.5 ms."""

    def measure(point: Point) -> Profile:
        return toy_sweeps.measured(point, 13.44, flags=("contended",))

    found = toy_sweeps.sweep(tmp_path, plan("1", "8..1024", ("torch",)), measure)
    figure, _ = built(found, 3.3)
    assert texts(figure).count("168\nms") == 8
    assert faults(figure) == []


@pytest.mark.parametrize(
    ("factor", "flag", "is_pale"),
    [(1.0, None, True), (4.0, None, False), (4.0, "contended", True)],  # memory 43 %; no op runs for 79 %
)
def test_pale_is_what_is_not_over_half_or_disturbed(
    tmp_path: Path, factor: float, flag: str | None, is_pale: bool
) -> None:
    from roofline.renderers.figures import sweep

    def measure(point: Point) -> Profile:
        return toy_sweeps.measured(point, factor, flags=(flag,) if flag else ())

    found = toy_sweeps.sweep(tmp_path, plan("1", "32", ("torch",)), measure)
    (panel,) = sweep._of_limits(found)
    assert panel.squares[0, 0].fill.is_pale is is_pale
    assert (sweep._PALE["limit"] in texts(built(found)[0])) is is_pale


def test_by_limit_each_backend_has_a_panel(grid: Grid) -> None:
    figure, caption = built(grid, by="limit")
    assert {"toy infer, torch", "toy infer, jax"} <= set(texts(figure))
    assert texts(figure).count("12.5 ms") == 8
    assert "25.0 ms" in texts(figure)
    assert "takes over half" in caption.short
    with pytest.raises(InputError, match="There is no sweep by 'class'; there are: fastest, limit"):
        built(grid, by="class")


def test_what_is_no_sweep_is_refused(grid: Grid, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the DIR"):
        figures.build("sweep", [analyze(handmade.profile())])
    with pytest.raises(InputError, match="draw --kind sweep"):
        figures.build("bound", [grid])
    with pytest.raises(InputError, match="one sweep, and 2 are given"):
        figures.build("sweep", [grid, grid])
    folder.write_plan(tmp_path / "new", plan())
    with pytest.raises(InputError, match="No point of this sweep is measured yet"):
        roofline.plot(tmp_path / "new", kind="sweep")


@pytest.mark.usefixtures("grid")
def test_plot_takes_the_folder(grid_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["plot", str(grid_folder), "--kind", "sweep", "-o", str(tmp_path / "map.svg")])
    assert not left.value.code
    assert "torch is fastest in 5 of 8 cells" in capsys.readouterr().out
    assert roofline.plot(str(grid_folder), kind="sweep").save(tmp_path / "again.svg").read_bytes() == (
        (tmp_path / "map.svg").read_bytes()
    )


def test_a_large_map_is_light_and_fits_a_page(grid: Grid) -> None:
    """Of 24 panels with 9 cells each, at most 100 kB on two columns; on one they fit no page."""
    modes = [f"mode-{number}" for number in range(24)]
    cells = [replace_cell(cell, mode) for mode in modes for cell in grid.cells]
    many = dataclasses.replace(grid, cells=tuple(cells))
    drawn, caption = figures.render("sweep", [many], ".svg", 7.0)
    assert len(drawn) <= 100_000
    assert "torch is fastest in 120 of 192 cells, jax in 72" in caption
    with pytest.raises(InputError, match="24 maps do not fit on a page"):
        built(many, 3.3)


def replace_cell(cell: Cell, mode: str) -> Cell:
    return dataclasses.replace(cell, cell=replace(cell.cell, mode=mode))


NAMES = st.sampled_from(["torch", "jax", "$x_1$", "\x1b[31mred\n", "a-backend-longer-than-any-column:and=options," * 4])
FACTORS = st.sampled_from([0.5, 0.97, 1.0, 1.6, 40.0])
#: Batches and lengths: rows and columns from none to many, and wide labels of both.
SHAPES = st.sampled_from(
    [("", ""), ("1..8", ""), ("", "8..1024"), ("1..8", "32"), ("1", "8..1024"), ("65536,131072", "7,100000,123456")]
)
ENDS = st.sampled_from(["measured", "measured", "contended", "refused", "out of memory", "failed"])


@pytest.mark.slow
@given(st.data())
@settings(max_examples=10, deadline=None)
def test_texts_stand_clear_in_any_map(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    backends = tuple(data.draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)))
    every = plan(*data.draw(SHAPES), backends)

    def measure(point: Point) -> Profile:
        end = data.draw(ENDS)
        if end == "refused":
            raise InputError("no")
        if end in ("out of memory", "failed"):
            raise MeasurementError(end)
        return toy_sweeps.measured(point, data.draw(FACTORS), flags=("contended",) if end == "contended" else ())

    found = toy_sweeps.sweep(tmp_path_factory.mktemp("sweep"), every, measure)
    for width, by in ((2.5, "limit"), (3.3, "fastest"), (7.0, data.draw(st.sampled_from(["fastest", "limit"])))):
        with _style.applied():
            try:
                figure, caption = figures.build("sweep", [found], width, by)
            except InputError as refused:
                assert "measured yet" in str(refused)  # noqa: PT017 - what is drawn is looked at below
                continue
            assert faults(figure) == []
        assert all(letter.isprintable() for letter in caption.text(long=True))


def test_the_numbers_are_those_of_the_json(grid: Grid) -> None:
    from roofline.renderers.sweep import json as as_json

    told = [float(text[:-1]) for text in texts(built(grid)[0]) if re.fullmatch(r"[\d.]+x", text)]
    stated = [cell["factor"] for cell in json.loads(as_json.render(grid))["cells"] if cell["settled"]]
    assert told == [pytest.approx(factor, abs=0.005) for factor in stated]
