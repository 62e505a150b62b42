"""Weigh the pieces of a fused op: the heaviest gives it its class."""

from __future__ import annotations

from roofline.core.cost import Cost


def weight(cost: Cost) -> float:
    """A stand-in for the time of a piece of work alone, in bytes: its traffic, and its arithmetic.

    In the time in which it moves a byte a device does about 10 vector or integer operations, 100 matrix FLOP, or one
    evaluation of a function; that decides only which class a kernel of several is put in.
    """
    functions = sum((cost.functions or {}).values())
    arithmetic = ((cost.vector_flops or 0.0) + (cost.int_ops or 0.0)) / 10 + (cost.flops or 0.0) / 100 + functions
    return max((cost.bytes_read or 0.0) + (cost.bytes_written or 0.0), arithmetic)
