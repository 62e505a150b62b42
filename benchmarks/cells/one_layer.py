"""The page of the large models' layers, docs/one-layer.md: what limits each of them on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import kept
from cell import BACKENDS, MODELS, ROOT, Cell, asked

from roofline import models, units
from roofline.analysis.analysis import Analysis
from roofline.content import bounds, wording
from roofline.core.vocabulary import BOUNDS

PAGE = ROOT / "docs" / "one-layer.md"
_HEAD = """# A layer of the large models

`--size one-layer` is a published model in full width with as few layers as it can have, for a machine that cannot hold
the whole. One sample, 32 tokens (images in full), float32, one thread, three to five plain steps. Of a large language
model much of it is then the head: of Gemma {gemma} of the FLOPs, of Mistral {mistral}.

Made by `make cells` from [its rows](measured/cells.jsonl), {date}: {device}; {versions}.

*Minimum* is the least time of the ops at their roofs. *Compute* and *memory* are the shares of the step in ops that
each limits, *of roof* is how close they come to their roofs, *host* is the time in which no op ran. `!`: others used
the machine (flag `contended`).{elsewhere}

"""
#: Columns by their keys in the kept rows, and how the page calls them.
_COLUMNS = {
    "step": "step",
    "least time": "minimum",
    "compute above": "compute",
    "memory above": "memory",
    "attained": "of roof",
    "host": "host",
    "GFLOP": "GFLOP",
    "op that takes longest": "op that takes longest",
}


def write() -> Path | None:
    """Write the page; None where no layer was measured."""
    text = page(kept.load())
    if text is not None:
        PAGE.write_text(text, encoding="utf-8")
    return None if text is None else PAGE


def page(cells: Mapping[Cell, kept.Found]) -> str | None:
    """Return the page of the measured layers, or None where there are none."""
    there = {cell: cells[cell] for cell in asked(["one-layer"], MODELS, BACKENDS) if cell in cells and cells[cell].row}
    if not there:
        return None
    versions: dict[str, str] = {}
    for one in there.values():
        versions |= one.versions
    marks = kept.marks(there.values())
    head = _HEAD.format(
        date=max(one.date for one in there.values()),
        device=next(iter(marks)),
        versions=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        gemma=_of_head(there, "gemma"),
        mistral=_of_head(there, "mistral"),
        elsewhere="".join(
            f" `{mark.strip()}`: on another machine, {device}; its times are not to be compared with the others."
            for device, mark in marks.items()
            if mark
        ),
    )
    parts = []
    for name in MODELS:
        for mode in models.geometry(name).modes:
            rows = [
                [f"{backend}{contended}{marks[one.device]}", *(_cell(one.row, column) for column in _COLUMNS)]
                for backend in BACKENDS
                if (one := there.get(Cell(name, backend, mode, "one-layer"))) is not None
                for contended in [" !" if "contended" in one.row["flags"] else ""]
            ]
            if rows:
                heads = ["backend", *_COLUMNS.values()]
                parts += [f"## {name}, {mode}\n", _line(heads), "|" + "---|" * len(heads), *map(_line, rows), ""]
    return head + "\n".join(parts)


def _cell(row: dict[str, str], column: str) -> str:
    """A cell as it was kept; rows of an earlier wording say "attained" of what is now "of roof"."""
    return row[column].removesuffix(" attained") + (" of roof" if row[column].endswith(" attained") else "")


def _of_head(there: dict[Cell, kept.Found], model: str) -> str:
    """The share of the head in a model's FLOPs, in words; of the first run that has blocks."""
    shares = (one.row["head"] for cell, one in there.items() if (cell.model, cell.mode) == (model, "infer"))
    return next((share for share in shares if share), "an unknown share")


def row(analysis: Analysis) -> dict[str, str]:
    """The cells of a line, as they are written, and what else the page says of them."""
    split, blocks = bounds.split(analysis), analysis.by("block")
    return {
        "step": units.seconds(analysis.wall),
        "least time": units.seconds(analysis.total.floor),
        **{f"{bound} above": units.percent(split[bound].seconds / analysis.wall) for bound in BOUNDS[:3]},
        "attained": units.percent(analysis.total.attained),
        "host": units.UNKNOWN if analysis.gap_told is None else units.percent(analysis.gap_told / analysis.wall),
        "GFLOP": ", ".join(f"{phase} {found.model / 1e9:.4g}" for phase, found in analysis.products.items()),
        "op that takes longest": _longest(analysis),
        "head": units.percent(blocks["head"].flops / analysis.total.flops) if "head" in blocks else "",
        "flags": ", ".join(analysis.flags),
    }


def _longest(analysis: Analysis) -> str:
    name, total = next(iter(analysis.by("op").items()))
    return f"{name}: {units.percent(total.seconds / analysis.wall)}, {units.percent(total.attained)} of roof"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(wording.plain(cell) for cell in cells)} |"
