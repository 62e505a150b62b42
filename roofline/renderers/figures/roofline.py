"""The roofline: ops under the ceilings of the device, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.core.vocabulary import GROUP_OF, GROUPS, Group
from roofline.renderers import _words
from roofline.renderers.figures import _roofs, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Area of the largest bubble at one column's width [pt^2].
LARGEST = 160.0


@dataclass(frozen=True, slots=True)
class Bubble:
    """All ops of one signature and phase."""

    name: str
    group: Group
    intensity: float
    rate: float
    seconds: float


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, str]:
    """One panel per profile."""
    from matplotlib.lines import Line2D

    columns = 1 if width < 5 or len(items) == 1 else 2
    rows = -(-len(items) // columns)
    panel = (width / columns) * (0.72 if columns > 1 or width < 5 else 0.5)
    fig = _style.canvas(width, 0.4 + rows * panel)
    grid = fig.subplots(rows, columns, squeeze=False).flat
    groups: set[Group] = set()
    captions = []
    lines: list[_roofs.Label] = []
    for analysis, axes in zip(items, grid, strict=False):
        bubbles, absent = _bubbles(analysis)
        lines += _panel(axes, analysis, bubbles, width / columns)
        groups |= {bubble.group for bubble in bubbles}
        captions.append(_caption(analysis, bubbles, absent))
    for axes in list(grid)[len(items) :]:
        axes.set_axis_off()
    handles, labels = [], []
    for group in GROUPS:
        if group in groups:
            colour, marker = _style.GROUP[group]
            look: _style.Look = {
                "markerfacecolor": _style.pale(colour, 0.6),
                "markeredgecolor": colour,
                "markersize": 5,
            }
            handles.append(Line2D([], [], linestyle="", marker=marker, **look))
            labels.append(group)
    if handles:
        columns = 6 if width >= 5 else 2 if len(handles) == 4 else 3
        _style.keys(fig, handles, labels, min(len(handles), columns))
    _roofs.turn(fig, lines)
    return fig, " ".join([_INTRODUCTION, *captions])


_INTRODUCTION = (
    "Roofline. Each bubble is all ops with one signature: FLOP (matrix and vector) per byte of compulsory traffic, and "
    "FLOP/s attained in their own time; its area is their time. Lines are the ceilings of the device; small rings are "
    "the ridge points."
)


def _bubbles(analysis: Analysis) -> tuple[list[Bubble], float]:
    """One per signature and phase, largest first; and the share of busy time that has no place in the plane."""
    profile, table = analysis.profile, analysis.table
    merged: dict[tuple[int, int], tuple[int, float, Group]] = {}
    for row, op in enumerate(profile.ops):
        number, seconds, _ = merged.get((op.signature, op.phase), (0, 0.0, None))
        group = GROUP_OF[analysis.op_class(op)]
        merged[op.signature, op.phase] = (number + 1, seconds + float(table.own[row]), group)
    bubbles = []
    for (signature, _), (number, seconds, group) in merged.items():
        cost = profile.signatures[signature].cost
        if not cost.intensity or seconds <= 0:
            continue  # unknown, no FLOP (copies, gathers) or no traffic
        work = number * ((cost.flops or 0.0) + (cost.vector_flops or 0.0))
        name = profile.signatures[signature].name
        bubbles.append(Bubble(name, group, cost.intensity, work / seconds, seconds))
    whole = float(table.own.sum())
    shown = sum(bubble.seconds for bubble in bubbles)
    absent = max(0.0, 1 - shown / whole) if whole else 0.0
    return sorted(bubbles, key=lambda bubble: -bubble.seconds), absent


def _panel(axes: Axes, analysis: Analysis, bubbles: Sequence[Bubble], width: float) -> list[_roofs.Label]:
    lines = _roofs.ceilings(analysis.device, _roofs.precisions(analysis), vector=True)
    shown = [(bubble.intensity, bubble.rate) for bubble in bubbles]
    _roofs.limits(axes, [lines], shown, width)
    labels = _roofs.draw(axes, lines, _style.BLACK, "-")
    longest = max((bubble.seconds for bubble in bubbles), default=1.0)
    for bubble in bubbles:
        colour, marker = _style.GROUP[bubble.group]
        area = max(3.0, LARGEST * min(1.5, width / 3.3) * bubble.seconds / longest)
        look: _style.Look = {"facecolor": (*_style.pale(colour, 0.6), 0.75), "edgecolor": colour, "linewidth": 0.7}
        axes.scatter(bubble.intensity, bubble.rate, s=area, marker=marker, zorder=3, **look)
    names = (f"{_words.subject(analysis)}, {analysis.profile.backend}", _words.device(analysis))
    axes.set_title("\n".join(_style.fit(name, width - 0.6) for name in names), loc="left", size=_style.TEXT)
    axes.set(xlabel="intensity [FLOP/byte of main-memory traffic]", ylabel="FLOP/s")
    return labels


def _caption(analysis: Analysis, bubbles: Sequence[Bubble], absent: float) -> str:
    told = [f"{_words.subject(analysis)}, {_words.provenance(analysis)}"]
    if bubbles:
        first = bubbles[0]
        told.append(f"The largest bubble is {_words.plain(first.name)}, {units.seconds(first.seconds)} per step.")
    if absent > 0:
        told.append(
            f"{units.percent(absent)} of busy time is in ops that do no FLOP or whose work is unknown: not shown."
        )
    if np.any(analysis.table.above):
        told.append(f"{analysis.above_ceiling} ops ran faster than their floor: a defect of count or ceiling.")
    return " ".join(told)
