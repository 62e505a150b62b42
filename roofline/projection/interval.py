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
from roofline.projection.roofs import Roofs

Interval = tuple[float, float]
#: Factor by which kernels may be faster or slower than projected, on a device of the same kind and of another kind. By
#: choice, from the pairs in docs/whatif.md, which all lie within: these factors alone span less than 2.
_SAME_KIND, _OTHER_KIND = 1.3, 1.4
#: No ceiling is drawn lower than 1 % of its value, whatever a file says of its spread.
_MOST = 0.99


def kernel_spread(source: Device, target: Device) -> float:
    """Return the factor by which kernels may be faster or slower there: 1 where both devices have the same ceilings.

    Launch floors of a GPU are ignored: they project no op (startup.py), and a trace brings its own.
    """
    ours, theirs = (
        {name: c.value for name, c in side.ceilings.items() if side.kind == "cpu" or not name.startswith("launch.")}
        for side in (source, target)
    )
    if ours == theirs and source.kind == target.kind:
        return 1.0
    return _SAME_KIND if source.kind == target.kind else _OTHER_KIND


def sheet_mismatches(ours: Roofs, theirs: Roofs, source: Device, target: Device) -> NDArray[np.bool_]:
    """Mark the ops bound by a ceiling that is a datasheet's on one device only; shape (ops,)."""
    mixed = [
        name
        for name in source.ceilings.keys() & target.ceilings.keys()
        if is_sheet(source.ceilings[name]) != is_sheet(target.ceilings[name])
    ]
    opposed: NDArray[np.bool_] = np.isin(ours.ceilings, mixed) | np.isin(theirs.ceilings, mixed)
    return opposed


def draw_times(
    analysis: Analysis,
    resamples: Resamples,
    group: NDArray[np.int64],
    carried: NDArray[np.bool_],
    ratio: Array,
    hidden: Array,
    roofs: tuple[Roofs, Roofs],
    devices: tuple[Device, Device],
    starts: tuple[Array, Array],
    opposed: NDArray[np.bool_],
    kernel_factor: float,
) -> Array:
    """Draw the time there of each group [s]; shape (groups, resamples).

    ratio: time there over time here of each op; hidden: the part of its time there that other ops share [s]; roofs,
    devices: source and target; starts: the share of start-up, which no ceiling shortens, in each op's time at the
    ceilings of source and target. Profiled steps are drawn with replacement; each ceiling is drawn evenly between its
    value and its lowest possible one, once for all ops that it binds, and once for both devices where it is the same.
    All kernels there are faster or slower than projected by one factor, drawn between 1 / kernel_factor and
    kernel_factor, evenly by its logarithm.
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

    kernel_draws = resamples.scale * kernel_factor ** (2 * rng.random(number) - 1)
    names = [side.ceilings for side in roofs]
    chosen = np.flatnonzero(carried)
    pair_of_op, first = numbered(
        group[chosen],
        *(np.unique(ceilings, return_inverse=True)[1][chosen] for ceilings in names),
        opposed[chosen].astype(np.int64),
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
        factor = kernel_draws * (begun + (1 - begun) / theirs) / (began + (1 - began) / ours)
        # Overlap is known as a mean alone: in a draw of short times it may be more than they are.
        times = resamples.steps @ (ratio[rows] @ columns.steps[rows]) - hidden[rows].sum()
        totals[int(group[row])] += np.maximum(times, 0.0) * factor
    return totals


def interval_around(value: float, lower: Array, upper: Array) -> Interval:
    """Span the 2.5 % point of the lower draws to the 97.5 % point of the upper ones, widened to hold the value [s]."""
    return min(value, float(np.percentile(lower, 2.5))), max(value, float(np.percentile(upper, 97.5)))
