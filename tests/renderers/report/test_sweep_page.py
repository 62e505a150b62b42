"""The page of a sweep: its map says what the JSON says, and names in a plan are only names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import toy_sweeps
from report_page import Page

import roofline
from roofline import cli
from roofline.core.schema import Profile
from roofline.errors import MeasurementError
from roofline.renderers.report import report_sweep
from roofline.renderers.sweep import json as as_json
from roofline.sweeping import folder
from roofline.sweeping.grid import Grid
from roofline.sweeping.plan import Point, points


def measure(point: Point) -> Profile:
    if (point.batch, point.backend) == (4, "torch"):
        raise MeasurementError("Out of memory on the CPU.")
    return toy_sweeps.jax_up_to(64)(point)


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    """jax wins up to 64 tokens in a batch; at batch 4 memory runs out in torch."""
    every = points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1, 2, 4], [32, 64])
    return toy_sweeps.sweep(tmp_path / "grid", every, measure)


def test_the_map_says_who_is_fastest_and_what_limits_whom(grid: Grid) -> None:
    found = Page(report_sweep(grid))
    assert [key for key in found.ids if key in ("map", "borders", "limits", "points")] == [
        "map", "borders", "limits", "points",
    ]  # fmt: skip
    assert found.tables["toy infer"] == [
        ["batch", "32 tokens", "64 tokens"],
        ["1", "jax 2.00x1.72–2.32", "jax 2.00x1.72–2.32"],
        ["2", "jax 2.00x1.72–2.32", "torch 2.00x1.72–2.32"],
        ["4", "jax alone", "jax alone"],
    ]
    # 10.7 ms of ops in 12.5 ms, most of them, and under half, limited by memory.
    assert found.tables["toy infer, torch"][1:] == [
        ["1", "12.5 msmemory", "12.5 msmemory"],
        ["2", "12.5 msmemory", "12.5 msmemory"],
        ["4", "out of memory", "out of memory"],
    ]
    assert "toy infer, batch 2: jax is fastest up to 32 tokens, torch from 64 tokens on" in found.text
    assert json.loads(found.data) == {"runs": []}


def test_the_table_has_every_point(grid: Grid) -> None:
    page = Page(report_sweep(grid))
    (rows,) = (rows for caption, rows in page.tables.items() if caption.startswith("!"))
    heads, *told = rows
    stated = [run for cell in json.loads(as_json.render(grid))["cells"] for run in cell["runs"]]
    assert len(told) == len(stated) == 12
    keys = [row[heads.index("profile")] for row in told]
    assert keys == [run["key"] if run["wall"] is not None else "" for run in stated]
    assert told[0][heads.index("a step")] == "12.5 ms"
    assert told[8][heads.index("notes")] == "out of memory: Out of memory on the CPU."


def test_a_cell_that_is_not_settled_names_nobody(tmp_path: Path) -> None:
    every = points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1], [32])
    found = Page(report_sweep(toy_sweeps.sweep(tmp_path, every, toy_sweeps.measured)))
    assert found.tables["toy infer"][1] == ["1", "not settled"]


def test_of_one_backend_there_is_no_map_of_the_fastest(tmp_path: Path) -> None:
    every = points(["toy"], ["torch"], ["infer"], ["default"], [1, 2], [None])
    found = Page(report_sweep(toy_sweeps.sweep(tmp_path, every, toy_sweeps.measured)))
    assert "map" not in found.ids
    assert found.tables["toy infer, torch"][0] == ["batch", "a step"]


def test_names_in_a_plan_are_only_names(tmp_path: Path) -> None:
    evil = "\x1b[31m</script><script>alert(1)</script>\u202e"
    every = points([evil], [evil, "jax"], [evil], [evil], [1], [32], size=evil)
    page = report_sweep(
        toy_sweeps.sweep(tmp_path, every, lambda point: toy_sweeps.measured(Point(model="", backend="x")))
    )
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert Page(page).tags.count("script") == 3


def test_report_takes_the_folder(tmp_path: Path, grid: Grid, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(tmp_path / "grid")
    with pytest.raises(SystemExit) as left:
        cli.main(["report", where, "-o", str(tmp_path / "page.html")])
    assert not left.value.code
    assert (tmp_path / "page.html").read_text() == report_sweep(grid) == roofline.report(where)
    with pytest.raises(SystemExit) as left:
        cli.main(["report", where, where, "-o", str(tmp_path / "two.html")])
    assert left.value.code == 2
    folder.write_plan(tmp_path / "new", points(["toy"], ["torch"], ["infer"], ["default"], [1], [None]))
    assert "not measured" in Page(roofline.report(tmp_path / "new")).text
