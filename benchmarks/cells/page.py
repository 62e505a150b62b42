"""The pages of the cells: docs/cells.md for the tiny size, docs/cells-base.md for the published one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import absent
import kept
from cell import BACKENDS, MODELS, ROOT, Cell

from roofline import models

PAGES = {size: ROOT / "docs" / f"{name}.md" for size, name in (("tiny", "cells"), ("base", "cells-base"))}
_TITLES = {
    "tiny": "Every model on every backend",
    "base": "The published sizes on every backend",
}
#: What stands elsewhere of the published size.
_ELSEWHERE = """\
The models and backends that were measured at this size; [cells](cells.md) has all of them at the tiny one. What
`torch-compile` and `torchscript` do to BERT and GPT-2 is in [torch.compile](torch-compile.md).
"""
_SHORT = {"infer": "i", "train": "t", "generate": "g"}


def write(size: str) -> Path | None:
    """Writes the page of a size; None where no cell of it was run."""
    found = {cell: one for cell, one in kept.load().items() if cell.size == size}
    ran = {cell: one for cell, one in found.items() if not one.failed}
    if not ran:
        return None
    versions: dict[str, set[str]] = {}
    for one in ran.values():
        for name, version in one.versions.items():
            versions.setdefault(name, set()).add(version)
    known = ", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in sorted(versions.items()))
    days = sorted({one.date for one in found.values()})
    marks = kept.marks(ran.values())
    others = [f"`{mark.strip()}`: on {device}.\n" for device, mark in marks.items() if mark]
    parts = [
        f"# {_TITLES[size]}\n",
        f"Made by `make cells`, {' to '.join(dict.fromkeys((days[0], days[-1])))}: {next(iter(marks))}; {known}.\n",
        f"One command per cell, few plain steps{', one thread' if size == 'tiny' else ''}, on a machine that others",
        "use too: the times say that a cell runs and roughly how fast, and are no comparison. GFLOP are model FLOPs of",
        "contractions; `unknown work` names the ops whose FLOPs are not known; `placed` is the share of busy time with",
        "a known block; `above` counts ops above a ceiling.\n",
        *others,
        *((_ELSEWHERE,) if size == "base" else ()),
        *(_overview(found) if size == "tiny" else ()),
    ]
    for name in MODELS:
        for mode in models.geometry(name).modes:
            there = [found[cell] for backend in BACKENDS if (cell := Cell(name, backend, mode, size)) in found]
            columns = list(next((one.row for one in there if one.row), {}))
            rows = [
                [one.backend, one.failed.replace("|", "\\|")]
                if one.failed
                else [f"{one.backend}{marks[one.device]}", *one.row.values()]
                for one in there
            ]
            if rows:
                parts += [f"## {name}, {mode}, {size}\n", *_table(("backend", *columns), rows), ""]
    PAGES[size].write_text("\n".join(parts), encoding="utf-8")
    return PAGES[size]


def _overview(found: dict[Cell, kept.Found]) -> list[str]:
    """Which modes of each model ran where, and why the others did not: every cell has a mode or a reason."""
    reasons: list[str] = []
    rows = []
    for name in MODELS:
        row = [name]
        for backend in BACKENDS:
            words = []
            lacking: dict[int, list[str]] = {}
            for mode in models.geometry(name).modes:
                cell = Cell(name, backend, mode, "tiny")
                if cell in found and not found[cell].failed:
                    words.append(_SHORT[mode])
                    continue
                reason = (
                    f"it fails: {found[cell].failed}" if cell in found else absent.reason(cell) or "not measured yet"
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


def _table(head: Sequence[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]
