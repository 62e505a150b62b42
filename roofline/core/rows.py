"""The rows of a profile's ops as columns of whole numbers, and what is computed of a profile once.

A loop over a quarter of a million rows takes a second, a column of them some hundredths.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

#: `schema.Profile` and `schema.Op`: that module checks its profiles by their columns.
Profile = Any
Op = Any

Ints = NDArray[np.int64]
#: The first fields of `Rows`; all at once, which looks at each op once.
_NUMBERS = attrgetter("signature", "scope", "phase", "block", "launches", "overlap_ns", "start_ns", "times")
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Rows:
    """Per op, in order: where it points in the profile's tables, its launches, overlap [ns], start [ns] and executions.

    steps, reads, writes: how many own times and buffers it has. own: its own times [ns], op after op.
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
    own: Ints


def per_profile(
    make: Callable[Concatenate[Profile, _Given], _Made],
) -> Callable[Concatenate[Profile, _Given], _Made]:
    """`make`, which is called once with the same profile and equal hashable arguments as long as the profile lives.

    A profile never changes, and neither must what is made of it, nor hold it: arrays are `settled`.
    """
    known: dict[int, tuple[weakref.ref[Any], dict[Hashable, _Made]]] = {}

    def once(profile: Profile, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        key = id(profile)
        if key not in known:
            known[key] = weakref.ref(profile, lambda _: known.pop(key, None)), {}
        made, given = known[key][1], (args, *kwargs.items())
        if given not in made:
            made[given] = make(profile, *args, **kwargs)
        return made[given]

    once.__doc__ = make.__doc__
    return once


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """The array, which cannot be written to any more."""
    array.setflags(write=False)
    return array


@per_profile
def rows(profile: Profile) -> Rows:
    """The columns of a profile; OverflowError where a number has more than 64 bits."""
    ops = profile.ops
    own = list(map(attrgetter("own_ns"), ops))
    numbers = whole(chain.from_iterable(map(_NUMBERS, ops))).reshape(-1, 8).T.copy()
    signature, scope, phase, block, launches, overlap, start, times = settled(numbers)
    return Rows(
        signature=signature,
        scope=scope,
        phase=phase,
        block=block,
        launches=launches,
        overlap=overlap,
        start=start,
        times=times,
        steps=whole(map(len, own)),
        reads=whole(map(len, map(attrgetter("reads"), ops))),
        writes=whole(map(len, map(attrgetter("writes"), ops))),
        own=whole(chain.from_iterable(own)),
    )


def buffers_known(profile: Profile) -> bool:
    """Whether the profile says which ops touch the same buffer: a Chrome trace names none."""
    return profile.imported is None or bool(profile.imported.buffers)


@per_profile
def buffers(profile: Profile) -> Ints:
    """The buffers that each op reads, then those it writes, op after op; OverflowError as above."""
    return whole(chain.from_iterable(chain.from_iterable(map(attrgetter("reads", "writes"), profile.ops))))


def column(ops: Iterable[Op], name: str) -> Iterator[Any]:
    """What all ops hold in a field that is a tuple, one after the other."""
    return chain.from_iterable(map(attrgetter(name), ops))


def ranks(column: NDArray[Any]) -> Ints:
    """Which of the different values of a column each row has, by size and from 0 on."""
    whole_numbers = column.dtype.kind == "i"
    if not whole_numbers or column.min(initial=0) < 0 or column.max(initial=0) > 4 * len(column):
        found: Ints = np.unique(column, return_inverse=True)[1]
        return found
    used = np.zeros(int(column.max(initial=0)) + 1, np.int64)  # as small as they are, nothing has to be sorted
    used[column] = 1
    ranked: Ints = (np.cumsum(used) - 1)[column]
    return ranked


def whole(numbers: Iterable[int]) -> Ints:
    """Whole numbers in an array; OverflowError where one has more than 64 bits."""
    found: Ints = settled(np.fromiter(numbers, np.int64))
    return found
