"""Draw the representative step in time: ops in a lane for each group, below them idle stretches with their causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.core.vocabulary import GROUPS
from roofline.renderers import _words
from roofline.renderers._timeline import CAUSES, Cause, Timeline, timeline
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A lane and what is drawn in it, and between runs [in].
_LANE, _BAR, _APART = 0.11, 0.085, 0.06
#: Ops of a lane that are nearer than this are drawn as one [in].
_JOINED = 0.1 / 72

_CAUSE: dict[Cause, dict[str, Any]] = {
    "host in the framework": {"facecolor": "#404040"},
    "host in Python": {"facecolor": _style.pale(_style.RED, 0.8), "edgecolor": "white", "hatch": "/////"},
    "host reads a result": {"facecolor": _style.SKY, "edgecolor": "white", "hatch": "-----"},
    "after the last op": {"facecolor": "#c8c8c8"},
    "cause not recorded": {"facecolor": "#909090"},
}


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Draw one panel per run, all on one axis of time."""
    lines = [timeline(item) for item in items]
    names = called(item.profile for item in items)
    heading = _frame.heading(items, names, width)
    groups = [group for group in GROUPS if any(span.group == group for line in lines for span in line.spans)]
    longest = max(line.wall for line in lines)
    unit = _frame.unit(longest)
    lanes = [*groups, "idle"]
    left_edge, right = _measure.widest(lanes) + 0.08, 0.14
    room = width - left_edge - right
    above = _measure.line(_measure.SMALL) + 0.015 if len(items) > 1 else 0.0
    pitch = above + _LANE * len(lanes) + _APART
    top = _frame.EDGE + _measure.line(_measure.TEXT) * len(heading.lines) + 0.03
    causes = [cause for cause in CAUSES if any(cause in line.by_cause() for line in lines)]
    keys = _frame.keys([_frame.Key(f"idle: {cause}", _look(cause)) for cause in causes], width)
    below = _frame.TICKS + _frame.LABEL + 0.02 + keys.height
    fig = _frame.blank(width, top + pitch * len(items) - _APART + below)
    _frame.write(fig, _frame.EDGE, _frame.EDGE, heading.lines, _measure.TEXT)
    times = [f": {units.seconds(line.wall)}, {units.seconds(line.idle_seconds)} of it idle" for line in lines]
    fitted = _measure.fit_apart(heading.rows, width - 2 * _frame.EDGE - _measure.widest(times))
    for number, line in enumerate(lines):
        at = top + number * pitch
        if len(items) > 1:
            _frame.write(fig, _frame.EDGE, at, [fitted[number] + times[number]], _measure.SMALL)
        axes = _frame.bars(fig, left_edge, at + above, room, _LANE * len(lanes))
        axes.set_xlim(0, longest / unit.seconds)
        _panel(axes, line, lanes, unit.seconds, room / longest)
        axes.set_yticks([(lane + 0.5) * _LANE for lane in range(len(lanes))], lanes, size=_measure.SMALL)
        _frame.linear(axes.xaxis, room)
        axes.tick_params(axis="x", labelbottom=number == len(items) - 1)
    lowest = top + pitch * len(items) - _APART + _frame.TICKS
    _frame.name_below(fig, left_edge + room / 2, f"time in a profiled step [{unit.name}]", lowest)
    _frame.draw_keys(fig, keys, lowest + _frame.LABEL + 0.02)
    return fig, _caption(items, names, lines)


def _look(cause: Cause) -> dict[str, Any]:
    return {"linewidth": 0.0, **_CAUSE[cause]}


def _panel(axes: Axes, line: Timeline, lanes: Sequence[str], unit: float, per: float) -> None:
    """Draw ops and idle stretches in their lanes. per: inches for a second."""
    for lane, name in enumerate(lanes):
        middle = (lane + 0.5) * _LANE
        axes.axhline(middle, color="#e0e0e0", linewidth=0.4, zorder=0)
        for cause in CAUSES if name == "idle" else ():
            spans = [(stretch.start, stretch.end) for stretch in line.idle if stretch.cause == cause]
            _row(axes, spans, middle, unit, per, _look(cause))
        if name != "idle":
            spans = [(span.start, span.end) for span in line.spans if span.group == name]
            colour = next(colour for group, (colour, _) in _style.GROUP.items() if group == name)
            _row(axes, spans, middle, unit, per, {"facecolor": colour, "linewidth": 0.0})


def _row(
    axes: Axes, spans: Sequence[tuple[float, float]], middle: float, unit: float, per: float, look: dict[str, Any]
) -> None:
    joined: list[tuple[float, float]] = []
    for start, end in spans:
        if joined and (start - joined[-1][1]) * per < _JOINED:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    if not joined:
        return
    if "hatch" in look:
        wide = [(start / unit, (end - start) / unit) for start, end in joined]
        # Snapped to pixels, what is thinner than one would be nothing or as wide.
        axes.broken_barh(wide, (middle - _BAR / 2, _BAR), snap=False, **look)
        return
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # One broken line as thick as a bar: a file holds two points of each, not a path with its style.
    ends = Path([(time / unit, middle) for span in joined for time in span], [Path.MOVETO, Path.LINETO] * len(joined))
    stroke: dict[str, Any] = {"facecolor": "none", "linewidth": _BAR * 72, "capstyle": "butt"}
    axes.add_patch(PathPatch(ends, snap=False, edgecolor=look["facecolor"], **stroke))


def _caption(items: Sequence[Analysis], names: Sequence[str], lines: Sequence[Timeline]) -> Caption:
    explanation = (
        "The first profiled step that was kept: ops by group, and idle stretches by what the host did before the op "
        "that ends them. What profiling costs is in the stretches: the gap of plain steps may be smaller."
    )
    short, long = [explanation], [explanation]
    for analysis, name, line in zip(items, names, lines, strict=True):
        of = f"{_words.subject(analysis)}, {_words.plain(name, 60)} on {_words.device(analysis)}"
        causes = [f"{units.seconds(seconds)} {cause}" for cause, seconds in line.by_cause().items()]
        idle = f" ({', '.join(causes)})" if causes else ""
        gap = f"{_words.gap_name(analysis)} {units.seconds(analysis.gap_told)}"
        times = f"{units.seconds(line.wall)}, {units.seconds(line.idle_seconds)} of it idle{idle}"
        whose_steps = (
            "plain steps take" if analysis.profile.wall.source == "plain" else "its steps take, in the median,"
        )
        short.append(f"{of}: {times}; {whose_steps} {units.seconds(analysis.wall)}, {gap}.")
        long += [short[-1], _words.provenance(analysis)]
        if analysis.gap_causes:
            causes_of_gap = [
                f"{units.seconds(seconds)} {_words.plain(cause)}" for cause, seconds in analysis.gap_causes.items()
            ]
            by_cause = f"{_words.gap_name(analysis)} by cause: {', '.join(causes_of_gap)}."
            long.append(f"{by_cause[0].upper()}{by_cause[1:]}")
        if any(op.times > 1 for op in analysis.profile.ops):
            long.append("An op that a loop repeats is drawn once, from its first turn on, with the time of all.")
    return Caption("One step in time", " ".join(short), " ".join(long))
