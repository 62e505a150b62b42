"""Plain text for a terminal: what `roofline profile` ends with."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _terminal, _words
from roofline.renderers._facts import evidence, host, measured, notes
from roofline.renderers._tables import Column, Row
from roofline.renderers._terminal import WIDTH, facts


def render(analysis: Analysis, by: str | None) -> str:
    """The verdict, the facts, the table of groups and the evidence; with `by`, the verdict and that table."""
    if not analysis.timed:
        return _counted(analysis, by or "group")
    lines = [*textwrap.wrap(_words.verdict(analysis, host.most(analysis)), WIDTH), ""]
    if by is None:
        lines += [*facts(measured.told(analysis)), ""]
    lines += _table(analysis, by or "group")
    if by is None:
        lines += ["", *facts(evidence.told(analysis))]
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
    compiled = facts(measured.compiled(analysis))
    return "\n".join([*lines, *(["", *compiled] if compiled else [])]) + "\n"


def _explained(analysis: Analysis, by: str) -> Iterator[tuple[str, str]]:
    """What a table may show that needs a word: columns that do not add up to the time, more than a roof allows."""
    if by not in _tables.LONG and (words := notes.overlap(analysis)):
        yield "overlap", words
    if words := notes.above(analysis):
        yield "above", words


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
