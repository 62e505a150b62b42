"""The buffers that a step touches, op after op, and what of them has to pass main memory whatever its kernels are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.arrays import Array
from roofline.core.rows import Ints, per_profile, ranks, rows, settled
from roofline.core.schema import Profile


@dataclass(frozen=True, slots=True)
class Accesses:
    """The buffers that the ops of a step touch, op after op: of each op those that it reads, then those it writes.

    buffer: their numbers; size: bytes of each that are touched. reads, writes: how many each op has.
    """

    buffer: Ints
    size: Array
    reads: Ints
    writes: Ints

    @property
    def written(self) -> NDArray[np.bool_]:
        """Return which accesses are writes."""
        kinds = np.tile(np.asarray([False, True]), len(self.reads))
        return np.repeat(kinds, np.stack([self.reads, self.writes], axis=1).ravel())

    @property
    def op(self) -> Ints:
        """Return of each access the number of its op."""
        return np.repeat(np.arange(len(self.reads)), self.reads + self.writes)

    def of(self, ops: Ints) -> Accesses:
        """Return the accesses of some ops, in their order; an op may stand in it more than once."""
        many = (self.reads + self.writes)[ops]
        begins = np.cumsum(self.reads + self.writes) - self.reads - self.writes
        places = np.arange(many.sum()) + np.repeat(begins[ops] - (np.cumsum(many) - many), many)
        return Accesses(self.buffer[places], self.size[places], self.reads[ops], self.writes[ops])

    @property
    def numbered(self) -> Ints:
        """Return the buffers, numbered from 0 on without a hole."""
        return ranks(self.buffer)


@per_profile
def accesses(profile: Profile) -> Accesses:
    """Return the accesses of a step that knows its buffers: its ops have them, their signatures the sizes."""
    of = rows(profile)
    sizes = [(*signature.reads, *signature.writes) for signature in profile.signatures]
    many = of.reads + of.writes
    starts = np.cumsum([0, *map(len, sizes)])[of.signature] if sizes else many
    places = np.arange(len(of.buffers)) + np.repeat(starts - (np.cumsum(many) - many), many)
    size = np.asarray([access_size for access_sizes in sizes for access_size in access_sizes], np.float64)[places]
    return Accesses(of.buffers, settled(size), of.reads, of.writes)


def external_bytes(touched: Accesses) -> float:
    """Sum the bytes that a step must move whatever its kernels are: what comes from before it and outlives it.

    A buffer that is read before the step writes it came from outside (parameters, optimizer state, inputs): its bytes
    are read once, and written once if the step changes it. A buffer that the step writes and never reads is a result.
    Everything else could stay on the chip.
    """
    buffer, written, size = touched.numbered, touched.written, touched.size
    came = _came(buffer, written)
    read_last, written_last = np.full((2, len(came)), -1)
    for last, places in ((read_last, np.flatnonzero(~written)), (written_last, np.flatnonzero(written))):
        last[buffer[places]] = places
    largest = _largest(written.astype(np.int64) * len(came) + buffer, size, 2 * len(came)).reshape(2, -1)
    result = ~came & (written_last > read_last)
    return float(largest[:, came].sum() + size[written_last[result]].sum())


def _largest(number: Ints, size: Array, many: int) -> Array:
    """Return the largest size of each number below `many`; 0 of one without."""
    largest = np.zeros(many)
    largest[number] = size  # the last of each, which is nearly always as large as any
    larger = size > largest[number]
    np.maximum.at(largest, number[larger], size[larger])
    return largest


def _came(buffer: Ints, written: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[buffer]: it was there before the step, which reads it before it writes it."""
    first = np.zeros(int(buffer.max(initial=-1)) + 1, np.int64)
    first[buffer[::-1]] = np.arange(len(buffer))[::-1]
    came: NDArray[np.bool_] = ~written[first]
    return came
