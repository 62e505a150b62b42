"""Show how long the step of each run took and where it went: a bar per run, by bound, the least time on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis, analyze_timed
from roofline.analysis.bootstrap import draw, interval
from roofline.analysis.run_names import called
from roofline.comparison.headline import Headline, judge_runs
from roofline.comparison.parity.parity import Parity, parity
from roofline.comparison.ranking import on_common_ceilings
from roofline.errors import InputError
from roofline.renderers import _words
from roofline.renderers.comparison import _comparing
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption
from roofline.units import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Runs in one figure: a page is no higher.
MOST = 30
#: A bar, what stands above it, and air below it [in].
_BAR, _NAME, _AIR = 0.125, 0.105, 0.035


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Stack horizontal bars; above each its name, its time, and how much longer it took than the least."""
    if len(items) > MOST:
        raise InputError(f"{len(items)} runs do not fit in one figure: give at most {MOST}.")
    # One set of ceilings for all runs of a device, or equal ops would have different floors.
    runs = [analyze_timed(profile) for profile in on_common_ceilings([item.profile for item in items])]
    names = called(run.profile for run in runs)
    order = sorted(range(len(runs)), key=lambda number: runs[number].wall)
    runs, names = [runs[number] for number in order], tuple(names[number] for number in order)
    judged = [parity(run, runs[0], (name, names[0])) for name, run in zip(names, runs, strict=True)]
    drawn = [draw(run, runs[0]) for run in runs]
    slower_runs = zip(runs[1:], names[1:], strict=True)
    heads = [None, *(_headline(run, runs[0], (name, names[0])) for run, name in slower_runs)]
    # Of what other processes would have given, where there are some, and not of the steps of this one alone.
    whiskers = [interval(resampled.wall, resampled) for resampled in drawn]
    heading = _frame.heading(runs, names, width)
    # What the heading has of one run alone stands above its bar here.
    named = heading.rows if len(runs) > 1 else names
    pieces = [_bars.segments(run) for run in runs]
    ends = [
        max((run.wall, _bars.length(bar_pieces), *(whisker or ())))
        for run, bar_pieces, whisker in zip(runs, pieces, whiskers, strict=True)
    ]
    left_edge, right = 0.06, 0.14
    room = width - left_edge - right
    unit = _frame.unit(max(ends))
    per = room / max(ends)
    keys = _frame.keys(_bars.keys(pieces, per), width)
    row = _NAME + _BAR + _AIR
    high = row * len(runs) + 0.02
    top = _frame.EDGE + _measure.line(_measure.TEXT) * len(heading.lines) + 0.02
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + keys.height)
    _frame.write(fig, left_edge, _frame.EDGE, heading.lines, _measure.TEXT)
    axes = _frame.bars(fig, left_edge, top, room, high)
    for number, run in enumerate(runs):
        middle = number * row + _NAME + _BAR / 2
        time_text = _measure.first_that_fits(_phrasings(run, runs[0], heads[number], judged[number]), 0.75 * room)
        name = _measure.fit_apart(named, room - _measure.width(f": {time_text}"))[number]
        axes.text(0, number * row + _NAME - 0.01, f"{name}: {time_text}", ha="left", va="bottom", size=_measure.SMALL)
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
    _frame.name_below(fig, left_edge + room / 2, f"time of one step [{unit.name}]", below)
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.02)
    return fig, _caption(runs, names, judged, heads)


def _headline(run: Analysis, best: Analysis, names: tuple[str, str]) -> Headline:
    """Write the headline of `compare` for a run and the one with least time."""
    drawn, drawn_best = draw(run, best), draw(best, run)
    return judge_runs(
        run, best, interval(drawn.wall - drawn_best.wall, drawn, drawn_best), (plain(names[0]), plain(names[1]))
    )


def _phrasings(run: Analysis, best: Analysis, head: Headline | None, judged: Parity) -> list[str]:
    """Phrase the time of a run in fewer and fewer words: "122 ms, took 1.83x longer (95 % interval 1.5–2.3)".

    A dagger marks a run that is not comparable with the fastest. Where the headline does not say that the run took
    longer, its time stands alone.
    """
    time, mark = units.seconds(run.wall), " †" if judged.verdict == "not comparable" else ""
    if run is best:
        return [f"{time}, least time", time]
    if head is None or head.slower != 0:
        return [f"{time}{mark}"]
    factor = _comparing.factor(head.factor)
    longer = f"{factor} slower" if head.settled else f"took {factor} longer"
    ways = [longer]
    if head.factor_ci95 is not None:
        low, high = head.factor_ci95
        interval_text = f"{low:.2f}–{high:.2f}" if high - low >= 0.01 else f"{low:.3f}–{high:.3f}"
        ways = [f"{longer} (95 % interval {interval_text})", f"{longer} ({interval_text})", longer]
    return [f"{time}, {way}{mark}" for way in ways] + [f"{time}  {factor}{mark}"]


def _caption(
    runs: Sequence[Analysis], names: Sequence[str], judged: Sequence[Parity], heads: Sequence[Headline | None]
) -> Caption:
    of = _comparing.subject(runs)
    explanation = (
        "Time of one step by bound, the fastest first. Solid: minimum time of the ops on the device; pale: time above "
        "the minimum; a bound names the roof that limits an op. Percentages are shares of the step; after each name "
        "stand its time and, where these runs decide it, how much longer it took than the fastest"
        f"{', with the 95 % interval' if any(head is not None and head.factor_ci95 for head in heads) else ''}."
    )
    shown = [_words.plain(name, 60) for name in names]
    short, long = [explanation], [explanation]
    for name, run, verdict, head in zip(shown, runs, judged, heads, strict=True):
        long.append(f"{name}: {_words.verdict(run)} {_words.provenance(run)}")
        long += [head.text] if head is not None else []
        if verdict.verdict == "not comparable":
            reasons = " ".join(_words.plain(difference.text, 300) for difference in verdict.of("refused"))
            long.append(f"† {name} is not comparable with {shown[0]}: {reasons}")
            short.append(long[-1])
        elif verdict.verdict == "named differences":
            named = " ".join(_words.plain(difference.text, 300) for difference in verdict.of("named"))
            long.append(f"Against {shown[0]}: {named}")
    return Caption(f"Time of one step of {of}", " ".join(short), " ".join(long))
