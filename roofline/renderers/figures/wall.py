"""Work against busy time: for each run a bar of FLOPs, of bytes and of busy time, by the classes of Ivanov et al.

Published shares of the same step stand below, outlined. A line under the bar of time is the least time of its ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.wall_chart import CLASSES
from roofline.content import tables, wording
from roofline.content.facts import wall
from roofline.content.facts.wall import Chart, Row, Run
from roofline.core.vocabulary import Group
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What is drawn of a profile without times.
WITHOUT_TIMES = "the shares of FLOPs and bytes"
#: The name of a run, its bars, the line below the bar of time with the air above it, and air below all [in].
_NAME, _BAR, _LINE, _AIR = 0.125, 0.17, 0.045, 0.06
#: How thick that line is, and the room above the published rows [in].
_THICK, _SET_APART = 0.028, 0.07
#: Between panels and between columns of text; below their headings; around a number in a bar [in].
_APART, _BELOW_HEADS, _PAD = 0.1, 0.05, 0.035
_INK, _RANGE, _FAINT = "#000000", "#9a9a9a", _frame.FAINT
_KEY: dict[str, Any] = {"linewidth": 2.0, "solid_capstyle": "butt"}


class _Kind(NamedTuple):
    """A kind of share: the field of a row, its heading, and the width of its panel next to the others."""

    field: str
    heading: str
    weight: float


_KINDS = (_Kind("flops", "FLOPs [%]", 2.0), _Kind("bytes", "bytes [%]", 3.0), _Kind("time", "busy time [%]", 5.0))


class _Panel(NamedTuple):
    """A panel in its place [in]. exact: whether numbers in it have a decimal."""

    kind: _Kind
    left: float
    width: float
    exact: bool


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Draw a row of bars for each run, and for published shares of the same step; in % where there is room."""
    chart = wall.chart(items)
    room = width - 2 * _frame.EDGE
    about = [chart.subject, *([] if any(run.timed for run in chart.runs) else ["counted and not timed"])]
    subject = [line for part in about if part for line in _measure.wrap(part, room)]
    heading = _frame.Heading(tuple(_measure.wrap(chart.title, room, _frame.TITLE, max_lines=3)), tuple(subject))
    wide = width >= _frame.WIDE
    rates = _rates(chart) if wide else {}
    bars = room - sum(_measure.widest(cells) + _APART for cells in rates.values())
    panels = _panels(chart, bars, wide)
    heads = _measure.line(_measure.SMALL) * (2 if rates else 1) + _BELOW_HEADS
    top = _frame.EDGE + heading.height + 0.05
    below = _LINE if any(row.floor for run in chart.runs for row in run.classes) else 0.0
    row = _NAME + _BAR + below + _AIR
    high = row * len(chart.every) + (_SET_APART if chart.published else 0.0)
    keys = _frame.keys(_entries(chart, panels, bool(below)), width)
    fig = _frame.blank(width, top + heads + high + keys.height)
    heading.draw(fig)
    begins = [number * row + (_SET_APART if run.table else 0.0) for number, run in enumerate(chart.every)]
    _named(fig, chart, [top + heads + begin for begin in begins], bars)
    for panel in panels:
        at = top + heads - _BELOW_HEADS - _measure.line(_measure.SMALL)
        _frame.write(
            fig, panel.left, at, [_measure.fit(panel.kind.heading, panel.width, _measure.SMALL)], _measure.SMALL
        )
        axes = _frame.panel(fig, panel.left, top + heads, panel.width, high)
        axes.set(xlim=(0, 1), ylim=(high, 0))
        axes.set_axis_off()
        for run, begin in zip(chart.every, begins, strict=True):
            _bar(axes, panel, run, begin + _NAME)
    _written_rates(fig, rates, [top + heads + begin + _NAME for begin in begins], width, top)
    _frame.draw_keys(fig, keys, top + heads + high)
    return fig, _caption(chart, items, drawn=bool(rates))


def _panels(chart: Chart, room: float, wide: bool) -> list[_Panel]:
    """Place the panels that any run has shares for, and at least that of the FLOPs."""
    kinds = [kind for kind in _KINDS if any(_share(row, kind) is not None for run in chart.runs for row in run.classes)]
    kinds = kinds or [_KINDS[0]]
    unit_width = (room - _APART * (len(kinds) - 1)) / sum(kind.weight for kind in kinds)
    panels, left_edge = [], _frame.EDGE
    for kind in kinds:
        panels.append(_Panel(kind, left_edge, unit_width * kind.weight, wide or kind.field == "flops"))
        left_edge += unit_width * kind.weight + _APART
    return panels


def _share(row: Row, kind: _Kind) -> float | None:
    share: float | None = getattr(row, kind.field)
    return share


def _look(group: Group, published: bool) -> dict[str, Any]:
    look, _ = _style.filled(group)
    return look | {"facecolor": "white", "edgecolor": look["facecolor"], "linewidth": 0.8} if published else look


def _entries(chart: Chart, panels: Sequence[_Panel], floors: bool) -> list[_frame.Key]:
    rows = [row for run in chart.every for row in run.classes]
    groups = [group for group in CLASSES if any(row.group == group and (row.flops or row.time) for row in rows)]
    entries = [_frame.Key(chart.members(group), _look(group, published=False)) for group in groups]
    if chart.published:
        entries.append(_frame.Key("published", {"facecolor": "white", "edgecolor": _INK, "linewidth": 0.8}))
    if floors and any(panel.kind.field == "time" for panel in panels):
        entries.append(_frame.Key("minimum at the roof", {"color": _INK, **_KEY}, "line"))
        wide = sum(panel.width for panel in panels if panel.kind.field == "time")
        ranges = [min(1.0, row.attained[1]) - row.attained[0] for row in rows if row.attained]
        shares = [row.time or 0.0 for row in rows if row.attained]
        if any(span * share * wide >= _frame.PIXEL for span, share in zip(ranges, shares, strict=True)):
            entries.append(_frame.Key("its range", {"color": _RANGE, **_KEY}, "line"))
    return entries


def _named(fig: Figure, chart: Chart, tops: Sequence[float], room: float) -> None:
    """Write the name of each run above its bars, and at the right end the groups apart, where there is room."""
    names = _measure.fit_apart([run.heading for run in chart.runs], room)
    for run in chart.published:
        device = f"{run.name}: {run.table.hardware}, published" if run.table is not None else run.heading
        names.append(_measure.first_that_fits([run.heading, device], room))
    for run, name, top in zip(chart.every, names, tops, strict=True):
        _frame.write(fig, _frame.EDGE, top, [name], _measure.SMALL)
        for text in (f"apart: {run.apart} of all busy time", f"apart: {run.apart}"):
            if run.apart and _measure.width(name) + _measure.width(text) + 0.1 <= room:
                _frame.write(fig, _frame.EDGE + room, top, [text], _measure.SMALL, ha="right", color=_FAINT)
                break
    if chart.published:
        from matplotlib.lines import Line2D

        y = fig.get_figheight() - tops[len(chart.runs)] + _SET_APART / 2
        ends = [_frame.EDGE, _frame.EDGE + room]
        fig.add_artist(Line2D(ends, [y, y], color=_RANGE, linewidth=0.6, transform=fig.dpi_scale_trans))


def _bar(axes: Axes, panel: _Panel, run: Run, top: float) -> None:
    """Draw the bar of a run; in the panel of time the least times below it. top: its upper edge [in]."""
    shares = [_share(row, panel.kind) for row in run.classes]
    middle, begin = top + _BAR / 2, 0.0
    if all(share is None for share in shares):
        reason = "not published" if run.table is not None else "not timed" if panel.kind.field == "time" else "unknown"
        text = _measure.first_that_fits([reason, units.UNKNOWN], panel.width)
        axes.text(0, middle, text, ha="left", va="center", size=_measure.SMALL, color=_FAINT)
        return
    for row, share in zip(run.classes, shares, strict=True):
        if not share:
            continue
        look = _look(row.group, run.table is not None)
        axes.barh(middle, share, left=begin, height=_BAR, clip_on=False, **look)
        text = next((text for text in _numbers(share, panel) if _measure.width(text) <= share * panel.width - _PAD), "")
        if text:
            ink = "black" if run.table is not None else _style.filled(row.group)[1]
            # On a hatch the text stands on a ground of its own.
            box = {"facecolor": look["facecolor"], "pad": 0.6, "linewidth": 0} if look["hatch"] else None
            at = begin + share / 2
            axes.text(at, middle, text, ha="center", va="center", size=_measure.SMALL, color=ink, bbox=box)
        if panel.kind.field == "time" and row.attained is not None:
            low, high = (min(1.0, end) * share for end in row.attained)
            line: dict[str, Any] = {"height": _THICK, "linewidth": 0, "clip_on": False}
            at = top + _BAR + _LINE - _THICK / 2
            axes.barh(at, low, left=begin, color=_INK, **line)
            axes.barh(at, high - low, left=begin + low, color=_RANGE, **line)
        begin += share


def _numbers(share: float, panel: _Panel) -> list[str]:
    """Write a share in percent, the way that is tried first in front; none rounds up to all of it."""
    rounded = f"{100 * share:.0f}"
    exact = tables.percent(share)
    if rounded in ("0", "100"):
        return [exact]
    return [exact, rounded] if panel.exact else [rounded]


def _rates(chart: Chart) -> dict[Group, list[str]]:
    """Collect the columns of rates relative to the matmuls', with their heads; none where no rate is known."""
    groups = [row.group for row in chart.runs[0].classes if row.group != "matmul"]
    columns: dict[Group, list[str]] = {}
    for group in groups:
        rows = [next((row for row in run.classes if row.group == group), None) for run in chart.every]
        cells = [wall.relative_rate(row.slower if row is not None else None) for row in rows]
        if any(cell != units.UNKNOWN for cell in cells[: len(chart.runs)]):
            columns[group] = [group, *cells]
    return columns


def _written_rates(
    fig: Figure, rates: dict[Group, list[str]], tops: Sequence[float], width: float, head: float
) -> None:
    """Write the rates at the right edge, next to the bars of their runs. tops, head: of bars and headings [in]."""
    right = width - _frame.EDGE
    look: dict[str, Any] = {"ha": "right"}
    if rates:
        _frame.write(fig, right, head, ["FLOP/s vs matmul"], _measure.SMALL, **look)
    for group, (name, *cells) in reversed(list(rates.items())):
        _frame.write(fig, right, head + _measure.line(_measure.SMALL), [name], _measure.SMALL, **look)
        for top, cell in zip(tops, cells, strict=True):
            _frame.write(
                fig, right, top + (_BAR - _measure.line(_measure.SMALL)) / 2 + 0.01, [cell], _measure.SMALL, **look
            )
        right -= _measure.widest(rates[group]) + _APART


def _caption(chart: Chart, items: Sequence[Analysis], drawn: bool) -> Caption:
    """Explain the bars, and name the bounds of each run's groups. drawn: whether the figure has the rates.

    Where the figure has no room for the rates, the caption has them.
    """
    explanation = chart.explanation
    if any(row.floor for run in chart.runs for row in run.classes):
        explanation += " The line below a bar of time is the least time of its ops on this device."
    if any(row.words[0].isdigit() for run in chart.runs for row in run.classes):
        explanation += " A share before a bound is the part of the group's time under it."
    published = [f"Outlined: {run.heading}." for run in chart.published]
    short, long = [explanation], [explanation]
    for run, analysis in zip(chart.runs, items, strict=True):
        other_groups = f"; apart, of all busy time: {run.apart}" if run.apart else ""
        subject = " on ".join(filter(None, (wording.subject(analysis), wording.device(analysis))))
        about = f"{run.name}: {subject}{other_groups}."
        short += [about, *_groups(run, rates=not drawn)]
        long += [f"{about} {wording.provenance(analysis)}", *_groups(run, rates=True)]
    return Caption(
        chart.title, " ".join([*short, *published, *chart.notes]), " ".join([*long, *published, *chart.notes])
    )


def _groups(run: Run, rates: bool) -> list[str]:
    """Name the limit of each group of a run, and with `rates` its FLOP/s compared with the matmuls'."""
    groups = []
    for row in run.classes:
        words = [row.words] if row.bound is not None else []
        if rates and row.slower is not None and row.group != "matmul":
            words.append(f"{wall.relative_rate(row.slower)} of the FLOP/s of matmuls")
        if words:
            groups.append(f"{row.group}: {', '.join(words)}")
    return [f"{'; '.join(groups)}."] if groups else []
