"""The rows of a profile's ops as columns: a loop over a quarter of a million of them takes a second, a column none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.arrays import Array
from roofline.core.rows import Ints, per_profile, ranks, rows, settled
from roofline.core.schema import Profile


@dataclass(frozen=True, slots=True)
class Columns:
    """Per op, in order: where it points in the profile's tables, how often it launched the device, and its times [s].

    steps: its own time in each kept profiled step, shape (ops, steps); own: their mean, 0 where there are none;
    overlap: that it ran beside others. fused: of constituents. line: -1 where it is not known.
    """

    signature: Ints
    scope: Ints
    phase: Ints
    block: Ints
    launches: Ints
    steps: Array
    own: Array
    overlap: Array
    fused: NDArray[np.bool_]
    line: Ints


@per_profile
def columns(profile: Profile) -> Columns:
    """Return the columns of a profile."""
    of, ops = rows(profile), profile.ops
    steps = int(of.steps[0]) if ops else 0
    times = of.own.reshape(len(ops), steps) * 1e-9 if steps else np.zeros((len(ops), 0))
    return Columns(
        signature=of.signature,
        scope=of.scope,
        phase=of.phase,
        block=of.block,
        launches=of.launches,
        steps=settled(times),
        own=settled(times.mean(axis=1) if steps else np.zeros(len(ops))),
        overlap=settled(np.multiply(of.overlap, 1e-9, dtype=np.float64)),
        fused=settled(of.constituents > 0),
        line=of.line,
    )


def numbered(*parts: NDArray[np.float64] | Ints) -> tuple[Ints, Ints]:
    """Number the rows of columns by what they hold, and return of each number the first row that holds it."""
    number: Ints = np.zeros(len(parts[0]), np.int64)
    first = first_rows(number)
    for column in parts:
        if np.array_equal(column, column[first][number]):
            continue  # it tells no rows apart that were not apart already, and to sort it would cost most of the time
        codes = ranks(column)
        number = ranks(number * (codes.max() + 1) + codes)
        first = first_rows(number)
    return number, first


def often(*parts: NDArray[np.float64] | Ints) -> list[tuple[int, int]]:
    """Return the first row of each of the different rows of columns, and how many are equal to it, in their order."""
    number, first = numbered(*parts)
    many = np.bincount(number, minlength=len(first))
    order = np.argsort(first)
    return list(zip(first[order].tolist(), many[order].tolist(), strict=True))


def first_rows(number: Ints) -> Ints:
    """Return the first row of each number, of rows that have all numbers from 0 on."""
    first: Ints = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    return first
