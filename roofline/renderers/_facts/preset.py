"""A profile beside the published benchmark whose preset it ran, in words and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.published.presets.beside import Beside, Figure, beside
from roofline.renderers._words import between, plain

#: What a reader must know of a figure to hold another beside it.
_KINDS = ("precision", "jit", "batch", "timing")


def told(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """The preset and what differs from it, the statistic of the publication, and its figures."""
    found = beside(analysis.profile)
    if found is None:
        return
    yield "preset", _preset(found)
    if found.differences:
        parts = [f"{plain(one.what)} {plain(one.here)} instead of {one.there}" for one in found.differences]
        yield "", f"differs from the preset: {'; '.join(parts)}"
    if found.mean is not None:
        steps = len(analysis.profile.wall.steps)
        words = f"mean of {steps} plain steps {units.seconds(found.mean)}, median {units.seconds(analysis.wall)}"
        yield "statistic", f"{words}; the publication's is {found.preset.statistic}"
    for number, (_, figures) in enumerate(groupby(found.figures, key=lambda figure: figure.cell.hardware)):
        yield "" if number else "published", _published(found, list(figures))
    for note in found.notes:
        if note.kind in _KINDS:
            yield "", f"{note.kind}: {note.says} ({note.evidence})"
    for number, sentence in enumerate(found.apart):
        yield "" if number else "apart", sentence


def _preset(found: Beside) -> str:
    task = f", {found.row.task}" if found.row.task else ""
    if found.column is None:
        return f"{found.preset.name}{task}, which has no column for this backend"
    return f"{found.preset.name}{task}, as {found.column.name}"


def _published(found: Beside, figures: list[Figure]) -> str:
    """The figures of one device: their range, and what the measured mean is of them."""
    first = figures[0]
    steps = sorted(figure.seconds for figure in figures if figure.seconds is not None)
    whole = sorted(figure.cell.seconds for figure in figures if figure.cell.seconds is not None)
    words = _range(whole) if not steps or steps == whole else f"{_range(steps)} per step ({_range(whole)} in all)"
    words += f" on {first.cell.hardware}"
    if not all(figure.cell.citable for figure in figures):
        words += " (unverified)"
    if not first.measured_on:
        return f"{words}, which is another device than this one: no ratio"
    if not found.same_step:
        return f"{words}; the step here is another one: no ratio"
    ratios = sorted(ratio for figure in figures if (ratio := found.ratio(figure)) is not None)
    if not ratios:
        return f"{words}; how long a step of it took is not known: no ratio"
    times = "–".join(dict.fromkeys(f"{ratio:.3g}" for ratio in (ratios[0], ratios[-1])))
    return f"{words}; the mean here is {times} times that, with today's libraries"


def _range(seconds: list[float]) -> str:
    return units.seconds(seconds[0]) if seconds[0] == seconds[-1] else between(seconds[0], seconds[-1])


def document(analysis: Analysis) -> dict[str, Any] | None:
    """What `told` says, for JSON; None without a preset."""
    found = beside(analysis.profile)
    return None if found is None else document_of(found)


def document_of(found: Beside) -> dict[str, Any]:
    """The same of a profile that was held against its preset already."""
    return {
        "name": found.preset.name,
        "task": found.row.task or None,
        "column": found.column.name if found.column else None,
        "differences": [{"what": one.what, "here": one.here, "there": one.there} for one in found.differences],
        "statistic": found.preset.statistic,
        "mean": found.mean,
        "published": [
            {
                "hardware": figure.cell.hardware,
                "run": figure.cell.run or None,
                "value": figure.cell.value,
                "unit": figure.cell.unit,
                "seconds": figure.seconds,
                "same_device": figure.measured_on,
                "ratio": found.ratio(figure),
                "citable": figure.cell.citable,
                "source": figure.cell.source,
            }
            for figure in found.figures
        ],
        "notes": [{"kind": note.kind, "says": note.says, "evidence": note.evidence} for note in found.notes],
        "apart": list(found.apart),
    }
