"""Sums over the ops of a step: the rows of every table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from roofline.analysis.caches.counted import counted_on, counters_on
from roofline.analysis.caches.traffic import RangeReason
from roofline.analysis.columns import Columns
from roofline.analysis.floors import ATTAINED
from roofline.core.arrays import Array
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.core.vocabulary import BOUNDS, Bound

AnyTotal = TypeVar("AnyTotal", bound="WorkTotal")
_Sum = TypeVar("_Sum", bound="WorkTotal", covariant=True)


@dataclass(frozen=True, slots=True)
class OpTable:
    """Per op of the profile, in order: times [s] and verdicts. Bounds index `vocabulary.BOUNDS`.

    own, share, uncosted, floor_reach, loss: NaN of ops that were counted and not timed.

    floor_high: the floor if nothing came from a cache, where it is not known what the caches held, and if a launch
    takes the most that it may; else the floor. floor_reach: the same as far as the op's own time allows it: what took
    less did not come from main memory. bound_high: the roof above at the upper end.

    cold to cold_high: the bytes that no cache held; cold_reason: why these are a range.
    """

    own: Array
    share: Array
    uncosted: Array
    floor: Array
    floor_high: Array
    floor_reach: Array
    loss: Array
    bound: NDArray[np.int64]
    bound_high: NDArray[np.int64]
    near_ridge: NDArray[np.bool_]
    above: NDArray[np.bool_]
    exempt: NDArray[np.bool_]
    compute: Array
    memory: Array
    launch: Array
    cold: Array
    cold_high: Array
    cold_reason: RangeReason | None
    ceiling: tuple[str, ...]
    columns: Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTotal:
    """Sums of the work of some ops, per step. Known parts only; costed: how many of the ops have known work."""

    ops: int
    kernels: int
    model_flops: float
    flops: float
    useful_flops: float
    vector_flops: float
    functions: Mapping[str, float]
    int_ops: float
    bytes_read: float
    bytes_written: float
    costed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(WorkTotal):
    """Sums of ops that were timed. `unknown_*` [s] is the own time of what a sum had to skip.

    floor to floor_reach: the range that the floor lies in, as far as the times of the ops allow it.
    """

    seconds: float
    own_seconds: float
    overlap: float
    uncosted: float
    floor: float
    floor_high: float
    floor_reach: float
    loss: float
    divided_seconds: float
    bounds: Mapping[Bound, float]
    bounds_floor: Mapping[Bound, float]
    unattained: Mapping[Bound, float]
    near_ridge: float
    unknown_flops: float
    unknown_bytes: float
    counted: int = 0
    uncounted: int = 0
    counted_read: float = 0.0
    counted_written: float = 0.0

    @property
    def attained(self) -> float | None:
        """Return floor / own time of the costed ops; None where nothing is costed."""
        costed = self.own_seconds - self.uncosted
        return self.floor / costed if costed > 0 else None

    @property
    def attained_high(self) -> float | None:
        """Return such a share if no cache held what the ops read, as far as their own times allow it."""
        costed = self.own_seconds - self.uncosted
        return self.floor_reach / costed if costed > 0 else None

    @property
    def mostly_costed(self) -> bool:
        """Return whether half of the time or more has a floor: less of it says nothing of all of it."""
        return 2 * self.uncosted <= self.own_seconds

    @property
    def bound(self) -> Bound:
        """Return the bound that holds most of the time."""
        return max(BOUNDS, key=lambda bound: self.bounds[bound])

    @property
    def flop_rate(self) -> float | None:
        """Matrix and vector FLOP per second of own time [FLOP/s]."""
        return (self.flops + self.vector_flops) / self.own_seconds if self.own_seconds > 0 else None


class RowSums(Mapping[str, _Sum]):
    """Hold the sums of ops by the name of their row, each added up when it is first asked for.

    A table of a few rows asks for few of hundreds of thousands.
    """

    def __init__(
        self, rows: Mapping[str, NDArray[np.int64]], add_up: Callable[[NDArray[np.int64]], _Sum], size: Array | None
    ) -> None:
        """rows: numbers of the ops of each row. size: of each op, by which the rows are sorted, the largest first."""
        if size is not None:
            rows = dict(sorted(rows.items(), key=lambda row: -float(size[row[1]].sum())))
        self._rows, self._add_up = rows, add_up
        self._sums: dict[str, _Sum] = {}

    def __getitem__(self, name: str) -> _Sum:
        """Add up the ops of a row."""
        if name not in self._sums:
            self._sums[name] = self._add_up(self._rows[name])
        return self._sums[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in their order."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def together(self, names: Iterable[str]) -> _Sum:
        """Add up the ops of several rows; at least one."""
        return self._add_up(np.sort(np.concatenate([self._rows[name] for name in names])))


def _fields(total: WorkTotal) -> dict[str, Any]:
    return {field.name: getattr(total, field.name) for field in fields(total)}


def add_up_work(profile: Profile, table: OpTable, rows: NDArray[np.int64]) -> WorkTotal:
    """Add up the work of the ops at `rows` of the profile."""
    numbers, times = _often(table.columns.signature[rows], len(profile.signatures))
    costs = [
        (profile.signatures[number].cost, many) for number, many in zip(numbers.tolist(), times.tolist(), strict=True)
    ]
    functions: dict[str, float] = {}
    for cost, many in costs:
        for name, number in (cost.functions or {}).items():
            functions[name] = functions.get(name, 0.0) + many * number

    def known(name: str) -> float:
        return float(sum(many * (getattr(cost, name) or 0.0) for cost, many in costs))

    return WorkTotal(
        ops=len(rows),
        kernels=int(table.columns.launches[rows].sum()),
        model_flops=known("model_flops"),
        flops=known("flops"),
        useful_flops=known("useful_flops"),
        vector_flops=known("vector_flops"),
        functions=functions,
        int_ops=known("int_ops"),
        bytes_read=known("bytes_read"),
        bytes_written=known("bytes_written"),
        costed=sum(many for cost, many in costs if cost.flops_known and cost.bytes is not None),
    )


def add_up(profile: Profile, device: Device, table: OpTable, rows: NDArray[np.int64]) -> Total:
    """Add up the work and the time of the ops at `rows` of the profile, whose table is under `device`."""
    own_seconds, share, bound = table.own[rows], table.share[rows], table.bound[rows]
    under = (table.floor[rows] < ATTAINED * own_seconds) & (table.uncosted[rows] == 0)
    signature = table.columns.signature[rows]
    numbers, _ = _often(signature, len(profile.signatures))

    def per_bound(weights: Array) -> dict[Bound, float]:
        sums = np.bincount(bound, weights=weights, minlength=len(BOUNDS))
        return {name: float(sums[code]) for code, name in enumerate(BOUNDS)}

    def own_where(chosen: Callable[[Cost], bool]) -> float:
        """Sum the own time of ops whose cost is chosen."""
        is_chosen = np.asarray([chosen(profile.signatures[number].cost) for number in numbers.tolist()], bool)
        return float(own_seconds[is_chosen[np.searchsorted(numbers, signature)]].sum()) if len(rows) else 0.0

    return Total(
        **_fields(add_up_work(profile, table, rows)),
        seconds=float(share.sum()),
        own_seconds=float(own_seconds.sum()),
        overlap=float((own_seconds - share).sum()),
        uncosted=float(table.uncosted[rows].sum()),
        floor=float(table.floor[rows].sum()),
        floor_high=float(table.floor_high[rows].sum()),
        floor_reach=float(table.floor_reach[rows].sum()),
        loss=float(table.loss[rows].sum()),
        divided_seconds=float(own_seconds[table.columns.fused[rows]].sum()),
        bounds=per_bound(share),
        bounds_floor=per_bound(table.floor[rows]),
        unattained=per_bound(np.where(under, share, 0.0)),
        near_ridge=float(share[table.near_ridge[rows]].sum()),
        unknown_flops=own_where(lambda cost: not cost.flops_known),
        unknown_bytes=own_where(lambda cost: cost.bytes is None),
        **_by_counters(profile, device, table.columns.launches, rows),
    )


def _by_counters(
    profile: Profile, device: Device, launches: NDArray[np.int64], rows: NDArray[np.int64]
) -> dict[str, Any]:
    """Return what hardware counters say of the ops at `rows`, as fields of `Total`."""
    if counters_on(profile, device) is None:
        return {}
    by_counters = counted_on(profile, device)
    is_counted = by_counters.known[rows]
    return {
        "counted": int(is_counted.sum()),
        "uncounted": int((~is_counted & (launches[rows] > 0)).sum()),
        "counted_read": float(np.nansum(by_counters.read[rows])),
        "counted_written": float(np.nansum(by_counters.written[rows])),
    }


def _often(numbers: NDArray[np.int64], kinds: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of so many kinds are there, ascending, and how often: in the time of the fewer, kinds or numbers."""
    if len(numbers) < kinds:
        return np.unique(numbers, return_counts=True)
    times = np.bincount(numbers, minlength=kinds)
    present = np.flatnonzero(times)
    return present, times[present]
