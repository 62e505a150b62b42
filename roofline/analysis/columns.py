"""The rows of a profile's ops as columns: a loop over a quarter of a million of them takes a second, a column none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofline.core.schema import Op, Profile

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Per op, in order: where it points in the profile's tables, how often it launched the device, and its times [s].

    own: mean over the kept steps, 0 where there are none; overlap: that it ran beside others. fused: of constituents.
    """

    signature: Ints
    scope: Ints
    phase: Ints
    block: Ints
    launches: Ints
    own: NDArray[np.float64]
    overlap: NDArray[np.float64]
    fused: NDArray[np.bool_]


def columns(profile: Profile) -> Columns:
    """The columns of a profile."""
    ops = profile.ops

    def whole(of: Callable[[Op], int]) -> Ints:
        return np.fromiter(map(of, ops), np.int64, len(ops))

    times = own_times(profile)
    return Columns(
        signature=whole(lambda op: op.signature),
        scope=whole(lambda op: op.scope),
        phase=whole(lambda op: op.phase),
        block=whole(lambda op: op.block),
        launches=whole(lambda op: op.launches),
        own=times.mean(axis=1) if times.shape[1] else np.zeros(len(ops)),
        overlap=np.multiply(whole(lambda op: op.overlap_ns), 1e-9, dtype=np.float64),
        fused=np.fromiter((bool(op.constituents) for op in ops), bool, len(ops)),
    )


def own_times(profile: Profile) -> NDArray[np.float64]:
    """The own time of each op in each kept profiled step [s], shape (ops, steps)."""
    steps = len(profile.ops[0].own_ns) if profile.ops else 0
    flat = np.fromiter((time for op in profile.ops for time in op.own_ns), np.float64)
    return flat.reshape(len(profile.ops), steps) * 1e-9 if steps else np.zeros((len(profile.ops), 0))
