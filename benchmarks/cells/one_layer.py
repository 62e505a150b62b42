"""The page of the large models' layers: docs/one-layer.md, what bounds each of them on this machine."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from cell import BACKENDS, MODELS, ROOT, Cell, asked

from roofline import models, units
from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import load
from roofline.core.vocabulary import BOUNDS
from roofline.renderers import _tables, _words

PAGE = ROOT / "docs" / "one-layer.md"
_HEAD = """# A layer of the large models

`--size one-layer` is a published model in full width with as few layers as it can have, so that a machine which cannot
hold the whole shows what bounds its parts. One sample, 32 tokens (images in full), float32, one thread, three to
five plain steps: more than that and these would take hours. Of a large language model much of it is then the head: of
Gemma {gemma} of the FLOPs, of Mistral {mistral}.

Made by `make cells` on {date}: {device}; {versions}.

*Above* is the share of the step in ops under that roof, *attained* what they reach of it; *host* is what no op runs in.
The least time is the sum of the ops' floors. `!`: others used the machine (flag `contended`).

"""
_COLUMNS = (
    *("backend", "step", "least time", *(f"{bound} above" for bound in BOUNDS[:3]), "attained", "host"),
    *("GFLOP", "op that takes longest"),
)


def write() -> Path | None:
    """Writes the page; None where no layer was measured."""
    there = {
        cell: analyze(load(cell.profile)) for cell in asked(["one-layer"], MODELS, BACKENDS) if cell.profile.exists()
    }
    if not there:
        return None
    versions: dict[str, str] = {}
    for analysis in there.values():
        versions |= analysis.profile.versions
    any_one = next(iter(there.values()))
    head = _HEAD.format(
        date=date.today().isoformat(),
        device=any_one.profile.device.name,
        versions=", ".join(f"{name} {version}" for name, version in sorted(versions.items())),
        gemma=_of_head(there, "gemma"),
        mistral=_of_head(there, "mistral"),
    )
    parts = []
    for name in MODELS:
        for mode in models.geometry(name).modes:
            rows = [
                _row(backend, there[cell])
                for backend in BACKENDS
                if (cell := Cell(name, backend, mode, "one-layer")) in there
            ]
            if rows:
                parts += [f"## {name}, {mode}\n", _line(_COLUMNS), "|" + "---|" * len(_COLUMNS), *map(_line, rows), ""]
    PAGE.write_text(head + "\n".join(parts), encoding="utf-8")
    return PAGE


def _of_head(there: dict[Cell, Analysis], model: str) -> str:
    """The share of the head in a model's FLOPs, in words; of the first run that has blocks."""
    for cell, analysis in there.items():
        if (cell.model, cell.mode) == (model, "infer") and "head" in analysis.by("block"):
            return units.percent(analysis.by("block")["head"].flops / analysis.total.flops)
    return "an unknown share"


def _row(backend: str, analysis: Analysis) -> list[str]:
    split = _tables.split(analysis)
    contended = " !" if any(flag.startswith("contended") for flag in analysis.flags) else ""

    def above(bound: str) -> str:
        return units.percent(split[bound].seconds / analysis.wall)

    return [
        f"{backend}{contended}",
        units.seconds(analysis.wall),
        units.seconds(analysis.total.floor),
        *(above(bound) for bound in BOUNDS[:3]),
        units.percent(analysis.total.attained),
        units.percent(analysis.gap_told / analysis.wall),
        ", ".join(f"{phase} {found.model / 1e9:.4g}" for phase, found in analysis.products.items()),
        _longest(analysis),
    ]


def _longest(analysis: Analysis) -> str:
    name, total = next(iter(analysis.by("op").items()))
    return f"{name}: {units.percent(total.seconds / analysis.wall)}, {units.percent(total.attained)} attained"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(_words.plain(cell) for cell in cells)} |"
