"""A profile beside the published benchmark whose preset it ran, in words and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from statistics import fmean, median
from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.core.schema import Api
from roofline.published.presets.beside import Beside, Figure, beside
from roofline.renderers._signed import signed
from roofline.renderers._words import counted, plain

#: What a function does besides waiting for data, where that is not the host's alone.
_BESIDES = {
    "Trainer.train": "host time and its own work (callbacks, gradient clipping, schedule, its own loss and optimizer)"
}
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
    if found.api is not None:
        times = found.api.steps
        words = f"mean of {counted(len(times), 'step')} {units.seconds(fmean(times))}"
        yield "api", f"{_name(found)}, which the benchmark timed: {words}, median {units.seconds(median(times))}"
    for number, (_, figures) in enumerate(groupby(found.figures, key=lambda figure: figure.cell.hardware)):
        yield "" if number else "published", _published(found, list(figures))
    for note in found.notes:
        if note.kind in _KINDS:
            yield "", f"{note.kind}: {note.says} ({note.evidence})"
    if words := between_words(found):
        yield "between", words
    for number, sentence in enumerate(found.apart):
        yield "" if number else "apart", sentence


def between_words(found: Beside) -> str:
    """What lies between the function that the benchmark timed and the bare step; "" where that was not measured."""
    rest, api = found.between, found.api
    if rest is None or api is None:
        return ""
    name = _name(found)
    compared = "more" if rest.seconds >= 0 else "less"
    told = f"{name} takes {units.seconds(abs(rest.seconds))} {compared} per step than the bare step"
    if rest.ci95 is None:
        return f"{told}: not resolved, for that takes 3 steps of each"
    told += f" (95 % interval {signed(rest.ci95[0])} to {signed(rest.ci95[1])})"
    if not rest.resolved:
        return f"{told}: not resolved{_alone(api)}"
    words = _BESIDES.get(api.name, "host time (callbacks, metrics, progress, Python)")
    if rest.input is None or rest.rest is None:
        return f"{told}: data input and {words}{_alone(api)}"
    waits = f"{signed(rest.input)} data input, in which it waits for {plain(api.data)}"
    return f"{told}: {waits}, and {signed(rest.rest)} {words}"


def _alone(api: Api) -> str:
    """The same data without a model: part of it may run beside the step, so that it is no part of the difference."""
    if api.waiting is not None:
        return f"; of its step it waits {units.seconds(api.waiting)} for {plain(api.data)}"
    if api.alone is None:
        return ""
    return f"; {plain(api.data)} alone, read without a model, takes {units.seconds(api.alone)} a batch"


def _name(found: Beside) -> str:
    return plain(found.api.name, 40) if found.api is not None else ""


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
    over = found.ratio if found.api is None else found.api_ratio
    ratios = sorted(ratio for figure in figures if (ratio := over(figure)) is not None)
    if not ratios:
        return f"{words}; how long a step of it took is not known: no ratio"
    times = "–".join(dict.fromkeys(f"{ratio:.3g}" for ratio in (ratios[0], ratios[-1])))
    here = "the mean here" if found.api is None else f"the mean of {_name(found)} here"
    return f"{words}; {here} is {times} times that, with today's libraries"


def _range(seconds: list[float]) -> str:
    return units.seconds(seconds[0]) if seconds[0] == seconds[-1] else units.seconds_between(seconds[0], seconds[-1])


def document(analysis: WorkAnalysis) -> dict[str, Any] | None:
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
        "asked_api": found.asked_api,
        "api": _api_document(found),
        "published": [
            {
                "hardware": figure.cell.hardware,
                "run": figure.cell.run or None,
                "value": figure.cell.value,
                "unit": figure.cell.unit,
                "seconds": figure.seconds,
                "same_device": figure.measured_on,
                "ratio": found.ratio(figure),
                "api_ratio": found.api_ratio(figure),
                "citable": figure.cell.citable,
                "source": figure.cell.source,
            }
            for figure in found.figures
        ],
        "notes": [{"kind": note.kind, "says": note.says, "evidence": note.evidence} for note in found.notes],
        "apart": list(found.apart),
    }


def _api_document(found: Beside) -> dict[str, Any] | None:
    """The function that the benchmark timed, and what lies between it and the bare step [s per step]."""
    api, rest = found.api, found.between
    if api is None or rest is None:
        return None
    return {
        "name": api.name,
        "steps": len(api.steps),
        "mean": fmean(api.steps),
        "median": median(api.steps),
        "between": {
            "seconds": rest.seconds,
            "ci95": None if rest.ci95 is None else list(rest.ci95),
            "resolved": rest.resolved,
            "input": rest.input,
            "rest": rest.rest,
        },
        "data": api.data,
        "data_alone": api.alone,
    }
