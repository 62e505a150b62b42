"""Write plain text for a terminal: a table per task, its work and floors above it, its notes below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from string import ascii_lowercase

from roofline import units
from roofline.content import terminal
from roofline.content.terminal import SHEET
from roofline.core.device import Device
from roofline.published.implied import ALLOWED, Implied
from roofline.published.means import speedups
from roofline.published.publication import Note, Publication

#: How an arithmetic is called in a sentence.
_NAMES = {"fp32": "IEEE FP32", "tf32": "TF32", "bf16": "BF16", "fp16": "FP16", "memory": "memory"}


def render(publication: Publication, cells: Sequence[Implied]) -> str:
    """Write the publication, its tables, the means, the notes and the sources."""
    notes = dict(zip(dict.fromkeys(note for figure in cells for note in figure.notes), ascii_lowercase, strict=False))
    lines = [publication.title, ""]
    lines += terminal.facts(
        [("from", publication.address), ("set-up", publication.setup), ("a figure", publication.statistic)]
    )
    for _, group in groupby(cells, key=lambda figure: (figure.cell.version, figure.cell.task, figure.cell.batch)):
        lines += ["", *_task(list(group), notes, several=len(publication.versions) > 1)]
    lines += ["", *_means(publication)]
    lines += [""] if notes else []
    for note, mark in notes.items():
        lines += _hanging(f"[{mark}] ", f"{note.kind}: {note.says} ({note.evidence}).")
    lines += ["", *_hanging("", _READING), "", *_sources(cells)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


_READING = (
    "Rates are the FLOP of contractions, and the bytes that must be read, over the whole published time; shares are of "
    "one roof in each column. A rate above a ceiling proves that the arithmetic, the count or the time is another one; "
    "a rate below it proves nothing. ! marks a rate that the stated arithmetic cannot reach on the device; ? a figure "
    "that nobody read in a source that can be cited."
)


def _task(cells: Sequence[Implied], notes: dict[Note, str], several: bool) -> list[str]:
    first = cells[0]
    title = first.cell.task + (f", batch {first.cell.batch}" if first.cell.batch else "")
    title += f", {first.cell.version}" if several else ""
    lines = [title, *(line for sentence in _work(cells) for line in _hanging("  ", sentence))]
    machines = len({figure.cell.hardware for figure in cells}) > 1
    columns = _columns(cells)
    rows: list[tuple[str, ...]] = [("", "published", *columns, "what that implies" if columns else "")]
    for figure in cells:
        marks = "".join(f"[{notes[note]}]" for note in figure.notes if note in notes)
        implications = " ".join(filter(None, (_implies(figure), marks)))
        shares = (column(figure) for column in columns.values())
        rows.append((_place(figure, machines), _published(figure), *shares, implications))
    return [*lines, *terminal.ruled(terminal.columns(rows, left_aligned=(0, len(columns) + 2)), 1)]


def _columns(cells: Sequence[Implied]) -> dict[str, Callable[[Implied], str]]:
    """Return the columns of rates and of shares, one roof in each, that any cell has something in."""
    columns: dict[str, Callable[[Implied], str]] = {}
    if any(figure.rate is not None for figure in cells):
        columns["rate"] = lambda figure: "" if figure.rate is None else units.flop_rate(figure.rate)
    if any(figure.speed is not None for figure in cells):
        columns["read"] = lambda figure: "" if figure.speed is None else units.byte_rate(figure.speed)
    for roof in (*ALLOWED["fp32"], *ALLOWED["bf16"], *ALLOWED["fp16"], "memory"):
        if any(figure.of(roof) is not None for figure in cells):
            columns[f"of {roof if roof == 'memory' else roof.upper()}"] = partial(_share, roof)
    return columns


def _share(roof: str, figure: Implied) -> str:
    share = figure.of(roof)
    return "" if share is None else units.percent(share)


def _place(figure: Implied, machines: bool) -> str:
    where = f" on {figure.cell.hardware}" if machines else ""
    run = f", run {figure.cell.run}" if figure.cell.run else ""
    return f"  {figure.cell.column}{where}{run}"


def _published(figure: Implied) -> str:
    cell = figure.cell
    if cell.value is None:
        return units.UNKNOWN
    number = f"{cell.value:,.6g} {cell.unit}"
    return f"{number}{'' if cell.citable else ' ?'}"


def _implies(figure: Implied) -> str:
    """Word what the rate of a figure excludes, and the note that the table has of it."""
    clauses = []
    if figure.rate is not None and figure.floors and not figure.roof:
        clauses.append("! above every ceiling: count or time is wrong")
    elif figure.shares.get("memory", 0.0) > 1:
        clauses.append("! above the memory roof")
    elif figure.faster:
        clauses.append(f"! above {_NAMES[figure.row.stated]}: {_NAMES[figure.roof]} or less")
    if figure.corrected is not None:
        clauses.append(f"corrected {units.flop_rate(figure.corrected)}")
    clauses += [figure.cell.note] if figure.cell.note else []
    return "; ".join(clauses)


def _work(cells: Sequence[Implied]) -> list[str]:
    """Write the work of a task and its least times: a sentence per form of the work, and one per device."""
    counted = {figure.row: figure for figure in cells if figure.work is not None}
    if not counted:
        return [cells[0].row.why] if cells[0].row.why else []
    sentences = []
    for row, first in counted.items():
        same_row = [figure for figure in cells if figure.row == row and figure.work is not None]
        column_names = ", ".join(
            dict.fromkeys(figure.cell.column for figure in same_row if figure.cell.value is not None)
        )
        sentences.append((f"{column_names}: " if len(counted) > 1 else "") + _asked(first))
        sentences += [row.why] if row.why else []
        devices = {figure.device.name: (figure, figure.device) for figure in same_row if figure.device is not None}
        sentences += [
            f"least time on {name}: {', '.join(_least(*device_figure))}" for name, device_figure in devices.items()
        ]
    without_ceilings = dict.fromkeys(figure.cell.hardware for figure in cells if figure.device is None)
    if without_ceilings:
        sentences.append(f"no ceilings are known of {', '.join(without_ceilings)}")
    return sentences


def _asked(figure: Implied) -> str:
    """Write the work of a cell and how it was counted."""
    work = figure.work
    if work is None:
        return ""
    parts = [f"{units.flop(work.flops)} ({work.form}), stated {figure.row.stated}"]
    if work.bytes is not None:
        parts.append(f"{units.byte(work.bytes)} to read ({work.bytes_form})")
    return "; ".join([*parts, *([f"assumed: {work.assumed}"] if work.assumed else [])])


def _least(figure: Implied, device: Device) -> list[str]:
    """Write the floors of a task on a device [s], each with its ceiling."""
    floors = [
        f"{units.seconds(floor)} in {_NAMES[name]} ({units.flop_rate(device.rate(f'matrix.{name}'))})"
        for name, floor in figure.floors.items()
    ]
    if figure.floor_memory is not None:
        floors.append(f"{units.seconds(figure.floor_memory)} by its memory ({units.byte_rate(device.bandwidth)})")
    return floors


def _means(publication: Publication) -> list[str]:
    lines, means = _hanging("Means: ", publication.means), speedups(publication)
    if not means:
        return lines
    rows = [(f"  times as fast as {publication.baseline}", "rows", "arithmetic", "geometric")]
    for mean in means:
        factors = (units.significant(mean.arithmetic), units.significant(mean.geometric))
        rows.append((f"  {mean.column}", str(mean.rows), *factors))
    return [*lines, *terminal.ruled(terminal.columns(rows, left_aligned=(0,)), 1)]


def _sources(cells: Iterable[Implied]) -> list[str]:
    """Name the sources of the figures, and say whether the figures were read there."""
    sources = dict.fromkeys(f"{figure.cell.source} ({figure.cell.status})" for figure in cells)
    return [line for source in sources for line in _hanging("Source: ", source)]


def _hanging(first: str, words: str) -> list[str]:
    return terminal.broken(f"{first}{words}", SHEET, " " * len(first))
