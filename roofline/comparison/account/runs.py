"""Two runs with their ops matched and their gaps split: what the rows of an account are made of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from roofline.analysis.bootstrap import Drawn, Interval, interval
from roofline.analysis.gap_parts import HostTime
from roofline.analysis.places import without_number
from roofline.comparison.account.row import NAMESPACE, Amount, KernelChange, Kind, OpChange, Row
from roofline.comparison.matching import Matching, match
from roofline.comparison.merged_products import one_to_one
from roofline.comparison.segments import executions
from roofline.comparison.terms import Comparison, Side
from roofline.core.arrays import Array, Rows
from roofline.core.executor import dispatched_alike
from roofline.core.schema import Signature
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import CLASSES, FLOATING

#: What a compiler appends to the name of a kernel to tell it from its others.
_SERIAL = re.compile(r"(?<=[a-z])_\d+$")
#: What XLA calls a fused kernel after that writes in another layout, whatever else it does.
_LAYOUT = frozenset(("copy", "transpose"))
#: Fields of a signature that hold arguments, and what people call them.
_ARGUMENTS = {"shapes": "shapes", "dtype": "types", "layout": "layouts"}


@dataclass(frozen=True)
class Run:
    """A run of a comparison: its segments and its gap."""

    side: Side

    @property
    def host(self) -> HostTime:
        """Return the gap, split."""
        return self.side.analysis.host_time

    @property
    def is_seen(self) -> bool:
        """Return whether the profiler saw ops of the run; those of some threads it does not see."""
        return self.side.analysis.busy > 0 or not len(self.side.segments)

    @cached_property
    def dispatch(self) -> Array:
        """Return the time that dispatching each segment takes [s]."""
        return self.host.dispatch[self.side.segments.op] * self.side.segments.weight

    @cached_property
    def seconds(self) -> Array:
        """Return the time of each segment with its dispatching [s]."""
        return np.asarray(self.side.seconds + self.dispatch)

    @cached_property
    def names(self) -> tuple[tuple[str, str | None], ...]:
        """Return name and type of the op of each segment; of a part of a fused kernel those of the kernel, which runs.

        Its own type where it computes in another floating one: double precision in a kernel of others.
        """
        segments = self.side.segments
        rows = zip(segments.signature, segments.op_signature, segments.fused.tolist(), strict=True)
        return tuple(
            (_SERIAL.sub("", kernel.name), _type(part if part.dtype in {*FLOATING} - {kernel.dtype} else kernel))
            if fused
            else (part.name, _type(part))
            for part, kernel, fused in rows
        )

    @cached_property
    def executions(self) -> Array:
        """Return how often a step executes the op of each segment."""
        segments = self.side.segments
        return np.asarray(executions(self.side.analysis.profile)[segments.op] / segments.times)

    def kernels_of(self, row: int) -> tuple[str, ...]:
        """Name the kernels of the op of a segment, without what numbers them, most time first."""
        profile = self.side.analysis.profile
        kernels = profile.ops[int(self.side.segments.op[row])].kernels
        return tuple(dict.fromkeys(without_number(profile.kernels[number]) for number, _ in kernels))

    def amount(self, rows: Rows, dispatch: float) -> Amount:
        """Sum the work of some segments and of dispatching them [s]."""
        segments = self.side.segments
        own_time, floor = float(self.side.own[rows].sum()), float(segments.floor[rows].sum())
        moved = segments.bytes[rows]
        times, inverse = np.unique(segments.times[rows], return_inverse=True)
        return Amount(
            launches=float(segments.launches[rows].sum()),
            bytes=None if np.isnan(moved).any() else float(moved.sum()),
            seconds=float(self.side.seconds[rows].sum()) + dispatch,
            dispatch=dispatch,
            of_roof=floor / own_time if own_time > 0 and floor > 0 and not segments.uncosted[rows].any() else None,
            times=int(times[np.bincount(inverse, self.seconds[rows]).argmax()]) if len(rows) else 1,
        )

    def drawn(self, rows: Rows, gap: float) -> Array:
        """Draw the time of some segments and of a part of the gap [s]."""
        busy, resamples, total_gap = self.side.drawn(rows), self.side.resamples, self.side.analysis.gap
        return np.asarray(busy + (resamples.gap * (gap / total_gap) if total_gap > 0 else gap))


@dataclass(slots=True)
class _Sum:
    """The ops of one name and type in one run: their time [s], executions by op, time by class [s] and parts.

    whole_executions: by op, of all its parts; held: how many executions of whole ops they are as much as.
    """

    seconds: float = 0.0
    held: float = 0.0
    executions: dict[int, float] = field(default_factory=dict)
    whole_executions: dict[int, float] = field(default_factory=dict)
    classes: dict[int, float] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)

    def add(self, run: Run, row: int, seconds: float) -> None:
        """Add a segment."""
        segments = run.side.segments
        op, op_class, executed = int(segments.op[row]), int(segments.op_class[row]), float(run.executions[row])
        self.seconds += seconds
        self.executions[op] = self.executions.get(op, 0.0) + executed
        self.whole_executions[op] = executed * float(segments.times[row])
        self.held += self.whole_executions[op] * float(segments.weight[row])
        self.classes[op_class] = self.classes.get(op_class, 0.0) + seconds
        if segments.fused[row]:
            self.parts |= {segments.signature[row].name} - {*CLASSES, segments.op_signature[row].name}

    def count(self, *, once: bool) -> float:
        """Return how often the ops run; once: an op that is there in parts as one."""
        return sum(min(parts, self.whole_executions[op]) if once else parts for op, parts in self.executions.items())

    @property
    def is_part(self) -> bool:
        """Return whether these are parts of ops whose other parts are elsewhere."""
        return self.held < self.count(once=True) * (1 - ROUNDING)


def _classes(name: str, run_sums: Iterable[_Sum]) -> tuple[str, ...]:
    """List the classes of ops of one name, most time first; movement first where the name of a kernel says so."""
    classes = ["movement"] if _LAYOUT.intersection(name.split("_")) else []
    for run_sum in run_sums:
        classes += (CLASSES[number] for number, _ in sorted(run_sum.classes.items(), key=lambda item: -item[1]))
    return tuple(dict.fromkeys(classes))


@dataclass(frozen=True, slots=True)
class Runs:
    """Both runs and what was matched."""

    a: Run
    b: Run
    matching: Matching

    def interval(self, a: Rows, b: Rows, gap_a: float, gap_b: float) -> Interval | None:
        """Return the 95 % interval of the time of some segments and parts of the gaps [s], of A less B."""
        drawn = self.a.drawn(a, gap_a) - self.b.drawn(b, gap_b)
        kind: Drawn = "gap" if gap_a or gap_b else "ops"
        return interval(drawn, self.a.side.resamples, self.b.side.resamples, kind=kind)

    def row(self, kind: Kind, a: Rows, b: Rows, dispatch: tuple[float, float] = (0.0, 0.0)) -> Row:
        """Make a row of some segments and of dispatching them in either run [s]."""
        amounts = self.a.amount(a, dispatch[0]), self.b.amount(b, dispatch[1])
        return Row(
            kind=kind,
            seconds=(amounts[0].seconds or 0.0) - (amounts[1].seconds or 0.0),
            ci95=self.interval(a, b, *dispatch),
            a=amounts[0],
            b=amounts[1],
            ops=self._changes(a, b, dispatch=kind == "only"),
        )

    def _changes(self, a: Rows, b: Rows, *, dispatch: bool) -> tuple[OpChange, ...]:
        """List the ops of some segments by name without namespace and type, those with most time in either run first.

        dispatch: whether they are of a change: their seconds hold what dispatching them takes, and an op counts once
        however many parts of it are there. Else each part has a partner.
        """
        sums: dict[tuple[str, str | None], tuple[_Sum, _Sum]] = {}
        names: dict[tuple[str, str | None], str] = {}
        for side, (run, rows) in enumerate(((self.a, a), (self.b, b))):
            seconds = run.seconds if dispatch else run.side.seconds
            for row in rows.tolist():
                name, kind = run.names[row]
                key = name.removeprefix(NAMESPACE), kind
                names.setdefault(key, name)
                sums.setdefault(key, (_Sum(), _Sum()))[side].add(run, row, float(seconds[row]))
        ranked = sorted(sums.items(), key=lambda item: -max(run_sum.seconds for run_sum in item[1]))
        return tuple(
            OpChange(
                name=names[name, kind],
                type=kind,
                classes=_classes(name, run_sums),
                is_part=dispatch and any(run_sum.is_part for run_sum in run_sums),
                parts=tuple(sorted(run_sums[0].parts | run_sums[1].parts)),
                a=run_sums[0].count(once=dispatch),
                b=run_sums[1].count(once=dispatch),
                seconds=run_sums[0].seconds - run_sums[1].seconds,
            )
            for (name, kind), run_sums in ranked
        )

    def differing_arguments(self, a: Rows, b: Rows) -> tuple[str, ...]:
        """Name what the arguments of some segments differ in."""
        signatures = [
            [run.side.segments.signature[row] for row in rows.tolist()] for run, rows in ((self.a, a), (self.b, b))
        ]
        arguments = [[Counter((s.name, getattr(s, field)) for s in run) for run in signatures] for field in _ARGUMENTS]
        return tuple(name for name, (of_a, of_b) in zip(_ARGUMENTS.values(), arguments, strict=True) if of_a != of_b)

    def kernel_changes(self, a: Rows, b: Rows) -> tuple[KernelChange, ...]:
        """List the kernels of some ops that differ. a, b: segments of both runs, partners at equal places."""
        changes: dict[tuple[tuple[str, ...], ...], list[tuple[int, float, float]]] = defaultdict(list)
        times = self.a.side.seconds, self.b.side.seconds
        for row_a, row_b in zip(a.tolist(), b.tolist(), strict=True):
            of_a, of_b = self.a.kernels_of(row_a), self.b.kernels_of(row_b)
            if of_a and of_b and {*of_a} != {*of_b}:
                others = (
                    tuple(name for name in of_a if name not in of_b),
                    tuple(name for name in of_b if name not in of_a),
                )
                changes[others].append((int(self.a.side.segments.op[row_a]), times[0][row_a], times[1][row_b]))
        listed = []
        for (in_a, in_b), ops in changes.items():
            seconds = sum(float(time) for _, time, _ in ops), sum(float(time) for _, _, time in ops)
            listed.append(KernelChange(kernels=(in_a, in_b), ops=len({op for op, _, _ in ops}), seconds=seconds))
        return tuple(sorted(listed, key=lambda change: -abs(change.seconds[0] - change.seconds[1])))

    def ranked_scopes(self, a: Rows, b: Rows) -> tuple[str, ...]:
        """List the scopes of some segments, the one with most time first."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for run, rows in ((self.a, a), (self.b, b)):
            for row in rows.tolist():
                seconds[run.side.segments.scope[row]] += float(run.seconds[row])
        return tuple(scope for scope in sorted(seconds, key=seconds.__getitem__, reverse=True) if scope)


def _type(part: Signature) -> str | None:
    """Return the type of an op; of a product of float32 data what it is computed in, as TF32, where that is known."""
    used = part.precision
    return used.arithmetic if used and used.inputs == "fp32" and used.arithmetic else part.dtype


def match_runs(comparison: Comparison) -> Runs:
    """Match the ops of two runs and split their gaps."""
    a, b = comparison.work.a.segments, comparison.work.b.segments
    if not dispatched_alike(comparison.a.profile, comparison.b.profile):  # else whoever wrote the program merged them
        a, b = one_to_one(a, b)
    sides = replace(comparison.work.a, segments=a), replace(comparison.work.b, segments=b)
    return Runs(Run(sides[0]), Run(sides[1]), match(a, b))
