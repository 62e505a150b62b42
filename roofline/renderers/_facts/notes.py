"""What a table needs a word on: what its columns are, ops that overlapped, and ops that are above their roofs.

What is above its roof is told with the ceiling and by how much, and whether the count or the ceiling has to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counters_on
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.renderers._words import FEWER_PRODUCTS, conjunction, counted, plain, provenance

_FEW = 3  # ceilings that are named, those with the most ops first


def caption(analysis: WorkAnalysis) -> str:
    """What stands under a table."""
    if not isinstance(analysis, Analysis):
        return f"FLOP and bytes are shares of the known work. {provenance(analysis)}"
    notes = (overlap(analysis), beyond(analysis), above(analysis))
    more = "".join(f"{told[0].upper()}{told[1:]}. " for told in notes if told)
    return (
        "FLOP and bytes are shares of the known work, time, floor and loss of the step. Floor: the least time on this "
        "device; loss: own time − floor; of roof: floor / own time. "
        f"{_counted(analysis)}{more}{provenance(analysis)}"
    )


def _counted(analysis: Analysis) -> str:
    """What the columns of counted bytes are, where there are such."""
    counters = counters_on(analysis.profile, analysis.device)
    if counters is None:
        return ""
    return (
        f"Bytes to move: the least by the ops' formulas; counted: to and from main memory, by {plain(counters.tool)}. "
    )


def least(analysis: Analysis) -> str:
    """What stands before a sum of FLOPs: "at least ", where half a percent of the busy time has unknown ones."""
    known = analysis.coverage["flops"]
    return "at least " if known is not None and known <= 0.995 else ""


def mfu(analysis: Analysis) -> str:
    """Why MFU is more than all; "" where it is not. By convention it holds the full mask and the direct convolution.

    It is possible where what is left fits under the peak: products that no mask leaves out, of ops whose kernels do not
    need fewer than are counted.
    """
    if analysis.mfu is None or analysis.peak is None or analysis.mfu <= 1 + ABOVE_TOLERANCE:
        return ""
    of, exempt = analysis.table.columns.signature, analysis.table.exempt
    useful, masked, fewer = 0.0, 0.0, 0.0
    times = np.bincount(2 * of + exempt, minlength=2 * (int(of.max()) + 1)).reshape(-1, 2)
    for number, (direct, by_fewer) in enumerate(times.tolist()):
        cost = analysis.profile.signatures[number].cost
        model = cost.model_flops or 0.0
        unmasked = model
        if cost.useful_flops and cost.flops and cost.useful_flops < cost.flops:
            unmasked = model * cost.useful_flops / cost.flops
        useful, masked, fewer = (
            useful + direct * unmasked,
            masked + direct * (model - unmasked),
            fewer + by_fewer * model,
        )
    left = useful / (analysis.wall * analysis.peak)
    if left > 1 + ABOVE_TOLERANCE:
        return "more than can be, so the device or the count is another"
    counts = ["products that a mask leaves out are counted"] if masked else []
    if fewer:
        counts.append(f"convolutions are counted as direct ones, and ran in kernels that need {FEWER_PRODUCTS}")
    return f"{conjunction(counts)}{f'; all else is {units.percent(left)}' if left else ''}"


def overlap(analysis: Analysis) -> str:
    """Why floor and loss are more than the time of a row, where that can be seen: half a percent of the step."""
    if analysis.total.overlap < 0.005 * analysis.wall:
        return ""
    return (
        f"ops ran at once for {units.seconds(analysis.total.overlap)}: floor and loss in the table are of the time "
        "that each op took, and together more than the time of the step that they took"
    )


def beyond(analysis: Analysis) -> str:
    """Why shares of the step are more than all of it; "" where they are not."""
    told = []
    if number := analysis.beyond_step:
        told.append(f"{counted(number, 'op')} took longer than the whole step")
    if (times := analysis.beyond_together) is not None:
        told.append(f"all ops together took {units.significant(times)} times as long as the step")
    return f"{' and '.join(told)} they ran in, so that the recorded times cannot be" if told else ""


def above(analysis: Analysis) -> str:
    """The ops that are faster than their floors, and why each of them is; "" where there are none."""
    table = analysis.table
    faster = (table.uncosted == 0) & (table.own > 0) & (table.floor > table.own * (1 + ABOVE_TOLERANCE))
    others = {
        f"in kernels that need {FEWER_PRODUCTS}": faster & table.exempt,
        # As it was measured it is within its floor, else it would be a defect.
        f"only by the factor of {units.significant(analysis.scale)} that all times were scaled by": faster
        & ~(table.exempt | table.above)
        & (table.floor <= table.own / analysis.scale * (1 + ABOVE_TOLERANCE)),
    }
    left = faster & ~table.above
    told = [_defects(analysis, np.flatnonzero(table.above).tolist())] if table.above.any() else []
    for words, which in others.items():
        left &= ~which
        told += [f"{_faster(int(which.sum()))} {words}"] if which.any() else []
    if left.any():
        told.append(f"{_faster(int(left.sum()))} by no more than their ceilings vary")
    return "; ".join(told)


def all_above(analysis: Analysis) -> bool:
    """Whether the floors of all ops together are more than their time, so that they are no least time of the step."""
    total = analysis.total
    return total.floor > (1 + ABOVE_TOLERANCE) * (total.own_seconds - total.uncosted)


def _faster(number: int) -> str:
    return f"{counted(number, 'op')} ran faster than {'its' if number == 1 else 'their'} floor"


def _defects(analysis: Analysis, rows: list[int]) -> str:
    attained = analysis.total.attained
    if attained is not None and attained > 1 + ABOVE_TOLERANCE:
        # One count or ceiling that is wrong moves some ops, and another device all of them.
        return (
            f"{_faster(len(rows))}, and all that is known of the step in {units.percent(1 / attained, 0)} of the least "
            f"time: it ran on a faster device than {plain(analysis.device.name)}, or not all of its time was recorded"
        )
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = (analysis.table.ceiling[row], _defect(analysis, row))
        groups.setdefault(key, []).append(float(analysis.table.floor[row] / analysis.table.own[row]))
    ranked = sorted(groups.items(), key=lambda item: -len(item[1]))
    told = [
        f"{units.count(len(ratios))} under {plain(ceiling)}, up to {units.significant(max(ratios))} times as fast "
        f"({defect})"
        for (ceiling, defect), ratios in ranked[:_FEW]
    ]
    left = sum(len(ratios) for _, ratios in ranked[_FEW:])
    return f"{_faster(len(rows))}: {conjunction([*told, *_rest(left)])}"


def _rest(left: int) -> Iterator[str]:
    if left:
        yield f"{units.count(left)} under others"


def _defect(analysis: Analysis, row: int) -> str:
    """What has to be wrong where an op is above its ceiling."""
    name, signature = analysis.table.ceiling[row], analysis.profile.signatures[analysis.profile.ops[row].signature]
    family, ceiling = name.partition(".")[0], analysis.device.ceilings.get(name)
    if family == "dram":
        return "the count: a cache held more"
    if signature.cost.quality != "exact":
        return "the count: it rests on an assumption"
    if family in ("matrix", "vector") and ceiling is not None and ceiling.spread is None:
        return "the count: no code is faster than a datasheet"
    if family == "launch":
        return "the floor: launches are shorter"
    return "the ceiling is too low, or the count too high"
