"""The tables of docs/grids.md, from the maps of two sweeps in docs/measured/grids.

A map is what `roofline show DIR --format json` writes of a sweep's folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

from roofline import units

_MAPS = Path(__file__).parents[1] / "docs" / "measured" / "grids"
#: The axis along a table's columns.
_ACROSS = {"hf2019": "seq", "simplechains": "batch"}
#: What stands where a backend has no time, by the kind of its failure.
_FAILED = {"refused": "–", "missing": "not here", "out of memory": "no memory", "failed": "failed"}

#: A head and rows of cells.
Table = list[tuple[str, ...]]


@cache
def read(name: str) -> Mapping[str, Any]:
    """Read the map of a sweep."""
    document: Mapping[str, Any] = json.loads((_MAPS / f"{name}.json").read_text(encoding="utf-8"))
    return document


def times(name: str) -> Table:
    """Return a row for each model, batch and backend: the time of a step and the host's share of it, by column."""
    across = _ACROSS[name]
    columns = sorted({cell[across] for cell in read(name)["cells"]})
    rows: dict[tuple[str, ...], dict[int, str]] = {}
    for cell in read(name)["cells"]:
        for run in cell["runs"]:
            row = (cell["model"], *([] if across == "batch" else [str(cell["batch"])]), run["backend"])
            rows.setdefault(row, {})[cell[across]] = _time(run)
    head = ("model", *([] if across == "batch" else ["batch"]), "backend")
    return [
        (*head, *(f"{column:,}" for column in columns)),
        *((*row, *(cells.get(column, "") for column in columns)) for row, cells in rows.items()),
    ]


def winners(name: str) -> Table:
    """Return a row for each model and batch, by column: the fastest backend with its factor, `~` if none is known."""
    columns = sorted({cell["seq"] for cell in read(name)["cells"]})
    rows: dict[tuple[str, ...], dict[int, str]] = {}
    for cell in read(name)["cells"]:
        said = f"{cell['fastest']} {cell['factor']:.2f}" if cell["settled"] else "~"
        if all(run["wall"] is None for run in cell["runs"]):
            said = "–"
        rows.setdefault((cell["model"], str(cell["batch"])), {})[cell["seq"]] = said
    return [
        ("model", "batch", *(f"{column:,}" for column in columns)),
        *((*row, *(cells[column] for column in columns)) for row, cells in rows.items()),
    ]


def ratios(name: str, slower: str, faster: str) -> dict[tuple[str, int, int], float]:
    """Return how many times as long one backend takes as another, by model, batch and length; of undisturbed runs."""
    result = {}
    for cell in read(name)["cells"]:
        walls = {run["backend"]: run["wall"] for run in cell["runs"] if run["wall"] and not run["disturbed"]}
        if slower in walls and faster in walls:
            result[cell["model"], cell["batch"], cell["seq"]] = walls[slower] / walls[faster]
    return result


def factors(name: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """Return a row for each model and pair of backends: cells, geometric mean, least and largest factor."""
    rows: Table = [("model", "times as long as", "cells", "geometric mean", "least", "largest")]
    for slower, faster in pairs:
        by_cell = ratios(name, slower, faster)
        for model in dict.fromkeys(key[0] for key in by_cell):
            seen = {key: ratio for key, ratio in by_cell.items() if key[0] == model}
            least, largest = min(seen, key=seen.__getitem__), max(seen, key=seen.__getitem__)
            rows.append(
                (
                    model,
                    f"{slower} as {faster}",
                    str(len(seen)),
                    f"{mean(seen.values()):.2f}",
                    *(f"{seen[key]:.2f} (batch {key[1]}, {key[2]:,})" for key in (least, largest)),
                )
            )
    return rows


def mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean of some positive numbers."""
    logarithms = [log(number) for number in numbers]
    return exp(sum(logarithms) / len(logarithms))


def _time(run: Mapping[str, Any]) -> str:
    if run["wall"] is None:
        return _FAILED[run["failure"]["kind"]] if run["failure"] else ""
    gap = run["times"]["gap"]
    share = "" if gap is None else f", {units.percent(gap / run['wall'], 0)}"
    return f"{units.seconds(run['wall'])}{share}{' !' if run['disturbed'] else ''}"
