"""Why one run is faster, in ranked findings: the causes that the rules found, each with its part of the difference.

    findings + rest = wall_A - wall_B

A finding needs an interval without 0, and has to matter: at least 2 % of the longer step. How fast the same kernels run
differs from one process to the next, by a quarter on a machine that is shared. Where a run was timed in one process
only, or where other programs or the profiler slowed it down, "the same work, slower" must be more than that, else
nothing is said; nor where all else that both runs do is as much slower (`machine_speed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

import msgspec
import numpy as np

from roofline.analysis.bootstrap import Interval
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import DRIFT, MATERIAL, OP, Claim, Entry, Portion, Work, together
from roofline.comparison.causes.facts import Facts, facts_of
from roofline.comparison.causes.order import causes, rules
from roofline.comparison.causes.phrases import hiding
from roofline.comparison.causes.smaller import is_smaller
from roofline.comparison.causes.tendencies import DOUBTS, is_tendency, surely_other_work, without_waiting
from roofline.comparison.terms import Comparison
from roofline.core.schema import slug
from roofline.core.vocabulary import Phase

#: How much slower "the same, slower" must be where there was one process. By choice (docs/explaining.md).
_NOISE = 0.25
#: By choice, as the host differs more: up to 1.7 times in measured pairs whose products took equally long
#: (docs/plants.md). And so do vector ops: 1.2 times in a null there, 1.4 times in one of a model in training that is
#: not kept.
_MORE_NOISE = 0.4
#: This part of a finding is most of it. By choice.
_MOST = 0.5


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause. seconds: its part of wall_A - wall_B, terms: by place [s]; text: what was found; advice: what to try.

    rule: the cause's name. label: the cause in a few words, for a sentence about all of them.
    """

    rule: str
    seconds: float
    ci95: Interval
    label: str
    text: str
    advice: str
    terms: tuple[Portion, ...]


class Explained(NamedTuple):
    """The causes of a difference, what is small beside them, and what only tends to be a cause: each largest first."""

    findings: tuple[Finding, ...]
    smaller: tuple[Finding, ...]
    tendencies: tuple[Finding, ...]


def explain(comparison: Comparison) -> tuple[Finding, ...]:
    """The causes of a difference, largest first."""
    return explained(comparison).findings


def explained(comparison: Comparison) -> Explained:
    """The causes of a difference, parted by what can be said of them."""
    attribution = claimed(comparison)
    made: list[tuple[Finding, bool]] = []  # and whether it is a tendency
    for cause, entry in _merged(attribution):
        least, rest = surely_other_work(attribution, entry), without_waiting(attribution, entry)
        certain = abs(least) >= MATERIAL * attribution.wall
        each = _finding(attribution, cause, entry, least if certain else 0.0, rest)
        if each is not None:
            doubtful = rest * np.sign(each.seconds) < MATERIAL * attribution.wall
            tends = not certain and is_tendency(comparison, each.seconds, each.ci95)
            made.append((each, bool(doubtful) or tends))
    findings: list[Finding] = []
    smaller: list[Finding] = []
    tendencies: list[Finding] = []
    for each, tends in sorted(made, key=lambda one: -abs(one[0].seconds)):
        larger = sum(finding.seconds for finding in findings)
        if tends:
            tendencies.append(each)
        elif is_smaller(comparison.difference, larger, each.seconds):
            smaller.append(each)
        else:
            findings.append(each)
    return Explained(tuple(findings), tuple(smaller), tuple(tendencies))


def claimed(comparison: Comparison) -> Attribution:
    """A comparison, given out to the causes."""
    attribution = Attribution(comparison)
    for rule in rules():
        assert rule.claim is not None
        for claim in rule.claim(attribution):
            attribution.claim(claim)
    return attribution


def rest(comparison: Comparison, findings: Iterable[Finding]) -> float:
    """What of the difference no finding explains [s]."""
    return comparison.difference - sum(finding.seconds for finding in findings)


def _merged(attribution: Attribution) -> list[tuple[Cause, Entry]]:
    """One entry per cause: those of one op, if claims are about one, of one speed and, if it has two, of one sign."""
    alike: dict[tuple[str, str, bool, str], list[Entry]] = {}
    for entry in attribution.entries:
        if entry.claim.rule == DRIFT:
            continue
        cause = _cause(attribution, entry)
        sign = cause.two_signs and attribution.seconds(entry.alone) < 0
        # What is told of bytes that are written in full is told of these ops alone.
        one = entry.claim.about.get(OP, "") or entry.claim.about.get("written", "")
        alike.setdefault((cause.name, cause.speed(entry.claim), sign, one), []).append(entry)
    return [(causes()[name], together(each, _telling(attribution, name, each))) for (name, *_), each in alike.items()]


def _telling(attribution: Attribution, name: str, entries: Sequence[Entry]) -> Claim:
    """Of several claims the one whose words all are told in: of what says something, that which has most of it."""
    whole = sum(attribution.seconds(entry) for entry in entries)
    said = [entry for entry in entries if entry.claim.rule == name and entry.claim.about]
    by_words: dict[tuple[tuple[str, str], ...], float] = {}
    for entry in said:
        words = tuple(sorted(entry.claim.about.items()))
        by_words[words] = by_words.get(words, 0.0) + attribution.seconds(entry) * (1 if whole > 0 else -1)
    if not by_words:
        return entries[0].claim
    most = max(by_words, key=lambda words: by_words[words])
    return next(entry.claim for entry in said if tuple(sorted(entry.claim.about.items())) == most)


def _cause(attribution: Attribution, entry: Entry) -> Cause:
    """An entry's cause, or the one that stands behind it in the run that spends more."""
    known, comparison = causes(), attribution.comparison
    slower, other = (comparison.a, comparison.b)[:: 1 if attribution.seconds(entry) > 0 else -1]
    claimed = known[entry.claim.rule]
    return next((cause for cause in known.values() if cause.is_behind(claimed, slower, other)), claimed)


def _finding(attribution: Attribution, cause: Cause, entry: Entry, least: float, rest: float) -> Finding | None:
    """What an entry says, or None where it does not stand out.

    least: what of it is certain, 0 where nothing is; rest: what is left if hosts only waited for a core [s].
    """
    seconds = attribution.seconds(entry)
    ci95 = attribution.interval(entry)
    if ci95 is not None and least:
        ci95 = (max(ci95[0], least), max(ci95[1], least)) if least > 0 else (min(ci95[0], least), min(ci95[1], least))
    ci95 = None if ci95 is None else (min(ci95[0], rest), max(ci95[1], rest)) if rest * seconds > 0 else ci95
    alone = entry.alone
    work = attribution.work(attribution.a, alone.a), attribution.work(attribution.b, alone.b)
    if ci95 is None or ci95[0] <= 0 <= ci95[1] or abs(seconds) < MATERIAL * attribution.wall:
        return None
    terms = attribution.portions(entry)
    where, after = _where(attribution.portions(alone), seconds), seconds - attribution.seconds(alone)
    facts = facts_of(attribution.comparison, entry, seconds, work, where, after)
    if cause.holds is not None and not cause.holds(facts):
        return None
    if _same_work(cause, entry, facts) and not _beyond_noise(attribution, cause, entry, work):
        return None
    return Finding(
        rule=cause.name,
        seconds=seconds,
        ci95=ci95,
        label=_label(cause, facts, seconds),
        text=cause.sentence(facts) + hiding(facts),
        advice=cause.advised(facts),
        terms=terms,
    )


def _label(cause: Cause, facts: Facts, seconds: float) -> str:
    """The cause in a few words. What the faster run has more of is told of it by name: it is in no order of theirs."""
    label = cause.labelled(facts)
    return label if seconds > 0 else label.replace(" against ", f" in {facts.more} against ", 1)


def _same_work(cause: Cause, entry: Entry, facts: Facts) -> bool:
    """Whether a finding says no more than that one run takes longer for the same."""
    if callable(cause.same_work):
        return cause.same_work(facts)
    if cause.same_work == "of as many ops":
        return facts.does_more.ops == facts.does_less.ops and not entry.claim.about
    return cause.same_work == "always"


def _beyond_noise(attribution: Attribution, cause: Cause, entry: Entry, work: tuple[Work, Work]) -> bool:
    """Whether the same work is slower in one run by more than other processes and the machine's speed make it."""
    a, b = attribution.comparison.a, attribution.comparison.b
    flags = {slug(flag) for run in (a, b) for flag in run.flags}
    if (
        all(run.profile.wall.processes for run in (a, b))
        and not flags & DOUBTS
        and not attribution.machine_speed.uneven
    ):
        return True
    seconds, times = attribution.seconds(entry), [work[0].seconds, work[1].seconds]
    if cause.in_gap:
        seconds, times = attribution.gap_seconds(entry), [0.0, 0.0]
    longer = max(times[0] + entry.gap_a * a.gap, times[1] + entry.gap_b * b.gap)
    speed = cause.speed(entry.claim)
    ratio = attribution.machine_speed.excuses(speed)
    slower = ratio if seconds > 0 else 1 / ratio
    excused = longer * (1 - 1 / slower) if slower > 1 else 0.0
    spread = speed == "others" or (cause.in_gap and not _before_few_ops(attribution, seconds))
    noise = _MORE_NOISE if spread else _NOISE
    return abs(seconds) - excused >= noise * (longer - excused)


def _before_few_ops(attribution: Attribution, seconds: float) -> bool:
    """Whether half of so much more idle time [s] is where a host does far more than before its other ops."""
    a, b = attribution.comparison.a, attribution.comparison.b
    more = float(attribution.non_dispatch[0].sum()) * a.gap - float(attribution.non_dispatch[1].sum()) * b.gap
    return more * seconds > 0 and abs(more) >= _MOST * abs(seconds)


def _where(terms: tuple[Portion, ...], seconds: float) -> str:
    """The place that has most of a finding, where one has: "the backward of the FFN"."""
    blocks: dict[tuple[str, str], float] = {}
    for portion in terms:
        if portion.phase is not None and portion.block is not None:
            place = portion.phase, portion.block
            blocks[place] = blocks.get(place, 0.0) + portion.seconds
    if len(blocks) < 2:
        return ""
    (phase, block), most = max(blocks.items(), key=lambda item: item[1] * (1 if seconds > 0 else -1))
    # The name of a phase is what stands for a block where a trace has no scopes.
    if not block or block in get_args(Phase) or abs(most) < _MOST * abs(seconds):
        return ""
    return "".join(c for c in f"the {phase} of {block}" if c.isprintable())[:80]
