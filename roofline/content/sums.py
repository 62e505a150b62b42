"""Sum the ops of a step by any number that each of them has: all rows of a long table at once.

`Analysis.by` adds up a row at a time, with all that a table can show; a tree of a thousand modules needs less of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.analysis import WorkAnalysis
from roofline.core.arrays import Array
from roofline.core.rows import Ints
from roofline.core.vocabulary import BOUNDS


@dataclass(frozen=True, slots=True)
class PerOp:
    """Per op of a profile, in order; times are NaN where none were measured.

    work: matrix and vector FLOP, traffic: bytes; 0 where `*_known` is False.
    """

    seconds: Array
    own: Array
    uncosted: Array
    floor: Array
    reach: Array
    loss: Array
    work: Array
    work_known: NDArray[np.bool_]
    traffic: Array
    traffic_known: NDArray[np.bool_]


def per_op(analysis: WorkAnalysis) -> PerOp:
    """Collect the columns of a profile."""
    table, of = analysis.table, analysis.table.columns.signature
    costs = [signature.cost for signature in analysis.profile.signatures]
    work = np.asarray([(cost.flops or 0.0) + (cost.vector_flops or 0.0) for cost in costs], np.float64)
    traffic = np.asarray([cost.bytes or 0.0 for cost in costs], np.float64)
    return PerOp(
        seconds=table.share,
        own=table.own,
        uncosted=table.uncosted,
        floor=table.floor,
        reach=table.floor_reach,
        loss=table.loss,
        work=work[of] if len(of) else np.zeros(0),
        work_known=np.asarray([cost.flops_known for cost in costs], bool)[of],
        traffic=traffic[of] if len(of) else np.zeros(0),
        traffic_known=np.asarray([cost.bytes is not None for cost in costs], bool)[of],
    )


@dataclass(frozen=True, slots=True)
class Sums:
    """Per row. seconds: share time [s]; own: time of the ops, costed: of those with a floor [s].

    floor to reach: the range of the floor [s]. unknown: own time of ops whose FLOPs are unknown [s]; blind: of those
    whose bytes are.
    """

    ops: Array
    seconds: Array
    own: Array
    costed: Array
    floor: Array
    reach: Array
    loss: Array
    work: Array
    unknown: Array
    traffic: Array
    blind: Array

    def flops(self, row: int) -> float | None:
        """Return the known FLOP of a row; None where nothing is known (and its ops take time)."""
        return None if self.own[row] > 0 and self.unknown[row] >= self.own[row] else float(self.work[row])

    def bytes(self, row: int) -> float | None:
        """Return the known bytes of a row; None where nothing is known."""
        return None if self.own[row] > 0 and self.blind[row] >= self.own[row] else float(self.traffic[row])

    def attained(self, row: int) -> tuple[float | None, float | None]:
        """Return the range of floor / time of the ops that have a floor; None where over half has none."""
        costed = float(self.costed[row])
        if costed <= 0 or 2 * costed < float(self.own[row]):
            return None, None
        return float(self.floor[row]) / costed, float(self.reach[row]) / costed


def summed(ops: PerOp, code: Ints, rows: int) -> Sums:
    """Sum the ops by `code`, the row of each op."""

    def by(weights: Array) -> Array:
        totals: Array = np.bincount(code, weights=weights, minlength=rows).astype(np.float64)
        return totals

    return Sums(
        ops=np.bincount(code, minlength=rows).astype(np.float64),
        seconds=by(ops.seconds),
        own=by(ops.own),
        costed=by(ops.own - ops.uncosted),
        floor=by(ops.floor),
        reach=by(ops.reach),
        loss=by(ops.loss),
        work=by(ops.work),
        unknown=by(ops.own * ~ops.work_known),
        traffic=by(ops.traffic),
        blind=by(ops.own * ~ops.traffic_known),
    )


def limits(analysis: WorkAnalysis, code: Ints, first: Ints) -> list[str]:
    """Name what limits the ops of each row: the bound of most of their time, or "near ridge" where that is most of it.

    code: the row of each op; first: the first op of each row, whose bound counts where no time was measured.
    """
    table, number = analysis.table, len(first)
    seconds = np.bincount(code, weights=table.share, minlength=number)
    near = np.bincount(code, weights=table.share * table.near_ridge, minlength=number)
    bound = _most(table.bound, table.share, code, first)
    ridge = np.where(seconds > 0, near > seconds / 2, table.near_ridge[first])
    return ["near ridge" if is_near else BOUNDS[row] for is_near, row in zip(ridge, bound.tolist(), strict=True)]


def ceilings(analysis: WorkAnalysis, code: Ints, first: Ints) -> list[str]:
    """Return the ceiling that binds most of the time of each row's ops: "dram.copy"; "" for none. As `limits`."""
    table = analysis.table
    names = {name: number for number, name in enumerate(dict.fromkeys(table.ceiling))}
    kind = np.asarray([names[name] for name in table.ceiling], np.int64)
    most, written = _most(kind, table.share, code, first), list(names)
    return [written[number] for number in most.tolist()]


def _most(kind: Ints, seconds: Array, code: Ints, first: Ints) -> Ints:
    """Return the kind of ops that most of the time of each row is in; of its first op where it has no time."""
    shape = len(first), int(kind.max(initial=0)) + 1
    sums = np.bincount(code * shape[1] + kind, weights=seconds, minlength=shape[0] * shape[1]).reshape(shape)
    most: Ints = np.where(sums.sum(axis=1) > 0, sums.argmax(axis=1), kind[first])
    return most
