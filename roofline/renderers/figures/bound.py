"""Where a step went: one bar per profile, by bound, floor solid and loss pale, the gap hatched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.labels import called
from roofline.renderers import _tables, _words
from roofline.renderers._facts import notes
from roofline.renderers.figures import _bars, _style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, str]:
    """Stacked horizontal bars in ms, labelled in % of the wall where there is room."""
    from matplotlib.patches import Patch

    fig = _style.canvas(width, (1.3 if len(items) == 1 else 0.95 if width < 5 else 0.75) + 0.42 * len(items))
    axes = fig.subplots()
    longest = max(analysis.wall for analysis in items)
    seen: dict[str, dict[str, Any]] = {}
    values: dict[str, float] = {}
    names = called(analysis.profile for analysis in items)
    for number, analysis in enumerate(items):
        left = 0.0
        for label, seconds, look, ink in _bars.segments(analysis):
            axes.barh(number, seconds * 1e3, left=left * 1e3, height=0.62, **look)
            seen.setdefault(label, look)
            values[label] = seconds
            text = f"{100 * seconds / analysis.wall:.0f} %"
            if seconds / longest * (width - 0.5) > 0.07 * len(text):  # inches of the bar against those of the text
                ground = look["facecolor"] if label.endswith("floor") else "white"
                box = {"facecolor": ground, "pad": 0.8, "linewidth": 0} if look.get("hatch") else None
                middle = (left + seconds / 2) * 1e3
                axes.text(middle, number, text, ha="center", va="center", size=_style.SMALL, color=ink, bbox=box)
            left += seconds
        time = f": {units.seconds(analysis.wall)} per step"
        name = _style.fit(
            f"{_words.subject(analysis)}, {_words.plain(names[number])}", width - 0.1 - 0.055 * len(time), _style.SMALL
        )
        axes.text(0, number - 0.36, name + time, ha="left", va="bottom", size=_style.SMALL)
    axes.set(xlim=(0, longest * 1.02e3), ylim=(len(items) - 0.58, -0.85), yticks=[], xlabel="time of one step [ms]")
    axes.spines["left"].set_visible(False)
    if len(items) == 1:
        wall = items[0].wall * 1e3

        def share(milliseconds: Any) -> Any:
            return 100 * milliseconds / wall

        def time_of(percent: Any) -> Any:
            return percent * wall / 100

        above = axes.secondary_xaxis("top", functions=(share, time_of))
        above.set_xlabel("share of the step [%]")
        above.spines["top"].set_visible(True)
    labels = [label for label in _bars.ORDER if label in seen]
    handles = [Patch(**seen[label]) for label in labels]
    if len(items) == 1:
        labels = [f"{label} {units.seconds(values[label])}" for label in labels]
    _style.keys(fig, handles, labels, 2 if width < 5 else 4)
    return fig, _caption(items)


def _caption(items: Sequence[Analysis]) -> str:
    told = [
        "Time of one step by what bounds it. Solid: floor, the least time the ops can take on the device; pale: loss, "
        "own time − floor; a bound says which roof is above an op, not that it got there. Percentages are of the step."
    ]
    for analysis in items:
        told.append(f"{_words.verdict(analysis)} {_words.provenance(analysis)}")
        if _words.is_range(analysis):
            told.append(f"Between solid and pale: {_words.CACHES}.{_turning(analysis)}")
        if above := notes.above(analysis):
            told.append(f"{above}.")
        if analysis.total.overlap > 0:
            told.append(f"Ops overlapped for {units.seconds(analysis.total.overlap)}; each is drawn by its share.")
    return " ".join(told)


def _turning(analysis: Analysis) -> str:
    """What the bar cannot show of a range: ops that have another roof above them at its upper end."""
    turning = sum(times.turning for times in _tables.split(analysis).values())
    if turning < 0.005 * analysis.wall:
        return ""
    return f" Ops of {units.percent(turning / analysis.wall, 0)} are under memory's roof at the upper end alone."
