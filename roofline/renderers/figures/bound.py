"""Draw where a step went: one bar per profile, by bound, floor solid and loss pale, the gap hatched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A bar, what stands above it, and air below it [in].
_BAR, _NAME, _AIR = 0.2, 0.115, 0.06
#: The labels and the name of the upper axis [in].
_ABOVE = 0.3


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Stack horizontal bars, labelled in % of the wall where there is room; the upper axis is of the longest one."""
    names = called(analysis.profile for analysis in items)
    heading = _frame.heading(items, names, width)
    longest = max(analysis.wall for analysis in items)
    pieces = [_bars.segments(analysis) for analysis in items]
    end = max(longest, *map(_bars.length, pieces))
    unit = _frame.unit(end)
    left_edge, right = 0.06, 0.14
    room = width - left_edge - right
    keys = _frame.keys(_bars.keys(pieces, room / end, values=len(items) == 1), width)
    row = _NAME + _BAR + _AIR
    high = row * len(items) + 0.02
    top = _frame.EDGE + _measure.line(_measure.TEXT) * len(heading.lines) + _ABOVE
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + keys.height)
    _frame.write(fig, left_edge, _frame.EDGE, heading.lines, _measure.TEXT)
    axes = _frame.bars(fig, left_edge, top, room, high)
    times = [f"{units.seconds(analysis.wall)} per step" for analysis in items]
    rows = _named(heading.rows, times, room)
    for number, (bar_pieces, name) in enumerate(zip(pieces, rows, strict=True)):
        begins = number * row
        axes.text(0, begins + _NAME - 0.01, name, ha="left", va="bottom", size=_measure.SMALL)
        _bars.draw(axes, bar_pieces, begins + _NAME + _BAR / 2, _BAR, unit.seconds, room / end)
    axes.set_xlim(0, end / unit.seconds)
    _frame.linear(axes.xaxis, room)
    _share_above(axes, longest / unit.seconds, room, len(items))
    below = top + high + _frame.TICKS
    _frame.name_below(fig, left_edge + room / 2, f"time of one step [{unit.name}]", below)
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.02)
    return fig, _caption(items, names)


def _named(rows: Sequence[str], times: Sequence[str], room: float) -> list[str]:
    """Name each bar: the name of the run, as long as there is room beside its time."""
    if rows == ("",):
        return [times[0]]
    time_width = _measure.widest([f": {text}" for text in times])
    fitted = _measure.fit_apart(rows, room - time_width)
    return [f"{name}: {text}" for name, text in zip(fitted, times, strict=True)]


def _share_above(axes: Axes, longest: float, room: float, number: int) -> None:
    """Draw the upper axis: 100 % is the longest step, which of one run is its own."""

    def share(time: Any) -> Any:
        return 100 * time / longest

    def time_of(percent: Any) -> Any:
        return percent * longest / 100

    above = axes.secondary_xaxis("top", functions=(share, time_of))
    above.set_xlim(*(share(end) for end in axes.get_xlim()))
    _frame.linear(above.xaxis, room, 5)
    above.set_xlabel("share of the step [%]" if number == 1 else "share of the longest step [%]", labelpad=2)
    above.spines["top"].set_visible(True)


def _caption(items: Sequence[Analysis], names: Sequence[str]) -> Caption:
    middle = (
        " between them: one or the other, the trace does not say which;" if any(map(_words.is_range, items)) else ""
    )
    explanation = (
        f"Solid: minimum time of the ops on the device; pale: time above the minimum;{middle} a bound names the roof "
        "that limits an op. Percentages are shares of the step."
    )
    short, long = [explanation], [explanation]
    for analysis in items:
        long.append(f"{_words.verdict(analysis)} {_words.provenance(analysis)}")
        short.append(_words.verdict(analysis))
        if _words.is_range(analysis):
            long.append(f"Between solid and pale: {_words.ranges(analysis)}.{_turning(analysis)}")
        long += [f"{words}." for words in (notes.beyond(analysis), notes.above(analysis)) if words]
        if analysis.total.overlap > 0:
            long.append(f"Ops overlapped for {units.seconds(analysis.total.overlap)}; each is drawn by its share.")
    if len(items) > 1:
        subjects = _words.conjunction(list(dict.fromkeys(map(_words.subject, items))))
        devices = _words.conjunction(list(dict.fromkeys(map(_words.device, items))))
        walls = [f"{_words.plain(name, 60)} {units.seconds(run.wall)}" for name, run in zip(names, items, strict=True)]
        short = [explanation, f"{subjects} on {devices}: {', '.join(walls)} per step."]
    return Caption("Time of one step by bound", " ".join(short), " ".join(long))


def _turning(analysis: Analysis) -> str:
    """Say which time of a range the bar cannot show: ops that have another roof above them at its upper end."""
    turning = sum(times.turning for times in _tables.split(analysis).values())
    if turning < 0.005 * analysis.wall:
        return ""
    return f" Ops of {units.percent(turning / analysis.wall, 0)} are under another roof at the upper end."
