"""Say what the products of a run were asked for, so that work is neither lost nor made.

Which product does what was asked for is joined by names, which compilers forget and merge. So what a product was asked
for and does not execute is what another one executes without being asked, in its block, or else in its phase, and no
more of a phase was executed without being asked for (recomputation, padding) than the sums say:

    sum over products of max(executed - model, 0)  =  max(sum of executed - sum of model, 0)

kernels of attention and products that became something else aside (`conserved`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np

from roofline.comparison.segments import Segments
from roofline.core.arrays import Array, Bools, Rows
from roofline.core.cost import BY_INDEX, INTERPOLATES
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES, PRODUCTS


def conserved(segments: Segments) -> Segments:
    """Return segments with their model FLOPs by the rule above.

    Those that execute no product were asked for one that a compiler made into something else, and keep it. Kernels of
    attention execute more products than are asked for (5 or 7 for 4), and nothing of that is another one's.
    """
    flops, model = segments.flops, segments.model_flops.copy()
    products = np.isin(segments.op_class, [CLASSES.index(name) for name in PRODUCTS])
    attention = segments.op_class == CLASSES.index("attention")
    givers = np.flatnonzero(products & (flops > 0) & (model > flops * (1 + ROUNDING)))
    takers = np.flatnonzero(products & ~(attention & (model > 0)) & (flops > model * (1 + ROUNDING)))
    takers = takers[~_by_index(segments, takers)]
    if not len(givers) or not len(takers):
        return segments
    # Equal amounts first, of one block before others: a product of half as many FLOPs is not half of this one.
    for parts, equal in product((2, 1), (True, False)):  # of a place: phase and block, or the phase alone
        near = defaultdict(list)
        for taker in takers.tolist():
            near[segments.places[taker][:parts]].append(taker)
        rows = {place: np.asarray(places_takers) for place, places_takers in near.items()}
        for giver in givers.tolist():
            if (place := segments.places[giver][:parts]) in rows:
                _give(model, flops, giver, rows[place], equal)
    return replace(segments, model_flops=model)


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


def is_recomputed(segments: Segments, rows: Rows) -> Bools:
    """Return which of some segments are products that ran and were not asked for, and that no index would do."""
    return _not_asked_for(segments, rows) & ~_by_index(segments, rows)


def _not_asked_for(segments: Segments, rows: Rows) -> Bools:
    return np.asarray((segments.model_flops[rows] == 0) & (segments.flops[rows] > 0), bool)


def _by_index(segments: Segments, rows: Rows) -> Bools:
    """Return which of some segments are products with a one-hot matrix, or such that interpolate."""
    by_index = _not_asked_for(segments, rows)
    notes = [segments.op_signature[row].cost.note for row in rows[by_index].tolist()]
    by_index[by_index] = [BY_INDEX in note or INTERPOLATES in note for note in notes]
    return by_index
