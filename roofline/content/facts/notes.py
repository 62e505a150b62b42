"""Add the notes that a table needs: its columns, ops that overlapped, and ops that are above their roofs.

An op above its roof is reported with the ceiling, the factor, and whether the count or the ceiling has to be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counters_on
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.content.wording import FEWER_PRODUCTS, conjunction, counted, plain, provenance

_FEW = 3  # ceilings that are named, those with the most ops first


def caption(analysis: WorkAnalysis) -> str:
    """Write the caption below a table."""
    if not isinstance(analysis, Analysis):
        return f"FLOP and bytes are shares of the known work. {provenance(analysis)}"
    return (
        "FLOP and bytes are shares of the known work; time, minimum and above of the step. Minimum: the least time on "
        "this device; above: own time − minimum; of roof: minimum / own time. "
        f"{_counted(analysis)}{further(analysis)}{provenance(analysis)}"
    )


def remarks(analysis: WorkAnalysis) -> Iterator[tuple[str, str]]:
    """Yield names and words of what a table may show: times above that of the step, ops faster than a roof allows."""
    if isinstance(analysis, Analysis):
        for name, words in (("overlap", overlap(analysis)), ("beyond", beyond(analysis)), ("above", above(analysis))):
            if words:
                yield name, words


def further(analysis: WorkAnalysis) -> str:
    """Write these remarks as sentences, each with a blank behind it."""
    return "".join(f"{words[0].upper()}{words[1:]}. " for _, words in remarks(analysis))


def _counted(analysis: Analysis) -> str:
    """Explain the columns of counted bytes, where there are any."""
    counters = counters_on(analysis.profile, analysis.device)
    if counters is None:
        return ""
    return (
        f"Bytes to move: the least by the ops' formulas; counted: to and from main memory, by {plain(counters.tool)}. "
    )


def least(analysis: Analysis) -> str:
    """Prefix a sum of FLOPs: "at least ", where they are not known of the whole busy time."""
    coverage = analysis.coverage["flops"]
    return "" if coverage is None or units.is_whole(coverage) else "at least "


def mfu(analysis: Analysis) -> str:
    """Explain an MFU above 100 %; "" where it is not. By convention it counts the full mask and the direct convolution.

    It is possible where the remainder fits under the peak: products that no mask leaves out, of ops whose kernels do
    not need fewer than are counted.
    """
    if analysis.mfu is None or analysis.peak is None or analysis.mfu <= 1 + ABOVE_TOLERANCE:
        return ""
    signature_of, exempt = analysis.table.columns.signature, analysis.table.exempt
    useful, masked, fewer = 0.0, 0.0, 0.0
    times = np.bincount(2 * signature_of + exempt, minlength=2 * (int(signature_of.max()) + 1)).reshape(-1, 2)
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
    remaining = useful / (analysis.wall * analysis.peak)
    if remaining > 1 + ABOVE_TOLERANCE:
        return "impossible, so the device or the count is wrong"
    counts = ["multiplications that a mask leaves out are counted"] if masked else []
    if fewer:
        counts.append(f"convolutions are counted as direct ones, and ran in kernels that need {FEWER_PRODUCTS}")
    return f"{conjunction(counts)}{f'; all else is {units.percent(remaining)}' if remaining else ''}"


def overlap(analysis: Analysis) -> str:
    """Explain a floor and loss above the time of a row, where it is visible: half a percent of the step."""
    if analysis.total.overlap < 0.005 * analysis.wall:
        return ""
    return (
        f"ops ran at once for {units.seconds(analysis.total.overlap)}: minimum and above count the whole time of each "
        "op, so their sum exceeds the time that ops took of the step"
    )


def beyond(analysis: Analysis) -> str:
    """Explain shares of the step above 100 %; "" where there are none."""
    excesses = []
    if number := analysis.beyond_step:
        excesses.append(f"{counted(number, 'op')} took longer than the whole step")
    if (times := analysis.beyond_together) is not None:
        excesses.append(f"all ops together took {units.significant(times)} times as long as the step")
    return f"{' and '.join(excesses)} they ran in, so the recorded times are wrong" if excesses else ""


def above(analysis: Analysis) -> str:
    """Report the ops that are faster than their floors, and why each of them is; "" where there are none."""
    table = analysis.table
    faster = (table.uncosted == 0) & (table.own > 0) & (table.floor > table.own * (1 + ABOVE_TOLERANCE))
    excuses = {
        f"in kernels that need {FEWER_PRODUCTS}": faster & table.exempt,
        # As it was measured it is within its floor, else it would be a defect.
        f"only by the factor of {units.significant(analysis.scale)} that all times were scaled by": faster
        & ~(table.exempt | table.above)
        & (table.floor <= table.own / analysis.scale * (1 + ABOVE_TOLERANCE)),
    }
    unexplained = faster & ~table.above
    sentences = [_defects(analysis, np.flatnonzero(table.above).tolist())] if table.above.any() else []
    for words, excused in excuses.items():
        unexplained &= ~excused
        sentences += [f"{_faster(int(excused.sum()))} {words}"] if excused.any() else []
    if unexplained.any():
        sentences.append(f"{_faster(int(unexplained.sum()))} within the spread of their ceilings")
    return "; ".join(sentences)


def all_above(analysis: Analysis) -> bool:
    """Return whether the floors of all ops exceed their time together, so that they are no least time of the step."""
    total = analysis.total
    return total.floor > (1 + ABOVE_TOLERANCE) * (total.own_seconds - total.uncosted)


def _faster(number: int) -> str:
    return f"{counted(number, 'op')} ran faster than {'its' if number == 1 else 'their'} minimum time"


def _defects(analysis: Analysis, rows: list[int]) -> str:
    attained = analysis.total.attained
    if attained is not None and attained > 1 + ABOVE_TOLERANCE:
        # One count or ceiling that is wrong moves some ops, and another device all of them.
        return (
            f"{_faster(len(rows))}, and all known work together in {units.percent(1 / attained, 0)} of its minimum "
            f"time: it ran on a faster device than {plain(analysis.device.name)}, or not all of its time was recorded"
        )
    groups: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        key = (analysis.table.ceiling[row], _defect(analysis, row))
        groups.setdefault(key, []).append(float(analysis.table.floor[row] / analysis.table.own[row]))
    ranked = sorted(groups.items(), key=lambda item: -len(item[1]))
    defects = [
        f"{units.count(len(ratios))} under {plain(ceiling)}, up to {units.significant(max(ratios))} times as fast "
        f"({defect})"
        for (ceiling, defect), ratios in ranked[:_FEW]
    ]
    others_left = sum(len(ratios) for _, ratios in ranked[_FEW:])
    defects += [f"{units.count(others_left)} under others"] if others_left else []
    return f"{_faster(len(rows))}: {conjunction(defects)}"


def _defect(analysis: Analysis, row: int) -> str:
    """Say what has to be wrong where an op is above its ceiling."""
    name, signature = analysis.table.ceiling[row], analysis.profile.signatures[analysis.profile.ops[row].signature]
    family, ceiling = name.partition(".")[0], analysis.device.ceilings.get(name)
    if family == "dram":
        return "the count: a cache held more"
    if signature.cost.quality != "exact":
        return "the count: it rests on an assumption"
    if family in ("matrix", "vector") and ceiling is not None and ceiling.spread is None:
        return "the count: no code is faster than a datasheet"
    if family == "launch":
        return "the minimum: launches are shorter"
    return "the ceiling is too low, or the count too high"
