"""Files for other programs: the same numbers as everywhere, names that do nothing, and readers that read them."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import handmade
import numpy as np
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.content.ops import columns
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.renderers.export import csv as csv_export

FORMATS = plugins.names("roofline.renderers.export")


def written(name: str, analysis: WorkAnalysis) -> bytes:
    data: bytes = plugins.load("roofline.renderers.export", name, "format").written(analysis)
    return data


def rows_of(name: str, data: bytes) -> list[dict[str, Any]]:
    """The rows of a table of ops as its reader sees them; None is unknown."""
    if name == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
        rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(data)).to_pylist()
        return rows
    return [{key: value or None for key, value in row.items()} for row in csv.DictReader(io.StringIO(data.decode()))]


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_a_table_of_ops_has_the_numbers_of_the_analysis(name: str) -> None:
    analysis = analyze(handmade.profile())
    rows = rows_of(name, written(name, analysis))
    expected = columns(analysis)
    assert list(rows[0]) == list(expected)
    for column in ("flops", "bytes_read", "seconds", "own_seconds", "floor", "loss", "start", "launches"):
        for row, value in zip(rows, expected[column].tolist(), strict=True):
            if isinstance(value, float) and math.isnan(value):
                assert row[column] is None
            else:
                assert float(row[column]) == pytest.approx(value, rel=1e-11, abs=0)
    assert [row["name"] for row in rows] == expected["name"].tolist()


def test_a_flame_graph_weighs_the_wall() -> None:
    """Every op once, below its phase and its layers, in the order in which they began; the gap last."""
    analysis = analyze(handmade.profile())
    document = json.loads(written("speedscope", analysis))
    (profile,) = document["profiles"]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert sum(profile["weights"]) == pytest.approx(analysis.wall)
    assert profile["endValue"] == pytest.approx(analysis.wall)
    stacks = [[names[frame] for frame in stack] for stack in profile["samples"]]
    ops = sorted(analysis.profile.ops, key=lambda op: op.start_ns)
    assert [stack[0] for stack in stacks[:-1]] == [analysis.profile.phases[op.phase] for op in ops]
    assert [stack[-1] for stack in stacks[:-1]] == [analysis.profile.signatures[op.signature].name for op in ops]
    assert stacks[-1] == ["host time"]


@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "parquet"])
def test_names_stay_text(name: str, hostile: str) -> None:
    text = written(name, analyze(handmade.hostile(hostile))).decode()
    assert all(c.isprintable() or c == "\n" for c in text)
    if name == "csv":
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


@pytest.mark.parametrize("name", FORMATS)
def test_a_profile_without_idle_time_or_ops_is_written(name: str) -> None:
    for profile in (handmade.profile(ops=()), handmade.filled()):
        assert written(name, analyze(profile))


@pytest.mark.parametrize("profile", [handmade.profile(profiled=None), handmade.without_steps()])
@pytest.mark.parametrize("name", FORMATS)
def test_a_profile_without_times_is_a_table_of_work_and_no_timeline(name: str, profile: Profile) -> None:
    if name in ("perfetto", "speedscope"):
        with pytest.raises(InputError, match=r"measure it again"):
            written(name, analyze(profile))
        return
    rows = rows_of(name, written(name, analyze(profile)))
    assert {row[column] for row in rows for column in ("seconds", "own_seconds", "floor", "loss", "start")} == {None}
    assert [row["flops"] for row in rows] == [
        row["flops"] for row in rows_of(name, written(name, analyze(handmade.profile())))
    ]


def test_columns_have_one_row_per_op() -> None:
    analysis = analyze(handmade.profile())
    assert {len(column) for column in columns(analysis).values()} == {len(analysis.profile.ops)}
    assert all(isinstance(column, np.ndarray) for column in columns(analysis).values())


def test_equal_cells_of_a_csv_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that does the same again and again has few distinct cells."""
    asked: list[object] = []
    cell = csv_export._cell
    monkeypatch.setattr(csv_export, "_cell", lambda value: asked.append(value) or cell(value))
    ops = tuple(replace(op, start_ns=0) for op in handmade.OPS)
    text = written("csv", analyze(handmade.profile(ops=ops * 50))).decode()
    assert text.count("\n") == 1 + 50 * len(ops)
    assert len(asked) < 30 * (len(ops) + 1)
