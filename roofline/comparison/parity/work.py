"""Whether two runs do the same work: model FLOPs, parameters, batch and lengths (docs/comparing.md).

Names and sizes say little: a user's file and a trace may be called anything. What decides is the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.callbacks import python_ops
from roofline.comparison.parity.contractions import differing, matrix_work, products
from roofline.comparison.parity.difference import SAME_WORK, SLIGHT, Contraction, Difference, Pair
from roofline.core.schema import Op
from roofline.core.vocabulary import FLOATING, LINEAR_ALGEBRA

#: What ops of unknown work can have done at most is their time at the rate of the device for their type, times this:
#: ceilings are measured at other clocks, and times of ops have the cost of a profiler taken off. By choice.
_FASTER = 2.0
#: Arithmetic that inputs of a type are multiplied in, where it is not the type's own.
_ARITHMETIC = {"fp32": ("fp32", "tf32")}
#: Backward asks for at most two products for each of the forward pass: by definition, the gradients of two operands.
_BACKWARD_PER_FORWARD = 2

#: Phases after the forward pass; all others are forward (prefill and decode are).
_AFTER = ("backward", "optimizer")


class Verified(Enum):
    """What is known about the forward model FLOPs of two runs."""

    SAME = "same"
    DIFFERENT = "different"
    NOT = "not verified"


def work(pair: Pair) -> list[Difference]:
    """All differences in what is worked on and how much."""
    forward, verified = _forward(pair)
    found = [*_mode(pair), *forward, *_after(pair), *_numbers(pair)]
    refused = any(difference.severity == "refused" for difference in found)
    return [*_model(pair, same=not refused and verified is Verified.SAME, different=refused), *found]


# ------------------------------------------------------------------------------------------------ what was run


def _mode(pair: Pair) -> list[Difference]:
    """Another mode is other work, whatever it adds up to."""
    a, b = pair.a.profile.mode, pair.b.profile.mode
    return [] if a == b else [pair.differ("mode", (a, b), "The modes differ", "refused")]


def _model(pair: Pair, same: bool, different: bool) -> list[Difference]:
    """Models of different names are comparable where their work is the same.

    The name of a trace or of a user's own step says nothing: it is a difference only as long as the work is neither
    known to be the same nor known to differ, which is the reason then.
    """
    a, b = pair.a.profile, pair.b.profile
    if a.model == b.model:
        return []
    says = not any(each.imported is not None or each.size == "-" or ":" in each.model for each in (a, b))
    files = {each.model.rpartition(":")[0] for each in (a, b)}  # "" of what is no function of a file
    if not says and (same or different or ("" not in files and len(files) == 1)):
        return []
    if same or not says:
        return [pair.differ("model", (a.model, b.model), "The models have different names")]
    return [pair.differ("model", (a.model, b.model), "The models differ, and not in name only", "refused")]


def _numbers(pair: Pair) -> list[Difference]:
    """Batch, lengths, samples, tokens and parameters must be equal; where one run does not record one, it is named."""
    found = []
    for what, field, text in (
        ("batch", "batch", "The batches differ"),
        ("sequence length", "seq", "The sequence lengths differ"),
        ("parameters", "parameters", "The numbers of parameters differ"),
        ("trainable parameters", "trainable", "The numbers of trainable parameters differ"),
        ("samples", "samples", "The samples per step differ"),
        ("tokens", "tokens", "The tokens per step differ"),
    ):
        a, b = getattr(pair.a.profile, field), getattr(pair.b.profile, field)
        if a == b:
            continue
        shown = (None if a is None else units.count(a), None if b is None else units.count(b))
        if None not in shown:
            found.append(pair.differ(what, shown, text, "refused"))
        elif field not in ("samples", "tokens"):  # they follow from batch and length
            found.append(pair.differ(what, shown, f"The {what} of one run cannot be checked"))
    return found


# ------------------------------------------------------------------------------------------------ model FLOPs


def _forward(pair: Pair) -> tuple[list[Difference], Verified]:
    """Forward model FLOPs within 0.1 %, each of prefill and decode apart.

    Where ops of unknown work may hide some, a run can only ask for more than is known of it: it is refused where the
    known part alone is more than all of the other run, the most that it can have done in its ops of unknown work
    included, or more than twice what is known of it, else it is not verified, which is named.
    A run that hides nothing shares all of its work with one of which as many FLOPs are known: what that one has of
    unknown work stands beside it, however long it takes, and is named.
    Where forward and backward of a run are not told apart, the whole step is compared, see `_whole`.
    """
    if any(_unresolved(each) for each in (pair.a, pair.b)):
        return _whole(pair)
    work_a, work_b = model_flops(pair.a), model_flops(pair.b)
    hidden_a, hidden_b = hidden(pair.a, pair.b), hidden(pair.b, pair.a)
    phases = sorted({*work_a, *work_b, *hidden_a, *hidden_b}.difference(_AFTER))
    found, verified = [], Verified.SAME
    for phase in phases:
        a, b = work_a.get(phase, 0.0), work_b.get(phase, 0.0)
        unknown_a, unknown_b = hidden_a.get(phase, 0.0), hidden_b.get(phase, 0.0)
        shown = (_known(a, unknown_a), _known(b, unknown_b))
        what = f"model FLOPs {phase}" if phase in ("forward", "prefill", "decode") else "model FLOPs forward"
        unseen = unknown_b if a > b else unknown_a  # only what asks for less may hide more
        less, other = (pair.b, pair.a) if a > b else (pair.a, pair.b)
        beside = a > 0 and _same(a, b) and min(unknown_a, unknown_b) <= SLIGHT
        if not _same(a, b) and _generate_alike(pair):
            apart = differing(phase, *(products(run).get(phase, Counter()) for run in (pair.a, pair.b)))
            text = "The same tokens are generated by other products, as with another cache of keys and values"
            found.append(pair.differ(what, shown, text, contractions=apart))
        elif not _same(a, b) and (unseen <= SLIGHT or _too_little(less, other, phase, min(a, b), max(a, b))):
            verified = Verified.DIFFERENT
            text = f"The model FLOPs of the {_PASS.get(what, 'forward pass')} differ, so the runs do different work"
            each_a, each_b = (products(run).get(phase, Counter()) for run in (pair.a, pair.b))
            apart = differing(phase, each_a, each_b)
            found.append(pair.differ(what, shown, text, "refused", contractions=apart))
        elif 2 * _share_hidden(pair, phase, called_back=not _same(a, b)) > 1 and not beside:
            verified = Verified.DIFFERENT
            text = f"Most of the {_PASS.get(what, 'forward pass')} of one run is unknown work that the other one lacks"
            found.append(pair.differ(what, shown, text, "refused"))
        elif 2 * min(a, b) < max(a, b):
            verified = Verified.DIFFERENT
            text = f"Most model FLOPs of the {_PASS.get(what, 'forward pass')} of one run are not known of the other"
            found.append(pair.differ(what, shown, text, "refused"))
        elif max(unknown_a, unknown_b) > SLIGHT:
            verified = Verified.NOT if verified is Verified.SAME else verified
            text = f"The model FLOPs of the {_PASS.get(what, 'forward pass')} could not be verified"
            found.append(pair.differ(what, shown, text))
    return found, verified


def _generate_alike(pair: Pair) -> bool:
    """Whether both runs give prompts of the same size as many new tokens.

    Then what else they multiply is how they do it: a cache with room for tokens that are not there yet, a prompt that
    is filled up to the length of the result, no cache at all.
    """
    a, b = pair.a.profile, pair.b.profile
    asked = ("batch", "seq", "new_tokens", "parameters")
    return a.mode == b.mode == "generate" and all(
        getattr(a, name) is not None and getattr(a, name) == getattr(b, name) for name in asked
    )


def _too_little(run: Analysis, other: Analysis, phase: str, known: float, asked: float) -> bool:
    """Whether a run asks for less than `asked` [FLOP] even if its ops of unknown work do nothing but products."""
    most = _most_hidden(run, other).get(phase, 0.0)
    return most is not None and known + _FASTER * most < asked * (1 - SAME_WORK)


_PASS = {"model FLOPs prefill": "prefill", "model FLOPs decode": "decoding"}


def _whole(pair: Pair) -> tuple[list[Difference], Verified]:
    """The whole step, where a run does not tell forward from backward.

    The same in all is the same work. Otherwise a forward pass of such a run is between a third of its step and all of
    it, since backward asks for two products per product: the other run's is compared with that range.
    """
    totals = [sum(model_flops(run).values()) for run in (pair.a, pair.b)]
    unseen = [sum(hidden(run, other).values()) for run, other in ((pair.a, pair.b), (pair.b, pair.a))]
    shown = (_known(totals[0], unseen[0]), _known(totals[1], unseen[1]))
    if _same(*totals) and max(unseen) <= SLIGHT:
        return [], Verified.SAME
    what, text = (
        "model FLOPs forward",
        "Forward and backward are not told apart, and the model FLOPs of the step differ",
    )
    ranges = [_range(run) for run in (pair.a, pair.b)]
    beyond = any(
        known <= SLIGHT and least > most * (1 + SAME_WORK)
        for known, (_, most), (least, _) in zip(unseen, ranges, reversed(ranges), strict=True)
    )
    if beyond:
        return [pair.differ(what, shown, text, "refused")], Verified.DIFFERENT
    text = "Forward and backward are not told apart, so the model FLOPs of the forward pass could not be verified"
    return [pair.differ(what, shown, text)], Verified.NOT


def _range(analysis: Analysis) -> tuple[float, float]:
    """The least and the most that the forward pass may ask for [FLOP]."""
    work = model_flops(analysis)
    if _unresolved(analysis):
        whole = sum(work.values())
        return whole / (1 + _BACKWARD_PER_FORWARD), whole
    forward = sum(flops for phase, flops in work.items() if phase not in _AFTER)
    return forward, forward


def _after(pair: Pair) -> list[Difference]:
    """Backward and optimizer: differences are named as contractions (phase, M, N, K, count).

    seconds: the surplus of model FLOPs at the rate that the run which asks for more has in the products of that phase.
    """
    if any(_unresolved(each) for each in (pair.a, pair.b)) or pair.a.profile.mode != pair.b.profile.mode:
        return []
    work_a, work_b = model_flops(pair.a), model_flops(pair.b)
    hidden_a, hidden_b = hidden(pair.a, pair.b), hidden(pair.b, pair.a)
    found = []
    for phase in _AFTER:
        a, b = work_a.get(phase, 0.0), work_b.get(phase, 0.0)
        unknown_a, unknown_b = hidden_a.get(phase, 0.0), hidden_b.get(phase, 0.0)
        shown = (_known(a, unknown_a), _known(b, unknown_b))
        unseen = unknown_b if a > b else unknown_a  # only what asks for less may hide more
        if not _same(a, b) and unseen <= SLIGHT:
            more = pair.a if a > b else pair.b
            seconds = _time_of_products(more, phase) * abs(a - b) / max(a, b)
            each_a, each_b = (products(run).get(phase, Counter()) for run in (pair.a, pair.b))
            apart = differing(phase, each_a, each_b)
            text = f"The model FLOPs of the {phase} phase differ{_listed(pair, apart)}"
            found.append(pair.differ(f"model FLOPs {phase}", shown, text, seconds=seconds or None, contractions=apart))
        # An update is elementwise: what is unknown of it hides no products.
        elif not _same(a, b) or (phase == "backward" and max(unknown_a, unknown_b) > SLIGHT):
            text = f"The model FLOPs of the {phase} phase could not be verified"
            found.append(pair.differ(f"model FLOPs {phase}", shown, text))
    return found


def model_flops(analysis: Analysis) -> dict[str, float]:
    """What is known of the model FLOPs of each phase [FLOP]; fused ops count where their constituents belong."""
    found: dict[str, float] = {}
    for op in analysis.profile.ops:
        for part in matrix_work(analysis, op):
            if part.model:
                found[part.phase] = found.get(part.phase, 0.0) + part.model
    return found


def _share_hidden(pair: Pair, phase: str, called_back: bool) -> float:
    """`hidden` of a phase, of the run with more of it."""
    return max(hidden(*runs, called_back).get(phase, 0.0) for runs in ((pair.a, pair.b), (pair.b, pair.a)))


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


def _time_of_products(analysis: Analysis, phase: str) -> float:
    """The time of the ops that do matrix work in a phase [s]."""

    def works(op: Op) -> bool:
        signature = analysis.profile.signatures[op.signature]
        return (
            analysis.profile.phases[op.phase] == phase
            and bool(signature.cost.flops)
            and signature.kind != LINEAR_ALGEBRA
        )

    return float(analysis.table.share[[row for row, op in enumerate(analysis.profile.ops) if works(op)]].sum())


def _listed(pair: Pair, apart: tuple[Contraction, ...]) -> str:
    """The contraction that makes most of a difference, in words."""
    if not apart:
        return ""
    most = apart[0]
    size = units.flop(most.flops) if most.m is None else f"M, N, K = {most.m}, {most.n}, {most.k}"
    batch = f"{most.batch} times " if most.batch is not None and most.batch > 1 else ""
    number = abs(most.a - most.b)
    what = most.what if number == 1 or most.what == "attention" else f"{most.what}s"
    return f", most by {number} more {what} of {batch}{size} in {pair.names[most.a < most.b]}"


def _unresolved(analysis: Analysis) -> bool:
    return "phases-unresolved" in analysis.profile.flags


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME_WORK * max(abs(a), abs(b))


def _known(flops: float, unknown: float) -> str:
    """Say the known FLOPs so precisely that what is not the same looks different."""
    known = units.scaled(flops, "FLOP", units.PRECISE) if flops else "0 FLOP"
    return f"{known} known, {units.percent(unknown)} of busy time unknown" if unknown > SLIGHT else known
