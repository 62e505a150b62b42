"""From a profile to verdicts: each op's floor, loss and bound, and where every microsecond of the step went.

    wall = sum over ops (floor + loss + uncosted - overlap) + gap

closes by definition; the evidence beside it is the idle time observed in the profiled steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from roofline.analysis import totals
from roofline.analysis.beyond_step import ops_beyond, together_beyond
from roofline.analysis.caches.accesses import accesses, external_bytes
from roofline.analysis.caches.traffic import Cold, cold_traffic
from roofline.analysis.columns import numbered, often
from roofline.analysis.compile_time import compile_share
from roofline.analysis.gap_causes import DISPATCH, most_before_one, seconds_of
from roofline.analysis.gap_parts import HostTime, Step, split_gap
from roofline.analysis.launch_floor import seen_device
from roofline.analysis.op_table import op_table
from roofline.analysis.step_times import trend
from roofline.analysis.threads import threads_of
from roofline.analysis.totals import OpTable, RowSums, Total, WorkTotal
from roofline.core import statistics
from roofline.core.arrays import Array
from roofline.core.device import Device
from roofline.core.executor import one_by_one
from roofline.core.numerals import whole
from roofline.core.rows import Ints, buffers_known, per_profile
from roofline.core.scale import scale_of, taken
from roofline.core.schema import Op, Profile, Signature, slug
from roofline.core.vocabulary import CLASSES, GROUP_OF, GROUPS, LINEAR_ALGEBRA, OpClass
from roofline.errors import InputError
from roofline.repr_mixin import ReprMixin

#: A device that dispatch keeps waiting for this share of the step waits for its host. By choice: well above the
#: latencies of a device that always has work in its queue.
_WAITS = 0.1
#: Model and executed FLOPs that differ by less than this share are the same in the four digits that are shown.
_SAME_WORK = 5e-5
#: A final uniform scale below this marks the profile `inflated`; one from this on is written as 1.
INFLATED, _SCALED = 0.95, 0.9995

#: Calls a function once with the same analysis, as long as that lives: as with a profile, which never changes either.
per_analysis = per_profile


class Products(NamedTuple):
    """Matrix work of a phase [FLOP]: asked for, executed, and the op with the largest difference ("" for none)."""

    model: float
    executed: float
    differing_op: str


class Constituent(NamedTuple):
    """An op that was fused into another: what it would be alone, and its place in the model."""

    signature: Signature
    op_class: OpClass
    phase: str
    scope: str
    block: str


@dataclass(frozen=True, repr=False)
class WorkAnalysis(ReprMixin):
    """The work of a step under the ceilings of a device: of a profile whose ops have no times, all that is known.

    What only times can say is None here, and a number in an `Analysis`. table: its times are NaN. scale: what measured
    times are multiplied by; inflation: how much slower profiled steps were.
    """

    profile: Profile
    device: Device
    table: OpTable
    missing: tuple[str, ...] = ()
    scale: float | None = field(default=None, kw_only=True)
    inflation: float | None = field(default=None, kw_only=True)
    _sums: dict[str, RowSums[Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def wall(self) -> float | None:
        """Median time of a plain step [s]; None where the step was counted and not timed."""
        return None if self.profile.profiled is None else float(np.median(self.profile.wall.steps))

    @cached_property
    def wall_interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the median step [s]: between processes where there are several (`--rounds`)."""
        if self.wall is None:
            return None
        return statistics.median_interval(self.profile.wall.steps, self.profile.wall.processes)

    @property
    def busy(self) -> float | None:
        """Return the time of the step in which at least one op ran [s]."""
        return None

    @property
    def gap(self) -> float | None:
        """Return wall - busy [s]."""
        return None

    @cached_property
    def gap_interval(self) -> tuple[float, float] | None:
        """Return the gap's 95 % interval [s]."""
        return None

    @cached_property
    def idle(self) -> float | None:
        """Idle time observed in the profiled steps [s]."""
        return None

    @cached_property
    def host_time(self) -> HostTime | None:
        """Return the gap, split."""
        return None

    @cached_property
    def gap_causes(self) -> dict[str, float] | None:
        """Return the gap by part [s]."""
        return None

    @property
    def gap_told(self) -> float | None:
        """Return the gap as people are told it [s]."""
        return None

    @property
    def scaled(self) -> bool | None:
        """Return whether op times were scaled down."""
        return None

    @property
    def fills_by_scale(self) -> bool | None:
        """Return whether the scale alone leaves no gap."""
        return None

    @property
    def waits_for_host(self) -> bool | None:
        """Return whether dispatch keeps the device waiting for much of the step."""
        return None

    @property
    def most_per_launch(self) -> float | None:
        """Return what the host takes at most to launch a kernel [s]."""
        return None

    @property
    def above_ceiling(self) -> int | None:
        """Return the ops measured faster than their floor allows."""
        return None

    @property
    def beyond_step(self) -> int | None:
        """Return the ops that took longer in a profiled step than that step."""
        return None

    @property
    def beyond_together(self) -> float | None:
        """Return how many times as long as the profiled steps the ops of one ran."""
        return None

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilisation."""
        return None

    @cached_property
    def quality(self) -> dict[str, float] | None:
        """Return the shares of busy time by the quality of the cost."""
        return None

    @property
    def coverage(self) -> dict[str, float | None] | None:
        """Return the shares of busy time with known FLOPs and with known bytes."""
        return None

    @cached_property
    def total(self) -> WorkTotal:
        """Sum up over all ops."""
        return totals.add_up_work(self.profile, self.table, np.arange(len(self.profile.ops)))

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the recorder's flags."""
        return tuple(dict.fromkeys(_recorded_flags(self.profile)))

    @property
    def has_queue(self) -> bool:
        """Return whether ops wait in a queue of the device while the host dispatches further ones."""
        return self.profile.device.kind != "cpu"

    @property
    def roofs(self) -> dict[str, float | None]:
        """Least times of the step [s].

        serial: these kernels, one after the other; overlap: these kernels, compute and memory perfectly overlapped;
        ideal: no traffic but parameters, optimizer state, inputs and outputs: what fusion could still give. None where
        it is not known, as all are where no op has a floor. Of ops of unknown work they hold nothing.
        """
        if not self.table.floor_high.sum():
            return {"serial": None, "overlap": None, "ideal": None}
        overlap, ideal = max(float(np.nansum(self.table.compute)), float(np.nansum(self.table.memory))), self._ideal()
        # These kernels are one way to do it: where the caches keep what the ideal would fetch, they set the mark.
        return {
            "serial": float(self.table.floor.sum()),
            "overlap": overlap,
            "ideal": None if ideal is None else min(ideal, overlap),
        }

    def _ideal(self) -> float | None:
        bandwidth = self.device.bandwidth
        if self.peak is None or bandwidth is None or not buffers_known(self.profile):
            return None
        return max(self.total.model_flops / self.peak, external_bytes(accesses(self.profile)) / bandwidth)

    @cached_property
    def precision(self) -> str | None:
        """Return the arithmetic in which most executed matrix FLOPs are done, or None."""
        work: dict[str, float] = {}
        for number, many in self._often.items():
            signature = self.profile.signatures[number]
            if signature.precision and signature.precision.arithmetic:
                name = signature.precision.arithmetic
                work[name] = work.get(name, 0.0) + many * (signature.cost.flops or 0.0)
        return max(work, key=lambda name: work[name]) if work else None

    @cached_property
    def _often(self) -> dict[int, int]:
        """Count the ops of each signature, in the order of their first op."""
        signature = self.table.columns.signature
        return {int(signature[row]): many for row, many in often(signature)}

    @property
    def peak(self) -> float | None:
        """Return the matrix peak of that arithmetic [FLOP/s]."""
        return self.device.rate(f"matrix.{self.precision}") if self.precision else None

    def op_class(self, op: Op) -> OpClass:
        """Return the class of an op: its phase decides `optimizer`, its signature everything else."""
        return self._class(op.signature, op.phase)

    def _class(self, signature: int, phase: int) -> OpClass:
        return "optimizer" if self.profile.phases[phase] == "optimizer" else self.profile.signatures[signature].op_class

    def constituents(self, op: Op) -> tuple[Constituent, ...]:
        """List the ops that were fused into an op; nothing for an op that stands for itself."""
        profile = self.profile
        places = op.places or ((op.scope, op.phase, op.block),) * len(op.constituents)
        return tuple(
            Constituent(
                signature=profile.signatures[number],
                op_class=self._class(number, phase),
                phase=profile.phases[phase],
                scope=profile.scopes[scope],
                block=profile.blocks[block],
            )
            for number, (scope, phase, block) in zip(op.constituents, places, strict=True)
        )

    def fused(self, key: str) -> dict[str, tuple[str, ...]]:
        """Name what was fused into the ops of each row of `by(key)`, each once; rows of unfused ops are left out."""
        names: dict[str, dict[str, None]] = {}
        for op in self.profile.ops:
            if op.constituents:
                row = names.setdefault(_LABELS[key].label(self, op), {})
                row |= dict.fromkeys(self.profile.signatures[number].name for number in op.constituents)
        return {label: tuple(row) for label, row in names.items()}

    def by(self, key: str) -> RowSums[WorkTotal]:
        """Sum up by class, group, phase, block, scope, op (one row per signature and phase), kernel or line of source.

        The rows with most work stand first.

        Classes and groups keep their order.
        """
        if key not in self._sums:
            add_up = partial(totals.add_up_work, self.profile, self.table)
            self._sums[key] = RowSums(self._rows(key), add_up, None if key in _ORDERS else self._flops)
        return self._sums[key]

    @cached_property
    def _flops(self) -> Array:
        """Return the known FLOPs of each op."""
        costs = [signature.cost for signature in self.profile.signatures]
        flops = np.asarray([(cost.flops or 0.0) + (cost.vector_flops or 0.0) for cost in costs], np.float64)
        return flops[self.table.columns.signature]

    def _rows(self, key: str) -> dict[str, Ints]:
        """Return the numbers of the ops of each row of `by(key)`."""
        order, of, (number, first) = _ORDERS.get(key), _LABELS[key], self._alike(key)
        labels = [of.label(self, self.profile.ops[row]) for row in first.tolist()]
        present = dict.fromkeys(labels[kind] for kind in np.argsort(first).tolist())
        distinct = [name for name in order if name in present] if order else list(present)
        code = {name: code for code, name in enumerate(distinct)}
        codes = np.asarray([code[label] for label in labels], np.int64)[number]
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1]
        rows = np.split(np.argsort(codes, kind="stable"), ends) if distinct else []
        return dict(zip(distinct, rows, strict=True))

    def labels(self, key: str) -> list[str]:
        """Return the row of `by(key)` that each op belongs to; equal ops are asked once."""
        number, first = self._alike(key)
        names = [_LABELS[key].label(self, self.profile.ops[row]) for row in first.tolist()]
        return [names[kind] for kind in number.tolist()]

    def _alike(self, key: str) -> tuple[Ints, Ints]:
        """Number the ops by what their label is made of; and of each number the first op."""
        parts = [getattr(self.table.columns, name) for name in _LABELS[key].of]
        if key == "kernel":
            sets: dict[tuple[tuple[int, int], ...], int] = {}
            parts.append(np.asarray([sets.setdefault(op.kernels, len(sets)) for op in self.profile.ops], np.int64))
        return numbered(*parts)

    @cached_property
    def products(self) -> dict[str, Products]:
        """Sum up what contractions asked for and executed, by phase; phases without any are left out."""
        by_phase: dict[str, Products] = {}
        differences: dict[str, dict[str, float]] = {}
        of = self.table.columns
        for row, many in often(of.signature, of.phase):
            signature, phase = self.profile.signatures[of.signature[row]], self.profile.phases[of.phase[row]]
            model, executed = signature.cost.model_flops, signature.cost.flops
            if model is None or executed is None or not (model or executed) or signature.kind == LINEAR_ALGEBRA:
                continue
            so_far = by_phase.get(phase, Products(0.0, 0.0, ""))
            by_phase[phase] = Products(so_far.model + many * model, so_far.executed + many * executed, "")
            by_name = differences.setdefault(phase, {})
            by_name[signature.name] = by_name.get(signature.name, 0.0) + many * (executed - model)
        for phase, by_name in differences.items():
            largest = max(by_name, key=lambda name: abs(by_name[name]))
            if abs(by_name[largest]) > _SAME_WORK * by_phase[phase].executed:
                by_phase[phase] = Products(by_phase[phase].model, by_phase[phase].executed, largest)
        return by_phase


@dataclass(frozen=True, repr=False)
class Analysis(WorkAnalysis):
    """A profile under the ceilings of a device, as `analyze` makes it of one whose ops have times.

    It prints as its verdict and the table of groups, and shows itself in a notebook. `by(key)` gives sums over ops
    [s, FLOP, byte]: wall = sum over ops (floor + loss + uncosted - overlap) + gap.

    >>> analysis = roofline.analyze(profile)
    >>> analysis.wall, analysis.busy, analysis.gap
    """

    scale: float = field(kw_only=True)
    inflation: float | None = field(kw_only=True)

    @cached_property
    def wall(self) -> float:
        """Median time of a plain step of the process that was also profiled [s]."""
        return float(np.median(self.profile.wall.steps))

    @cached_property
    def total(self) -> Total:
        """Sum up over all ops."""
        return totals.add_up(self.profile, self.device, self.table, np.arange(len(self.profile.ops)))

    @property
    def busy(self) -> float:
        """Return the time of the step in which at least one op ran [s]."""
        return self.total.seconds

    @property
    def gap(self) -> float:
        """Return wall - busy [s]; on a CPU it is called host time."""
        return self.wall - self.busy

    @property
    def gap_told(self) -> float | None:
        """Return the gap as people are told it [s], no rounding below 0; None where scaled ops fill the step."""
        return None if self.fills_by_scale else max(0.0, self.gap)

    @cached_property
    def gap_interval(self) -> tuple[float, float] | None:
        """Return the gap's 95 % bootstrap interval over plain and profiled steps [s]; None where scaled ops fill it."""
        if self.profile.profiled is None or not self.profile.ops or self.fills_by_scale:
            return None
        busy = self.table.columns.steps.sum(axis=0) - self.table.columns.overlap.sum()
        return statistics.gap_interval(self.profile.wall.steps, busy, taken(self.profile, self.profile.profiled))

    @property
    def scaled(self) -> bool:
        """Return whether op times were scaled down by as much as is seen in three digits."""
        return self.scale < _SCALED

    @property
    def fills_by_scale(self) -> bool:
        """Return whether the scale alone leaves no gap, as of ops that took longer than a plain step on a GPU."""
        return self.scaled and self.has_queue and self.idle is not None

    @cached_property
    def idle(self) -> float | None:
        """Idle time observed in the profiled steps, mean [s]: as measured, never scaled, or it would prove nothing."""
        profiled = self.profile.profiled
        return float(np.mean(profiled.idle)) if profiled and profiled.idle else None

    @cached_property
    def host_time(self) -> HostTime:
        """Return the gap, split into dispatching each op and measured parts."""
        return split_gap(Step(self.profile, self.device, self.wall, self.gap, self.idle, self.has_queue))

    @cached_property
    def gap_causes(self) -> dict[str, float] | None:
        """Return the gap by part [s], dispatching all ops first; None where profiled steps did not see idle time."""
        if self.idle is None:
            return None
        return {DISPATCH: float(self.host_time.dispatch.sum()), **self.host_time.parts}

    @property
    def waits_for_host(self) -> bool:
        """Return whether dispatch keeps the device waiting for much of the step."""
        return self.has_queue and seconds_of(DISPATCH, self.gap_causes) >= _WAITS * self.wall

    @property
    def most_per_launch(self) -> float | None:
        """Return what the host takes at most to launch a kernel [s] where the device waits for it: wall over launches.

        None elsewhere, where it is no bound worth telling: the device does not wait, most of its wait is one hole, or a
        compiled program is not launched kernel by kernel.
        """
        is_bound = self.waits_for_host and one_by_one(self.profile) and most_before_one(self.profile, self.idle) is None
        return self.wall / self.total.kernels if is_bound and self.total.kernels else None

    @property
    def above_ceiling(self) -> int:
        """Return the ops measured faster than their floor allows: each is a defect of count or ceiling."""
        return int(self.table.above.sum())

    @property
    def beyond_step(self) -> int:
        """Return the ops that took longer in a profiled step than that step: their times are not those of the step."""
        return ops_beyond(self.profile)

    @property
    def beyond_together(self) -> float | None:
        """Return how many times as long as the profiled steps their ops ran, by their shares; None where not longer."""
        return together_beyond(self.profile)

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilisation: model FLOPs / (wall x matrix peak)."""
        return self.total.model_flops / (self.wall * self.peak) if self.peak and self.wall else None

    def by(self, key: str) -> RowSums[Total]:
        """Sum up by class, group, phase, block, scope, op (one row per signature and phase) or kernel, by most time.

        Classes and groups keep their order.
        """
        if key not in self._sums:
            add_up = partial(totals.add_up, self.profile, self.device, self.table)
            self._sums[key] = RowSums(self._rows(key), add_up, None if key in _ORDERS else self.table.share)
        return self._sums[key]

    @cached_property
    def quality(self) -> dict[str, float]:
        """Return the shares of busy time by the quality of the cost: exact, assumed, unknown."""
        qualities = [signature.cost.quality for signature in self.profile.signatures]
        return {
            name: _busy_share(self, [quality == name for quality in qualities]) or 0.0
            for name in ("exact", "assumed", "unknown")
        }

    @property
    def coverage(self) -> dict[str, float | None]:
        """Return the shares of busy time with known FLOPs and with known bytes, and of events joined to a record."""
        joined = self.profile.profiled.joined if self.profile.profiled else None
        costs = [signature.cost for signature in self.profile.signatures]
        return {
            "flops": _busy_share(self, [cost.flops_known for cost in costs]),
            "bytes": _busy_share(self, [cost.bytes is not None for cost in costs]),
            "time": joined,
        }

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Return the recorder's flags and those that follow from the numbers."""
        flags = list(_recorded_flags(self.profile))
        if self.scale < INFLATED:
            flags.append("inflated")
        if len(self.profile.wall.steps) < 10:
            flags.append("few-traced-steps" if self.profile.imported else "few-steps")
        if change := trend(self.profile.wall):
            flags.append("growing" if change.change > 0 else "shrinking")
        if (threads := threads_of(self.profile)) and threads.too_many:
            flags.append(f"oversubscribed: {threads.number} threads on {threads.cores} cores")
        if compile_share(self.profile):
            flags.append("compiling")
        if self.above_ceiling:
            flags.append("above-ceiling")
        if self.beyond_step or self.beyond_together is not None:
            flags.append("beyond-step")
        return tuple(dict.fromkeys(flags))


def _busy_share(analysis: Analysis, chosen: Sequence[bool]) -> float | None:
    """Return the share of busy time of the ops of chosen signatures: exactly 0 of none, 1 of all; None of no time.

    chosen: of each signature. An instant of two ops counts half for each.
    """
    spent = np.bincount(analysis.table.columns.signature, analysis.table.share, len(chosen))
    busy = math.fsum(spent)
    return math.fsum(spent[np.asarray(chosen, bool)]) / busy if busy else None


def _recorded_flags(profile: Profile) -> Iterator[str]:
    """Yield the recorder's flags, "throttled" only where a sample of the clock was below the card's highest.

    A driver may name a reason to hold the clock back, as its power cap, and not do so.
    """
    number, _, unit = profile.device.conditions.get("highest clock", "").partition(" ")
    highest, least = whole(number), profile.conditions.get("sm_clock_least")
    at_highest = least is not None and unit == "MHz" and highest is not None and least >= highest * 1e6
    for flag in profile.flags:
        if not (at_highest and slug(flag) == "throttled"):
            yield flag


def _op_label(analysis: WorkAnalysis, op: Op) -> str:
    signature = analysis.profile.signatures[op.signature]
    return f"{signature.name} {signature.shapes}".strip()


def _kernel_label(analysis: WorkAnalysis, op: Op) -> str:
    if op.kernels:
        longest = max(op.kernels, key=lambda pair: pair[1])[0]
        return analysis.profile.kernels[longest]
    return analysis.profile.signatures[op.signature].name


#: The row of `by("source")` of ops whose line is not known.
NO_LINE = "(line not known)"


class _Label(NamedTuple):
    """The names of a table's rows, and the columns of the ops that they follow from."""

    label: Callable[[WorkAnalysis, Op], str]
    of: tuple[str, ...]


_LABELS: dict[str, _Label] = {
    "class": _Label(lambda analysis, op: analysis.op_class(op), ("signature", "phase")),
    "group": _Label(lambda analysis, op: GROUP_OF[analysis.op_class(op)], ("signature", "phase")),
    "phase": _Label(lambda analysis, op: analysis.profile.phases[op.phase], ("phase",)),
    "block": _Label(lambda analysis, op: analysis.profile.blocks[op.block], ("block",)),
    "scope": _Label(lambda analysis, op: analysis.profile.scopes[op.scope], ("scope",)),
    "op": _Label(_op_label, ("signature",)),
    "kernel": _Label(_kernel_label, ("signature",)),  # and its kernels, which are no column
    "source": _Label(lambda analysis, op: analysis.profile.source_line(op) or NO_LINE, ("line",)),
}

#: The keys whose rows have an order of their own.
_ORDERS: dict[str, tuple[str, ...]] = {"class": CLASSES, "group": GROUPS}
#: What `Analysis.by` takes.
KEYS = tuple(_LABELS)


def analyze(profile: Profile, device: Device | None = None, cold: Cold | None = None) -> WorkAnalysis:
    """Put the ops of a profile under the ceilings of `device` (default: those it was measured with).

    cold: which bytes are in no cache, where that was decided elsewhere; by default the history of the buffers says it.

    Returns an Analysis: times in seconds, work in FLOP, traffic in byte, all per step; of a profile whose ops have no
    times (`roofline profile --count-only`) a WorkAnalysis, whose times are None. Raises InputError for a profile
    without a plain step.

    >>> roofline.analyze(profile).by("group")["matmul"].flops
    """
    device = seen_device(profile) if device is None else device
    scale, inflation = scale_of(profile)
    table, missing = op_table(profile, device, cold_traffic(profile, device) if cold is None else cold, scale)
    if profile.has_times:
        return Analysis(profile, device, table, missing, scale=scale, inflation=inflation)
    no_times = np.full(len(profile.ops), np.nan)
    table = replace(table, own=no_times, share=no_times, uncosted=no_times, floor_reach=no_times, loss=no_times)
    return WorkAnalysis(profile, device, table, missing)


def analyze_timed(profile: Profile, device: Device | None = None, cold: Cold | None = None) -> Analysis:
    """Analyse a profile whose ops must have times. Raises InputError for another one."""
    return timed(analyze(profile, device, cold))


def timed(analysis: WorkAnalysis, name: str = "The profile") -> Analysis:
    """Return an analysis whose ops have times. Raises InputError where they have none; name: what it is called."""
    if isinstance(analysis, Analysis):
        return analysis
    raise InputError(f"{name} {why_untimed(analysis.profile)}.")


def why_untimed(profile: Profile) -> str:
    """Why the ops of a profile have no times, and the cure: "was counted and not timed: measure it again ..."."""
    if profile.profiled is None:
        return "was counted and not timed: measure it again without --count-only"
    return "holds no profiled step, so its ops have no times: measure it again"
