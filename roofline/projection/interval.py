"""Draw the range of a projected step: resample its steps and the ceilings of both devices.

Other kernels will run on the target and reach another fraction of its ceilings. How far that shifts a step is known
only from steps that ran on both devices: docs/whatif.md lists them with their errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import Resamples
from roofline.analysis.columns import numbered
from roofline.core import statistics
from roofline.core.arrays import Array
from roofline.core.device import SHEET_LOW, Device
from roofline.core.vocabulary import GROUPS
from roofline.projection.devices import is_sheet
from roofline.projection.kernels import KernelDraws, Kernels
from roofline.projection.roofs import divide
from roofline.projection.sides import Sides

Interval = tuple[float, float]
#: No ceiling is drawn lower than 1 % of its value, whatever a file says of its spread.
_MOST = 0.99


def sheet_mismatches(sides: Sides) -> NDArray[np.bool_]:
    """Mark the ops bound by a ceiling that is a datasheet's on one device only; shape (ops,)."""
    ours, theirs = sides.source.ceilings, sides.target.ceilings
    mixed = [name for name in ours.keys() & theirs.keys() if is_sheet(ours[name]) != is_sheet(theirs[name])]
    opposed: NDArray[np.bool_] = np.isin(sides.here.ceilings, mixed) | np.isin(sides.there.ceilings, mixed)
    return opposed


def draw_times(
    analysis: Analysis,
    resamples: Resamples,
    group: NDArray[np.int64],
    carried: NDArray[np.bool_],
    ratio: Array,
    hidden: Array,
    sides: Sides,
    kernels: Kernels,
    kernel_draws: KernelDraws,
) -> Array:
    """Draw the time there of each group [s]; shape (groups, resamples).

    ratio: time there over time here of each op; hidden: the part of its time there that other ops share [s]. Profiled
    steps are drawn with replacement; each ceiling is drawn evenly between its value and its lowest possible one, once
    for all ops that it binds, and once for both devices where it is the same; start-up is not drawn. Other kernels are
    drawn once for all ops of a library, and once for those of a framework's own code.
    """
    number, columns = len(resamples.scale), analysis.table.columns
    rng = statistics.generator()
    rates: dict[tuple[str, float, str, bool], Array] = {}

    def rate(name: str, device: Device, sheet: bool) -> Array:
        """Draw the ceiling as a share of its value; shape (resamples,)."""
        ceiling = device.ceilings.get(name)
        if ceiling is None:
            return np.ones(number)
        key = (name, ceiling.value, ceiling.source, sheet)
        if key not in rates:
            # Against a measured ceiling, a datasheet's may be too high by as much as measured rates fall below theirs.
            uncertainty = 1 - SHEET_LOW if sheet and is_sheet(ceiling) else min(device.uncertainty(name), _MOST)
            rates[key] = 1 - rng.random(number) * uncertainty
        return rates[key]

    names = [side.ceilings for side in (sides.here, sides.there)]
    devices, opposed = (sides.source, sides.target), sheet_mismatches(sides)
    starts = [
        divide(start, total, sides.by_work)
        for start, total in zip(sides.starts, (sides.before, sides.after), strict=True)
    ]
    chosen = np.flatnonzero(carried)
    pair_of_op, first = numbered(
        group[chosen],
        *(np.unique(ceilings, return_inverse=True)[1][chosen] for ceilings in names),
        opposed[chosen].astype(np.int64),
        kernels.code[chosen],
        kernels.deviation[chosen],
    )
    totals = np.zeros((len(GROUPS), number))
    for pair, row in enumerate(chosen[first].tolist()):
        rows, sheet = chosen[pair_of_op == pair], bool(opposed[row])
        # The lower a ceiling really is, the more of it was attained here, and the less there is of it there.
        ours, theirs = (
            rate(str(ceilings[row]), device, sheet) for ceilings, device in zip(names, devices, strict=True)
        )
        # Ops of one group under the same roofs start alike: what counts is their mean, weighted by time.
        weights = columns.own[rows].tolist() if columns.own[rows].any() else None
        began, begun = (float(np.average(shares[rows], weights=weights)) for shares in starts)
        code = kernel_draws.of(int(kernels.code[row]), float(kernels.deviation[row]))
        factor = resamples.scale * code * (begun + (1 - begun) / theirs) / (began + (1 - began) / ours)
        # Overlap is known as a mean alone: in a draw of short times it may be more than they are.
        times = resamples.steps @ (ratio[rows] @ columns.steps[rows]) - hidden[rows].sum()
        totals[int(group[row])] += np.maximum(times, 0.0) * factor
    return totals


def interval_around(value: float, lower: Array, upper: Array) -> Interval:
    """Span the 5 % point of the lower draws to the 95 % point of the upper ones, widened to hold the value [s]."""
    return min(value, float(np.percentile(lower, 5))), max(value, float(np.percentile(upper, 95)))
