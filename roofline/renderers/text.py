"""Plain text for a terminal: what `roofline profile` ends with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.renderers import _tables, _terminal, _words
from roofline.renderers._facts import generation, host, notes, preset
from roofline.renderers._tables import Column, Row
from roofline.renderers._terminal import WIDTH, facts

_ROOFS = {
    "serial": "these kernels, one after the other",
    "overlap": "the same, compute and memory overlapped",
    "ideal": "nothing moved but parameters, optimizer state, inputs and outputs, as far as no cache keeps them",
}


def render(analysis: Analysis, by: str | None) -> str:
    """The verdict, the facts, the table of groups and the evidence; with `by`, the verdict and that table."""
    if not analysis.timed:
        return _counted(analysis, by or "group")
    lines = [*textwrap.wrap(_words.verdict(analysis, host.most(analysis)), WIDTH), ""]
    if by is None:
        lines += [*facts(_measured(analysis)), ""]
    lines += _table(analysis, by or "group")
    if by is None:
        lines += ["", *facts(_evidence(analysis))]
    elif told := facts(_explained(analysis, by)):
        lines += ["", *told]
    return "\n".join(lines) + "\n"


def _counted(analysis: Analysis, by: str) -> str:
    """The work of a step that was only counted."""
    rows: list[tuple[str, ...]] = [(by, "ops", "model", "executed", "vector", "read", "written")]
    sums = list(analysis.by(by).items())
    fused = analysis.fused(by) if by in _tables.OPS else {}
    kept = [*sums[: _tables.TOP], ("total", analysis.total)]
    for label, total in kept:
        work = (total.model_flops, total.flops, total.vector_flops) if total.costed else (None, None, None)
        moved = (total.bytes_read, total.bytes_written) if total.costed else (None, None)
        name = _words.plain(label, 28)
        rows.append((name, str(total.ops), *map(units.flop, work), *map(units.byte, moved)))
    head, *body = _terminal.columns(rows, left=(0,), separator=" ", least=(28, 6, 12, 12, 12, 10, 10))
    lines = [f"{_words.subject(analysis)}: the work of one step, counted and not timed.", "", head]
    for line, (label, _) in zip(body, kept, strict=True):
        lines += [line, *_below(_words.plain(_tables.fused(fused.get(label, ()))), 2)]
    known, every = analysis.total.costed, analysis.total.ops
    lines += ["", f"Work known of {known} of {every} ops."]
    compiled = facts(_compiled(analysis))
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _measured(analysis: Analysis) -> Iterator[tuple[str, str]]:
    profile, wall = analysis.profile, analysis.wall
    rates = [
        f"{units.significant(number / wall)} {what}/s"
        for number, what in ((profile.samples, "samples"), (profile.tokens, "tokens"))
        if number is not None
    ]
    if rates:
        yield "throughput", ", ".join(rates)
    if words := generation.told(analysis):
        yield "generating", words
    if analysis.mfu is not None:
        peak = f"{units.flop_rate(analysis.peak)} ({_words.plain(analysis.precision or '')})"
        more = ": more than can be, so the device or the count is another" if analysis.mfu > 1 + ABOVE_TOLERANCE else ""
        yield "MFU", f"{units.percent(analysis.mfu)} of {peak}{more}"
    if profile.memory.peak is not None:
        source = f" ({_words.plain(profile.memory.source)})" if profile.memory.source else ""
        yield "peak memory", units.byte(profile.memory.peak) + source
    if profile.wall.first is not None:
        yield "first step", f"{units.seconds(profile.wall.first)}, build and compilation included"
    yield from _compiled(analysis)
    yield "steps", _words.spread(analysis)
    yield from preset.told(analysis)


def _compiled(analysis: Analysis) -> Iterator[tuple[str, str]]:
    for number, words in enumerate(_words.compilation(analysis)):
        yield "" if number else "compiled", words


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """What a table may show that needs a word: columns that do not add up to the time, more than a roof allows."""
    if by not in _tables.LONG and (words := notes.overlap(analysis)):
        yield "overlap", words
    if words := notes.above(analysis):
        yield "above", words


def _evidence(analysis: Analysis) -> Iterator[tuple[str, str]]:
    total, wall, gap = analysis.total, analysis.wall, _words.gap_name(analysis)
    if total.overlap > 0 or total.uncosted > 0:
        parts = f"uncosted ({units.seconds(total.uncosted)}) − overlap ({units.seconds(total.overlap)})"
        yield "time", f"floor + loss + {parts} + {gap} = {units.seconds(wall)}"
    if words := notes.overlap(analysis):
        yield "overlap", words
    yield gap, _gap(analysis)
    if words := host.told(analysis):
        yield "host", words
    if analysis.products:
        yield "products", "; ".join(_product(phase, *work) for phase, work in analysis.products.items())
    known = analysis.coverage
    joined = "" if known["time"] is None else f"; {units.percent(known['time'])} of the profiler's time joined to ops"
    shares = f"FLOPs known for {units.percent(known['flops'])} of busy time, bytes for {units.percent(known['bytes'])}"
    yield "coverage", shares + joined
    yield "quality", "of busy time: " + ", ".join(f"{n} {units.percent(s)}" for n, s in analysis.quality.items())
    ranged = _words.is_range(analysis)
    roofs = [
        f"{name} {'at least ' if ranged else ''}{units.seconds(roof)} ({_ROOFS[name]})"
        for name, roof in analysis.roofs.items()
        if roof is not None
    ]
    if roofs:
        yield "least step", "; ".join(roofs)
    if ranged:
        yield "caches", _words.CACHES
    unattained = [(n, seconds) for n, seconds in total.unattained.items() if seconds > 0]
    if unattained:
        most = "at most " if ranged else ""
        told = ", ".join(f"{name} {most}{units.percent(seconds / wall)}" for name, seconds in unattained)
        yield "unattained", f"{told} of the step, in ops that reach less than half of the roof above them"
    if analysis.missing:
        names = _words.conjunction([_words.plain(name) for name in analysis.missing])
        yield "not known", f"{names}: no such ceiling, so its term is left out of the floors"
    if words := notes.above(analysis):
        yield "above", words
    for number, words in enumerate(_words.imported(analysis)):
        yield "" if number else "trace", words
    for number, words in enumerate(_words.flags(analysis)):
        yield "" if number else "flags", words


def _product(phase: str, model: float, executed: float, most: str) -> str:
    """What a phase's contractions asked for, and how that compares with what ran."""
    words = f"{_words.plain(phase)} {units.flop(model)}"
    if not most:
        return f"{words} (executed / model 1)"
    ratio = f"executed / model {executed / model:.4g}" if model else f"{units.flop(executed)} executed"
    return f"{words} ({ratio}, most of the difference in {_words.plain(most)})"


def _gap(analysis: Analysis) -> str:
    words, interval = units.seconds(analysis.gap_told), analysis.gap_interval
    if interval and interval[1] > 0:
        low, high = interval
        # Plain and busy times are drawn apart, so that a drawn gap may be less than nothing; a gap cannot.
        words += (
            f", 95 % interval {_words.between(low, high)}" if low > 0 else f", at most {units.seconds(high)} (95 %)"
        )
    if analysis.profile.wall.source == "profiled":
        words += ", profiler overhead included"
    if analysis.idle is None:
        return f"{words}; idle time was not observed"
    words += f"; {units.seconds(analysis.idle)} idle observed in the profiled steps"
    if analysis.gap <= 0 or (interval and interval[0] <= 0):
        return words  # what may be nothing has no causes
    if analysis.gap_causes is None:
        return f"{words}; causes not resolved"
    causes = [f"{_words.plain(cause)} {units.seconds(time)}" for cause, time in analysis.gap_causes.items()]
    if causes:
        words += f": {', '.join(causes)}"
    if analysis.most_per_launch is not None:
        number = units.count(analysis.total.kernels)
        words += f"; the host launches {number} kernels, up to {units.seconds(analysis.most_per_launch)} each"
    return words


def _table(analysis: Analysis, by: str) -> list[str]:
    rows = _tables.rows(analysis, by, _words.gap_name(analysis))
    labels = [_words.plain(row.label) for row in rows]
    if by in _tables.LONG:  # long names: they come last, and some columns make room for them
        columns = [c for c in _tables.COLUMNS if c.heading.partition("\n")[0] not in ("floor", "loss", "FLOP/s")]
        columns.insert(0, Column("ops", lambda row: "" if row.ops is None else units.count(row.ops)))
    else:
        columns = list(_tables.COLUMNS)
    tops, _, bottoms = zip(*(column.heading.partition("\n") for column in columns), strict=True)
    cells = [tops, bottoms, *([column.cell(row) for column in columns] for row in rows)]
    room = WIDTH - sum(wide + 2 for wide in _terminal.widths(cells))
    names = [by, "", *(_cut(label, room, by) for label in labels)]
    left = {number for number, column in enumerate(columns) if not column.number}
    if by in _tables.LONG:
        grid = [[*line, name] for name, line in zip(names, cells, strict=True)]
        left.add(len(columns))
    else:
        grid = [[name, *line] for name, line in zip(names, cells, strict=True)]
        left = {0, *(number + 1 for number in left)}
    text = _terminal.columns(grid, left)
    body = []
    for line, row in zip(text[2:], rows, strict=True):
        body += _with_parts(line, row, room)
    return _terminal.ruled([*text[:2], *body], 2, -1)


def _with_parts(line: str, row: Row, room: int) -> list[str]:
    """The line of a row, and what was fused into its ops: after its name where there is room, else below it."""
    parts = _words.plain(_tables.fused(row.parts))
    if not parts:
        return [line]
    if len(line) + 2 + len(parts) <= WIDTH:
        return [f"{line}  {parts}"]
    return [line, *_below(parts, WIDTH - room + 2)]


def _below(parts: str, indent: int) -> list[str]:
    """What was fused, on at most two lines of its own."""
    room = WIDTH - indent
    lines = textwrap.wrap(parts, room, subsequent_indent=" ", max_lines=2, placeholder=" …", break_on_hyphens=False)
    return [" " * indent + line for line in lines]


def _cut(label: str, room: int, by: str) -> str:
    """A label that fits. The end of a scope says most, the beginning of everything else."""
    if len(label) <= room:
        return label
    return f"…{label[-room + 1 :]}" if by == "scope" else f"{label[: room - 1]}…"
