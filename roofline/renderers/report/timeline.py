"""Draw the representative step in time: when each op ran, where none did, and the known causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.core.rows import Ints
from roofline.core.vocabulary import BOUNDS
from roofline.renderers import _words
from roofline.renderers._words import plain
from roofline.renderers.report.parts import columns, svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, TimedRun, for_each_run, section

#: Ops that are drawn: of a longer step its beginning.
MOST = 10_000
#: Idle stretches that are listed.
_LISTED = 10
#: Units of the picture along the step: what is a thousandth of a pixel apart can be magnified.
_WIDE = 1_000_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which no op ran [s], and the row of the op that ended it, -1 for the end of the step.

    start, end: where it is drawn; seconds: how long it was.
    """

    start: float
    end: float
    seconds: float
    before: int


@dataclass(frozen=True, slots=True)
class Step:
    """The ops of one profiled step in the order of their starts, in seconds from its beginning.

    rows: of the profile; wall: its length; idle: stretches without an op, in order. recorded: whether the stretches are
    recorded (the mean of the kept steps), and not computed from the ops of this step.
    """

    rows: Ints
    start: np.ndarray
    end: np.ndarray
    wall: float
    idle: tuple[Stretch, ...]
    recorded: bool


def absent(analysis: WorkAnalysis) -> str:
    """Say why there is no timeline; "" where there is one."""
    profile = analysis.profile
    if profile.profiled is None:
        return "the step was counted and not timed"
    if not profile.ops:
        return "no op was recorded"
    if not profile.has_times or not profile.profiled.walls:
        return "no profiled step was kept"
    if len(profile.ops) > 1 and len({op.start_ns for op in profile.ops}) == 1:
        return "the profile does not say when its ops began"
    return ""


def step(analysis: Analysis) -> Step:
    """Build the first kept step of the profiled ones, whose starts the profile holds."""
    profile = analysis.profile
    assert profile.profiled is not None
    start = np.asarray([op.start_ns for op in profile.ops], np.float64) * 1e-9
    # Of that step alone: the mean of all would reach past the beginning of the next op, or leave a gap that was none.
    own_seconds = analysis.table.columns.steps[:, 0]
    rows = np.argsort(start, kind="stable")[:MOST]
    start, end = start[rows], (start + own_seconds)[rows]
    begin = min(0.0, float(start[0]))
    wall = max(profile.profiled.walls[0], float(end.max()) - begin)
    start, end = start - begin, end - begin
    # An op of several kernels is drawn as if they followed each other: what lies between it and the next one may be one
    # of its kernels, so that idle time is taken from where it is recorded.
    host = [None if op.host_ns is None else sum(op.host_ns) * 1e-9 for op in profile.ops]
    recorded = None not in host
    idle, reached = [], 0.0
    for number, row in enumerate(rows.tolist()):
        begins, length = float(start[number]), host[row] if recorded else None
        if length is None:
            length = begins - reached
        if length > 0:
            idle.append(Stretch(max(min(reached, begins), begins - length), begins, length, row))
        reached = max(reached, float(end[number]))
    if len(rows) < len(profile.ops):
        return Step(rows, start, end, reached, tuple(idle), recorded)
    idle_at_end = wall - reached
    if recorded:
        idle_at_end = min(idle_at_end, (analysis.idle or 0.0) - sum(stretch.seconds for stretch in idle))
    if idle_at_end > 0:
        idle.append(Stretch(wall - idle_at_end, wall, idle_at_end, -1))
    return Step(rows, start, end, wall, tuple(idle), recorded)


def timeline(runs: Sequence[Run]) -> tuple[Html, list[dict[str, Any] | None]]:
    """Write the section and, for the script, the ops in time; None for a run whose profile does not hold them."""
    steps = [step(run.analysis) if isinstance(run, TimedRun) and not absent(run.analysis) else None for run in runs]

    def build(run: Run) -> Html:
        drawn_step = steps[run.number]
        if drawn_step is None:
            return tag("p", f"There is no timeline: {absent(run.analysis)}.", class_="note")
        return _run(run, drawn_step)

    script_data = [
        None if drawn_step is None else _data(run.analysis, drawn_step)
        for run, drawn_step in zip(runs, steps, strict=True)
    ]
    return section("timeline", "Timeline of one step", for_each_run(runs, build)), script_data


def _run(run: Run, drawn_step: Step) -> Html:
    title = f"{units.seconds(drawn_step.wall)} of one profiled step"
    buttons = [("in", "+", "magnify"), ("out", "−", "make smaller"), ("left", "‹", "earlier"), ("right", "›", "later"),
               ("all", "whole step", "whole step")]  # fmt: skip
    controls = tag(
        "div",
        [tag("button", words, type="button", data_zoom=key, aria_label=label) for key, words, label in buttons],
        class_="controls screen",
    )
    picture = tag(
        "svg",
        tag("title", f"Timeline: {title}"),
        _lanes(run.analysis, drawn_step),
        tag("g", _ticks(drawn_step), class_="ticks"),
        class_="timeline",
        height=110,
        tabindex=0,
        role="application",
        aria_label=f"Timeline: {title}. Plus and minus magnify, arrow keys go from op to op.",
    )
    readout = tag("p", "Point at an op or an idle stretch.", class_="readout screen", aria_live="polite")
    return tag("div", _legend(), controls, picture, readout, _idle(run, drawn_step), data_timeline=run.number)


def _legend() -> Html:
    items = [
        tag("li", tag("svg", tag("rect", width=10, height=10, class_=f"part {look}"), class_="swatch", width=10,
                      height=10, aria_hidden="true"), words)
        for look, words in (*((bound, bound) for bound in BOUNDS), ("rest", "no op runs"))
    ]  # fmt: skip
    return tag("ul", items, class_="legend")


def _lanes(analysis: WorkAnalysis, drawn_step: Step) -> Html:
    """Draw ops by bound, and below them idle stretches: as wide as the page, whatever part of the step is shown."""
    scale = _WIDE / drawn_step.wall
    paths: dict[int, list[str]] = {}
    for start, end, row in zip(
        drawn_step.start.tolist(), drawn_step.end.tolist(), drawn_step.rows.tolist(), strict=True
    ):
        paths.setdefault(int(analysis.table.bound[row]), []).append(_box(start, end, scale, 0, 44))
    ops = [tag("path", d="".join(parts), class_=f"part {BOUNDS[bound]}") for bound, parts in sorted(paths.items())]
    drawn = [stretch for stretch in drawn_step.idle if stretch.end > stretch.start]
    idle = "".join(_box(stretch.start, stretch.end, scale, 50, 18) for stretch in drawn)
    gaps = tag("path", d=idle, class_="part idle")
    chosen = tag("rect", class_="chosen", x=-9, y=0, width=0, height=70)
    place = {"y": "0", "width": "100%", "height": "84", "viewBox": f"0 0 {_WIDE} 70"}
    return tag("svg", ops, gaps, chosen, class_="lanes", preserveAspectRatio="none", **place)


def _box(start: float, end: float, scale: float, top: int, height: int) -> str:
    """Draw a part of a path; one too short to be seen is one unit wide."""
    start_pixel = round(start * scale)
    width = max(1, round(end * scale) - start_pixel)
    return f"M{start_pixel} {top}h{width}v{height}h-{width}z"


def _ticks(drawn_step: Step) -> list[Html]:
    marks = []
    for value in svg.ticks(drawn_step.wall, 8):
        share = value / drawn_step.wall
        where = svg.percent(share)
        marks.append(tag("line", x1=where, x2=where, y1=84, y2=90, class_="tick"))
        anchor = "start" if share < 0.04 else "end" if share > 0.94 else "middle"
        marks.append(svg.text(share, 104, units.seconds(value) if value else "0", "small", anchor))
    return marks


def cause(analysis: WorkAnalysis, row: int) -> str:
    """Say what the host did before an op, where that is recorded: the mean of the kept steps."""
    op = analysis.profile.ops[row] if row >= 0 else None
    if op is None or op.host_ns is None:
        return ""
    framework, python = op.host_ns
    if not framework and not python:
        return ""
    times = f"{units.seconds(framework * 1e-9)} in the framework, {units.seconds(python * 1e-9)} in Python"
    return f"{times}; {_words.counted(op.host_reads, 'result')} read" if op.host_reads else times


def _idle(run: Run, drawn_step: Step) -> Html:
    """List the longest stretches, and the causes of all of them as observed in the profiled steps."""
    analysis = run.analysis
    profile = analysis.profile
    longest = sorted(drawn_step.idle, key=lambda stretch: -stretch.seconds)[:_LISTED]
    has_causes = any(cause(analysis, stretch.before) for stretch in longest)
    rows = []
    for stretch in longest:
        op = profile.ops[stretch.before] if stretch.before >= 0 else None
        label: Any = "the end of the step" if op is None else name(profile.signatures[op.signature].name, 60)
        place = "" if op is None else name(profile.scopes[op.scope], 50, end=True)
        cells = [cell(units.seconds(stretch.start)), cell(units.seconds(stretch.seconds)), cell(label, False)]
        cells.append(cell(place, False))
        if has_causes:
            cells.append(cell(cause(analysis, stretch.before) or units.UNKNOWN, False))
        rows.append(tag("tr", cells))
    heads = [head("at"), head("idle"), head("before", False), head("scope", False)]
    if has_causes:
        heads.append(head("the host meanwhile", False))
    idle_seconds = sum(stretch.seconds for stretch in drawn_step.idle)
    number = f"{units.count(len(drawn_step.idle))} {'stretch' if len(drawn_step.idle) == 1 else 'stretches'}"
    whose_time = "a profiled step, on average" if drawn_step.recorded else "this step"
    sentences = [f"No op runs for {units.seconds(idle_seconds)} of {whose_time}, in {number}."]
    assert profile.profiled is not None
    causes = {plain(label, 60): seconds for label, seconds in profile.profiled.idle_causes.items() if seconds > 0}
    if causes:
        parts = [
            f"{label} {units.seconds(seconds)}"
            for label, seconds in sorted(causes.items(), key=lambda cause_and_time: -cause_and_time[1])
        ]
        sentences.append(f"Causes of the idle time in the profiled steps, per step: {', '.join(parts)}.")
        if not has_causes:
            sentences.append("The profile does not say which stretch has which cause.")
    else:
        sentences.append("The causes are not recorded.")
    sentences.append(
        "The picture shows one profiled step as it was recorded, with the profiler's overhead between the ops. An op "
        "of several kernels begins with the first and is as long as all of them together."
    )
    if len(drawn_step.rows) < len(profile.ops):
        sentences.append(f"Only the first {len(drawn_step.rows):,} of {len(profile.ops):,} ops are drawn.")
    note = tag("p", " ".join(sentences), class_="note")
    return (
        tag("div", table("The longest idle stretches", heads, rows, "Longest idle stretches"), note) if rows else note
    )


def _data(analysis: WorkAnalysis, drawn_step: Step) -> dict[str, Any]:
    """Write the ops and idle stretches for the script: whole nanoseconds, names and times as they are shown."""
    profile = analysis.profile
    ops = [profile.ops[row] for row in drawn_step.rows.tolist()]
    return {
        "wall": round(drawn_step.wall * 1e9),
        "start": [round(seconds * 1e9) for seconds in drawn_step.start.tolist()],
        "end": [round(seconds * 1e9) for seconds in drawn_step.end.tolist()],
        "name": columns.names(profile.signatures[op.signature].name for op in ops),
        "scope": columns.names(profile.scopes[op.scope] for op in ops),
        "bound": columns.texts(BOUNDS[int(analysis.table.bound[row])] for row in drawn_step.rows.tolist()),
        "time": columns.texts(units.seconds(seconds) for seconds in (drawn_step.end - drawn_step.start).tolist()),
        "idle": {
            "start": [round(stretch.start * 1e9) for stretch in drawn_step.idle],
            "end": [round(stretch.end * 1e9) for stretch in drawn_step.idle],
            "time": columns.texts(units.seconds(stretch.seconds) for stretch in drawn_step.idle),
            "cause": columns.texts(cause(analysis, stretch.before) for stretch in drawn_step.idle),
        },
    }
