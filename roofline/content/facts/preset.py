"""Compare a profile with the published benchmark whose preset it ran, in words and for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from statistics import fmean, median
from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content.signed import signed
from roofline.content.wording import counted, plain
from roofline.core.schema import Api
from roofline.published.presets.beside import Beside, Figure, beside

#: What a function does besides waiting for data, where that is not the host's alone.
_BESIDES = {
    "Trainer.train": "host time and its own work (callbacks, gradient clipping, schedule, its own loss and optimizer)"
}
#: What a reader must know of a figure to hold another beside it.
KINDS = ("precision", "jit", "batch", "timing")


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Describe the preset and the differences from it, the statistic of the publication, and its figures."""
    reproduction = beside(analysis.profile)
    if reproduction is None:
        return
    yield "preset", _preset(reproduction)
    if reproduction.differences:
        parts = [
            f"{plain(difference.setting)} {plain(difference.run_value)} instead of {difference.benchmark_value}"
            for difference in reproduction.differences
        ]
        yield "", f"differs from the preset: {'; '.join(parts)}"
    if reproduction.mean is not None:
        steps = len(analysis.profile.wall.steps)
        words = f"mean of {steps} plain steps {units.seconds(reproduction.mean)}, median {units.seconds(analysis.wall)}"
        yield "statistic", f"{words}; the publication's is {reproduction.preset.statistic}"
    if reproduction.api is not None:
        times = reproduction.api.steps
        words = f"mean of {counted(len(times), 'step')} {units.seconds(fmean(times))}"
        yield "api", f"{_name(reproduction)}, which the benchmark timed: {words}, median {units.seconds(median(times))}"
    for number, (_, figures) in enumerate(groupby(reproduction.figures, key=lambda figure: figure.cell.hardware)):
        yield "" if number else "published", _published(reproduction, list(figures))
    for note in reproduction.notes:
        if note.kind in KINDS:
            yield "", f"{note.kind}: {note.says} ({note.evidence})"
    if words := between_words(reproduction):
        yield "between", words
    for number, sentence in enumerate(reproduction.apart):
        yield "" if number else "apart", sentence


def between_words(reproduction: Beside) -> str:
    """Split the time between the function that the benchmark timed and the bare step; "" if not measured."""
    overhead, api = reproduction.between, reproduction.api
    if overhead is None or api is None:
        return ""
    name = _name(reproduction)
    compared = "more" if overhead.seconds >= 0 else "less"
    sentence = f"{name} takes {units.seconds(abs(overhead.seconds))} {compared} per step than the bare step"
    if overhead.ci95 is None:
        return f"{sentence}: not resolved, for that takes 3 steps of each"
    sentence += f" (95 % interval {signed(overhead.ci95[0])} to {signed(overhead.ci95[1])})"
    if not overhead.resolved:
        return f"{sentence}: not resolved{_alone(api)}"
    words = _BESIDES.get(api.name, "host time (callbacks, metrics, progress, Python)")
    if overhead.input is None or overhead.rest is None:
        return f"{sentence}: data input and {words}{_alone(api)}"
    waits = f"{signed(overhead.input)} data input, in which it waits for {plain(api.data)}"
    return f"{sentence}: {waits}, and {signed(overhead.rest)} {words}"


def _alone(api: Api) -> str:
    """Time the data without a model: part of that may overlap the step, so it is no part of the difference."""
    if api.waiting is not None:
        return f"; of its step it waits {units.seconds(api.waiting)} for {plain(api.data)}"
    if api.alone is None:
        return ""
    return f"; {plain(api.data)} alone, read without a model, takes {units.seconds(api.alone)} a batch"


def _name(reproduction: Beside) -> str:
    return plain(reproduction.api.name, 40) if reproduction.api is not None else ""


def _preset(reproduction: Beside) -> str:
    task = f", {reproduction.row.task}" if reproduction.row.task else ""
    if reproduction.column is None:
        return f"{reproduction.preset.name}{task}, which has no column for this backend"
    return f"{reproduction.preset.name}{task}, as {reproduction.column.name}"


def _published(reproduction: Beside, figures: list[Figure]) -> str:
    """Write the range of the figures of one device, and the ratio of the measured mean to them."""
    first = figures[0]
    steps = sorted(figure.seconds for figure in figures if figure.seconds is not None)
    totals = sorted(figure.cell.seconds for figure in figures if figure.cell.seconds is not None)
    words = _range(totals) if not steps or steps == totals else f"{_range(steps)} per step ({_range(totals)} in all)"
    words += f" on {first.cell.hardware}"
    if not all(figure.cell.citable for figure in figures):
        words += " (unverified)"
    if not first.measured_on:
        return f"{words}, which is another device than this one: no ratio"
    if not reproduction.same_step:
        return f"{words}; the step here is another one: no ratio"
    over = reproduction.ratio if reproduction.api is None else reproduction.api_ratio
    ratios = sorted(ratio for figure in figures if (ratio := over(figure)) is not None)
    if not ratios:
        return f"{words}; how long a step of it took is not known: no ratio"
    times = "–".join(dict.fromkeys(f"{ratio:.3g}" for ratio in (ratios[0], ratios[-1])))
    mean_here = "the mean here" if reproduction.api is None else f"the mean of {_name(reproduction)} here"
    return f"{words}; {mean_here} is {times} times that, with today's libraries"


def _range(seconds: list[float]) -> str:
    return units.seconds(seconds[0]) if seconds[0] == seconds[-1] else units.seconds_between(seconds[0], seconds[-1])


def document(analysis: WorkAnalysis) -> dict[str, Any] | None:
    """Write the facts of `facts` for JSON; None without a preset."""
    reproduction = beside(analysis.profile)
    return None if reproduction is None else document_of(reproduction)


def document_of(reproduction: Beside) -> dict[str, Any]:
    """Write the same for a profile that was compared with its preset already."""
    return {
        "name": reproduction.preset.name,
        "task": reproduction.row.task or None,
        "column": reproduction.column.name if reproduction.column else None,
        "differences": [
            {"what": difference.setting, "here": difference.run_value, "there": difference.benchmark_value}
            for difference in reproduction.differences
        ],
        "statistic": reproduction.preset.statistic,
        "mean": reproduction.mean,
        "asked_api": reproduction.asked_api,
        "api": _api_document(reproduction),
        "published": [
            {
                "hardware": figure.cell.hardware,
                "run": figure.cell.run or None,
                "value": figure.cell.value,
                "unit": figure.cell.unit,
                "seconds": figure.seconds,
                "same_device": figure.measured_on,
                "ratio": reproduction.ratio(figure),
                "api_ratio": reproduction.api_ratio(figure),
                "citable": figure.cell.citable,
                "source": figure.cell.source,
            }
            for figure in reproduction.figures
        ],
        "notes": [{"kind": note.kind, "says": note.says, "evidence": note.evidence} for note in reproduction.notes],
        "apart": list(reproduction.apart),
    }


def _api_document(reproduction: Beside) -> dict[str, Any] | None:
    """Write the function that the benchmark timed, and its difference from the bare step [s per step]."""
    api, overhead = reproduction.api, reproduction.between
    if api is None or overhead is None:
        return None
    return {
        "name": api.name,
        "steps": len(api.steps),
        "mean": fmean(api.steps),
        "median": median(api.steps),
        "between": {
            "seconds": overhead.seconds,
            "ci95": None if overhead.ci95 is None else list(overhead.ci95),
            "resolved": overhead.resolved,
            "input": overhead.input,
            "rest": overhead.rest,
        },
        "data": api.data,
        "data_alone": api.alone,
    }
