"""The difference of two runs as a whole: both steps measured again in turns, and proofs of causes beside that.

What a switch gains in its run is one thing, what the runs differ by another. Where the latter is not resolved, no proof
of a cause says that it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from roofline.comparison.parity.difference import plain
from roofline.comparison.proof.experiment import Measured, Proof, since, told
from roofline.comparison.proof.same_run import model_flops, moved_since, other_work
from roofline.comparison.proof.verdicts import Interval, gain, spread, verdict
from roofline.comparison.terms import Comparison
from roofline.core import statistics

#: The rule of the proof that is about the difference itself.
DIFFERENCE = "difference"
#: What says that a switch gains something.
_GAINS = frozenset(("confirmed", "resolved now", "smaller than predicted", "larger than predicted"))


def difference(
    comparison: Comparison, names: tuple[str, str], measured: Measured, work: Mapping[str, float] | None = None
) -> Proof:
    """Whether both runs, measured again in turns, differ as they did when they were recorded.

    measured: A is the original, B the other form; `measured.work` are B's model FLOPs, `work` A's [FLOP]; empty or
    None: not counted.
    """
    observed, interval = gain(measured.original, measured.flipped)
    called = tuple(plain(name) for name in names)
    reason = ""
    recorded = (comparison.a, measured.before, work or {}), (comparison.b, measured.after, measured.work)
    for name, (run, again, counted) in zip(called, recorded, strict=True):
        reason = reason or since(moved_since(run.profile, again), name)
        if counted and not reason:
            changed = other_work(model_flops(run), counted)
            reason = f"{' and '.join(changed)} of {name} changed since it was recorded" if changed else ""
    predicted = _of_any_process(comparison, measured)
    found = "not proven" if reason else verdict(comparison.difference, predicted, observed, interval)
    if found == "resolved now" and comparison.resolved:  # the headline has said so, within one process of each
        found = "confirmed" if observed * comparison.difference > 0 else "refuted"
    proof = Proof(
        rule=DIFFERENCE,
        rules=(DIFFERENCE,),
        run="a",
        switch=_both(called),
        predicted=comparison.difference,
        predicted_ci95=predicted,
        observed=observed,
        observed_ci95=interval,
        original=float(np.median([np.median(times) for times in measured.original])),
        flipped=float(np.median([np.median(times) for times in measured.flipped])),
        rounds=len(measured.original),
        contended=measured.contended,
        verdict=found,
        text="",
        reason=reason,
    )
    return msgspec.structs.replace(proof, text=told(proof, f"the difference, {_both(called)}"))


def cannot(comparison: Comparison, names: tuple[str, str], reason: str) -> Proof:
    """The same where one of them cannot be measured again; reason: a sentence."""
    both = _both(tuple(plain(name) for name in names))
    return Proof(
        rule=DIFFERENCE,
        rules=(DIFFERENCE,),
        run="a",
        switch=both,
        predicted=comparison.difference,
        predicted_ci95=comparison.ci95,
        verdict="not proven",
        text=f"the difference, {both}: not proven. {reason}",
        reason=reason,
    )


def _both(names: Sequence[str]) -> str:
    return f"{names[0]} against {names[1]}"


def _of_any_process(comparison: Comparison, measured: Measured) -> Interval | None:
    """The interval of the recorded difference, for any processes of both [s].

    Recorded in one process each, it says nothing of how far processes lie apart: the rounds do, by Student's t.
    """
    ci95, runs = comparison.ci95, (comparison.a, comparison.b)
    logs = np.log([[np.median(times) for times in form] for form in (measured.original, measured.flipped)])
    freedom = 2 * (logs.shape[1] - 1)
    if ci95 is None or all(run.profile.wall.processes for run in runs) or not freedom:
        return ci95
    # A process more or less of either run is slower for the machine's reasons, so that both tell of one spread.
    apart = math.sqrt(float(logs.var(axis=1).sum()) * logs.shape[1] / freedom)
    drawn = statistics.generator().standard_t(freedom, 10 * statistics.RESAMPLES)
    wide = float(np.percentile(drawn, 97.5)) * apart * math.hypot(*(run.wall for run in runs))
    whole = comparison.difference
    return whole - math.hypot(whole - ci95[0], wide), whole + math.hypot(ci95[1] - whole, wide)


def beside(proofs: Sequence[Proof], comparison: Comparison) -> tuple[Proof, ...]:
    """Proofs of causes, worded so that they agree with what is known of the difference.

    That a switch gains what its findings said is no proof of a difference that is not there.
    """
    whole = next((proof for proof in proofs if proof.rule == DIFFERENCE and proof.verdict != "not proven"), None)
    seconds, interval = comparison.difference, comparison.ci95
    if whole is not None and whole.observed is not None:
        seconds, interval = whole.observed, whole.observed_ci95
    if interval is not None and not interval[0] <= 0 <= interval[1]:
        return tuple(proofs)
    note = f"this is what the switch gains; what the runs differ by, {spread(seconds, interval)}, is not resolved"
    return tuple(_of_the_switch(proof, note) if proof.rule != DIFFERENCE else proof for proof in proofs)


def _of_the_switch(proof: Proof, note: str) -> Proof:
    if proof.verdict not in _GAINS:
        return proof
    found = "switch confirmed" if proof.verdict == "confirmed" else proof.verdict
    text = proof.text.replace(f": {proof.verdict}", f": {found}: {note}", 1)
    return msgspec.structs.replace(proof, verdict=found, reason=note, text=text)
