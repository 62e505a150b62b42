"""Follow the buffers of a step from the op that makes each to the last one that uses it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roofline.core.arrays import Array, Bools
from roofline.core.rows import Ints


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """What buffers hold, each from the op `first` to the op `last`, both included, in the order in which they are made.

    bytes: as far as ops touch it at once. made: whether the step makes it; else it was there before. read: whether
    any op reads it.
    """

    bytes: Array
    first: Ints
    last: Ints
    made: Bools
    read: Bools


def lifetimes(op: Ints, buffer: Ints, size: Array, written: Bools) -> Lifetimes:
    """Find what buffers hold during a step. op, buffer, size [byte], written: of each access, by op, its reads first.

    A buffer that an op writes and does not read holds something new, in memory that may have been released and taken
    again meanwhile. What was there before the step stays, whoever writes it.
    """
    order = np.argsort(buffer, kind="stable")
    op, buffer, size, written = op[order], buffer[order], size[order], written[order]
    other = np.ones(len(order), bool)
    other[1:] = buffer[1:] != buffer[:-1]
    begins = np.flatnonzero(other)
    made = np.repeat(written[begins], np.diff(begins, append=len(order)))
    # Of an op that reads a buffer and writes it, the access before the write is its own.
    later = np.ones(len(order), bool)
    later[1:] = op[1:] > op[:-1]
    begins = np.flatnonzero(other | (made & written & later))
    if not len(begins):
        return Lifetimes(size, op, op, made, made)
    ends = np.append(begins[1:], len(order)) - 1
    largest, read = np.maximum.reduceat(size, begins), np.logical_or.reduceat(~written, begins)
    by_time = np.argsort(order[begins], kind="stable")
    begins, ends = begins[by_time], ends[by_time]
    return Lifetimes(largest[by_time], op[begins], op[ends], made[begins], read[by_time])
