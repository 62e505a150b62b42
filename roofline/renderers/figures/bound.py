"""Draw where a step went: one bar per profile, by bound, floor solid and loss pale, the gap hatched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.content import bounds, titles, wording
from roofline.content.comparison.against import FACTORS, Against, against_first, basis, refusals
from roofline.content.facts import notes
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Stack horizontal bars, the shortest first, each labelled in % of its step where there is room.

    At the right stand the time of each and by what factor it takes longer than the shortest, as far as `compare` says.
    """
    called_names = called(analysis.profile for analysis in items)
    order = sorted(range(len(items)), key=lambda number: items[number].wall)
    runs, names = [items[number] for number in order], [called_names[number] for number in order]
    judged = against_first(runs, names)
    heading = _frame.heading(runs, names, width, titles.limits(runs, names), basis(runs, judged))
    rows = _measure.fit_apart(heading.rows, width - 0.2)
    factors = ["" if against is None else against.factor for against in judged]
    bars = [
        _bars.Bar(name, _bars.segments(run), cells=(units.seconds(run.wall), factor))
        for name, run, factor in zip(rows, runs, factors, strict=True)
    ]
    heads: tuple[str, ...] = ("time", "factor") if len(bars) > 1 else ()
    if len(bars) == 1:
        bars = [bars[0]._replace(name=f"{units.seconds(runs[0].wall)} per step", cells=())]
    elif not any(factors):
        heads, bars = heads[:1], [bar._replace(cells=bar.cells[:1]) for bar in bars]
    return _bars.sheet(heading, bars, heads, _bars.FULL, width), _caption(runs, names, judged, heading.title)


def _caption(
    items: Sequence[Analysis], names: Sequence[str], judged: Sequence[Against | None], title: Sequence[str]
) -> Caption:
    middle = (
        " between them: one or the other, the trace does not say which;" if any(map(wording.is_range, items)) else ""
    )
    explanation = (
        "Time of one step by bound. Solid: minimum time of the ops on the device; pale: time above the minimum;"
        f"{middle} a bound names the roof that limits an op. Percentages are shares of the step."
    )
    short, long = [explanation], [explanation]
    for analysis in items:
        long.append(f"{wording.verdict(analysis)} {wording.provenance(analysis)}")
        short.append(wording.verdict(analysis))
        if wording.is_range(analysis):
            long.append(f"Between solid and pale: {wording.ranges(analysis)}.{_turning(analysis)}")
        long += [f"{words}." for words in (notes.beyond(analysis), notes.above(analysis)) if words]
        if analysis.total.overlap > 0:
            long.append(f"Ops overlapped for {units.seconds(analysis.total.overlap)}; each is drawn by its share.")
    if len(items) > 1:
        subjects = wording.conjunction(list(dict.fromkeys(map(wording.subject, items))))
        devices = wording.conjunction(list(dict.fromkeys(map(wording.device, items))))
        walls = [f"{wording.plain(name, 60)} {units.seconds(run.wall)}" for name, run in zip(names, items, strict=True)]
        short = [explanation, f"{subjects} on {devices}: {', '.join(walls)} per step."]
        facts, reasons = refusals(names, judged)
        about = [f"{FACTORS}{f'; {words}' if (words := basis(items, judged)) else ''}."]
        short, long = [*short, *about, *facts], [*long, *about, *reasons]
    return Caption(" ".join(title), " ".join(short), " ".join(long))


def _turning(analysis: Analysis) -> str:
    """Say which time of a range the bar cannot show: ops that have another roof above them at its upper end."""
    turning = sum(times.turning for times in bounds.split(analysis).values())
    if turning < 0.005 * analysis.wall:
        return ""
    return f" Ops of {units.percent(turning / analysis.wall, 0)} are under another roof at the upper end."
