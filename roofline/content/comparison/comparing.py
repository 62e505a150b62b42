"""Sentences about compared runs, shared by the formats and figures. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.breakdown.breakdown import common_places, is_most
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Comparison
from roofline.content import wording
from roofline.content.signed import rounding, signed
from roofline.content.wording import plain
from roofline.core.schema import slug

MARKS = "* comparable with named differences; ! not comparable"


def name(pair: RankedPair, side: int) -> str:
    """Return the name of a run."""
    return plain(pair.names[side], 60)


def ratio(pair: RankedPair) -> str:
    """Say how many times as long A takes, for a caption; "" of runs that are not comparable."""
    if pair.comparison.parity.verdict == "not comparable":
        return ""
    head, interval = pair.headline, ""
    if head.factor_ci95 is not None:
        low, high = map(units.significant, head.factor_ci95)
        interval = f" (95 % interval {low}–{high})"
    return f"A takes {units.significant(head.factor)} times as long as B{interval}."


def verdict(pair: RankedPair, advise: bool = False) -> str:
    """Return the sentence: which run is faster, as far as they tell; advise: also how to learn more (`can_repeat`)."""
    head = pair.headline
    if not advise or not can_repeat(pair):
        return head.text
    aim = "To settle it" if head.slower is None else "For a factor that holds"
    return f"{head.text} {aim}, run both alternately where they were measured: --again."


def can_repeat(pair: RankedPair) -> bool:
    """Return whether runs that took no turns can take some, as far as the profiles tell: `compare --again`."""
    a, b = pair.comparison.a, pair.comparison.b
    same_device = a.profile.device.name == b.profile.device.name
    return pair.headline.settled is None and same_device and _repeatable(a) and _repeatable(b)


def _repeatable(run: Analysis) -> bool:
    """Return whether this command line measured a run, and can do so in several processes (`requests.request_of`)."""
    profile = run.profile
    if profile.imported is not None or profile.wall.source != "plain" or "in-process" in map(slug, run.flags):
        return False
    return all(word.partition("=")[0] != "--python" for word in profile.command.split())


def subject(runs: Sequence[Analysis]) -> str:
    """Say what was run on which devices: "bert infer, b1 s128 on AMD EPYC, 1 thread"; each different one is named."""
    subjects = " against ".join(dict.fromkeys(wording.subject(run) for run in runs))
    where = " and ".join(dict.fromkeys(wording.device(run) for run in runs))
    return f"{subjects} on {where}"


def lettered(pair: RankedPair, side: int) -> str:
    """Name a run with its letter: "torch (A)"."""
    letter = f" ({'AB'[side]})"
    return name(pair, side) if name(pair, side).endswith(letter) else f"{name(pair, side)}{letter}"


def warning(pair: RankedPair) -> str:
    """Write the warning that stands on every output of runs that are not comparable; empty for all others."""
    if pair.comparison.parity.verdict != "not comparable":
        return ""
    return f"NOT COMPARABLE, compared anyway: {refusal(pair)}."


def refusal(pair: RankedPair) -> str:
    """Say why runs are not comparable."""
    reasons = [plain(difference.text, 300).rstrip(".") for difference in pair.comparison.parity.of("refused")]
    return wording.conjunction(reasons) or "see parity"


def pages(annotations: Sequence[str]) -> str:
    """Name the pages of the documentation that explain some annotations: "docs/annotations/copies.md"."""
    return wording.conjunction([wording.page(plain(name, 40)) for name in annotations])


def share(part: float, pair: RankedPair) -> str:
    """Write a part of the difference in percent; a dash where parts cancel, so that one is more than twice of it."""
    difference = pair.comparison.difference
    largest = max((abs(row.seconds or 0.0) for row in pair.account.rows), default=0.0)
    if not difference or 2 * abs(difference) < largest:
        return units.UNKNOWN
    return f"{round(100 * part / difference)} %"  # a whole number: nothing is never "-0"


def places(pair: RankedPair) -> str:
    """Warn where most of the ops' time is at places of one run only, as of layers compiled one by one."""
    common = common_places(pair.comparison)
    if pair.breakdown is not None or is_most(common):
        return ""
    return (
        f"only {units.percent(common, 0)} of the ops' time is at the same phase and block in both runs, so "
        "rows of the table cancel: use their sum and the account."
    )


def communication(pair: RankedPair) -> str:
    """Say the time in collectives, and how much of it no computation hides; empty where no profile has any."""
    lines = []
    for side, run in enumerate((pair.comparison.a, pair.comparison.b)):
        facts = run.profile.imported
        if facts is None or not facts.communication:
            continue
        if facts.exposed is None:
            hidden = "how much of it is hidden is not known"
        else:
            total, bare = facts.communication, facts.exposed
            hidden = f"{units.seconds(bare)} exposed, {units.seconds(total - bare)} hidden by computation"
        waiting = "" if facts.waiting is None else f", {units.seconds(facts.waiting)} of it waiting for slower ranks"
        lines.append(f"{name(pair, side)} {units.seconds(facts.communication)} per step: {hidden}{waiting}")
    return f"{'; '.join(lines)}." if lines else ""


def mark(verdict: str) -> str:
    """Behind a speedup: nothing, "*" for named differences, "!" for runs that are not comparable."""
    return {"comparable": "", "named differences": "*", "not comparable": "!"}[verdict]


def closing(comparison: Comparison) -> str:
    """Say both views and their residuals."""
    views = []
    for view_name, view in (("work view", comparison.work), ("kernel view", comparison.kernel)):
        total = sum(term.seconds for term in view.terms)
        views.append(f"{view_name} {len(view.terms)} terms, {signed(total)}, residual {rounding(view.residual)}")
    return "; ".join(views)


def headline(ranking: Ranking) -> str:
    """Say which of several runs took the least and the most time, what these two say, and which were disturbed."""
    ends = ranking.fastest, ranking.order[-1]
    first, last = ((plain(ranking.names[end], 60), units.seconds(ranking.runs[end].wall)) for end in ends)
    text = (
        f"{subject(ranking.runs)}: of {len(ranking.runs)} runs {first[0]} took the least time as recorded, {first[1]} "
        f"a step, and {last[0]} the most, {last[1]}."
    )
    pair = ranking.pairs[-1]
    is_said = pair.comparison.parity.verdict != "not comparable"
    text += f" {pair.headline.text}" if is_said else " These two are not comparable."
    disturbed = [
        plain(name, 60)
        for number, (name, run) in enumerate(zip(ranking.names, ranking.runs, strict=True))
        if not (is_said and number in ends) and {"contended", "throttled"} & set(map(slug, run.flags))
    ]
    if disturbed:
        were = "was" if len(disturbed) == 1 else "were"
        text += f" {wording.conjunction(disturbed)} {were} recorded on a busy machine, or with the clock held back."
    return text
