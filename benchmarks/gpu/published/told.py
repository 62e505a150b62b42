"""Measured rows of presets beside the published figures, in the words of roofline itself, and their least times.

A figure stands beside one of another device without a ratio: nothing here is called an A100's that was not measured on
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from roofline import devices, units
from roofline import published as publications
from roofline.analysis.analysis import Analysis, analyze
from roofline.content import wording
from roofline.content.facts import host
from roofline.core.device import Device
from roofline.core.schema import Profile, load
from roofline.errors import RooflineError
from roofline.published import presets
from roofline.published.implied import ALLOWED
from roofline.published.presets.beside import Beside, Figure, beside
from roofline.published.presets.compared import rows
from roofline.published.publication import Row, Work
from roofline.renderers.preset import markdown

COLUMNS = ("row", "column", "measured on", "timed", "mean ms", "published ms", "of that", "rate", "what bounds it here")


def measured(files: Iterable[Path]) -> list[str]:
    """A table and the paragraphs of `compare --preset` for each preset that some of these profiles are of."""
    profiles = [profile for file in files if (profile := _read(file)) is not None and profile.preset]
    lines: list[str] = []
    for name in presets.names():
        if mine := [profile for profile in profiles if profile.preset == name]:
            lines += ["", f"## {name}", "", *table(mine), "", *_compared(name, mine)]
    return lines


def _read(file: Path) -> Profile | None:
    try:
        return load(file)
    except RooflineError:
        return None  # said in the table of all profiles


def table(profiles: Sequence[Profile]) -> list[str]:
    """A Markdown table, one line per profile of one preset, in the order of the preset's rows."""
    found = [(each, analyze(profile)) for profile in profiles if (each := beside(profile)) is not None]
    found.sort(key=lambda pair: pair[0].preset.row.index(pair[0].row))
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---|---|---:|---:|---:|---:|---|"]
    return lines + ["| " + " | ".join(wording.plain(cell, 400) for cell in _line(*pair)) + " |" for pair in found]


def _line(found: Beside, run: Analysis) -> list[str]:
    """The cells of one profile; what is not known is a dash, and a rate of which a part is not known has a ≥."""
    profile, time = run.profile, found.mean if found.api is None else found.api_mean
    sizes = [f"{letter}{number}" for letter, number in (("b", profile.batch), ("s", profile.seq)) if number is not None]
    return [
        " ".join([found.row.task or f"{profile.model} {profile.mode}", *sizes]),
        found.column.name if found.column else profile.backend,
        profile.device.name,
        "bare step" if found.api is None else found.api.name,
        _milliseconds(time),
        "; ".join(f"{_milliseconds(each.seconds)} on {each.cell.hardware}" for each in found.figures) or "–",
        "; ".join(_ratio(found, each) for each in found.figures) or "–",
        f"{'≥ ' * ((run.coverage['flops'] or 0.0) < 1)}{units.flop_rate(run.total.model_flops / time)}"
        if time and run.total.model_flops
        else "–",
        wording.verdict(run, host.most(run)),
    ]


def _ratio(found: Beside, figure: Figure) -> str:
    """The time here over the published one, or why there is none."""
    ratio = found.ratio(figure) if found.api is None else found.api_ratio(figure)
    if ratio is not None:
        return f"{ratio:.3g}"
    return "another step" if figure.measured_on else "another device"


def _compared(name: str, profiles: Sequence[Profile]) -> Iterator[str]:
    """Why the columns of a row differ here, and what is known of the published figures."""
    timed = [profile for profile in profiles if profile.has_times]
    if timed:
        yield markdown.render(rows(name, timed)).rstrip()


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1e3 * seconds:.4g}"


# ------------------------------------------------------------------------------------------ before it is measured


def predicted(names: Sequence[str], publication: str = "keras-benchmark") -> list[str]:
    """A Markdown table: of each row its work and its least time [ms] on devices, by their datasheets."""
    published = publications.load(publication)
    sheets = [devices.load(name) for name in names]
    lines = [f"| row | work | {' | '.join(sheet.name for sheet in sheets)} |", "|---|---|" + "---|" * len(sheets)]
    first = [cell for cell in published.cells if cell.version == published.versions[0]]
    for (task, batch), group in groupby(first, key=lambda cell: (cell.task, cell.batch)):
        columns: dict[Row, list[str]] = {}
        for cell in group:
            columns.setdefault(published.row(cell), []).append(cell.column)
        for row, names in columns.items():
            counted = published.work(row.work, batch)
            who = f", {', '.join(names)}" if row.columns else ""
            cells = [_least(counted, row.stated, sheet) for sheet in sheets]
            lines.append(f"| {task} b{batch}{who} | {_amount(counted)} | {' | '.join(cells)} |")
    return lines


def _amount(counted: Work) -> str:
    parts = [units.flop(counted.flops)] if counted.flops is not None else []
    return ", ".join([*parts, *([f"{units.byte(counted.bytes)} to read"] if counted.bytes is not None else [])])


def _least(counted: Work, stated: str, sheet: Device) -> str:
    """By each arithmetic that the row may have used, and by what must be read."""
    told = []
    for name in ALLOWED[stated]:
        if counted.flops is not None and (rate := sheet.rate(f"matrix.{name}")):
            told.append(f"{1e3 * counted.flops / rate:.4g} ({name})")
    if counted.bytes is not None and sheet.bandwidth:
        told.append(f"{1e3 * counted.bytes / sheet.bandwidth:.4g} (memory)")
    return ", ".join(told)
