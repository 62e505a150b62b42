"""Estimate what other kernels reach: a library has kernels of its own for each device.

Two kinds of code run the ops of a step. A framework's own code (pointwise ops, norms, copies) is the same on both
devices, and so is taken to reach the same fraction of their limits, its efficiency e. Matmuls, convolutions and
attention run in kernels that a library chose by device, shape and layout. How far these are from what such kernels
typically reach says little of the kernels there (a kernel for unaligned rows, a first one that nobody tuned), so only a
part of it is carried over:

    ln e there = typical there + carried * (ln e here - typical here)

and the range allows for none of it and all of it. On the same processor the same kernels run: all is carried.

All constants are fitted by benchmarks/projection_fit.py, on the few steps that ran on two devices (docs/whatif.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import Analysis
from roofline.analysis.columns import numbered
from roofline.core import statistics
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.rows import Ints
from roofline.core.vocabulary import OpClass
from roofline.projection.devices import Change, is_sheet
from roofline.projection.roofs import Roofs, divide
from roofline.projection.sides import Sides

#: Classes of ops that run in a library's kernels.
LIBRARY: tuple[OpClass, ...] = ("contraction", "attention")
#: Whose code runs an op: the framework's own, or a library's for a class of ops.
CODES = ("own", *LIBRARY)


@dataclass(frozen=True, slots=True)
class Spread:
    """Hold how far projections were off.

    deviations: of the logarithm of times; values: the number of steps that tell each. Both by `CODES`.
    """

    deviations: tuple[float, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Hold what is fitted on steps that ran on two devices.

    typical: ln e of a library's kernels, by kind of device and class; carried: the share of the difference from it that
    another device shares; spreads: by change of device, of steps that the other constants were not fitted on.
    """

    typical: Mapping[str, Mapping[str, float]]
    carried: float
    spreads: Mapping[Change, Spread]


#: Written in docs/whatif.md by benchmarks/projection_fit.py, which tests hold against these.
FITTED = Fitted(
    typical={
        "cpu": {"attention": -1.43, "contraction": -0.69},
        "cuda": {"attention": -1.18, "contraction": -0.26},
        "rocm": {"attention": -1.92, "contraction": -0.33},
    },
    carried=0.67,
    spreads={
        "processor": Spread((0.09, 0.1, 0.07), (4, 4, 1)),
        "cpu": Spread((0.23, 0.44, 0.29), (5, 5, 1)),
        "gpu": Spread((0.15, 0.18, 0.19), (2, 2, 2)),
    },
)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Hold what other kernels change: of each op, shape (ops,).

    factor: of its time there; code: whose code runs it, as an index into `CODES`; deviation: by how much its ln e
    differs from the typical one, 0 where nothing is typical. carried: the share of it in `factor`; spread: None where
    the kernels are those that ran.
    """

    factor: Array
    code: Ints
    deviation: Array
    carried: float
    spread: Spread | None


@dataclass(frozen=True, slots=True)
class KernelDraws:
    """Hold draws of other kernels.

    factors: of their time, by `CODES`, shape (codes, n). less: how much less of an op's deviation is carried over than
    projected, shape (n,).
    """

    factors: Array
    less: Array

    def of(self, code: int, deviation: float) -> Array:
        """Draw the factor of the time of ops; shape (n,)."""
        drawn: Array = self.factors[code] * np.exp(self.less * deviation)
        return drawn


def other_kernels(analysis: Analysis, sides: Sides, fitted: Fitted = FITTED) -> Kernels:
    """Estimate what other kernels change.

    The efficiency is that of all ops of a signature. Typical ones are of measured ceilings, and say nothing of an op
    under a datasheet's, of which no code reaches as much.
    """
    profile, columns = analysis.profile, analysis.table.columns
    compared = sides.by_work & ~(_under_sheet(sides.here, sides.source) | _under_sheet(sides.there, sides.target))
    classes = [row.op_class for row in profile.signatures]
    here, there = (
        np.asarray([fitted.typical.get(device.kind, {}).get(name, np.nan) for name in classes], np.float64)
        for device in (sides.source, sides.target)
    )
    number = len(classes)
    least, took = (
        np.zeros(number) + np.bincount(columns.signature, np.where(compared, seconds, 0.0), number)
        for seconds in (sides.before, columns.own)
    )
    are_others = sides.change not in (None, "processor")
    known = are_others & (least > 0) & (took > 0) & np.isfinite(here) & np.isfinite(there)
    efficiency = np.log(divide(least, took, known), out=np.zeros(number), where=known)
    deviation = np.where(known, efficiency - here, 0.0)
    reached = there + fitted.carried * deviation
    factor = np.exp(np.where(known, efficiency - reached, 0.0))
    codes = np.asarray([CODES.index(name if name in LIBRARY else "own") for name in classes], np.int64)
    return Kernels(
        factor=factor[columns.signature],
        code=codes[columns.signature],
        deviation=deviation[columns.signature],
        carried=fitted.carried,
        spread=None if sides.change is None else fitted.spreads[sides.change],
    )


def _under_sheet(roofs: Roofs, device: Device) -> NDArray[np.bool_]:
    """Mark the ops that a datasheet's ceiling binds; shape (ops,)."""
    printed = [name for name, ceiling in device.ceilings.items() if is_sheet(ceiling)]
    under: NDArray[np.bool_] = np.isin(roofs.ceilings, printed)
    return under


def draw_kernels(kernels: Kernels, number: int) -> KernelDraws:
    """Draw by how much longer kernels take than projected.

    Once for all ops that one code runs, by Student's t with as many degrees of freedom as steps tell its deviation, one
    where none does; of an op's difference from the typical any share may be carried over.
    """
    spread = kernels.spread
    if spread is None:
        return KernelDraws(np.ones((len(CODES), number)), np.zeros(number))
    rng = statistics.generator("kernels")
    deviations = np.asarray(spread.deviations, np.float64)[:, None]
    degrees = np.maximum(1, spread.values)[:, None]
    factors = np.exp(deviations * rng.standard_t(degrees, (len(CODES), number)))
    return KernelDraws(factors, kernels.carried - rng.random(number))


def kernel_range(kernels: Kernels, draws: KernelDraws, projected: Array) -> float:
    """Return the factor by which other kernels may make the projected ops faster or slower, in nine of ten draws.

    projected: the time there of each op [s].
    """
    if kernels.spread is None or not projected.sum() > 0:
        return 1.0
    kind, first = numbered(kernels.code, kernels.deviation)
    seconds = np.bincount(kind, projected)
    total = sum(
        weight * draws.of(int(kernels.code[row]), float(kernels.deviation[row]))
        for weight, row in zip(seconds.tolist(), first.tolist(), strict=True)
    )
    low, high = np.percentile(total, (5, 95))
    return float(np.sqrt(high / low))
