"""Plain text for a terminal: a table per task, with its work and its floors above it and its notes below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from string import ascii_lowercase

from roofline import units
from roofline.core.device import Device
from roofline.published.implied import Implied
from roofline.published.publication import Note
from roofline.published.table import Table
from roofline.renderers import _terminal

#: How an arithmetic is called in a sentence.
_NAMES = {"fp32": "IEEE FP32", "tf32": "TF32", "bf16": "BF16", "fp16": "FP16", "memory": "memory"}
_HEAD = ("", "published", "rate", "of roof", "what that implies")


def render(table: Table) -> str:
    """The publication, its tables, the means, the notes and the sources."""
    publication = table.publication
    notes = dict(zip(_noted(table.cells), ascii_lowercase, strict=False))
    lines = [publication.title, ""]
    lines += _terminal.facts(
        [("from", publication.address), ("set-up", publication.setup), ("a figure", publication.statistic)]
    )
    for _, group in groupby(table.cells, key=lambda one: (one.cell.version, one.cell.task, one.cell.batch)):
        lines += ["", *_task(list(group), notes, several=len(publication.versions) > 1)]
    lines += ["", *_means(table)]
    lines += [""] if notes else []
    for note, mark in notes.items():
        lines += _hanging(f"[{mark}] ", f"{note.kind}: {note.says} ({note.evidence}).")
    lines += ["", *_hanging("", _READING), "", *_sources(table.cells)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


_READING = (
    "Rates are contractions over the whole published time. A rate above a ceiling proves that another arithmetic, or "
    "another count or time, is behind it; a rate below proves nothing. ! marks what is faster than the stated "
    "arithmetic can be on the device; ? what nobody read in a source that can be cited."
)


def _noted(cells: Iterable[Implied]) -> list[Note]:
    return list(dict.fromkeys(note for one in cells for note in one.notes))


def _task(cells: Sequence[Implied], notes: dict[Note, str], several: bool) -> list[str]:
    first = cells[0]
    title = first.cell.task + (f", batch {first.cell.batch}" if first.cell.batch else "")
    title += f", {first.cell.version}" if several else ""
    lines = [title, *(line for said in _work(cells) for line in _hanging("  ", said))]
    machines = len({one.cell.hardware for one in cells}) > 1
    rows = [_HEAD] if _shows_rates(cells) else [("", "published", "", "", "")]
    for one in cells:
        marks = "".join(f"[{notes[note]}]" for note in one.notes if note in notes)
        told = " ".join(filter(None, (_implies(one), marks)))
        rows.append((_place(one, machines), _published(one), _rate(one), _share(one), told))
    return [*lines, *_terminal.ruled(_terminal.columns(rows, left=(0, 4)), 1)]


def _shows_rates(cells: Iterable[Implied]) -> bool:
    return any(one.rate is not None or one.speed is not None for one in cells)


def _place(one: Implied, machines: bool) -> str:
    where = f" on {one.cell.hardware}" if machines else ""
    run = f", run {one.cell.run}" if one.cell.run else ""
    return f"  {one.cell.column}{where}{run}"


def _published(one: Implied) -> str:
    cell = one.cell
    if cell.value is None:
        return units.UNKNOWN
    number = f"{cell.value:,.6g} {cell.unit}"
    return f"{number}{'' if cell.citable else ' ?'}"


def _rate(one: Implied) -> str:
    """Towards the nearest roof."""
    if one.speed is not None and one.roof in ("", "memory"):
        return units.byte_rate(one.speed)
    return units.flop_rate(one.rate) if one.rate is not None else ""


def _share(one: Implied) -> str:
    return units.percent(one.share) if one.share is not None else ""


def _implies(one: Implied) -> str:
    """The words beside a figure: what its rate excludes, and what the table says of it."""
    said = []
    if one.roof == "memory":
        said.append("! above the memory roof" if one.shares["memory"] > 1 else "of the memory roof")
        said += [
            f"{units.flop_rate(one.rate)}, {units.percent(share)} of {_NAMES[name]}"
            for name, share in one.shares.items()
            if name != "memory"
        ]
    elif one.rate is not None and one.floors:
        stated = _NAMES[one.row.stated]
        if not one.roof:
            said.append("! above every ceiling: count or time is wrong")
        elif one.faster:
            said.append(f"! above {stated}: {_NAMES[one.roof]} or less")
        else:
            said.append(f"within {stated}")
    if one.corrected is not None:
        said.append(f"corrected {units.flop_rate(one.corrected)}")
    said += [one.cell.note] if one.cell.note else []
    return "; ".join(said)


def _work(cells: Sequence[Implied]) -> list[str]:
    """The work of a task and its least times: a sentence per form of the work, and one per device."""
    counted = {one.row: one for one in cells if one.work is not None}
    if not counted:
        return [cells[0].row.why] if cells[0].row.why else []
    said = []
    for row, first in counted.items():
        alike = [one for one in cells if one.row == row and one.work is not None]
        who = ", ".join(dict.fromkeys(one.cell.column for one in alike if one.cell.value is not None))
        said.append((f"{who}: " if len(counted) > 1 else "") + _asked(first))
        said += [row.why] if row.why else []
        devices = {one.device.name: (one, one.device) for one in alike if one.device is not None}
        said += [f"least time on {name}: {', '.join(_least(*found))}" for name, found in devices.items()]
    unknown = dict.fromkeys(one.cell.hardware for one in cells if one.device is None)
    if unknown:
        said.append(f"no ceilings are known of {', '.join(unknown)}")
    return said


def _asked(one: Implied) -> str:
    """The work of a cell and how it was counted."""
    work = one.work
    if work is None:
        return ""
    parts = []
    if work.flops is not None:
        parts.append(f"{units.flop(work.flops)} ({work.form}), stated {one.row.stated}")
    if work.bytes is not None:
        parts.append(f"{units.byte(work.bytes)} to read ({work.bytes_form})")
    return "; ".join([*parts, *([f"assumed: {work.assumed}"] if work.assumed else [])])


def _least(one: Implied, device: Device) -> list[str]:
    """The floors of a task on a device, each with its ceiling."""
    least = [
        f"{units.seconds(floor)} in {_NAMES[name]} ({units.flop_rate(device.rate(f'matrix.{name}'))})"
        for name, floor in one.floors.items()
    ]
    if one.floor_memory is not None:
        least.append(f"{units.seconds(one.floor_memory)} by its memory ({units.byte_rate(device.bandwidth)})")
    return least


def _means(table: Table) -> list[str]:
    said = _hanging("Means: ", table.publication.means)
    if not table.means:
        return said
    rows = [(f"  times as fast as {table.publication.baseline}", "rows", "arithmetic", "geometric")]
    for mean in table.means:
        both = (units.significant(mean.arithmetic), units.significant(mean.geometric))
        rows.append((f"  {mean.column}", str(mean.rows), *both))
    return [*said, *_terminal.ruled(_terminal.columns(rows, left=(0,)), 1)]


def _sources(cells: Iterable[Implied]) -> list[str]:
    """Where the figures come from and whether they were read there."""
    told = dict.fromkeys(f"{one.cell.source} ({one.cell.status})" for one in cells)
    return [line for source in told for line in _hanging("Source: ", source)]


def _hanging(first: str, words: str) -> list[str]:
    return textwrap.wrap(
        words, _terminal.WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
    )
