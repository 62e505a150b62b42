"""List what is known of the work of two runs by phase, and how much their ops of unknown work may hide."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from roofline import units
from roofline.analysis.analysis import Analysis, per_analysis
from roofline.analysis.callbacks import python_ops
from roofline.comparison.parity.contractions import (
    Executed,
    Product,
    differing,
    executed,
    matrix_work,
    named,
    written_out,
)
from roofline.comparison.parity.difference import SAME_WORK, SLIGHT, Both, Contraction, Difference, Pair, Severity
from roofline.core.schema import Signature
from roofline.core.vocabulary import FLOATING

#: What ops of unknown work can have done at most is their time at the rate of the device for their type, times this:
#: ceilings are measured at other clocks, and times of ops have the cost of a profiler taken off. By choice.
_FASTER = 2.0
#: Arithmetic that inputs of a type are multiplied in, where it is not the type's own.
_ARITHMETIC = {"fp32": ("fp32", "tf32")}

#: Phases after the forward pass; all others are forward (prefill and decode are).
AFTER = ("backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Work:
    """The work of both runs in a phase.

    known_flops: model FLOPs that are known; flops: those and the ones that a run writes as multiplications and sums
    where the other one multiplies matrices, which are `written`. unknown_shares: of busy time in ops of unknown work.
    executed: each product. contractions: those that the runs do not execute equally often, if their model FLOPs differ.
    """

    pair: Pair
    phase: str
    known_flops: Both
    unknown_shares: Both
    flops: Both
    written: tuple[Counter[Product], Counter[Product]]
    executed: tuple[Executed, Executed]
    contractions: tuple[Contraction, ...]

    @property
    def unseen(self) -> float:
        """Return the share of busy time in which the run that asks for less may hide more."""
        return self.unknown_shares[self.flops[0] > self.flops[1]]

    def differ(self, text: str, severity: Severity = "named", seconds: float | None = None) -> Difference:
        """Make a difference in model FLOPs."""
        key = f"model FLOPs {self.phase if self.phase in ('prefill', 'decode', *AFTER) else 'forward'}"
        shown = flops_words(self.known_flops, self.unknown_shares)
        return self.pair.differ(key, shown, text, severity, seconds, self.contractions)

    def unverified(self, flops: str) -> Difference:
        """Make the difference of FLOPs, called `flops`, which nobody can compare."""
        return self.differ(
            f"{flops} {'could not be verified' if any(self.known_flops) else 'are known of neither run'}"
        )

    def most_apart(self) -> str:
        """Say which products make most of the difference: ", most by 2 more matmuls of M, N, K = ... in torch"."""
        if not self.contractions:
            return ""
        largest = self.contractions[0]
        number = abs(largest.a - largest.b)
        return f", most by {number} more {named(largest, number)} in {self.pair.names[largest.a < largest.b]}"


def works(pair: Pair) -> list[Work]:
    """List the work of both runs by phase."""
    flops, shares, products = pair.each(model_flops), pair.against(hidden), pair.each(executed)
    phase_works = []
    for phase in sorted({*flops[0], *flops[1], *shares[0], *shares[1]}):
        known_flops = flops[0].get(phase, 0.0), flops[1].get(phase, 0.0)
        unknown_shares = shares[0].get(phase, 0.0), shares[1].get(phase, 0.0)
        run_products = products[0].get(phase, {}), products[1].get(phase, {})
        written = Counter[Product](), Counter[Product]()
        contractions: tuple[Contraction, ...] = ()
        if not same_flops(*known_flops):
            a, b = (Counter({product: times for product, (times, _) in counted.items()}) for counted in run_products)
            contractions = differing(phase, a, b)
            if phase not in AFTER:
                written = written_out(pair.a, phase, b - a), written_out(pair.b, phase, a - b)
        written_flops = [sum(product.flops * times for product, times in counts.items()) for counts in written]
        total_flops = known_flops[0] + written_flops[0], known_flops[1] + written_flops[1]
        phase_works.append(
            Work(pair, phase, known_flops, unknown_shares, total_flops, written, run_products, contractions)
        )
    return phase_works


def flops_words(known_flops: Both, unknown_shares: Both) -> tuple[str, str]:
    """Say model FLOPs, so precisely that what is not the same looks different, and unknown work of busy time."""
    a, b = (
        (units.scaled(flops, "FLOP", units.PRECISE) if flops else "none" if share > SLIGHT else "0 FLOP")
        + (f" known, {units.percent(share)} of busy time unknown" if share > SLIGHT else "")
        for flops, share in zip(known_flops, unknown_shares, strict=True)
    )
    return a, b


@per_analysis
def model_flops(analysis: Analysis) -> Mapping[str, float]:
    """Add up the model FLOPs of each phase that are known; fused ops count where their constituents belong."""
    flops: dict[str, float] = {}
    alike: dict[Hashable, list[tuple[str, float]]] = {}
    for op in analysis.profile.ops:
        key = op.signature, op.phase, op.constituents, op.places
        if key not in alike:
            works = ((phase, signature.cost.model_flops) for phase, signature in matrix_work(analysis, op))
            alike[key] = [(phase, work) for phase, work in works if work]
        for phase, work in alike[key]:
            flops[phase] = flops.get(phase, 0.0) + work
    return flops


def same_flops(a: float, b: float) -> bool:
    """Return whether two amounts of model FLOPs are the same work."""
    return abs(a - b) <= SAME_WORK * max(a, b)


def hidden(run: Analysis, other_run: Analysis, called_back: bool = True) -> dict[str, float]:
    """Return shares of busy time, by phase, in ops of unknown model FLOPs that the other run does not have alike.

    called_back: with ops that call Python back. That is work of the host: where all products of the device are known of
    both runs and are the same, nothing says that it is in the place of others.
    """
    shares: dict[str, float] = {}
    busy = run.total.own_seconds
    for phase, signature, seconds in _unmatched(run, other_run):
        if busy > 0 and (called_back or signature.name not in python_ops(run.profile)):
            shares[phase] = shares.get(phase, 0.0) + seconds / busy
    return shares


def asks_for_less(work: Work) -> bool:
    """Return whether the run that asks for less does so even if its ops of unknown work do nothing but products.

    They do no more than their time at the rate of their type allows. Ops of text, indices and the like have no type
    that is multiplied: what they can hide are products of the other run, in the types that it has them in.
    """
    run, other_run = work.pair.a, work.pair.b
    if work.flops[0] > work.flops[1]:
        run, other_run = other_run, run
    rates = run.device.family("matrix")
    multiplied = {
        signature.computes_in
        for signature in other_run.profile.signatures
        if signature.cost.model_flops and signature.computes_in
    }
    upper_flops = min(work.flops)
    for place, signature, seconds in _unmatched(run, other_run):
        if place == work.phase:
            dtype = signature.computes_in or ""
            types = {dtype} if dtype in FLOATING or dtype in rates else multiplied
            arithmetic = {name for dtype in types for name in _ARITHMETIC.get(dtype, (dtype,))}
            rate = max((rates[name] for name in arithmetic if name in rates), default=math.inf)
            upper_flops += _FASTER * seconds * rate
    return upper_flops < max(work.flops) * (1 - SAME_WORK)


def _unmatched(run: Analysis, other_run: Analysis) -> Iterator[tuple[str, Signature, float]]:
    """Yield ops of unknown model FLOPs that the other run does not have alike: phase, signature, and time [s].

    Alike is an op of the same name and the same sizes, where these are known: it is the same work, whatever it is.
    """
    profile, theirs = run.profile, _unknown(other_run)
    for key, rows in _unknown(run).items():
        op = profile.ops[rows[0]]
        signature = profile.signatures[op.signature]
        matched = len(theirs.get(key, ())) if signature.shapes or signature.reads or signature.writes else 0
        if len(rows) > matched:
            seconds = float(run.table.own[rows].sum()) * (len(rows) - matched) / len(rows)
            yield profile.phases[op.phase], signature, seconds


def _unknown(run: Analysis) -> dict[Hashable, list[int]]:
    """Return rows of ops of unknown model FLOPs by phase, name, shapes and sizes of what they read and write."""
    rows: dict[Hashable, list[int]] = defaultdict(list)
    signatures, phases = run.profile.signatures, run.profile.phases
    kinds = {
        number: (signature.name, signature.shapes, signature.reads, signature.writes)
        for number, signature in enumerate(signatures)
        if signature.cost.model_flops is None or signature.cost.is_partly_known
    }
    for row, op in enumerate(run.profile.ops):
        if op.signature in kinds:
            rows[phases[op.phase], *kinds[op.signature]].append(row)
    return rows


def phases_unresolved(analysis: Analysis) -> bool:
    """Return whether forward and backward of a run are not told apart."""
    return "phases-unresolved" in analysis.profile.flags
