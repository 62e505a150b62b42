"""Compare the work of two runs: model FLOPs, parameters, batch and lengths (docs/comparing.md).

Names and sizes say little: a user's file and a trace may be called anything. What decides is the work.
"""

from __future__ import annotations

from msgspec.structs import replace

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.difference import SLIGHT, Difference, Pair, seconds_where
from roofline.comparison.parity.forward_work import forward_work, whole_work
from roofline.comparison.parity.known_work import AFTER, Work, phases_unresolved, same_flops, works
from roofline.core.schema import Op
from roofline.core.vocabulary import LINEAR_ALGEBRA

#: Numbers of a workload that must be equal, by the fields of a profile, and how they are said.
_NUMBERS = {
    "batch": ("batch", "The batches differ"),
    "seq": ("sequence length", "The sequence lengths differ"),
    "parameters": ("parameters", "The numbers of parameters differ"),
    "trainable": ("trainable parameters", "The numbers of trainable parameters differ"),
    "samples": ("samples", "The samples per step differ"),
    "tokens": ("tokens", "The tokens per step differ"),
}


def work(pair: Pair) -> list[Difference]:
    """Compare what is worked on and how much."""
    differences = pair.compare("mode", pair.each(lambda run: run.profile.mode), "The modes differ", "refused")
    ops = pair.each(lambda run: units.count(len(run.profile.ops)))
    if "0" in ops and ops != ("0", "0"):
        differences.append(pair.differ("ops", ops, "No op of one run is known", "refused"))
    if any(pair.each(phases_unresolved)):
        work_differences, is_same = whole_work(pair)
    else:
        phases = works(pair)
        work_differences, is_same = forward_work(phases)
        if not differences:
            work_differences += [difference for work in phases if work.phase in AFTER for difference in _after(work)]
    differences += [*work_differences, *_numbers(pair)]
    refused = any(difference.severity == "refused" for difference in differences)
    return [*_model(pair, same_work=is_same and not refused, other_work=refused), *differences]


def _model(pair: Pair, same_work: bool, other_work: bool) -> list[Difference]:
    """Compare the names of the models: runs of different ones are comparable where their work is the same.

    The name of a trace or of a user's own step says nothing: it is a difference only as long as the work is neither
    known to be the same nor known to differ, which is the reason then.
    """
    a, b = pair.a.profile, pair.b.profile
    says = not any(run.imported is not None or run.size == "-" or ":" in run.model for run in (a, b))
    files = {run.model.rpartition(":")[0] for run in (a, b)}  # "" of what is no function of a file
    if not says and (same_work or other_work or ("" not in files and len(files) == 1)):
        return []
    if same_work or not says:
        return pair.compare("model", (a.model, b.model), "The models have different names")
    return pair.compare("model", (a.model, b.model), "The models differ, and not in name only", "refused")


def _numbers(pair: Pair) -> list[Difference]:
    """Compare the numbers of the workload: refuse different ones, and name one that a run does not record."""
    differences = []
    for field, (quantity, text) in _NUMBERS.items():
        a, b = getattr(pair.a.profile, field), getattr(pair.b.profile, field)
        if a == b:
            continue
        shown = (None if a is None else units.count(a), None if b is None else units.count(b))
        if None not in shown:
            differences.append(pair.differ(quantity, shown, text, "refused"))
        elif field not in ("samples", "tokens"):  # they follow from batch and length
            differences.append(pair.differ(quantity, shown, f"The {quantity} of one run cannot be checked"))
    return differences


def _after(work: Work) -> list[Difference]:
    """Name differences of backward and optimizer as contractions (phase, M, N, K, count).

    seconds: the surplus of model FLOPs at the rate that the run which asks for more has in the products of that phase.
    """
    phase, (a, b) = work.phase, work.known_flops
    flops, is_same = f"The model FLOPs of the {phase} phase", same_flops(a, b)
    if not is_same and work.unseen <= SLIGHT:

        def is_matrix_work(run: Analysis, op: Op) -> bool:
            signature = run.profile.signatures[op.signature]
            of_phase = run.profile.phases[op.phase] == phase
            return of_phase and bool(signature.cost.flops) and signature.kind != LINEAR_ALGEBRA

        seconds = seconds_where(work.pair.a if a > b else work.pair.b, is_matrix_work)
        surplus = (seconds or 0.0) * abs(a - b) / max(a, b)
        return [work.differ(f"{flops} differ{work.most_apart()}", seconds=surplus or None)]
    # An update is elementwise: what is unknown of it hides no products.
    if not is_same or (phase == "backward" and max(work.unknown_shares) > SLIGHT):
        return [replace(work.unverified(flops), contractions=())]
    return []
