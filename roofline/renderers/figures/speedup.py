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
from roofline.content import titles, wording
from roofline.content.comparison import comparing
from roofline.errors import InputError
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption
from roofline.units import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Runs in one figure: a page is no higher.
MOST = 30
_SIZE = _bars.Size(bar=0.125, name=0.105, air=0.035)


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
    head = heads[1] if len(runs) == 2 else None
    sentence = titles.times(runs, names) if head is None else head.opening
    heading = _frame.heading(runs, names, width, sentence)
    room = width - 0.2
    bars = []
    for number, run in enumerate(runs):
        time = _measure.first_that_fits(_phrasings(run, runs[0], heads[number], judged[number]), 0.75 * room)
        # What the heading has of one run alone stands above its bar here.
        fitted = _measure.fit_apart(heading.rows if len(runs) > 1 else names, room - _measure.width(f": {time}"))
        bars.append(_bars.Bar(f"{fitted[number]}: {time}", _bars.segments(run), whiskers[number]))
    return _bars.sheet(heading, bars, (), _SIZE, width), _caption(runs, names, judged, heads, heading.title)


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
    factor = comparing.factor(head.factor)
    longer = f"{factor} slower" if head.settled else f"took {factor} longer"
    ways = [longer]
    if head.factor_ci95 is not None:
        low, high = head.factor_ci95
        interval_text = f"{low:.2f}–{high:.2f}" if high - low >= 0.01 else f"{low:.3f}–{high:.3f}"
        ways = [f"{longer} (95 % interval {interval_text})", f"{longer} ({interval_text})", longer]
    return [f"{time}, {way}{mark}" for way in ways] + [f"{time}  {factor}{mark}"]


def _caption(
    runs: Sequence[Analysis],
    names: Sequence[str],
    judged: Sequence[Parity],
    heads: Sequence[Headline | None],
    title: Sequence[str],
) -> Caption:
    with_interval = any(head is not None and head.factor_ci95 for head in heads)
    explanation = (
        f"Time of one step of {comparing.subject(runs)} by bound, the fastest first. Solid: minimum time of the ops "
        "on the device; pale: time above the minimum; a bound names the roof that limits an op. Percentages are shares "
        "of the step; after each name stand its time and, where these runs decide it, how much longer it took than "
        f"the fastest{', with the 95 % interval' if with_interval else ''}."
    )
    shown = [wording.plain(name, 60) for name in names]
    short, long = [explanation], [explanation]
    for name, run, verdict, head in zip(shown, runs, judged, heads, strict=True):
        long.append(f"{name}: {wording.verdict(run)} {wording.provenance(run)}")
        long += [head.text] if head is not None else []
        if verdict.verdict == "not comparable":
            reasons = " ".join(wording.plain(difference.text, 300) for difference in verdict.of("refused"))
            long.append(f"† {name} is not comparable with {shown[0]}: {reasons}")
            short.append(long[-1])
        elif verdict.verdict == "named differences":
            named = " ".join(wording.plain(difference.text, 300) for difference in verdict.of("named"))
            long.append(f"Against {shown[0]}: {named}")
    return Caption(" ".join(title), " ".join(short), " ".join(long))
