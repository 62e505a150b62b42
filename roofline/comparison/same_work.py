"""The same work under two devices' ceilings: what of t_A - t_B is the ceilings', and what the kernels'.

The own time of an op is its floor times what it misses that by, t = f x with x = 1 / attained. The difference of two
products splits symmetrically:

    t_A - t_B  =  (f_A - f_B) (x_A + x_B) / 2  +  (x_A - x_B) (f_A + f_B) / 2      ceilings, and kernels

A kernel that attains 65 % on both devices is slower by its ceilings alone. Where an op attains less than half of its
roof in either run, it does not wait for that roof: then the ceilings' part is f_A - f_B, and the rest the kernels',
unless the run that takes the longer rest attains more: then the two readings disagree about whose kernels are worse,
and the ceilings' part is a range from the one to the other.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from roofline.analysis.floors import ATTAINED
from roofline.comparison.arrays import Array
from roofline.comparison.terms import Side
from roofline.core.device import Device
from roofline.core.schema import Signature


def works(side: Side) -> list[Hashable]:
    """What work each segment does, in what both runs can have in common; None for one whose floor is not known."""
    known: dict[int, Hashable] = {}
    found: list[Hashable] = []
    for signature, uncosted in zip(side.segments.signature, side.segments.uncosted.tolist(), strict=True):
        if id(signature) not in known:
            known[id(signature)] = _work(signature, side.analysis.device)
        found.append(None if uncosted else known[id(signature)])
    return found


def _work(signature: Signature, device: Device) -> Hashable:
    cost, precision = signature.cost, signature.precision
    # The floor of a product whose matrix peak is not known is that of its memory traffic: any device would seem fast.
    if cost.useful_flops and device.rate(f"matrix.{precision.arithmetic if precision else None}") is None:
        return None
    return cost.model_flops, cost.vector_flops, cost.bytes_read, cost.bytes_written


def reach(side: Side) -> Array:
    """The upper end of each segment's floor [s], 0 of what has none."""
    some, table = side.segments, side.analysis.table
    own = table.own[some.op] * some.weight
    # The floor of a part is its part of the op's, and so is what the op's time allows of the upper end.
    found = np.maximum(some.floor, np.minimum(table.floor_reach[some.op] * some.weight, own))
    return np.where(some.uncosted, 0.0, found)


def by_ceilings(floor_a: Array, own_a: Array, floor_b: Array, own_b: Array, *, scaled: bool = False) -> Array:
    """The ceilings' part of t_A - t_B of equal work, each with its floors and own times in both runs [s].

    scaled: where the two readings disagree, that of the product.
    """
    both = (floor_a > 0) & (floor_b > 0)
    missed = [
        np.divide(own, floor, out=np.ones_like(own), where=both) for own, floor in ((own_a, floor_a), (own_b, floor_b))
    ]
    apart, took = floor_a - floor_b, own_a - own_b
    near = both & (floor_a >= ATTAINED * own_a) & (floor_b >= ATTAINED * own_b)
    disagree = both & ((took - apart) * (missed[0] - missed[1]) < 0)
    found: Array = np.where(near | (disagree & scaled), apart * (missed[0] + missed[1]) / 2, apart)
    return found
