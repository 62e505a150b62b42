"""Draw the representative step in time: when each op ran, where none did, and the known causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.waits import waits_before
from roofline.content import timeline as lanes
from roofline.content import wording
from roofline.content.facts.waits import in_words
from roofline.content.timeline import Idle, Timeline, absent, sentences
from roofline.core.arrays import Array
from roofline.core.vocabulary import BOUNDS
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


def timeline(runs: Sequence[Run]) -> tuple[Html, list[dict[str, Any] | None]]:
    """Write the section and, for the script, the ops in time; None for a run whose profile does not hold them."""
    steps = [
        lanes.timeline(run.analysis) if isinstance(run, TimedRun) and not absent(run.analysis) else None for run in runs
    ]

    def build(run: Run) -> Html:
        step = steps[run.number]
        if step is None or not isinstance(run, TimedRun):
            return tag("p", f"There is no timeline: {absent(run.analysis)}.", class_="note")
        return _run(run, step)

    script_data = [
        None if step is None else _data(run.analysis, step.beginning(MOST))
        for run, step in zip(runs, steps, strict=True)
    ]
    return section("timeline", "Timeline of one step", for_each_run(runs, build)), script_data


def _run(run: TimedRun, step: Timeline) -> Html:
    drawn_step = step.beginning(MOST)
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
        _lanes(drawn_step),
        tag("g", _ticks(drawn_step), class_="ticks"),
        class_="timeline",
        height=110,
        tabindex=0,
        role="application",
        aria_label=f"Timeline: {title}. Plus and minus magnify, arrow keys go from op to op.",
    )
    readout = tag("p", "Point at an op or an idle stretch.", class_="readout screen", aria_live="polite")
    return tag("div", _legend(drawn_step), controls, picture, readout, _idle(run, step), data_timeline=run.number)


def _legend(drawn_step: Timeline) -> Html:
    """Name the colours of what is drawn."""
    looks: list[tuple[str, str]] = [
        (bound, bound) for number, bound in enumerate(BOUNDS) if (drawn_step.bound == number).any()
    ]
    looks += [] if drawn_step.idle is None else [("rest", "no op runs")]
    items = [
        tag("li", tag("svg", tag("rect", width=10, height=10, class_=f"part {look}"), class_="swatch", width=10,
                      height=10, aria_hidden="true"), words)
        for look, words in looks
    ]  # fmt: skip
    return tag("ul", items, class_="legend")


def _lanes(drawn_step: Timeline) -> Html:
    """Draw ops by bound, and below them idle stretches: as wide as the page, whatever part of the step is shown."""
    scale = _WIDE / drawn_step.wall
    ops = [
        tag("path", d=_boxes(drawn_step.start[among], drawn_step.end[among], scale, 0, 44), class_=f"part {bound}")
        for number, bound in enumerate(BOUNDS)
        if (among := drawn_step.bound == number).any()
    ]
    ops += [
        tag("path", d=_box(loop.begin, loop.end, scale, 0, 44), class_=f"part {BOUNDS[bound]} pale")
        for loop in drawn_step.loops
        for bound in np.unique(drawn_step.bound[loop.first : loop.last]).tolist()
    ]
    idle = drawn_step.idle
    gaps = None
    if idle is not None:
        gaps = tag("path", d=_boxes(idle.start, idle.end, scale, 50, 18), class_="part idle")
    chosen = tag("rect", class_="chosen", x=-9, y=0, width=0, height=70)
    place = {"y": "0", "width": "100%", "height": "84", "viewBox": f"0 0 {_WIDE} 70"}
    return tag("svg", ops, gaps, chosen, class_="lanes", preserveAspectRatio="none", **place)


def _boxes(start: Array, end: Array, scale: float, top: int, height: int) -> str:
    return "".join(_box(*times, scale, top, height) for times in zip(start.tolist(), end.tolist(), strict=True))


def _box(start: float, end: float, scale: float, top: int, height: int) -> str:
    """Draw a part of a path; one too short to be seen is one unit wide."""
    start_pixel = round(start * scale)
    width = max(1, round(end * scale) - start_pixel)
    return f"M{start_pixel} {top}h{width}v{height}h-{width}z"


def _ticks(drawn_step: Timeline) -> list[Html]:
    marks = []
    for number, value in enumerate(svg.ticks(drawn_step.wall, 8)):
        share = value / drawn_step.wall
        where = svg.percent(share)
        marks.append(tag("line", x1=where, x2=where, y1=84, y2=90, class_="tick"))
        anchor = "start" if share < 0.04 else "end" if share > 0.94 else "middle"
        look = "small wide" if number % 3 else "small"  # a telephone has less room
        marks.append(svg.text(share, 104, units.seconds(value) if value else "0", look, anchor))
    return marks


def _idle(run: TimedRun, step: Timeline) -> Html:
    """Say the idle time and its causes as everywhere, and list the longest stretches."""
    analysis, idle = run.analysis, step.idle
    words = sentences(analysis, step)[0]
    about = [f"{words[0].upper()}{words[1:]}."]
    if idle is not None:
        number = f"{units.count(len(idle.start))} {'stretch' if len(idle.start) == 1 else 'stretches'}"
        by_cause = [f"{units.seconds(seconds)} {cause}" for cause, seconds in idle.by_cause().items()]
        about.append(f"This step is idle in {number}{': ' if by_cause else ''}{', '.join(by_cause)}.")
    if analysis.gap_causes and (idle is None or not any(_host(analysis, int(row)) for row in idle.before)):
        about.append("The profile does not say which stretch has which cause.")
    about.append(
        "The picture shows this step as it was recorded, with the profiler's overhead between the ops. An op "
        "of several kernels begins with the first and is as long as all of them together."
    )
    if idle is None:
        about.append("When no op ran between such kernels is not known.")
    elif idle.recorded:
        about.append("Idle stretches are as long as in the mean step.")
    if step.loops:
        about.append(
            "Of an op in a loop the first turn is drawn, as long as the mean one; further turns ran where it is pale."
        )
    if len(step.rows) > MOST:
        about.append(f"Only the first {MOST:,} of {len(step.rows):,} ops are drawn.")
    note = tag("p", " ".join(about), class_="note")
    return note if idle is None or not len(idle.start) else tag("div", _longest(analysis, idle), note)


def _longest(analysis: WorkAnalysis, idle: Idle) -> Html:
    """List the longest stretches, with their causes on average where these are recorded of any."""
    profile = analysis.profile
    places = np.argsort(idle.start - idle.end, kind="stable")[:_LISTED].tolist()
    host = [_host(analysis, int(idle.before[place])) for place in places]
    rows = []
    for place, words in zip(places, host, strict=True):
        before = int(idle.before[place])
        op = profile.ops[before] if before >= 0 else None
        label: Any = "the end of the step" if op is None else name(profile.signatures[op.signature].name, 60)
        scope = "" if op is None else name(profile.scopes[op.scope], 50, end=True)
        times = (float(idle.start[place]), float(idle.end[place] - idle.start[place]))
        cells = [*(cell(units.seconds(seconds)) for seconds in times), cell(label, False), cell(scope, False)]
        rows.append(tag("tr", cells, [cell(words or units.UNKNOWN, False)] if any(host) else []))
    heads = [head("at"), head("idle"), head("before", False), head("scope", False)]
    heads += [head("meanwhile, on average", False)] if any(host) else []
    return table("The longest idle stretches", heads, rows, "Longest idle stretches")


def _host(analysis: WorkAnalysis, row: int) -> str:
    """Say what the host did and the device waited for before an op, where that is recorded: the mean of kept steps."""
    op = analysis.profile.ops[row] if row >= 0 else None
    if op is None or op.host_ns is None:
        return ""
    framework, python = op.host_ns
    words = []
    if framework or python:
        words.append(f"{units.seconds(framework * 1e-9)} in the framework, {units.seconds(python * 1e-9)} in Python")
        words += [f"{wording.counted(op.host_reads, 'result')} read"] if op.host_reads else []
    words += [f"{units.seconds(wait.seconds)} {in_words(wait)}" for wait in waits_before(analysis.profile).get(row, ())]
    return "; ".join(words)


def _data(analysis: WorkAnalysis, drawn_step: Timeline) -> dict[str, Any]:
    """Write the ops and idle stretches for the script: whole nanoseconds, names and times as they are shown."""
    profile, idle = analysis.profile, drawn_step.idle
    ops = [profile.ops[row] for row in drawn_step.rows.tolist()]
    none = np.zeros(0)
    start, end, before = (none, none, none) if idle is None else (idle.start, idle.end, idle.before)
    return {
        "wall": round(drawn_step.wall * 1e9),
        "start": _nanoseconds(drawn_step.start),
        "end": _nanoseconds(drawn_step.end),
        "name": columns.names(profile.signatures[op.signature].name for op in ops),
        "scope": columns.names(profile.scopes[op.scope] for op in ops),
        "bound": columns.texts(BOUNDS[bound] for bound in drawn_step.bound.tolist()),
        "time": columns.texts(map(_time, drawn_step.start, drawn_step.end, drawn_step.turns)),
        "idle": {
            "start": _nanoseconds(start),
            "end": _nanoseconds(end),
            "time": columns.texts(map(units.seconds, (end - start).tolist())),
            "cause": columns.texts(_host(analysis, int(row)) for row in before.tolist()),
        },
    }


def _time(start: float, end: float, turns: int) -> str:
    """Write how long an op runs, of one in a loop in all of its turns."""
    once = float(end - start)
    return units.seconds(once) if turns == 1 else f"{units.seconds(once * turns)} in {units.count(turns)} turns"


def _nanoseconds(times: Array) -> list[int]:
    return [round(seconds * 1e9) for seconds in times.tolist()]
