"""Compare the ops of ranks: the time of those that all run as often, with the same arguments, and of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roofline.core.arrays import Array
from roofline.core.rows import rows as columns
from roofline.core.schema import Profile
from roofline.units import NANOSECOND

#: An op by its name, arguments and type.
_Op = tuple[str, str, str | None]


class Work(NamedTuple):
    """The own time of ops per rank and step, without collectives [s]: of those all ranks run alike, and of others."""

    alike: Array
    other: Array


def compare_work(profiles: Sequence[Profile]) -> Work:
    """Sum the times of ops that each rank executes as often as all others, and of the rest."""
    tables = [_times(profile) for profile in profiles]
    first = tables[0] if tables else {}
    alike = {op for op in first if len({table.get(op, (0.0, 0.0))[0] for table in tables}) == 1}
    sums = [[0.0, 0.0] for _ in tables]
    for table, pair in zip(tables, sums, strict=True):
        for op, (_, seconds) in table.items():
            pair[op not in alike] += seconds
    return Work(*np.asarray(sums, np.float64).reshape(-1, 2).T)


def _times(profile: Profile) -> dict[_Op, tuple[float, float]]:
    """Return how often each op runs, and its own time per step [s], without collectives."""
    of = columns(profile)
    own = of.own.reshape(len(profile.ops), -1).mean(1) * NANOSECOND if len(profile.ops) else np.zeros(0)
    counts, times = (np.bincount(of.signature, by, len(profile.signatures)) for by in (of.times, own))
    table: dict[_Op, tuple[float, float]] = {}
    for signature, count, seconds in zip(profile.signatures, counts.tolist(), times.tolist(), strict=True):
        if signature.op_class != "communication":
            op = (signature.name, signature.shapes, signature.dtype)
            before = table.get(op, (0.0, 0.0))
            table[op] = (before[0] + count, before[1] + seconds)
    return table
