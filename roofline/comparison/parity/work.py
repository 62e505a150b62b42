"""Whether two runs do the same work: model FLOPs, parameters, batch and lengths (docs/comparing.md).

Names and sizes say little: a user's file and a trace may be called anything. What decides is the work.
"""

from __future__ import annotations

from collections import Counter

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.contractions import differing, most_apart, products
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair
from roofline.comparison.parity.forward_work import Verified, forward_work
from roofline.comparison.parity.known_work import (
    AFTER,
    hidden,
    model_flops,
    phases_unresolved,
    same_flops,
    words,
)
from roofline.core.schema import Op
from roofline.core.vocabulary import LINEAR_ALGEBRA


def work(pair: Pair) -> list[Difference]:
    """All differences in what is worked on and how much."""
    forward, verified = forward_work(pair)
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


# ------------------------------------------------------------------------------------------- after the forward pass


def _after(pair: Pair) -> list[Difference]:
    """Backward and optimizer: differences are named as contractions (phase, M, N, K, count).

    seconds: the surplus of model FLOPs at the rate that the run which asks for more has in the products of that phase.
    """
    if any(phases_unresolved(each) for each in (pair.a, pair.b)) or pair.a.profile.mode != pair.b.profile.mode:
        return []
    work_a, work_b = model_flops(pair.a), model_flops(pair.b)
    hidden_a, hidden_b = hidden(pair.a, pair.b), hidden(pair.b, pair.a)
    found = []
    for phase in AFTER:
        a, b = work_a.get(phase, 0.0), work_b.get(phase, 0.0)
        unknown_a, unknown_b = hidden_a.get(phase, 0.0), hidden_b.get(phase, 0.0)
        shown = (words(a, unknown_a), words(b, unknown_b))
        unseen = unknown_b if a > b else unknown_a  # only what asks for less may hide more
        if not same_flops(a, b) and unseen <= SLIGHT:
            more = pair.a if a > b else pair.b
            seconds = _time_of_products(more, phase) * abs(a - b) / max(a, b)
            each_a, each_b = (products(run).get(phase, Counter()) for run in (pair.a, pair.b))
            apart = differing(phase, each_a, each_b)
            text = f"The model FLOPs of the {phase} phase differ{most_apart(pair.names, apart)}"
            found.append(pair.differ(f"model FLOPs {phase}", shown, text, seconds=seconds or None, contractions=apart))
        # An update is elementwise: what is unknown of it hides no products.
        elif not same_flops(a, b) or (phase == "backward" and max(unknown_a, unknown_b) > SLIGHT):
            text = f"The model FLOPs of the {phase} phase could not be verified"
            found.append(pair.differ(f"model FLOPs {phase}", shown, text))
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
