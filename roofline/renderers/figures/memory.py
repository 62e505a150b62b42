"""Draw the memory of a step: the bytes in use during each op, stacked by what they are for, and the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.analysis.run_names import called
from roofline.content import palette, titles, wording
from roofline.content.facts import memory
from roofline.core.arrays import Array
from roofline.core.rows import Ints
from roofline.core.vocabulary import STORAGE_KINDS, StorageKind
from roofline.errors import InputError
from roofline.memory.timeline import Timeline, timeline
from roofline.memory.use import SOURCES, WORDS, memory_use
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What is drawn of a profile without times.
WITHOUT_TIMES = "the memory of the step"
#: Height of a panel where a page has room for it, and room between panels [in].
_HIGH, _APART = 1.25, 0.07
#: Steps of the outlines of all runs together: by choice, as a figure weighs 50 bytes for each, times the kinds.
_POINTS = 300
_HATCH: dict[StorageKind, str] = dict(
    zip(STORAGE_KINDS, ("", "/////", "-----", "", "xxxxx", "|||||", "\\\\\\\\\\"), strict=True)
)


def figure(items: Sequence[WorkAnalysis], width: float) -> tuple[Figure, Caption]:
    """Draw one panel per run whose memory is known, all on one axis of bytes."""
    all_names = called(item.profile for item in items)
    known = [number for number, item in enumerate(items) if timeline(item.profile) is not None]
    without = [name for number, name in enumerate(all_names) if number not in known]
    items, names = [items[number] for number in known] or items, [all_names[number] for number in known]
    steps = [_step(item) for item in items]
    lines = [_lines(item, step) for item, step in zip(items, steps, strict=True)]
    unknown = f"Not known of {wording.conjunction([wording.plain(name, 60) for name in without])}." if without else ""
    heading = _frame.heading(items, names, width, titles.memory(items, names), unknown)
    highest = max([*(float(step.total.max()) for step in steps), *(level for of in lines for level in of.values())])
    size, unit = _unit(highest)
    texts = [[_measure.fit(name, width - 2 * _frame.EDGE, _measure.SMALL)] if name else [] for name in heading.rows]
    above = _measure.line(_measure.SMALL) * max(map(len, texts)) + 0.02
    left_edge, right = 0.46, 0.1
    room = width - left_edge - right
    kinds = [kind for number, kind in enumerate(STORAGE_KINDS) if any(step.live[number].any() for step in steps)]
    seen = [kind for kind in kinds if max(_most(step, kind) for step in steps) * _HIGH / highest >= _frame.PIXEL]
    entries = [_frame.Key(WORDS[kind], _look(kind)) for kind in seen]
    entries.append(_frame.Key("most in use", _PEAK, "marker"))
    entries += [_frame.Key(label, look, "line") for label, look in _LINES.items() if any(label in of for of in lines)]
    keys = _frame.keys(entries, width)
    top, below = _frame.EDGE + heading.height + 0.03, _frame.LABEL + keys.height
    around = above + _frame.TICKS + _APART
    high = min(_HIGH, (_frame.PAGE - top - below) / len(items) - around)
    pitch = high + around
    fig = _frame.blank(width, top + pitch * len(items) + below)
    heading.draw(fig)
    for number, step in enumerate(steps):
        begin = top + number * pitch
        _frame.write(fig, _frame.EDGE, begin, texts[number], _measure.SMALL)
        axes = _frame.panel(fig, left_edge, begin + above, room, high)
        axes.set_xlim(0, len(step.total))
        axes.set_ylim(0, 1.06 * highest / size)
        _draw(axes, step, kinds, size, _POINTS // len(items))
        for label, level in lines[number].items():
            axes.axhline(level / size, **_LINES[label])
        _frame.linear(axes.xaxis, room)
        _frame.linear(axes.yaxis, high, 5)
        _frame.upright(fig, _frame.EDGE, begin + above, high, [f"in use [{unit}]", f"[{unit}]"])
    lowest = top + pitch * len(items) - _APART
    _frame.name_below(fig, left_edge + room / 2, "op, in the order of dispatch", lowest)
    _frame.draw_keys(fig, keys, lowest + _frame.LABEL + 0.02)
    return fig, _caption(items, names, steps, unknown, heading.title)


#: The mark of the op during which most is in use.
_PEAK: dict[str, Any] = {"marker": "v", "markersize": 4, "color": _style.BLACK}
_ASSIGNED, _MEASURED = "assigned by the compiler", "measured by the allocator"
_LINES: dict[str, dict[str, Any]] = {
    label: {"color": _style.BLACK, "linewidth": 0.8, "linestyle": style}
    for label, style in ((_ASSIGNED, "--"), (_MEASURED, ":"))
}


def _lines(item: WorkAnalysis, step: Timeline) -> dict[str, float]:
    """Return the levels that are drawn besides what the ops of a step use, by label [byte]."""
    levels = {_ASSIGNED: step.assigned, _MEASURED: item.profile.memory.peak}
    return {label: level for label, level in levels.items() if level is not None}


def _step(item: WorkAnalysis) -> Timeline:
    """Make the timeline of a run. InputError where its profile does not know its memory."""
    step = timeline(item.profile)
    if step is None:
        name = f"{wording.plain(item.profile.model, 60)} on {wording.plain(item.profile.backend, 60)}"
        raise InputError(
            f"The memory of {name} is not known: its profile has neither storages nor buffers; measure it again, or "
            "draw --kind bound."
        )
    return step


def _most(step: Timeline, kind: StorageKind) -> float:
    return float(step.live[STORAGE_KINDS.index(kind)].max())


def _unit(highest: float) -> tuple[float, str]:
    """Choose the unit of an axis of bytes."""
    prefixes = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((pair for pair in prefixes if highest >= pair[0]), (1.0, "B"))


def _look(kind: StorageKind) -> dict[str, Any]:
    look: dict[str, Any] = {"facecolor": palette.STORAGES[kind][0], "linewidth": 0.0}
    return {**look, "hatch": _HATCH[kind], "edgecolor": "white"} if _HATCH[kind] else look


def _draw(axes: Axes, step: Timeline, kinds: Sequence[StorageKind], size: float, points: int) -> None:
    """Stack the kinds, the lowest in front of those above it, and mark where most is in use."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    rows = step.outline(max(points, 1))
    edges = np.append(rows, len(step.total))
    edges[0] = 0
    held = step.live[[STORAGE_KINDS.index(kind) for kind in kinds]][:, rows].cumsum(axis=0) / size
    for kind, upper in reversed(list(zip(kinds, held, strict=True))):
        axes.add_patch(PathPatch(Path(_outline(edges, upper), closed=True), snap=False, **_look(kind)))
    peak = step.highest
    axes.plot([peak + 0.5], [float(step.total[peak]) / size], clip_on=False, **_PEAK)


def _outline(edges: Ints, upper: Array) -> list[tuple[float, float]]:
    """Return the corners of an area below steps, from the lower left one on: two where its height changes."""
    changes = [0, *(np.flatnonzero(np.diff(upper)) + 1).tolist()]
    corners = [(float(edges[0]), 0.0)]
    for begin, end in zip(changes, [*changes[1:], len(upper)], strict=True):
        corners += [(float(edges[begin]), float(upper[begin])), (float(edges[end]), float(upper[begin]))]
    return [*corners, (float(edges[-1]), 0.0), corners[0]]


def _caption(
    items: Sequence[WorkAnalysis],
    names: Sequence[str],
    steps: Sequence[Timeline],
    unknown: str,
    title: Sequence[str],
) -> Caption:
    explanation = (
        "Memory in use during each op of one step, by what it is for; the mark is where most is in use. An op stands "
        "for the moment in which it is most."
    )
    short, long = [explanation], [explanation]
    for item, name, step in zip(items, names, steps, strict=True):
        use = memory_use(item.profile)
        of = f"{wording.subject(item)}, {wording.plain(name, 60)}"
        of += f" on {device}" if (device := wording.device(item)) else ""
        where = f" {memory.place(item.profile, step.highest)}"
        least = "at least " if step.at_least else ""
        short.append(f"{of}: {least}{units.byte(float(step.total.max()))} in use{where}.")
        if step.assigned is not None:
            short.append(f"The compiler assigned {units.byte(step.assigned)}, which is there throughout.")
        if (measured := item.profile.memory.peak) is not None:
            short.append(f"The allocator measured {units.byte(measured)} at most in the plain steps.")
        long += [short[-1], f"{memory.parts(use)} ({SOURCES[step.source]}).", wording.provenance(item)]
    if unknown:
        short, long = [*short, unknown], [*long, unknown]
    return Caption(" ".join(title), " ".join(short), " ".join(long))
