"""Which backend is fastest, and where each one's step went: one bar per run, by bound, the fastest on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis, analyze_timed
from roofline.analysis.bootstrap import Interval, Resamples, draw, interval
from roofline.comparison.labels import called
from roofline.comparison.parity.parity import Parity, parity
from roofline.comparison.ranking import on_common_ceilings
from roofline.errors import InputError
from roofline.renderers import _words
from roofline.renderers.comparison import _comparing
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Runs in one figure: a page is no higher.
MOST = 30
#: A bar, what stands above it, and air below it [in].
_BAR, _NAME, _AIR = 0.125, 0.105, 0.035


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Stacked horizontal bars; above each its name, its time, and how much slower than the fastest it is."""
    if len(items) > MOST:
        raise InputError(f"{len(items)} runs do not fit in one figure: give at most {MOST}.")
    # One set of ceilings for all runs of a device, or equal ops would have different floors.
    runs = [analyze_timed(profile) for profile in on_common_ceilings([item.profile for item in items])]
    names = called(run.profile for run in runs)
    order = sorted(range(len(runs)), key=lambda number: runs[number].wall)
    runs, names = [runs[number] for number in order], tuple(names[number] for number in order)
    judged = [parity(run, runs[0], (name, names[0])) for name, run in zip(names, runs, strict=True)]
    drawn = [draw(run, runs[0]) for run in runs]
    ratios = [None, *(_ratio(run, one, runs[0]) for run, one in zip(runs[1:], drawn[1:], strict=True))]
    # As the ratios: of what other processes would have given, and not of the steps of this one alone.
    whiskers = [interval(one.wall, one) for one in drawn]
    heading = _frame.heading(runs, names, width)
    # What the heading has of one run alone stands above its bar here.
    named = heading.rows if len(runs) > 1 else names
    pieces = [_bars.segments(run) for run in runs]
    ends = [
        max((run.wall, _bars.length(some), *(whisker or ())))
        for run, some, whisker in zip(runs, pieces, whiskers, strict=True)
    ]
    left, right = 0.06, 0.14
    room = width - left - right
    unit = _frame.unit(max(ends))
    per = room / max(ends)
    keys = _frame.keys(_bars.keys(pieces, per), width)
    row = _NAME + _BAR + _AIR
    high = row * len(runs) + 0.02
    top = _frame.EDGE + _measure.line(_measure.TEXT) * len(heading.lines) + 0.02
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + keys.height)
    _frame.write(fig, left, _frame.EDGE, heading.lines, _measure.TEXT)
    axes = _frame.bars(fig, left, top, room, high)
    for number, run in enumerate(runs):
        middle = number * row + _NAME + _BAR / 2
        told = _measure.first_that_fits(_told(run, runs[0], ratios[number], judged[number]), 0.75 * room)
        name = _measure.fit_apart(named, room - _measure.width(f": {told}"))[number]
        axes.text(0, number * row + _NAME - 0.01, f"{name}: {told}", ha="left", va="bottom", size=_measure.SMALL)
        whisker = whiskers[number]
        _bars.draw(axes, pieces[number], middle, _BAR, unit.seconds, per, whisker)
        if whisker is not None:
            at = [end / unit.seconds for end in whisker]
            for colour, thick in (("white", 1.8), ("black", 0.7)):
                axes.plot(at, [middle] * 2, color=colour, linewidth=thick, zorder=4)
                axes.plot(at, [middle] * 2, color=colour, linestyle="", marker="|", markersize=3, zorder=4)
    axes.set_xlim(0, max(ends) / unit.seconds)
    _frame.linear(axes.xaxis, room)
    below = top + high + _frame.TICKS
    _frame.name_below(fig, left + room / 2, f"time of one step [{unit.name}]", below)
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.02)
    return fig, _caption(runs, names, judged, ratios)


def _ratio(run: Analysis, drawn: Resamples, best: Analysis) -> Interval | None:
    """The 95 % interval of how many times the fastest run's step a step of this one takes; None of too few steps."""
    beside = draw(best, run)
    return interval(drawn.wall / beside.wall, drawn, beside)


def _told(run: Analysis, best: Analysis, ratio: Interval | None, judged: Parity) -> list[str]:
    """What stands behind a name, in fewer and fewer words: "122 ms, 1.83x slower (95 % interval 1.79–1.87)".

    A dagger marks a run that is not comparable with the fastest.
    """
    time, mark = units.seconds(run.wall), " †" if judged.verdict == "not comparable" else ""
    if run is best:
        return [f"{time}, fastest", time]
    factor = _comparing.factor(run.wall / best.wall)
    if ratio is None:  # of too few steps it is not known whether that is more than noise
        return [f"{time}, {factor} slower{mark}", f"{time}  {factor}{mark}"]
    low, high = ratio
    between = f"{low:.2f}–{high:.2f}" if high - low >= 0.01 else f"{low:.3f}–{high:.3f}"
    slower = f"{factor} slower" if low > 1 else "no slower" if high <= 1 else f"{factor}, not resolved"
    ways = [f"{slower} (95 % interval {between})", f"{slower} ({between})", slower]
    return [f"{time}, {way}{mark}" for way in ways] + [f"{time}  {factor}{mark}"]


def _caption(
    runs: Sequence[Analysis], names: Sequence[str], judged: Sequence[Parity], ratios: Sequence[Interval | None]
) -> Caption:
    of = _comparing.subject(runs)
    what = (
        "By what bounds it, the fastest first. Solid: floor, the least time the ops can take on the device; pale: "
        "loss, own time − floor; a bound says which roof is above an op, not that it got there. Percentages are of the "
        "step; behind each name the time and how many times that of the fastest it is"
        f"{', with its 95 % interval' if any(ratios) else ''}."
    )
    shown = [_words.plain(name, 60) for name in names]
    short, told = [what], [what]
    for name, run, verdict in zip(shown, runs, judged, strict=True):
        told.append(f"{name}: {_words.verdict(run)} {_words.provenance(run)}")
        if verdict.verdict == "not comparable":
            reasons = " ".join(_words.plain(one.text, 300) for one in verdict.of("refused"))
            told.append(f"† {name} is not comparable with {shown[0]}: {reasons}")
            short.append(told[-1])
        elif verdict.verdict == "named differences":
            named = " ".join(_words.plain(one.text, 300) for one in verdict.of("named"))
            told.append(f"Against {shown[0]}: {named}")
    return Caption(f"Time of one step of {of}", " ".join(short), " ".join(told))
