"""Draw when ops ran in a step, group by group, and the idle stretches with their causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.content import titles, wording
from roofline.content.facts import evidence
from roofline.content.timeline import CAUSES, Cause, Timeline, absent, sentences, timeline
from roofline.core.arrays import Array, Bools
from roofline.core.vocabulary import GROUPS, Group
from roofline.errors import InputError
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A lane and what is drawn in it, and between runs [in].
_LANE, _BAR, _APART = 0.103, 0.08, 0.05
#: Ops of a lane that are nearer than this are drawn as one [in].
_JOINED = 0.25 / 72

_CAUSE: dict[Cause, dict[str, Any]] = {
    "host in the framework": {"facecolor": "#404040"},
    "host in Python": {"facecolor": _style.pale(_style.RED, 0.8), "edgecolor": "white", "hatch": "/////"},
    "host reads a result": {"facecolor": "#a0a0a0", "edgecolor": "white", "hatch": "-----"},
    "after the last op": {"facecolor": "#c8c8c8"},
    "waiting for another stream": {"facecolor": "#606060", "edgecolor": "white", "hatch": "....."},
    "waiting for an event": {"facecolor": "#606060", "edgecolor": "white", "hatch": "\\\\\\\\\\"},
    "waiting for a copy": {"facecolor": "#606060", "edgecolor": "white", "hatch": "xxxxx"},
    "waiting, cause not recorded": {"facecolor": "#606060", "edgecolor": "white", "hatch": "+++++"},
    "cause of the stretch not recorded": {"facecolor": "#909090"},
}
#: How much of a colour is left where a group ran in further turns of a loop.
_PALE = 0.3


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Draw one panel per run, all on one axis of time."""
    lines = [_line(item) for item in items]
    names = called(item.profile for item in items)
    heading = _frame.heading(items, names, width, titles.idle(items, names))
    groups = [group for number, group in enumerate(GROUPS) if any(number in line.group for line in lines)]
    longest = max(line.wall for line in lines)
    unit = _frame.unit(longest)
    lanes = [*groups, "idle"]
    left_edge, right = _measure.widest(lanes) + 0.08, 0.14
    room = width - left_edge - right
    texts = _headings(items, lines, heading.rows, width - 2 * _frame.EDGE)
    above = _measure.line(_measure.SMALL) * max(map(len, texts)) + 0.015
    pitch = above + _LANE * len(lanes) + _APART
    top = _frame.EDGE + heading.height + 0.03
    keys = _frame.keys(_entries(lines, groups, room / longest), width)
    below = _frame.TICKS + _frame.LABEL + 0.02 + keys.height
    fig = _frame.blank(width, top + pitch * len(items) - _APART + below)
    heading.draw(fig)
    for number, line in enumerate(lines):
        _frame.write(fig, _frame.EDGE, top + number * pitch, texts[number], _measure.SMALL)
        axes = _frame.bars(fig, left_edge, top + number * pitch + above, room, _LANE * len(lanes))
        axes.set_xlim(0, longest / unit.seconds)
        _panel(axes, line, lanes, unit.seconds, room / longest)
        axes.set_yticks([(lane + 0.5) * _LANE for lane in range(len(lanes))], lanes, size=_measure.SMALL)
        _frame.linear(axes.xaxis, room)
        axes.tick_params(axis="x", labelbottom=number == len(items) - 1)
    lowest = top + pitch * len(items) - _APART + _frame.TICKS
    _frame.name_below(fig, left_edge + room / 2, f"time in a profiled step [{unit.name}]", lowest)
    _frame.draw_keys(fig, keys, lowest + _frame.LABEL + 0.02)
    return fig, _caption(items, names, lines, heading.title)


def _line(item: Analysis) -> Timeline:
    """Build the step of a run. InputError where its profile does not hold it."""
    step = None if (reason := absent(item)) else timeline(item)
    if step is not None and step.idle is not None:
        return step
    reason = reason or "its ops ran in several pieces whose times are not kept"
    cure = "draw --kind bound, which needs none" if step else "measure it again"
    name = f"{wording.plain(item.profile.model, 60)} on {wording.plain(item.profile.backend, 60)}"
    raise InputError(f"There is no timeline of {name}: {reason}: {cure}.")


def _headings(
    items: Sequence[Analysis], lines: Sequence[Timeline], names: Sequence[str], room: float
) -> list[list[str]]:
    """Say the times of a run in up to two lines, of several each in one, in as many words as fit behind its name."""
    ways = [sentences(item, line) for item, line in zip(items, lines, strict=True)]
    if len(items) == 1:
        return [_measure.wrap(ways[0][0], room, _measure.SMALL)]
    fitted = _measure.fit_apart(names, room - _measure.widest([f": {words[-1]}" for words in ways]))
    return [
        [_measure.first_that_fits([f"{name}: {way}" for way in words], room)]
        for name, words in zip(fitted, ways, strict=True)
    ]


def _entries(lines: Sequence[Timeline], groups: Sequence[Group], per: float) -> list[_frame.Key]:
    """Make the key: the causes of stretches that can be seen, and what is pale. per: inches for a second."""
    times = [line.idle.by_cause() for line in lines if line.idle is not None]
    seen = {cause for by_cause in times for cause, seconds in by_cause.items() if seconds * per >= _frame.PIXEL}
    entries = [_frame.Key(f"idle: {cause}", _look(cause)) for cause in CAUSES if cause in seen]
    if any(line.loops for line in lines):
        look = {"facecolor": _style.pale(_style.GROUP[groups[0]][0], _PALE)}
        entries.append(_frame.Key("pale: further turns of a loop", look))
    return entries


def _look(cause: Cause) -> dict[str, Any]:
    return {"linewidth": 0.0, **_CAUSE[cause]}


def _panel(axes: Axes, line: Timeline, lanes: Sequence[str], unit: float, per: float) -> None:
    """Draw ops and idle stretches in their lanes. per: inches for a second."""
    for lane, name in enumerate(lanes):
        middle = (lane + 0.5) * _LANE
        axes.axhline(middle, color="#e0e0e0", linewidth=0.4, zorder=0)
        for number, group in enumerate(GROUPS):
            if group == name:
                colour = _style.GROUP[group][0]
                turns = [(loop.begin, loop.end) for loop in line.loops if number in line.group[loop.first : loop.last]]
                _row(axes, turns, middle, unit, {"facecolor": _style.pale(colour, _PALE)})
                ops = _joined(line.start, line.end, line.group == number, per)
                _row(axes, ops, middle, unit, {"facecolor": colour})
    assert line.idle is not None
    for number, cause in enumerate(CAUSES):
        stretches = _joined(line.idle.start, line.idle.end, line.idle.cause == number, per)
        _row(axes, stretches, (len(lanes) - 0.5) * _LANE, unit, _look(cause))


def _joined(start: Array, end: Array, among: Bools, per: float) -> list[tuple[float, float]]:
    """Return the times of some ops or stretches, and as one of those that are too near to be told apart."""
    joined: list[tuple[float, float]] = []
    for first, last in zip(start[among].tolist(), end[among].tolist(), strict=True):
        if joined and (first - joined[-1][1]) * per < _JOINED:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _row(axes: Axes, spans: Sequence[tuple[float, float]], middle: float, unit: float, look: dict[str, Any]) -> None:
    if not spans:
        return
    if "hatch" in look:
        wide = [(start / unit, (end - start) / unit) for start, end in spans]
        # Snapped to pixels, what is thinner than one would be nothing or as wide.
        axes.broken_barh(wide, (middle - _BAR / 2, _BAR), snap=False, **look)
        return
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # One broken line as thick as a bar: a file holds two points of each, not a path with its style.
    ends = Path([(time / unit, middle) for span in spans for time in span], [Path.MOVETO, Path.LINETO] * len(spans))
    stroke: dict[str, Any] = {"facecolor": "none", "linewidth": _BAR * 72, "capstyle": "butt"}
    axes.add_patch(PathPatch(ends, snap=False, edgecolor=look["facecolor"], **stroke))


def _caption(
    items: Sequence[Analysis], names: Sequence[str], lines: Sequence[Timeline], title: Sequence[str]
) -> Caption:
    explanation = (
        "One step in time, the first profiled one that was kept: ops by group, and idle stretches by what the host did "
        "before the op that ends them. What profiling costs is in the stretches: the gap of plain steps may be smaller."
    )
    if any(line.loops for line in lines):
        explanation += (
            " Of an op that a loop repeats the first turn is drawn, as long as the mean one; pale is where the further "
            "turns ran, each group in some of it."
        )
    short, long = [explanation], [explanation]
    for analysis, name, line in zip(items, names, lines, strict=True):
        of = f"{wording.subject(analysis)}, {wording.plain(name, 60)} on {wording.device(analysis)}"
        short.append(f"{of}: {sentences(analysis, line)[0]}.")
        gap = wording.gap_name(analysis)
        long += [short[-1], f"{gap[0].upper()}{gap[1:]} {evidence.idle(analysis)}.", wording.provenance(analysis)]
        if line.idle is not None and line.idle.recorded:
            long.append("Ops of several pieces are drawn in one, and idle stretches are as long as in the mean step.")
    return Caption(" ".join(title), " ".join(short), " ".join(long))
