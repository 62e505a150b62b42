"""The files of `export` have the numbers of the JSON. A new format needs a reader."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from same_numbers import FIELDS, check_trace, document, ops, run

from roofline import plugins


def exported(name: str) -> bytes:
    return plugins.load("roofline.renderers.export", name, "format").written(run())


def check_columns(found: Mapping[str, Sequence[Any]], room: float) -> None:
    for field in FIELDS:
        exact = [float(op[field]) for op in ops()]
        assert [float(value) for value in found[field]] == pytest.approx(exact, rel=room, abs=1e-17)
    assert list(found["name"]) == [op["name"] for op in ops()]


def read_exported_csv() -> None:
    rows = list(csv.DictReader(io.StringIO(exported("csv").decode())))
    check_columns({field: [row[field] for row in rows] for field in rows[0]}, 1e-11)


def read_parquet() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    check_columns(parquet.read_table(io.BytesIO(exported("parquet"))).to_pydict(), 0.0)


def read_speedscope() -> None:
    (found,) = json.loads(exported("speedscope"))["profiles"]
    exact = [float(op["seconds"]) for op in ops()]
    assert found["weights"] == pytest.approx([*exact, document()["gap"]])
    assert found["endValue"] == pytest.approx(document()["wall"]["median"])


EXPORTS = {
    "csv": read_exported_csv,
    "parquet": read_parquet,
    "perfetto": lambda: check_trace(exported("perfetto").decode()),
    "speedscope": read_speedscope,
}


@pytest.mark.parametrize("name", plugins.names("roofline.renderers.export"))
def test_exports(name: str) -> None:
    EXPORTS[name]()
