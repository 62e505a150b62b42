"""Why one run is faster, in ranked findings: the causes that the rules found, each with its part of the difference.

    findings + rest = wall_A - wall_B

A finding needs an interval without 0, and has to matter: at least 2 % of the longer step. How fast the same kernels run
differs from one process to the next, by a quarter on a machine that is shared. Where a run was timed in one process
only, or where other programs or the profiler slowed it down, "the same work, slower" must be more than that, else
nothing is said; nor where all else that both runs do is as much slower (`machine_speed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import Interval
from roofline.comparison.causes import wording
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import DRIFT, Entry, Portion, Work, together
from roofline.comparison.causes.facts import facts_of
from roofline.comparison.causes.order import RULES
from roofline.comparison.causes.rules_of_time import MORE_PROGRAMS
from roofline.comparison.segments import executions
from roofline.comparison.terms import Comparison
from roofline.core.executor import executor_of
from roofline.core.schema import slug
from roofline.core.vocabulary import Phase

#: A finding matters from this share of the longer step.
MATERIAL = 0.02
#: Rules that say no more than "the same, slower", and how much slower it must be where there was one process.
_SAME_WORK = frozenset(("efficiency", "host-idle", "host-bound", "small-model"))
_NOISE = 0.25
#: The host differs more: up to 1.7 times in measured pairs whose products took equally long (docs/plants.md). And so do
#: vector ops: 1.2 times in a null there, 1.4 times in one of a model in training that is not kept.
_MORE_NOISE = 0.4
#: Flags of runs whose times are not to be trusted as far as their intervals say.
_DOUBTS = frozenset(("contended", "inflated", "throttled"))
#: Rules whose claims of opposite sign are two findings: each stretch or phase has a cause of its own.
_BY_SIGN = frozenset(
    (
        *("fusion", "tiny-ops", "layout", "attention", "recomputation", "padding", "more-work", "random"),
        *("jit-not-in-effect", "compiled-not-used", "graph-breaks", "host-bound"),
    )
)
#: What a compiler would have taken away.
_COMPILABLE = frozenset(("fusion", "tiny-ops", "host-bound", "host-idle", "small-model"))
#: What the switch `jit` says where a compiler was asked for.
_COMPILED = frozenset(("on", "compile", "autocluster"))


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A cause. seconds: its part of wall_A - wall_B, terms: by place [s]; text: what was found; advice: what to try.

    label: the cause in a few words, for a sentence about all of them.
    """

    rule: str
    seconds: float
    ci95: Interval
    label: str
    text: str
    advice: str
    terms: tuple[Portion, ...]


def explain(comparison: Comparison) -> tuple[Finding, ...]:
    """The causes of a difference, largest first."""
    attribution = Attribution(comparison)
    for rule in RULES:
        for claim in rule(attribution):
            attribution.claim(claim)
    found = [_finding(attribution, rule, entry) for rule, entry in _merged(attribution) if rule != DRIFT]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: -abs(each.seconds)))


def rest(comparison: Comparison, findings: Iterable[Finding]) -> float:
    """What of the difference no finding explains [s]."""
    return comparison.difference - sum(finding.seconds for finding in findings)


def _merged(attribution: Attribution) -> list[tuple[str, Entry]]:
    """One entry per cause, with its rule: those of one rule and one sign."""
    alike: dict[tuple[str, str, bool], list[Entry]] = {}
    for entry in attribution.entries:
        rule = _rule(attribution, entry)
        sign = rule in _BY_SIGN and attribution.seconds(entry.alone) < 0
        of = entry.claim.about.get("of", "") if rule == entry.claim.rule else ""
        alike.setdefault((rule, of, sign), []).append(entry)
    return [
        (rule, together(each, next((e.claim for e in each if e.claim.rule == rule and e.claim.about), each[0].claim)))
        for (rule, _, _), each in alike.items()
    ]


def _rule(attribution: Attribution, entry: Entry) -> str:
    """An entry's rule; what a compiler should have taken away from the run that spends more is the compiler's."""
    rule, comparison = entry.claim.rule, attribution.comparison
    slower, other = (comparison.a, comparison.b)[:: 1 if attribution.seconds(entry) > 0 else -1]
    if rule not in _COMPILABLE:
        return rule
    rule = _by_programs(rule, slower, other)
    if rule == "jit-not-in-effect" or not _meant_to_be_compiled(slower):
        return rule
    if not _mostly_eager(slower):
        return "graph-breaks" if _broken(slower, other) else rule
    if _mostly_eager(other) and executor_of(other.profile) == executor_of(slower.profile):
        return rule  # neither was compiled
    return "compiled-not-used" if slower.profile.mode == "generate" else "jit-not-in-effect"


def _meant_to_be_compiled(run: Analysis) -> bool:
    asked = {run.profile.options.get("jit"), run.profile.switches.get("jit")}
    return run.profile.compilation is not None or bool(asked & _COMPILED)


def _by_programs(rule: str, slower: Analysis, other: Analysis) -> str:
    """The rule of what a compiler takes away, by how many compiled programs the two runs dispatch.

    What is in two programs is not fused, and is dispatched twice.
    """
    if _op_by_op(slower):
        return rule if _op_by_op(other) else "jit-not-in-effect"
    many, few = (run.profile.conditions.get("programs_per_step") or 0.0 for run in (slower, other))
    return "host-bound" if rule in ("fusion", "tiny-ops") and many > MORE_PROGRAMS * few > 0 else rule


def _op_by_op(run: Analysis) -> bool:
    """Whether a framework that compiles programs was given one for each op, or for two."""
    programs = run.profile.conditions.get("programs_per_step")
    return programs is not None and programs > 1 and 2 * programs > float(executions(run.profile).sum())


def _broken(slower: Analysis, other: Analysis) -> bool:
    """Whether graph breaks make the slower run enter more compiled graphs."""
    one, less = slower.profile.compilation, other.profile.compilation
    if one is None or less is None or not less.graphs:
        return False
    return one.graphs > less.graphs and sum(one.breaks.values()) > sum(less.breaks.values())


def _mostly_eager(run: Analysis) -> bool:
    """Whether a run's compiler had no part in most of its ops' time."""
    compilation, profiled = run.profile.compilation, run.profile.profiled
    if compilation is None:  # XLA says by its thunks that it ran
        return profiled is not None and not profiled.mechanism.startswith("xla")
    eager = sum(seconds for _, seconds in compilation.eager.values())
    return compilation.graphs == 0 or eager > 0.5 * run.busy


def _finding(attribution: Attribution, rule: str, entry: Entry) -> Finding | None:
    """What an entry says, or None where it does not stand out."""
    seconds = attribution.seconds(entry)
    ci95 = attribution.interval(entry)
    alone = entry.alone
    work = attribution.work(attribution.a, alone.a), attribution.work(attribution.b, alone.b)
    if ci95 is None or ci95[0] <= 0 <= ci95[1] or abs(seconds) < MATERIAL * attribution.wall:
        return None
    if _same_work(rule, entry, work) and not _beyond_noise(attribution, rule, entry, work):
        return None
    terms = attribution.portions(entry)
    where, after = _where(attribution.portions(alone), seconds), seconds - attribution.seconds(alone)
    facts = facts_of(attribution.comparison, entry, seconds, work, where, after)
    text, advice = wording.sentence(rule, facts)
    label = wording.label(rule, facts)
    return Finding(rule=rule, seconds=seconds, ci95=ci95, label=label, text=text, advice=advice, terms=terms)


def _same_work(rule: str, entry: Entry, work: tuple[Work, Work]) -> bool:
    """Whether a finding says no more than that one run takes longer for the same."""
    return rule in _SAME_WORK or (rule in _AS_MANY and work[0].ops == work[1].ops and not entry.claim.about)


#: Rules whose claims may be of equally many ops in both runs, or of none but the gap.
_AS_MANY = frozenset(("synchronisation", "communication", "data-input", "compilation"))


def _beyond_noise(attribution: Attribution, rule: str, entry: Entry, work: tuple[Work, Work]) -> bool:
    """Whether the same work is slower in one run by more than other processes and the machine's speed make it."""
    a, b = attribution.comparison.a, attribution.comparison.b
    flags = {slug(flag) for run in (a, b) for flag in run.flags}
    if (
        all(run.profile.wall.processes for run in (a, b))
        and not flags & _DOUBTS
        and not attribution.machine_speed.uneven
    ):
        return True
    seconds, times = attribution.seconds(entry), [work[0].seconds, work[1].seconds]
    if rule == "host-idle":  # what ops after it take longer is its consequence
        seconds, times = attribution.gap_seconds(entry), [0.0, 0.0]
    longer = max(times[0] + entry.gap_a * a.gap, times[1] + entry.gap_b * b.gap)
    same = {"matmul": "products", "vector": "others"}.get(entry.claim.about.get("of", ""), "host")
    ratio = attribution.machine_speed.excuses(same)
    slower = ratio if seconds > 0 else 1 / ratio
    paced = longer * (1 - 1 / slower) if slower > 1 else 0.0
    spread = same == "others" or (rule == "host-idle" and not _before_few_ops(attribution, seconds))
    noise = _MORE_NOISE if spread else _NOISE
    return abs(seconds) - paced >= noise * (longer - paced)


def _before_few_ops(attribution: Attribution, seconds: float) -> bool:
    """Whether half of so much more idle time [s] is where a host does far more than before its other ops."""
    a, b = attribution.comparison.a, attribution.comparison.b
    more = float(attribution.besides[0].sum()) * a.gap - float(attribution.besides[1].sum()) * b.gap
    return more * seconds > 0 and abs(more) >= 0.5 * abs(seconds)


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
    if not block or block in get_args(Phase) or abs(most) < 0.5 * abs(seconds):
        return ""
    return "".join(c for c in f"the {phase} of {block}" if c.isprintable())[:80]
