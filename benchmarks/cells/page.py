"""The page of the cells, docs/cells.md: where each model runs, how long a step takes, and what is not known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import absent
import kept
from cell import BACKENDS, MODELS, ROOT, Cell

from roofline import models

PAGE = ROOT / "docs" / "cells.md"
#: Sizes of the page, and how its headings call them. Their rows have the same columns; those of a layer have others.
_SIZES = {"tiny": "tiny", "base": "published"}
_SHORT = {"infer": "i", "train": "t", "generate": "g"}
#: What is equal on all backends, or else written as a range.
_WORK = ("forward GFLOP", "backward GFLOP")
#: Columns of a cell's row that hold how much is known, and of what.
_SHARES = {"FLOPs known": "FLOPs", "bytes known": "bytes", "joined": "times", "placed": "blocks"}
_HEAD = """\
# Every model on every backend

Made by `make cells` from [its rows](measured/cells.jsonl), {days}: {device}{others}; {versions}.

One command per cell, few plain steps, on a machine that others use too: the times say that a cell runs and roughly how
fast, and are no comparison.
"""


def write() -> Path | None:
    """Write the page; None where no cell was run."""
    text = page(kept.load())
    if text is not None:
        PAGE.write_text(text, encoding="utf-8")
    return None if text is None else PAGE


def page(cells: Mapping[Cell, kept.Found]) -> str | None:
    """Return the page of the measured cells, or None where none of them ran."""
    ran = {cell: result for cell, result in cells.items() if cell.size in _SIZES and not result.failed}
    if not ran:
        return None
    versions: dict[str, set[str]] = {}
    for result in ran.values():
        for name, version in result.versions.items():
            versions.setdefault(name, set()).add(version)
    days = sorted({result.date for result in ran.values()})
    marks = kept.marks(ran.values())
    head = _HEAD.format(
        days=" to ".join(dict.fromkeys((days[0], days[-1]))),
        device=next(iter(marks)),
        others="".join(f" (`{mark.strip()}`: {device})" for device, mark in marks.items() if mark),
        versions=", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in sorted(versions.items())),
    )
    return "\n".join([head, *_overview(cells), *_times(ran, marks), *_incomplete(ran)])


def _overview(cells: Mapping[Cell, kept.Found]) -> list[str]:
    """List the modes of each model that ran per backend, and why the others did not: each has a mode or a reason."""
    reasons: list[str] = []
    rows = []
    for name in MODELS:
        row = [name]
        for backend in BACKENDS:
            words = []
            lacking: dict[int, list[str]] = {}
            for mode in models.geometry(name).modes:
                cell = Cell(name, backend, mode, "tiny")
                if cell in cells and not cells[cell].failed:
                    words.append(_SHORT[mode])
                    continue
                reason = (
                    f"it fails: {cells[cell].failed}" if cell in cells else absent.reason(cell) or "not measured yet"
                )
                if reason not in reasons:
                    reasons.append(reason)
                lacking.setdefault(reasons.index(reason) + 1, []).append(_SHORT[mode])
            for number, modes in lacking.items():
                words.append(f"({number})" if len(lacking) == 1 and not words else f"no {' '.join(modes)} ({number})")
            row.append(" ".join(words))
        rows.append(row)
    return [
        "## Where each model runs\n",
        "i: infer, t: train, g: generate; a number: why it does not run there, or a mode of it does not, below.\n",
        *_table(("model", *BACKENDS), rows),
        "",
        *(f"{number}. {reason[0].upper()}{reason[1:]}." for number, reason in enumerate(reasons, 1)),
        "",
    ]


def _times(ran: Mapping[Cell, kept.Found], marks: Mapping[str, str]) -> list[str]:
    """Write the table of the published size: a line per model and mode with its model FLOPs, and ms by backend."""
    rows = []
    for name in MODELS:
        for mode in models.geometry(name).modes:
            cells = {backend: Cell(name, backend, mode, "base") for backend in BACKENDS}
            results = {backend: ran[cell] for backend, cell in cells.items() if cell in ran}
            if results:
                work = [_range([result.row[column] for result in results.values()]) for column in _WORK]
                times = {backend: f"{result.row['ms']}{marks[result.device]}" for backend, result in results.items()}
                rows.append([name, mode, *work, *(times.get(backend, "") for backend in BACKENDS)])
    if not rows:
        return []
    return [
        "## ms per step, published size\n",
        "GFLOP are the model FLOPs of matmuls.\n",
        *_table(("model", "mode", *_WORK, *BACKENDS), rows),
        "",
    ]


def _range(numbers: Sequence[str]) -> str:
    """Write equal numbers once, others as the least and the most of them, to four digits."""
    values = sorted({float(f"{float(number):.4g}") for number in numbers if number})
    return "–".join(dict.fromkeys(f"{value:.4g}" for value in values[:: max(len(values) - 1, 1)]))


def _incomplete(ran: Mapping[Cell, kept.Found]) -> list[str]:
    """List the cells with unknown work, unplaced time or ops faster than their roof; say how many have none."""
    rows = []
    for size in _SIZES:
        for name in MODELS:
            for mode in models.geometry(name).modes:
                for backend in BACKENDS:
                    result = ran.get(Cell(name, backend, mode, size))
                    if result is not None and (said := _defects(result.row)):
                        rows.append([name, mode, _SIZES[size], backend, "; ".join(said)])
    return [
        "## Where something is not known\n",
        f"In {len(ran) - len(rows)} of {len(ran)} cells the work of all ops is known, each has its time and block, and",
        "none is faster than its roof allows. The others:\n",
        *_table(("model", "mode", "size", "backend", "what"), rows),
        "",
    ]


def _defects(row: Mapping[str, str]) -> list[str]:
    """Say what of a cell is not known, and how much."""
    known = [f"{name} {row[column]}" for column, name in _SHARES.items() if row[column] not in ("", "100.0 %")]
    said = [f"known: {', '.join(known)}"] if known else []
    if row["unknown work"]:
        said.append(f"unknown: {row['unknown work']}")
    if row["above"] != "0":
        said.append(f"ops faster than their roof: {row['above']}")
    return said


def _table(head: Sequence[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]
