"""Show how long the step of each run took and where it went: a bar per run, by bound, the least time on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis, analyze_timed
from roofline.analysis.bootstrap import draw, interval
from roofline.analysis.run_names import called
from roofline.comparison.headline import longer_text
from roofline.comparison.ranking import on_common_ceilings
from roofline.content import titles, wording
from roofline.content.comparison import comparing
from roofline.content.comparison.against import FACTORS, Against, against_first, basis, refusals
from roofline.errors import InputError
from roofline.renderers.figures import _bars, _frame, _measure
from roofline.renderers.figures._written import Caption

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
    judged = against_first(runs, names)
    # Of what other processes would have given, where there are some, and not of the steps of this one alone.
    drawn = [draw(run, runs[0]) for run in runs]
    whiskers = [interval(resampled.wall, resampled, kind="wall") for resampled in drawn]
    pair = judged[1] if len(runs) == 2 else None
    sentence = pair.head.opening if pair and not pair.parity.is_other_work else titles.times(runs, names)
    heading = _frame.heading(runs, names, width, sentence, basis(runs, judged))
    room = width - 0.2
    bars = []
    for number, (run, against) in enumerate(zip(runs, judged, strict=True)):
        time = _measure.first_that_fits(_phrasings(units.seconds(run.wall), against), 0.75 * room)
        # What the heading has of one run alone stands above its bar here.
        fitted = _measure.fit_apart(heading.rows if len(runs) > 1 else names, room - _measure.width(f": {time}"))
        bars.append(_bars.Bar(f"{fitted[number]}: {time}", _bars.segments(run), whiskers[number]))
    return _bars.sheet(heading, bars, (), _SIZE, width), _caption(runs, names, judged, heading.title)


def _phrasings(time: str, against: Against | None) -> list[str]:
    """Phrase the time of a run in fewer and fewer words: "122 ms, took 1.83x longer (95 % interval 1.5–2.3)".

    A dagger marks a run that is not comparable with the fastest. Where the headline does not say that the run took
    longer, or the work is another, its time stands alone.
    """
    if against is None:
        return [f"{time}, least time", time]
    if not against.is_longer:
        return [f"{time}{against.mark}"]
    head = against.head
    longer = longer_text(head.factor, head.settled)
    ways = [longer]
    if head.factor_ci95 is not None:
        low, high = head.factor_ci95
        interval_text = f"{low:.2f}–{high:.2f}" if high - low >= 0.01 else f"{low:.3f}–{high:.3f}"
        ways = [f"{longer} (95 % interval {interval_text})", f"{longer} ({interval_text})", longer]
    return [f"{time}, {way}{against.mark}" for way in ways] + [f"{time}  {against.factor}"]


def _caption(
    runs: Sequence[Analysis], names: Sequence[str], judged: Sequence[Against | None], title: Sequence[str]
) -> Caption:
    with_interval = any(against is not None and against.head.factor_ci95 for against in judged)
    explanation = (
        f"Time of one step of {comparing.subject(runs)} by bound, the fastest first. Solid: minimum time of the ops "
        "on the device; pale: time above the minimum; a bound names the roof that limits an op. Percentages are shares "
        f"of the step; after each name stands its time. {FACTORS}{', with the 95 % interval' * with_interval}"
        f"{f'; {words}' if (words := basis(runs, judged)) else ''}."
    )
    facts, reasons = refusals(names, judged)
    short, long = [explanation, *facts], [explanation, *reasons]
    shown = [wording.plain(name, 60) for name in names]
    for name, run, against in zip(shown, runs, judged, strict=True):
        long.append(f"{name}: {wording.verdict(run)} {wording.provenance(run)}")
        if against is None:
            continue
        long.append(against.head.text)
        if named := " ".join(wording.plain(difference.text, 300) for difference in against.parity.of("named")):
            long.append(f"Against {shown[0]}: {named}")
    return Caption(" ".join(title), " ".join(short), " ".join(long))
