"""Show where each run's time went: one bar by bound, one by group, the gap with its causes; all runs on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roofline import units
from roofline.content import bounds, step_bar, tables, wording
from roofline.content.facts import evidence
from roofline.core.vocabulary import GROUPS
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, tag
from roofline.renderers.report.parts.run import Run, TimedRun, section

#: How full the parts of the time under a bound are.
_LOOKS: dict[step_bar.Part | None, str] = {
    "minimum": "",
    "minimum or above it": "half",
    "above it": "pale",
    None: "pale",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: its name, its look, and its length [s]."""

    label: str
    look: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table below the bars. parts: the pieces drawn for it, one after the other; seconds: of
    these, None: not known.

    share: of the step [%], where it is a range: other ops are under the bound at its upper end.
    """

    label: str
    look: str
    seconds: float | None
    parts: tuple[Part, ...]
    floor: str = units.UNKNOWN
    loss: str = units.UNKNOWN
    words: str = ""
    below: bool = False
    share: str = ""


def where(runs: Sequence[Run]) -> Html | None:
    """Write the section; None where no run has times of ops."""
    timed = [run for run in runs if isinstance(run, TimedRun)]
    if not timed:
        return None
    longest = max(max(run.analysis.wall, run.analysis.busy) for run in timed)
    return section("where", "Where the time went", [_run(run, longest, len(runs) > 1) for run in timed])


def _run(run: TimedRun, longest: float, several: bool) -> Html:
    bound_lines, group_lines = by_bound(run), by_group(run)
    wall = run.analysis.wall
    pictures = tag(
        "svg",
        _bar(bound_lines, longest, wall, 0),
        _bar(group_lines, longest, wall, 46),
        _axis(longest, 92),
        class_="bars",
        height=112,
        role="img",
        aria_label=f"One step of {wording.subject(run.analysis)} by bound and by group; "
        "the table below has the numbers",
    )
    heading = tag("h3", run.title, tag("span", units.seconds(wall), class_="figure")) if several else None
    tables = tag("div", _table(bound_lines, run), _legend(group_lines, run), class_="beside")
    # Where the causes of the gap are known, the table has them.
    name = wording.gap_name(run.analysis)
    why = (
        None
        if bound_lines[-1].below
        else tag("p", tag("b", name[0].upper(), name[1:]), " ", evidence.idle(run.analysis), ".")
    )
    return tag("div", heading, pictures, tables, why, class_="where")


def by_bound(run: TimedRun) -> list[Line]:
    """List the bounds that hold any time, the largest first, then the gap and its causes."""
    analysis = run.analysis
    wall, pieces = analysis.wall, step_bar.pieces(analysis)
    lines = []
    upper = bounds.split_at_upper_end(analysis)
    for bound, times in bounds.split(analysis).items():
        if times.seconds <= 0:
            continue
        words = wording.bound(analysis, bound, times, upper[bound])  # as the headline has it
        parts = tuple(
            Part(piece.name, f"{bound} {_LOOKS[piece.part]}", piece.seconds) for piece in pieces if piece.bound == bound
        )
        if times.attained is None:
            lines.append(Line(bound, bound, times.seconds, parts, words=words))
            continue
        ends = bounds.ends(times, upper[bound])
        shares = ([getattr(end, name) / wall for end in ends] for name in ("seconds", "floor", "loss"))
        share, floor, loss = (tables.between(min(range_ends), max(range_ends)) for range_ends in shares)
        lines.append(Line(bound, bound, times.seconds, parts, floor, loss, words, share=share))
    lines.sort(key=lambda line: (line.label == "unknown", -(line.seconds or 0.0)))
    return [*lines, *_gap(run)]


def _gap(run: TimedRun) -> list[Line]:
    analysis, name = run.analysis, wording.gap_name(run.analysis)
    if analysis.gap_told is None:
        return [Line(name, "gap", None, ())]
    causes = {
        wording.plain(cause, 60): seconds for cause, seconds in (analysis.gap_causes or {}).items() if seconds > 0
    }
    if analysis.gap_told <= 0 or not _resolved(run):
        causes = {}
    parts = tuple(Part(f"{name}: {cause}", "gap", seconds) for cause, seconds in causes.items())
    gap_line = Line(name, "gap", analysis.gap_told, parts or (Part(name, "gap", analysis.gap_told),))
    return [gap_line, *(Line(cause, "", seconds, (), below=True) for cause, seconds in causes.items())]


def _resolved(run: TimedRun) -> bool:
    """Return whether the gap is more than nothing: a gap that may be nothing has no causes."""
    interval = run.analysis.gap_interval
    return not (interval and interval[0] <= 0)


def by_group(run: TimedRun) -> list[Line]:
    """List the groups in their order, then the gap."""
    sums = run.analysis.by("group")
    lines = [
        Line(group, f"group-{group}", sums[group].seconds, (Part(group, f"group-{group}", sums[group].seconds),))
        for group in GROUPS
        if group in sums and sums[group].seconds > 0
    ]
    return [*lines, _gap(run)[0]]


def _bar(lines: Sequence[Line], longest: float, wall: float, top: float) -> Html:
    """Draw names and shares of the step above, parts below; what has no room for its name is in the table."""
    drawn: list[Html | None] = []
    at = 0.0
    for line in lines:
        if line.below or line.seconds is None:
            continue
        drawn.append(svg.above(at / longest, line.seconds / longest, top, line.label, f"{_percent(line, wall)} %"))
        for part in line.parts:
            title = f"{part.label}: {units.seconds(part.seconds)}"
            drawn.append(svg.bar(at / longest, part.seconds / longest, top + 16, 22, f"part {part.look}", title))
            at += part.seconds
    return tag("g", drawn)


def _percent(line: Line, wall: float) -> str:
    return tables.percent(None if line.seconds is None else line.seconds / wall)


def _axis(longest: float, top: float) -> Html:
    marks = []
    for value in svg.ticks(longest):
        share = value / longest
        anchor = "start" if share < 0.05 else "end" if share > 0.9 else "middle"
        where = svg.percent(share)
        marks.append(tag("line", x1=where, x2=where, y1=top - 8, y2=top - 3, class_="tick"))
        marks.append(svg.text(share, top + 10, units.seconds(value) if value else "0", "small", anchor))
    return tag("g", marks)


def _table(lines: Sequence[Line], run: TimedRun) -> Html:
    wall = run.analysis.wall
    heads = [head("bound", False), *map(head, ("time", "%", "minimum %", "above %")), head("in words", False)]
    rows = [
        tag(
            "tr",
            tag(
                "th",
                svg.swatch(line.look) if line.look else None,
                line.label,
                scope="row",
                class_="below" if line.below else None,
            ),
            cell(units.seconds(line.seconds)),
            cell(line.share or _percent(line, wall)),
            cell("" if line.below else line.floor),
            cell("" if line.below else line.loss),
            tag("td", line.words, class_="words"),
        )
        for line in lines
    ]
    return table(
        "By bound: solid is the minimum time of the ops, pale what they take above it", heads, rows, "Time by bound"
    )


def _legend(lines: Sequence[Line], run: TimedRun) -> Html:
    wall = run.analysis.wall
    rows = [
        tag(
            "tr",
            tag("th", svg.swatch(line.look), line.label, scope="row"),
            cell(units.seconds(line.seconds)),
            cell(_percent(line, wall)),
        )
        for line in lines
    ]
    return table("Time by group", [head("group", False), head("time"), head("%")], rows, "Time by group")
