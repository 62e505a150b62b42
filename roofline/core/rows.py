"""The rows of a profile's ops as columns of whole numbers, and what is computed of a profile once.

A loop over a quarter of a million rows takes a second, a column of them some hundredths.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

#: `schema.Profile` and `schema.Op`: that module checks its profiles by their columns.
Profile = Any
Op = Any

Ints = NDArray[np.int64]
#: Ops whose columns are read one after the other: each is then still in the cache of the core. By choice: at about a
#: kilobyte each, that is a megabyte.
_PIECE = 1024
#: The first fields of `Rows`, each a number.
_NUMBERS = ("signature", "scope", "phase", "block", "launches", "overlap_ns", "start_ns", "times")
#: Those of `Rows` that count what a field holds.
_TUPLES = ("own_ns", "reads", "writes", "constituents", "kernels")

_chained = chain.from_iterable
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Rows:
    """Per op, in order: where it points in the profile's tables, its launches, overlap [ns], start [ns] and executions.

    steps, reads, writes, constituents, ran: how many own times, buffers, constituents and kernels it has.
    host: how long no op ran before it, with the host in the framework and in Python [ns], shape (ops, 2), 0 where that
    is not recorded. line: -1 where it is not known.

    Op after op: own: its own times [ns]; buffers: those that it reads, then those it writes, none where the profile
    does not know them; kernels: name and time [ns] of each, shape (kernels, 2); fused: the signatures of its
    constituents; places: scope, phase and block of each, shape (places, 3).
    """

    signature: Ints
    scope: Ints
    phase: Ints
    block: Ints
    launches: Ints
    overlap: Ints
    start: Ints
    times: Ints
    steps: Ints
    reads: Ints
    writes: Ints
    constituents: Ints
    ran: Ints
    host: Ints
    line: Ints
    own: Ints
    buffers: Ints
    kernels: Ints
    fused: Ints
    places: Ints

    @property
    def waited(self) -> Ints:
        """Return how long no op ran before each [ns], 0 where that is not recorded."""
        waited: Ints = self.host.sum(axis=1)
        return waited


def per_profile(
    make: Callable[Concatenate[Profile, _Given], _Made],
) -> Callable[Concatenate[Profile, _Given], _Made]:
    """Call `make` once with the same profile and equal hashable arguments as long as the profile lives.

    A profile never changes, and neither must what is made of it, nor hold it: arrays are `settled`.
    """
    memory: dict[int, tuple[weakref.ref[Any], dict[Hashable, _Made]]] = {}

    def once(profile: Profile, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        key = id(profile)
        if key not in memory:
            memory[key] = weakref.ref(profile, lambda _: memory.pop(key, None)), {}
        memoized, arguments = memory[key][1], (args, *kwargs.items())
        if arguments not in memoized:
            memoized[arguments] = make(profile, *args, **kwargs)
        return memoized[arguments]

    once.__doc__ = make.__doc__
    return once


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, which cannot be written to any more."""
    array.setflags(write=False)
    return array


@per_profile
def rows(profile: Profile) -> Rows:
    """Return the columns of a profile; OverflowError where a number has more than 64 bits."""
    ops, has_buffers = profile.ops, buffers_known(profile)
    pieces = [_piece(ops[begin : begin + _PIECE], has_buffers) for begin in range(0, max(len(ops), 1), _PIECE)]
    numbers, sizes, *columns = zip(*pieces, strict=True)
    rows_of = (settled(np.concatenate(column, axis=1)) for column in (numbers, sizes))
    return Rows(*chain.from_iterable(rows_of), *(settled(np.concatenate(column)) for column in columns))


def _piece(ops: Sequence[Op], has_buffers: bool) -> tuple[Ints, ...]:
    """Return the columns of some ops as `Rows` has them, but for numbers and sizes, which are rows of one array."""
    # All fields of an op at once: asking for one after the other takes several times as long.
    of: Mapping[str, tuple[Any, ...]] = defaultdict(tuple)
    if ops:
        of = dict(zip(ops[0].__struct_fields__, zip(*map(astuple, ops), strict=True), strict=True))
    reads, writes, host = of["reads"], of["writes"], of["host_ns"]
    if None in host:
        host = tuple(waited or (0, 0) for waited in host)
    numbers = _whole(_chained(of[name] for name in _NUMBERS)).reshape(len(_NUMBERS), -1)
    sizes = _whole(_chained(map(len, of[name]) for name in _TUPLES)).reshape(len(_TUPLES), -1)
    return (
        numbers,
        sizes,
        _whole(_chained(host)).reshape(-1, 2),
        _whole(-1 if line is None else line for line in of["line"]),
        _whole(_chained(of["own_ns"])),
        _whole(_chained(_chained(zip(reads, writes, strict=True))) if has_buffers else ()),
        _whole(_chained(_chained(of["kernels"]))).reshape(-1, 2),
        _whole(_chained(of["constituents"])),
        _whole(_chained(_chained(of["places"]))).reshape(-1, 3),
    )


def buffers_known(profile: Profile) -> bool:
    """Return whether the profile says which ops touch the same buffer: a Chrome trace names none."""
    return profile.imported is None or bool(profile.imported.buffers)


def ranks(column: NDArray[Any]) -> Ints:
    """Return which of the different values of a column each row has, by size and from 0 on."""
    whole_numbers = column.dtype.kind == "i"
    if not whole_numbers or column.min(initial=0) < 0 or column.max(initial=0) > 4 * len(column):
        inverse: Ints = np.unique(column, return_inverse=True)[1]
        return inverse
    used = np.zeros(int(column.max(initial=0)) + 1, np.int64)  # as small as they are, nothing has to be sorted
    used[column] = 1
    ranked: Ints = (np.cumsum(used) - 1)[column]
    return ranked


def _whole(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int64)
