"""What is known of the work of a run, and how much its ops of unknown work may hide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.callbacks import python_ops
from roofline.comparison.parity.contractions import matrix_work
from roofline.comparison.parity.difference import SAME_WORK, SLIGHT
from roofline.core.vocabulary import FLOATING

#: What ops of unknown work can have done at most is their time at the rate of the device for their type, times this:
#: ceilings are measured at other clocks, and times of ops have the cost of a profiler taken off. By choice.
_FASTER = 2.0
#: Arithmetic that inputs of a type are multiplied in, where it is not the type's own.
_ARITHMETIC = {"fp32": ("fp32", "tf32")}

#: Phases after the forward pass; all others are forward (prefill and decode are).
AFTER = ("backward", "optimizer")


def model_flops(analysis: Analysis) -> dict[str, float]:
    """What is known of the model FLOPs of each phase [FLOP]; fused ops count where their constituents belong."""
    found: dict[str, float] = {}
    for op in analysis.profile.ops:
        for part in matrix_work(analysis, op):
            if part.model:
                found[part.phase] = found.get(part.phase, 0.0) + part.model
    return found


def hidden(run: Analysis, other: Analysis, called_back: bool = True) -> dict[str, float]:
    """Shares of busy time, by phase, in ops of unknown model FLOPs that the other run does not have alike.

    Alike is an op of the same name and the same sizes: it is the same work, whatever it is. called_back: with ops that
    call Python back. That is work of the host: where all products of the device are known of both runs and are the
    same, nothing says that it is in the place of others.
    """
    busy = run.total.own_seconds
    if busy <= 0:
        return {}
    found: dict[str, float] = {}
    for key, _, seconds in _unmatched(run, other):
        if called_back or key[1] not in python_ops(run.profile):
            found[key[0]] = found.get(key[0], 0.0) + seconds / busy
    return found


def asks_for_less(run: Analysis, other: Analysis, phase: str, known: float, asked: float) -> bool:
    """Whether a run asks for less than `asked` [FLOP] even if its ops of unknown work do nothing but products."""
    most = _most_hidden(run, other).get(phase, 0.0)
    return most is not None and known + _FASTER * most < asked * (1 - SAME_WORK)


def _most_hidden(run: Analysis, other: Analysis) -> dict[str, float | None]:
    """What the ops that `hidden` counts can do at most, by phase [FLOP]: their time at the rate of their type.

    Ops of text, indices and the like have no type that is multiplied: what they can hide are products of the other run,
    in the types that it has them in. None where a rate is not known.
    """
    rates = run.device.family("matrix")
    found: dict[str, float | None] = {}
    for key, rows, seconds in _unmatched(run, other):
        dtype = run.profile.signatures[run.profile.ops[rows[0]].signature].computes_in or ""
        types = {dtype} if dtype in FLOATING or dtype in rates else _types_of_products(other)
        alike = [one for each in types for one in _ARITHMETIC.get(each, (each,))]
        rate = max((rates[one] for one in alike if one in rates), default=None)
        before = found.get(key[0], 0.0)
        found[key[0]] = None if before is None or rate is None else before + seconds * rate
    return found


def _types_of_products(run: Analysis) -> set[str]:
    """The types in which a run multiplies matrices."""
    return {one.computes_in for one in run.profile.signatures if one.cost.model_flops and one.computes_in}


def _unmatched(run: Analysis, other: Analysis) -> Iterator[tuple[Key, list[int], float]]:
    """Ops of unknown model FLOPs that the other run does not have alike: key, rows, and the time of the surplus [s]."""
    theirs = Counter({key: len(rows) for key, rows in _unknown(other).items()})
    for key, rows in _unknown(run).items():
        unmatched = max(0, len(rows) - (theirs[key] if key[2:] != ("", (), ()) else 0))
        if unmatched:
            yield key, rows, float(run.table.own[rows].sum()) * unmatched / len(rows)


Key = tuple[str, str, str, tuple[float, ...], tuple[float, ...]]


def _unknown(analysis: Analysis) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for row, op in enumerate(analysis.profile.ops):
        signature = analysis.profile.signatures[op.signature]
        if signature.cost.model_flops is None:
            phase = analysis.profile.phases[op.phase]
            key = (phase, signature.name, signature.shapes, signature.reads, signature.writes)
            found.setdefault(key, []).append(row)
    return found


def same_flops(a: float, b: float) -> bool:
    """Whether two amounts of model FLOPs are the same work."""
    return abs(a - b) <= SAME_WORK * max(abs(a), abs(b))


def words(flops: float, unknown: float) -> str:
    """Say model FLOPs, so precisely that what is not the same looks different, and unknown work of busy time."""
    known = units.scaled(flops, "FLOP", units.PRECISE) if flops else "0 FLOP"
    return f"{known} known, {units.percent(unknown)} of busy time unknown" if unknown > SLIGHT else known


def phases_unresolved(analysis: Analysis) -> bool:
    """Whether forward and backward of a run are not told apart."""
    return "phases-unresolved" in analysis.profile.flags
