"""Sentences about compared runs, shared by the formats and figures. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.breakdown.breakdown import COMMON, common_places
from roofline.comparison.causes.claim import MATERIAL
from roofline.comparison.causes.findings import Finding
from roofline.comparison.parity.difference import SAME_WORK
from roofline.comparison.parity.parity import Parity
from roofline.comparison.proof.headline import DIFFERENCE
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Comparison
from roofline.core.schema import slug
from roofline.renderers import _words
from roofline.renderers._signed import rounding, scale, signed, snapped
from roofline.renderers._words import plain

#: Findings of each pair that are told where there are more than two runs.
TOP = 3
#: Findings that one sentence names.
_CAUSES = 3
#: From this share of a difference on, what is left of it is told.
_LEFT = 5e-3
MARKS = "* comparable with named differences; ! not comparable"


def name(pair: RankedPair, side: int) -> str:
    """What a run is called."""
    return plain(pair.names[side], 60)


def factor(ratio: float) -> str:
    """How many times faster, never "1.00": 1.83x, 1.004x, 12.3x."""
    digits = 3
    while abs(ratio - 1) > 1e-9 and float(f"{ratio:.{digits - 1}f}") == 1.0 and digits < 7:
        digits += 1
    return f"{ratio:.{digits - 1}f}x" if ratio < 2 else f"{units.significant(ratio)}x"


def verdict(pair: RankedPair, advise: bool = False) -> str:
    """The sentence: which run is faster, by how much, and whether that is more than noise.

    advise: also say how to measure what processes differ by, where that is not known.
    """
    found = pair.comparison
    walls, names = (found.a.wall, found.b.wall), (name(pair, 0), name(pair, 1))
    if found.ci95 is None:
        times = f"{names[0]} takes {units.seconds(walls[0])} per step and {names[1]} {units.seconds(walls[1])}"
        return f"{times}; a run has fewer than 3 steps, so it is not known whether that is more than noise."
    low, high = map(snapped, found.ci95)
    within = _within(pair)
    if not found.resolved:
        times = f"{names[0]} takes {units.seconds(walls[0])} per step and {names[1]} {units.seconds(walls[1])}"
        apart = f"{units.seconds(snapped(found.difference))}, 95 % interval {units.seconds_between(low, high)}{within}"
        return f"{times}: no difference that these runs resolve ({apart})."
    if found.difference < 0:
        walls, names, low, high = walls[::-1], names[::-1], -high, -low
    apart = f"difference {units.seconds(walls[0] - walls[1])}, 95 % interval {units.seconds_between(low, high)}{within}"
    if within and advise and all(map(_repeatable, (found.a, found.b))):
        apart += "; --rounds 3 measures between processes"
    return (
        f"{names[1]} is {factor(walls[0] / walls[1])} faster than {names[0]}: {units.seconds(walls[1])} instead of "
        f"{units.seconds(walls[0])} per step ({apart})."
    )


def _within(pair: RankedPair) -> str:
    """What the interval leaves out: processes differ from each other by more than the steps of one of them tell."""
    runs = (pair.comparison.a, pair.comparison.b)
    single = [side for side, run in enumerate(runs) if not run.profile.wall.processes]
    if not single:
        return ""
    what = "run" if any(runs[side].profile.imported for side in single) else "process"
    return f" within one {what} each" if len(single) == 2 else f" within one {what} of {name(pair, single[0])}"


def _repeatable(run: Analysis) -> bool:
    """Whether the command line measured a run, and can do so in several processes."""
    return run.profile.imported is None and "in-process" not in map(slug, run.flags)


def causes(pair: RankedPair) -> str:
    """The sentence after the verdict: the largest findings, and the largest of those that go the other way."""
    if not pair.comparison.resolved:
        return ""
    difference = pair.comparison.difference
    ahead = [finding for finding in pair.findings if finding.seconds * difference > 0][:_CAUSES]
    against = [finding for finding in pair.findings if finding.seconds * difference < 0][:1]
    if not ahead:
        return ""
    if against or _exceed(ahead, difference):
        return f"{_sum(pair, ahead, against)}; {_asked(pair.comparison)}."
    parts = [f"{units.seconds(abs(finding.seconds))} is {plain(finding.label, 120)}" for finding in ahead]
    return f"Of {units.seconds(abs(difference))}, {', '.join(parts)}; {_asked(pair.comparison)}."


def again(pair: RankedPair) -> str:
    """The sentence after those: what both runs differ by now, where they were measured again in turns."""
    proof = next((proof for proof in pair.proofs or () if proof.rule == DIFFERENCE), None)
    if proof is None:
        return ""
    if proof.observed is None:
        return f"Not measured again: {plain(proof.reason, 400)}"
    told = f"Measured again in turns, {_words.counted(proof.rounds, 'round')}: A − B is {signed(proof.observed)}"
    if proof.observed_ci95 is not None:
        told += f", 95 % interval {units.seconds_between(*map(snapped, proof.observed_ci95))}"
    why = f" ({plain(proof.reason, 400)})" if proof.verdict == "not proven" else ""
    return f"{told}: {proof.verdict}{why}."


def _exceed(ahead: Sequence[Finding], difference: float) -> bool:
    """Whether causes add up to more than the difference that they are causes of, by more than rounding."""
    total, whole = sum(abs(finding.seconds) for finding in ahead), abs(difference)
    return total - whole >= _LEFT * whole


def _sum(pair: RankedPair, ahead: Sequence[Finding], against: Sequence[Finding]) -> str:
    """What either run loses, and the sum: "torch loses 3 ms through X, while jax loses 1 ms elsewhere: 3 - 1 = 2 ms".

    Elsewhere is all that has no name here: other findings, and what none accounts for. As written, the sum closes.
    """
    whole = pair.comparison.difference
    written = scale([whole, *(finding.seconds for finding in (*ahead, *against))])
    parts = [
        [(written.rounded(abs(finding.seconds)), f"through {plain(finding.label, 120)}") for finding in some]
        for some in (ahead, against)
    ]
    lost, won = (sum(amount for amount, _ in some) for some in parts)
    rest = written.rounded(written.rounded(abs(whole)) - lost + won)
    if rest:
        parts[rest < 0].append((abs(rest), "elsewhere"))
    runs = (name(pair, 0), name(pair, 1))[:: 1 if whole > 0 else -1]
    told = [
        f"{run} loses {_words.conjunction([f'{units.seconds(amount)} {how}' for amount, how in some])}"
        for run, some in zip(runs, parts, strict=True)
        if some
    ]
    signs = [f"{sign} {written.size(amount)}" for sign, some in zip("+−", parts, strict=True) for amount, _ in some]
    total = f"{written.size(abs(whole))} {written.unit}"
    return f"{', while '.join(told)}: {' '.join(signs).removeprefix('+ ')} = {total}"


def _asked(found: Comparison) -> str:
    """Whether both runs were asked for the same products."""
    a, b = found.a.total.model_flops, found.b.total.model_flops
    if abs(a - b) <= SAME_WORK * max(a, b):
        return "model FLOPs of products are equal" if a else "neither has products of known work"
    one, other = (units.flop(flops) if flops else "none that are known" for flops in (a, b))
    return f"model FLOPs of products differ ({one} and {other})"


def beside(pair: RankedPair) -> str:
    """What is no finding and is told all the same, below the findings: what is small beside them, and tendencies."""
    told = []
    if pair.smaller:
        told.append(f"Small beside these, and perhaps their effects: {_named(pair.smaller)}.")
    if pair.tendencies:
        told.append(f"Tendencies, which these runs do not tell from noise: {_named(pair.tendencies)}.")
    return " ".join(told)


def _named(found: Sequence[Finding]) -> str:
    """The largest of them in few words."""
    told = [f"{signed(each.seconds)} {plain(each.label, 120)}" for each in found[:_CAUSES]]
    more = len(found) - len(told)
    return _words.conjunction([*told, f"{more} more"] if more else told)


def subject(runs: Sequence[Analysis]) -> str:
    """What was run on which devices: "bert infer, b1 s128 on AMD EPYC, 1 thread"; each different one is named."""
    what = " against ".join(dict.fromkeys(_words.subject(run) for run in runs))
    where = " and ".join(dict.fromkeys(_words.device(run) for run in runs))
    return f"{what} on {where}"


def sign(pair: RankedPair) -> str:
    """What a positive number means, and what shares beyond the whole do: one cause's are made up for by another's."""
    a, b = (
        own if own.endswith(f" ({letter})") else f"{own} ({letter})"
        for own, letter in ((name(pair, 0), "A"), (name(pair, 1), "B"))
    )
    shares = [_percent(part, pair) or 0 for part in (*(finding.seconds for finding in pair.findings), pair.rest)]
    beyond = "; shares of the difference with their signs" if min(shares) < 0 or max(shares) > 100 else ""
    return f"A − B: what is positive, {a} spends and {b} does not{beyond}"


def warning(pair: RankedPair) -> str:
    """The warning that stands on every output of runs that are not comparable; empty for all others."""
    parity = pair.comparison.parity
    reasons = [plain(difference.text, 300).rstrip(".") for difference in parity.of("refused")]
    if parity.verdict != "not comparable":
        return ""
    told = _words.conjunction(reasons) or "see parity"
    return f"NOT COMPARABLE, compared all the same: {told}."


def judged(parity: Parity) -> str:
    """The verdict of the parity gate in words."""
    doubts, named = len(parity.of("warning")), len(parity.of("named"))
    told = {
        "comparable": "comparable",
        "named differences": f"comparable, with {_words.counted(named, 'named difference')}",
        "not comparable": "not comparable",
    }[parity.verdict]
    return f"{told}; {_words.counted(doubts, 'doubt')} about the measurement" if doubts else told


def differences(pair: RankedPair) -> list[str]:
    """What differs, each in a sentence with the largest part of the difference that it can explain."""
    lines = []
    for one in pair.comparison.parity.differences:
        most = ""
        if one.seconds is not None:
            share = "" if one.share is None else f", {units.percent(one.share, 0)} of the difference"
            most = f" (at most {units.seconds(snapped(one.seconds))}{share})"
        head = {"refused": "not comparable: ", "named": "", "warning": "doubt: "}[one.severity]
        lines.append(f"{head}{plain(one.text, 400).rstrip('.')}{most}.")
    return lines


def share(part: float, pair: RankedPair) -> str:
    """A part of the difference in percent; a dash where the runs resolve none, or so little that no part matters."""
    percent = _percent(part, pair)
    return units.UNKNOWN if percent is None else f"{percent} %"


def _percent(part: float, pair: RankedPair) -> int | None:
    whole, longer = pair.comparison.difference, max(pair.comparison.a.wall, pair.comparison.b.wall)
    # What is left of causes that cancel is no measure of them: each finding is more than a difference below this.
    if not pair.comparison.resolved or abs(whole) < MATERIAL * longer:
        return None
    return round(100 * part / whole)  # a whole number: nothing is never "-0"


def places(pair: RankedPair) -> str:
    """What to know where most of the ops' time is at places of one run only, as of layers compiled one by one."""
    common = common_places(pair.comparison)
    if pair.breakdown is not None or common >= COMMON:
        return ""
    return (
        f"only {units.percent(common, 0)} of the ops' time is at the same phase and block in both runs, so "
        "that rows above cancel: look at their sum, and at the findings."
    )


def communication(pair: RankedPair) -> str:
    """Time in collectives, and how much of it no computation hides; empty where no profile tells of any."""
    lines = []
    for side, run in enumerate((pair.comparison.a, pair.comparison.b)):
        facts = run.profile.imported
        if facts is None or not facts.communication:
            continue
        if facts.exposed is None:
            hidden = "how much of it is hidden is not known"
        else:
            whole, bare = facts.communication, facts.exposed
            hidden = f"{units.seconds(bare)} exposed, {units.seconds(whole - bare)} hidden by computation"
        waiting = "" if facts.waiting is None else f", {units.seconds(facts.waiting)} of it waiting for slower ranks"
        lines.append(f"{name(pair, side)} {units.seconds(facts.communication)} per step: {hidden}{waiting}")
    return f"{'; '.join(lines)}." if lines else ""


def mark(verdict: str) -> str:
    """Behind a speedup: nothing, "*" for named differences, "!" for runs that are not comparable."""
    return {"comparable": "", "named differences": "*", "not comparable": "!"}[verdict]


def closing(comparison: Comparison) -> str:
    """Both views and what they leave."""
    told = []
    for what, view in (("work view", comparison.work), ("kernel view", comparison.kernel)):
        whole = sum(term.seconds for term in view.terms)
        told.append(f"{what} {len(view.terms)} terms, {signed(whole)}, residual {rounding(view.residual)}")
    return "; ".join(told)


def headline(ranking: Ranking) -> str:
    """The sentence over several runs."""
    best = ranking.runs[ranking.fastest]
    slowest = ranking.order[-1]
    return (
        f"{subject(ranking.runs)}: of {len(ranking.runs)} runs {plain(ranking.names[ranking.fastest], 60)} is the "
        f"fastest, {units.seconds(best.wall)} per step; {plain(ranking.names[slowest], 60)} is the slowest, "
        f"{units.seconds(ranking.runs[slowest].wall)} ({factor(ranking.runs[slowest].wall / best.wall)})."
    )
