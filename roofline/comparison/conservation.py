"""Say what the products of a run were asked for, so that work is neither lost nor made.

Which product does what was asked for is joined by names, which compilers forget and merge. So what a product was asked
for and does not execute is what another one executes without being asked, in its block, or else in its phase, and no
more of a phase was executed without being asked for (recomputation, padding) than the sums say:

    sum over products of max(executed - model, 0)  =  max(sum of executed - sum of model, 0)

kernels of attention and products that became something else aside (`conserved`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from roofline.comparison.arrays import Array, Bools, Rows
from roofline.comparison.segments import Segments
from roofline.core.cost import BY_INDEX, INTERPOLATES
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES, PRODUCTS


def conserved(some: Segments) -> Segments:
    """Segments with their model FLOPs by the rule above.

    Those that execute no product were asked for one that a compiler made into something else, and keep it. Kernels of
    attention execute more products than are asked for (5 or 7 for 4), and nothing of that is another one's.
    """
    flops, model = some.flops, some.model_flops.copy()
    products = np.isin(some.op_class, [CLASSES.index(name) for name in PRODUCTS])
    attention = some.op_class == CLASSES.index("attention")
    givers = np.flatnonzero(products & (flops > 0) & (model > flops * (1 + ROUNDING)))
    takers = np.flatnonzero(products & ~(attention & (model > 0)) & (flops > model * (1 + ROUNDING)))
    takers = takers[~_by_index(some, takers)]
    if not len(givers) or not len(takers):
        return some
    phases, blocks = (np.asarray([place[part] for place in some.places], object) for part in (0, 1))
    # Equal amounts first, of one block before others: a product of half as many FLOPs is not half of this one.
    for same_block, equal in product((True, False), repeat=2):
        for giver in givers.tolist():
            near = takers[phases[takers] == phases[giver]]
            if same_block:
                near = near[blocks[near] == blocks[giver]]
            _give(model, flops, giver, near, equal)
    return replace(some, model_flops=model)


def _give(model: Array, flops: Array, giver: int, takers: Rows, equal: bool) -> None:
    """Move what `giver` was asked for too much to the nearest of `takers`; equal: only to one that lacks so much."""
    while (spare := model[giver] - flops[giver]) > ROUNDING * flops[giver]:
        lacking = flops[takers] - model[takers]
        free = lacking > ROUNDING * flops[takers]
        if equal:
            free &= np.abs(lacking - spare) <= ROUNDING * flops[takers]
        if not free.any():
            return
        taker = takers[free][np.abs(takers[free] - giver).argmin()]
        lacks = flops[taker] - model[taker]
        # Exactly what they execute where that is all: rounding must not keep two products of equal FLOPs apart.
        filled = spare >= lacks * (1 - ROUNDING)
        model[giver] = flops[giver] if spare <= lacks * (1 + ROUNDING) else model[giver] - lacks
        model[taker] = flops[taker] if filled else model[taker] + spare


def again(some: Segments, rows: Rows) -> Bools:
    """Return which of some segments are products that ran and were not asked for, and that no index would do."""
    return _not_asked_for(some, rows) & ~_by_index(some, rows)


def _not_asked_for(some: Segments, rows: Rows) -> Bools:
    return np.asarray((some.model_flops[rows] == 0) & (some.flops[rows] > 0), bool)


def _by_index(some: Segments, rows: Rows) -> Bools:
    """Return which of some segments are products with a one-hot matrix, or such that interpolate."""
    found = _not_asked_for(some, rows)
    notes = [some.whole[row].cost.note for row in rows[found].tolist()]
    found[found] = [BY_INDEX in note or INTERPOLATES in note for note in notes]
    return found
