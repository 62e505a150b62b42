"""The pages of the cells: docs/cells.md for the tiny size, docs/cells-base.md for the published one."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from cell import BACKENDS, MODELS, ROOT, Cell, asked

from roofline import models
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import load

PAGES = {size: ROOT / "docs" / f"{name}.md" for size, name in (("tiny", "cells"), ("base", "cells-base"))}
_TITLES = {
    "tiny": "Every model on every backend",
    "base": "The published sizes on every backend",
}
_SHORT = {"infer": "i", "train": "t", "generate": "g"}
COLUMNS = (
    *("backend", "ms", "parameters", "forward GFLOP", "backward GFLOP", "executed / model"),
    *("FLOPs known", "unknown work", "bytes known", "joined", "placed", "above", "flags"),
)


def write(size: str) -> Path | None:
    """Writes the page of a size; None where no cell of it is there."""
    there = {cell: analyze(load(cell.profile)) for cell in asked([size], MODELS, BACKENDS) if cell.profile.exists()}
    if not there:
        return None
    versions: dict[str, str] = {}
    for analysis in there.values():
        versions |= analysis.profile.versions
    device = next(iter(there.values())).profile.device.name
    known = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    parts = [
        f"# {_TITLES[size]}\n",
        f"Made by `make cells` on {date.today().isoformat()}: {device}; {known}.\n",
        "One command per cell, few plain steps, on a machine that others use too: the times say that a cell runs and",
        "roughly how fast, and are no comparison. GFLOP are model FLOPs of contractions; `unknown work` names the ops",
        "whose FLOPs are not known; `placed` is the share of busy time with a known block; `above` counts ops above a",
        "ceiling.\n",
        *(_overview(there) if size == "tiny" else ()),
    ]
    for name in MODELS:
        for mode in models.geometry(name).modes:
            rows = []
            for backend in BACKENDS:
                cell = Cell(name, backend, mode, size)
                if cell in there:
                    rows.append(_row(backend, there[cell]))
                elif cell.failed.exists():
                    rows.append([backend, cell.failed.read_text(encoding="utf-8").replace("|", "\\|")])
            if rows:
                parts += [f"## {name}, {mode}, {size}\n", *_table(COLUMNS, rows), ""]
    PAGES[size].write_text("\n".join(parts), encoding="utf-8")
    return PAGES[size]


def _overview(there: dict[Cell, Analysis]) -> list[str]:
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
                if cell in there:
                    words.append(_SHORT[mode])
                    continue
                reason = f"it fails: {cell.failed.read_text(encoding='utf-8')}" if cell.failed.exists() else why(cell)
                if reason not in reasons:
                    reasons.append(reason)
                lacking.setdefault(reasons.index(reason) + 1, []).append(_SHORT[mode])
            for number, modes in lacking.items():
                words.append(f"({number})" if len(lacking) == 1 and not words else f"{' '.join(modes)} ({number})")
            row.append(" ".join(words))
        rows.append(row)
    return [
        "## Where each model runs\n",
        "i: infer, t: train, g: generate; a number: why it does not run there, below.\n",
        *_table(("model", *BACKENDS), rows),
        "",
        *(f"{number}. {reason[0].upper()}{reason[1:]}." for number, reason in enumerate(reasons, 1)),
        "",
    ]


def why(cell: Cell) -> str:
    """The reason of absent.toml that fits first; says so where there is none."""
    entries = tomllib.loads((Path(__file__).parent / "absent.toml").read_text(encoding="utf-8"))["absent"]
    for entry in entries:
        fits = (cell.model, "*"), (cell.backend, "*"), (cell.mode, "*")
        lists = entry["models"], entry["backends"], entry.get("modes", ["*"])
        if all(set(words) & set(listed) for words, listed in zip(fits, lists, strict=True)):
            return str(entry["reason"])
    return "not measured yet"


def _table(head: Sequence[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]


def _row(backend: str, analysis: Analysis) -> list[str]:
    phases = analysis.by("phase")
    blocks = analysis.by("block")
    lost = sum(total.seconds for name, total in blocks.items() if name in ("other", "(no op)", ""))
    coverage = analysis.coverage

    def model(*names: str) -> str:
        there = [phases[name].model_flops for name in names if name in phases]
        return f"{sum(there) / 1e9:.6g}" if there else ""

    ratios = [f"{name} {total.flops / total.model_flops:.4g}" for name, total in phases.items() if total.model_flops]
    return [
        backend,
        f"{analysis.wall * 1e3:.4g}",
        "" if analysis.profile.parameters is None else f"{analysis.profile.parameters:,}",
        model("forward", "prefill", "decode"),
        model("backward"),
        ", ".join(ratios),
        _share(coverage["flops"]),
        ", ".join(f"`{name}`" for name in _unknown(analysis)),
        _share(coverage["bytes"]),
        _share(coverage["time"]),
        _share(1 - lost / analysis.busy if analysis.busy else None),
        str(analysis.above_ceiling),
        ", ".join(analysis.flags),
    ]


def _unknown(analysis: Analysis) -> list[str]:
    """The ops that ran and whose FLOPs are not known, by name."""
    signatures = analysis.profile.signatures
    used = {number for op in analysis.profile.ops for number in (op.constituents or (op.signature,))}
    return sorted({signatures[number].name for number in used if not signatures[number].cost.flops_known})


def _share(value: Any) -> str:
    return "" if value is None else f"{100 * value:.1f} %"
