"""Where a step went: one bar per profile, by bound, floor solid and loss pale, the gap hatched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.renderers import _tables, _words
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
    for number, analysis in enumerate(items):
        left = 0.0
        for label, seconds, look, ink in _pieces(analysis):
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
        name = _style.fit(_title(analysis), width - 0.1 - 0.055 * len(time), _style.SMALL)
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


def _pieces(analysis: Analysis) -> list[tuple[str, float, dict[str, Any], str]]:
    """(label, seconds, look, ink) from left to right; they add up to the wall.

    An op counts its share time. Where ops overlapped, floors are drawn in the same proportion: the bar closes.
    """
    segments = []
    for bound, times in _tables.split(analysis).items():
        if times.seconds <= 0:
            continue
        if bound == "unknown":
            segments.append(("unknown", times.seconds, _style.lighten(bound), "black"))
            continue
        own = times.floor + times.loss
        floor = min(times.seconds, times.seconds * times.floor / own) if own > 0 else times.seconds
        # White reads on blue and green, black on orange.
        ink = "black" if bound == "memory" else "white"
        segments.append((f"{bound} floor", floor, _style.solid(bound), ink))
        segments.append((f"{bound} loss", times.seconds - floor, _style.lighten(bound), "black"))
    segments.append((_words.gap_name(analysis), max(0.0, analysis.gap), _style.GAP, "black"))
    return segments


def _title(analysis: Analysis) -> str:
    return f"{_words.subject(analysis)}, {_words.plain(analysis.profile.backend)}"


def _caption(items: Sequence[Analysis]) -> str:
    told = [
        "Time of one step by what bounds it. Solid: floor, the least time the ops can take on the device; pale: loss, "
        "own time − floor; a bound says which roof is above an op, not that it got there. Percentages are of the step."
    ]
    for analysis in items:
        told.append(f"{_words.verdict(analysis)} {_words.provenance(analysis)}")
        if analysis.total.overlap > 0:
            told.append(f"Ops overlapped for {units.seconds(analysis.total.overlap)}; each is drawn by its share.")
    return " ".join(told)
