"""The range of a step on another device: its steps and the ceilings of both devices drawn again and again.

That is what can be drawn. That other kernels will run there, which attain more or less of that device than these do of
this one, can only be learnt from steps that ran on both: docs/whatif.md has them, and how far they were off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import Resamples
from roofline.analysis.columns import numbered
from roofline.core import statistics
from roofline.core.device import SHEET_LOW, Device
from roofline.core.vocabulary import GROUPS
from roofline.projection.devices import is_sheet
from roofline.projection.roofs import Array, Roofs

Interval = tuple[float, float]
#: How many times faster or slower than projected the kernels of another device may be: one of the same kind, and of
#: another. By choice, from the pairs in docs/whatif.md, of which all lie within: so their ranges span less than 2.
_SAME_KIND, _OTHER_KIND = 1.3, 1.4
#: No ceiling is drawn lower than 1 % of its value, whatever a file says of its spread.
_MOST = 0.99


def kernels(here: Device, there: Device) -> float:
    """How many times faster or slower the kernels there may be: 1 where all that carries ops is the same on both.

    Launch floors carry nothing on a GPU (startup.py), and that of a trace is its own: it makes no other device.
    """
    ours, theirs = (
        {name: c.value for name, c in side.ceilings.items() if side.kind == "cpu" or not name.startswith("launch.")}
        for side in (here, there)
    )
    if ours == theirs and here.kind == there.kind:
        return 1.0
    return _SAME_KIND if here.kind == there.kind else _OTHER_KIND


def against_sheet(ours: Roofs, theirs: Roofs, here: Device, there: Device) -> NDArray[np.bool_]:
    """Whether an op is measured against a datasheet: a ceiling that binds it is a datasheet's on one side only."""
    apart = [
        name
        for name in here.ceilings.keys() & there.ceilings.keys()
        if is_sheet(here.ceilings[name]) != is_sheet(there.ceilings[name])
    ]
    opposed: NDArray[np.bool_] = np.isin(ours.ceilings, apart) | np.isin(theirs.ceilings, apart)
    return opposed


def drawn(
    here: Analysis,
    resamples: Resamples,
    group: NDArray[np.int64],
    carried: NDArray[np.bool_],
    ratio: Array,
    hidden: Array,
    roofs: tuple[Roofs, Roofs],
    devices: tuple[Device, Device],
    starts: tuple[Array, Array],
    opposed: NDArray[np.bool_],
    apart: float,
) -> Array:
    """Time there by group [s], drawn again and again; shape (groups, resamples).

    ratio: of each op; hidden: what of its time there other ops have [s]; roofs, devices: here and there; starts: what
    of each op's time at the ceilings here and there is start-up, which no ceiling shortens, as a share. Profiled steps
    are drawn with replacement; each ceiling lies anywhere between its value and the lowest that it may be, once for all
    ops that it binds. A ceiling that is the same on both sides is drawn once. All kernels there are faster or slower
    than projected by the same factor, drawn between 1 / apart and apart, evenly by its logarithm.
    """
    number, columns = len(resamples.scale), here.table.columns
    rng = statistics.generator()
    rates: dict[tuple[str, float, str, bool], Array] = {}

    def rate(name: str, device: Device, sheet: bool) -> Array:
        """The ceiling in each draw as a share of its value."""
        ceiling = device.ceilings.get(name)
        if ceiling is None:
            return np.ones(number)
        key = (name, ceiling.value, ceiling.source, sheet)
        if key not in rates:
            # The other device's own ceilings may be as much lower than its datasheet as is believed of measured ones.
            uncertainty = 1 - SHEET_LOW if sheet and is_sheet(ceiling) else min(device.uncertainty(name), _MOST)
            rates[key] = 1 - rng.random(number) * uncertainty
        return rates[key]

    others = resamples.scale * apart ** (2 * rng.random(number) - 1)
    names = [side.ceilings for side in roofs]
    chosen = np.flatnonzero(carried)
    which, first = numbered(
        group[chosen],
        *(np.unique(one, return_inverse=True)[1][chosen] for one in names),
        opposed[chosen].astype(np.int64),
    )
    found = np.zeros((len(GROUPS), number))
    for pair, row in enumerate(chosen[first].tolist()):
        rows, sheet = chosen[which == pair], bool(opposed[row])
        # The lower a ceiling really is, the more of it was attained here, and the less there is of it there.
        ours, theirs = (rate(str(one[row]), device, sheet) for one, device in zip(names, devices, strict=True))
        # Ops of one group under the same roofs start alike: what counts is their mean, weighted by time.
        weights = columns.own[rows].tolist() if columns.own[rows].any() else None
        began, begun = (float(np.average(one[rows], weights=weights)) for one in starts)
        factor = others * (begun + (1 - begun) / theirs) / (began + (1 - began) / ours)
        # Overlap is known as a mean alone: in a draw of short times it may be more than they are.
        times = resamples.steps @ (ratio[rows] @ columns.steps[rows]) - hidden[rows].sum()
        found[int(group[row])] += np.maximum(times, 0.0) * factor
    return found


def around(value: float, lower: Array, upper: Array) -> Interval:
    """From the 2.5 % point of what was drawn lowest to the 97.5 % point of the other; it always holds the value."""
    return min(value, float(np.percentile(lower, 2.5))), max(value, float(np.percentile(upper, 97.5)))
