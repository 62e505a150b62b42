"""Write the beginning of the page: what ran, how long it took and why, in two sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofline.analysis.analysis import Analysis
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content import wording
from roofline.content.comparison import comparing
from roofline.content.facts import doubts, floors, host
from roofline.renderers.report.parts.grids import facts
from roofline.renderers.report.parts.html import Html, tag
from roofline.renderers.report.parts.run import Run, TimedRun


def verdict(runs: Sequence[Run], ranking: Ranking | None, allow: bool) -> Html:
    """Write the verdict: of one run its own; of several that of their comparison, and each run's own.

    allow: explain the difference of runs that are not comparable.
    """
    if ranking is None:
        leads = [[tag("p", " ".join(filter(None, sentences(run))), class_="lead"), facts(_trust(run))] for run in runs]
        return tag("div", leads, class_="verdict")
    refused = [pair for pair in ranking.pairs if pair.comparison.parity.verdict == "not comparable"]
    warning, lead = "", ""
    if refused and not allow:
        warning = _refusal(refused)
    if len(ranking.runs) > 2:
        lead = comparing.headline(ranking)
    elif not warning:
        pair = ranking.pairs[0]
        warning, lead = comparing.warning(pair), comparing.verdict(pair, advise=True)
    steps = {f"{wording.subject(run.analysis)} on {wording.device(run.analysis)}: " for run in runs}
    common = steps.pop() if len(steps) == 1 else ""  # the head of the page has it
    verdicts = [
        tag("li", run.title, ": ", sentences(run)[0].removeprefix(common), [tag("small", text) for _, text in trust])
        for run, trust in zip(runs, map(_trust, runs), strict=True)
    ]
    return tag(
        "div",
        tag("p", warning, class_="warning", role="note") if warning else None,
        tag("p", lead, class_="lead") if lead else None,
        tag("ul", verdicts),
        class_="verdict",
    )


def sentences(run: Run) -> tuple[str, str]:
    """Write the verdict of one run, and its distance from its floors; of one that was only counted, its work."""
    analysis = run.analysis
    if not isinstance(analysis, Analysis):
        return wording.verdict(analysis), wording.known_work(analysis)
    return wording.verdict(analysis, host.most(analysis)), floors.describe_floors(analysis)


def _trust(run: Run) -> Iterator[tuple[str, str]]:
    """Say why the numbers of a run are doubtful, and what to do about it."""
    if not isinstance(run, TimedRun):
        return
    for number, reason in enumerate(doubts.reasons(run.analysis)):
        yield "" if number else "trust", f"! {reason}"
    if cures := "; ".join(doubts.cures(run.analysis)):
        yield "try", f"{cures[0].upper()}{cures[1:]}."


def _refusal(refused: Sequence[RankedPair]) -> str:
    """Say which runs are not comparable with which; the section below says why."""
    names = wording.conjunction([comparing.name(pair, 0) for pair in refused])
    verb = "is" if len(refused) == 1 else "are"
    return f"{names} {verb} not comparable with {comparing.name(refused[0], 1)}, so no cause is named."
