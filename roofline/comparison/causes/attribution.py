"""The difference of two runs, given out to causes: every second of it once.

A cause *claims* segments of A and of B, and parts of their gaps. What it claims is taken, so that the causes and what
no cause claimed add up to wall_A - wall_B, and a second is never explained twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from roofline.analysis.bootstrap import Interval, interval
from roofline.analysis.gap_causes import INPUT
from roofline.comparison.arrays import Array, Bools, Rows
from roofline.comparison.causes.claim import DRIFT, NONE, Claim, Entry, Portion, Work, together
from roofline.comparison.causes.gap import dispatching, share_of_gap
from roofline.comparison.drift import drift, spread
from roofline.comparison.host_time import (
    SETTING_UP,
    HostTime,
    dispatch,
    first_op,
    host_time,
    non_dispatch,
    reads_are_placed,
)
from roofline.comparison.labels import kernel_name
from roofline.comparison.machine_speed import MachineSpeed, machine_speed
from roofline.comparison.matching import Matching, match
from roofline.comparison.merged_products import one_to_one
from roofline.comparison.same_work import reach
from roofline.comparison.segments import Segments
from roofline.comparison.terms import Comparison, Side
from roofline.core.executor import dispatched_alike


def _known(values: Array) -> float | None:
    """The sum of what is known; None where there is something and none of it is."""
    return None if len(values) and np.isnan(values).all() else float(np.nansum(values))


class Attribution:
    """A comparison, and what of it was claimed."""

    def __init__(self, comparison: Comparison) -> None:
        """An empty attribution."""
        self.comparison = comparison
        a, b = comparison.work.a.segments, comparison.work.b.segments
        if not self.one_executor:  # else whoever wrote the program merged them
            a, b = one_to_one(a, b)
        self.a: Side = replace(comparison.work.a, segments=a)
        self.b: Side = replace(comparison.work.b, segments=b)
        self.matching: Matching = match(self.a.segments, self.b.segments)
        self.entries: list[Entry] = []
        self.left_a = np.ones(len(self.a.segments))
        self.left_b = np.ones(len(self.b.segments))
        self._drift = drift(comparison.a), drift(comparison.b)
        self._spread = spread(comparison.a), spread(comparison.b)
        self.gap_a, self.gap_b = 1 - self._drift[0], 1 - self._drift[1]
        self._host_left = np.ones(len(self.a.segments)), np.ones(len(self.b.segments))
        #: Shares of the gaps that were given to ops although they are no dispatch, as they lead to these.
        self.led = [0.0, 0.0]

    @property
    def wall(self) -> float:
        """The longer of the two steps [s]."""
        return max(self.comparison.a.wall, self.comparison.b.wall)

    @cached_property
    def machine_speed(self) -> MachineSpeed:
        """How much longer what both runs do took in A than in B."""
        return machine_speed(self.comparison.a, self.comparison.b)

    @cached_property
    def one_executor(self) -> bool:
        """Whether both runs dispatch their ops by the same mechanism, so that an op more costs both hosts the same."""
        return dispatched_alike(self.comparison.a.profile, self.comparison.b.profile)

    @property
    def queued(self) -> bool:
        """Whether the ops of both runs wait in queues of their devices.

        Then no op runs only as far as the device's work does not hide what the host does: hosts that dispatch the same
        in the same time leave other gaps beside other kernels.
        """
        return self.comparison.a.has_queue and self.comparison.b.has_queue

    def free(self, a: Rows, b: Rows) -> tuple[Rows, Rows]:
        """Those of some segments that are not claimed in full."""
        return a[self.left_a[a] != 0], b[self.left_b[b] != 0]

    def rows(self, of: Callable[[Segments], Bools]) -> tuple[Rows, Rows]:
        """The segments of both runs that are not claimed in full and for which `of` is true."""
        return np.flatnonzero(of(self.a.segments) & (self.left_a != 0)), np.flatnonzero(
            of(self.b.segments) & (self.left_b != 0)
        )

    def claim(self, claim: Claim) -> None:
        """Enter a claim. Of segments that are taken already only the rest is given."""
        a, b = self.free(claim.a, claim.b)
        parts_a, parts_b = self.left_a[a] * claim.part_a, self.left_b[b] * claim.part_b
        self.left_a[a] -= parts_a
        self.left_b[b] -= parts_b
        host_a, host_b = self._host(a, b) if claim.host and self.one_executor else (0.0, 0.0)
        before_a, before_b = self._all_before(*claim.before) if claim.before and self.one_executor else (0.0, 0.0)
        # No second of a gap is given out twice.
        gap_a = min(claim.gap_a + host_a + before_a, self.gap_a)
        gap_b = min(claim.gap_b + host_b + before_b, self.gap_b)
        self.gap_a -= gap_a
        self.gap_b -= gap_b
        drifts = [
            self._share_of_drift(number, float((side.seconds[rows] * parts).sum()), gap)
            for number, (side, rows, parts, gap) in enumerate(
                ((self.a, a, parts_a, gap_a), (self.b, b, parts_b, gap_b))
            )
        ]
        own_a, own_b = (np.full(len(rows), claim.after is None) for rows in (a, b))
        entry = Entry(claim, a, b, parts_a, parts_b, own_a, own_b, gap_a, gap_b, *drifts)
        if claim.after is None:
            self.entries.append(entry)
            return
        first = self.entries[claim.after]
        self.entries[claim.after] = together((first, replace(entry, drift_a=0.0, drift_b=0.0)), first.claim)
        # What all ops are slower by is no consequence of those before them, and nothing is said of it.
        nothing = np.zeros(0), np.zeros(0), np.zeros(0, bool), np.zeros(0, bool)
        self.entries.append(Entry(Claim(DRIFT), NONE, NONE, *nothing, 0.0, 0.0, *drifts))

    def seconds(self, entry: Entry) -> float:
        """What an entry adds to wall_A - wall_B [s]."""
        ops = float((self.a.seconds[entry.a] * entry.parts_a).sum() - (self.b.seconds[entry.b] * entry.parts_b).sum())
        return ops + self.gap_seconds(entry)

    def gap_seconds(self, entry: Entry) -> float:
        """What of that is in the gaps [s]."""
        a, b = self.comparison.a.gap, self.comparison.b.gap
        return (entry.gap_a + entry.drift_a) * a - (entry.gap_b + entry.drift_b) * b

    def interval(self, entry: Entry) -> Interval | None:
        """The 95 % interval of that [s]; None below three steps of either run."""
        drawn = self.a.drawn(entry.a, entry.parts_a) - self.b.drawn(entry.b, entry.parts_b)
        drawn = drawn + (entry.gap_a + entry.drift_a) * self.a.resamples.gap
        drawn = drawn - (entry.gap_b + entry.drift_b) * self.b.resamples.gap
        return interval(drawn, self.a.resamples, self.b.resamples)

    def portions(self, entry: Entry) -> tuple[Portion, ...]:
        """What an entry adds at each place, largest first; the gap is one place."""
        found: dict[tuple[str | None, str | None, str | None], float] = {}
        for side, rows, parts, sign in (
            (self.a, entry.a, entry.parts_a, 1),
            (self.b, entry.b, entry.parts_b, -1),
        ):
            for row, value in zip(rows, side.seconds[rows] * parts, strict=True):
                place = side.segments.places[row]
                found[place] = found.get(place, 0.0) + sign * float(value)
        gap = self.gap_seconds(entry)
        if gap:
            found[None, None, None] = gap
        ranked = sorted(found.items(), key=lambda item: -abs(item[1]))
        return tuple(Portion(phase=p, block=b, op_class=c, seconds=value) for (p, b, c), value in ranked)

    def work(self, side: Side, rows: Rows) -> Work:
        """What a run does in some of its segments."""
        some = side.segments
        names: Counter[str] = Counter()
        unknown: Counter[str] = Counter()
        hidden = np.isnan(some.bytes[rows] + some.flops[rows]).tolist()
        for row, seconds, dark in zip(rows.tolist(), side.seconds[rows].tolist(), hidden, strict=True):
            names[some.signature[row].name] += seconds
            if dark:
                unknown[some.signature[row].name] += seconds
        return Work(
            ops=float(some.weight[rows].sum()),
            fused=float(some.weight[rows][some.fused[rows]].sum()),
            launches=float(some.launches[rows].sum()),
            own=float(side.own[rows].sum()),
            seconds=float(side.seconds[rows].sum()),
            floor=float(some.floor[rows].sum()),
            reach=float(reach(side)[rows].sum()),
            bytes=_known(some.bytes[rows]),
            flops=_known(some.flops[rows]),
            whole=not any(hidden),
            names=tuple(name for name, _ in names.most_common(3)),
            classes=frozenset(some.places[row].op_class for row in rows),
            unknown=tuple(name for name, _ in unknown.most_common(3)),
            kernel=_kernel(side, rows),
            has_roof=_has_roof(side, rows),
        )

    def following(self) -> dict[int, tuple[Rows, Rows]]:
        """By entry, the ops of both runs, claimed by none, right after those of it that only one run has."""
        pairs_a, pairs_b = self.matching.pairs_a, self.matching.pairs_b
        owner_a = _owners_before(self.a.segments, [entry.a for entry in self.entries], pairs_a)
        owner_b = _owners_before(self.b.segments, [entry.b for entry in self.entries], pairs_b)
        owner = np.where(owner_a >= 0, owner_a, owner_b)
        owner[(owner_b >= 0) & (owner_b != owner)] = -1  # of two causes, neither
        owner[(self.left_a[pairs_a] != 1) | (self.left_b[pairs_b] != 1)] = -1
        order = np.argsort(owner, kind="stable")
        numbers, begins = np.unique(owner[order], return_index=True)
        groups = np.split(order, begins[1:])
        return {n: (pairs_a[rows], pairs_b[rows]) for n, rows in zip(numbers.tolist(), groups, strict=False) if n >= 0}

    def _share_of_drift(self, number: int, ops: float, gap: float) -> float:
        """What share of a gap is the drift of some ops [s] and of a share of that gap."""
        run, beyond = (self.comparison.a, self.comparison.b)[number], self._drift[number]
        return self._spread[number] * (ops + gap * run.gap) / (run.wall - beyond * run.gap)

    @property
    def unseen(self) -> float:
        """What the drift that is not spread over the entries adds to wall_A - wall_B [s]; no cause may claim it."""
        a, b = self.comparison.a, self.comparison.b
        return (self._drift[0] - self._spread[0]) * a.gap - (self._drift[1] - self._spread[1]) * b.gap

    def waited(self, cause: str) -> tuple[float, float]:
        """Shares of the two gaps that the causes which begin with `cause` have."""
        a, b = self.comparison.a, self.comparison.b
        return share_of_gap(a, cause) * (1 - self._drift[0]), share_of_gap(b, cause) * (1 - self._drift[1])

    @cached_property
    def host(self) -> tuple[HostTime, HostTime]:
        """The host's time before each op of A and of B."""
        a, b = self.comparison.a, self.comparison.b
        return host_time(a, self.reads_are_placed), host_time(b, self.reads_are_placed)

    @cached_property
    def reads_are_placed(self) -> bool:
        """Whether both runs recorded before which ops their hosts read results."""
        return all(reads_are_placed(run.profile) for run in (self.comparison.a, self.comparison.b))

    @cached_property
    def reading(self) -> tuple[float, float]:
        """Shares of the two gaps in which the host read results before an op, where that was recorded."""
        a, b = (float(host.shares(host.reading).sum()) for host in self.host)
        return a * self._seen(0), b * self._seen(1)

    @cached_property
    def non_dispatch(self) -> tuple[Array, Array]:
        """For each op of A and of B, the share of the gap that is before it and no dispatch."""
        a, b = self.comparison.a, self.comparison.b
        more = self._later_to_begin
        return (
            non_dispatch(a, self.host[0], max(0.0, more)) * self._seen(0),
            non_dispatch(b, self.host[1], max(0.0, -more)) * self._seen(1),
        )

    @property
    def _later_to_begin(self) -> float:
        """How much longer A's host takes before the first op than B's [ns], where both begin with the same op.

        To start a step takes both hosts as long, if they dispatch alike: what one takes longer is no dispatch.
        """
        runs, hosts = (self.comparison.a, self.comparison.b), self.host
        if not (self.one_executor and self.queued and all(run.profile.ops for run in runs)) or any(self.waited(INPUT)):
            return 0.0  # input has a cause of its own, and is before an op here
        first = [first_op(run.profile) for run in runs]
        pairs = self.matching.pairs_a, self.matching.pairs_b
        ops = (self.a.segments.op[pairs[0]], self.b.segments.op[pairs[1]])
        if not ((ops[0] == first[0]) & (ops[1] == first[1])).any():
            return 0.0
        more = float(hosts[0].all[first[0]] - hosts[1].all[first[1]])
        return more if abs(more) > max(host.usual for host in hosts) else 0.0

    def _host(self, a: Rows, b: Rows) -> tuple[float, float]:
        """Shares of the two gaps in which the host dispatches some segments, as far as they are not given out.

        With the time before the next op that both runs have: between two such ops the host does there, too, what it
        does for those that only one run has, and what is before the first of them is before the next one elsewhere.
        Nothing where the run without any of them takes longer there: that has another cause.
        """
        of_next = self._dispatch_in_both
        next_a, next_b = self._next(a, b)
        sides = (0, a, next_a), (1, b, next_b)
        taken, leading = list[float](), list[float]()
        for side, rows, after in sides:
            some = (self.a, self.b)[side].segments
            left = self._host_left[side]
            mine = self._dispatch[side][some.op[rows]] * some.weight[rows] * left[rows]
            theirs = of_next[side][some.op[after]] * some.weight[after] * left[after]
            leading.append(float((self._leading_to(side, rows) * some.weight[rows] * left[rows]).sum()))
            taken.append(float(mine.sum() + theirs.sum()) + leading[side])
        more = taken[0] * self.comparison.a.gap - taken[1] * self.comparison.b.gap
        if (more > 0 and not len(a)) or (more < 0 and not len(b)):
            return 0.0, 0.0
        for side, rows, after in sides:
            self._host_left[side][rows] = self._host_left[side][after] = 0.0
            self.led[side] += leading[side]
        return taken[0], taken[1]

    def _leading_to(self, side: int, rows: Rows) -> Array:
        """For some segments the share of the gap before their ops that leads to them, besides their dispatch.

        That is before an op that only this run has what else its host did, unless it may have slept or took far longer
        than setting anything up; no more than what the other host does not do somewhere else. Nothing leads to an op
        that does nothing, as the one with which `torch.tensor` ends. Beside a device with a queue it is not known.
        """
        if self.queued:
            return np.zeros(len(rows))
        host, some = self.host[side], (self.a, self.b)[side].segments
        ops = some.op[rows]
        paired = np.zeros(len(some), bool)
        paired[(self.matching.pairs_a, self.matching.pairs_b)[side]] = True
        soon = (
            ~paired[rows]
            & (some.bytes[rows] != 0)
            & (host.all[ops] <= SETTING_UP * host.times[ops])
            & (not host.asleep)
        )
        return np.where(soon, self._else[side][ops], 0.0)

    @cached_property
    def _else(self) -> tuple[Array, Array]:
        """For each op, the share of the gap before it that is not its dispatch, as far as the other run has less."""
        runs = self.comparison.a, self.comparison.b
        found = [host.shares(host.all) * self._seen(n) - self._dispatch[n] for n, host in enumerate(self.host)]
        a, b = (float(shares.sum()) * run.gap for shares, run in zip(found, runs, strict=True))
        return found[0] * (max(0.0, 1 - b / a) if a > 0 else 0.0), found[1] * (max(0.0, 1 - a / b) if b > 0 else 0.0)

    def _all_before(self, a: Rows, b: Rows) -> tuple[float, float]:
        """Shares of the two gaps that are before some pairs of segments, as far as they are not given out.

        Whatever the host did there; but as far as it is dispatch where the host may have slept, or took far longer than
        setting anything up, before either of the two.
        """
        runs = [(side.segments.op[rows], rows, side.segments) for side, rows in ((self.a, a), (self.b, b))]
        soon = np.full(len(a), not any(host.asleep for host in self.host))
        for host, (ops, _, _) in zip(self.host, runs, strict=True):
            soon &= host.all[ops] <= SETTING_UP * host.times[ops]
        taken = []
        for number, (host, (ops, rows, some)) in enumerate(zip(self.host, runs, strict=True)):
            left = self._host_left[number]
            shares = np.where(soon, (host.shares(host.all) * self._seen(number))[ops], self._dispatch[number][ops])
            taken.append(float((shares * some.weight[rows] * left[rows]).sum()))
            left[rows] = 0.0
        return taken[0], taken[1]

    def _next(self, a: Rows, b: Rows) -> tuple[Rows, Rows]:
        """The matched segments that are dispatched right after some segments, in either run."""
        pairs_a, pairs_b = self.matching.pairs_a, self.matching.pairs_b
        after = np.isin(pairs_a, _after(self.a.segments, a)) | np.isin(pairs_b, _after(self.b.segments, b))
        after &= ~np.isin(pairs_a, a) & ~np.isin(pairs_b, b)
        return pairs_a[after], pairs_b[after]

    @cached_property
    def _dispatch(self) -> tuple[Array, Array]:
        a, b = self.host
        return dispatch(a, b) * self._seen(0), dispatch(b, a) * self._seen(1)

    @cached_property
    def _dispatch_in_both(self) -> tuple[Array, Array]:
        """The same, as far as the host was seen dispatching in both runs: of one op in either."""
        seen = dispatching(self.comparison.a), dispatching(self.comparison.b)
        a, b = (min(seen) / each if each else 1.0 for each in seen)
        return self._dispatch[0] * a, self._dispatch[1] * b

    def _seen(self, run: int) -> float:
        """The share of a gap in which the host was seen dispatching."""
        return dispatching((self.comparison.a, self.comparison.b)[run]) * (1 - self._drift[run])


def _kernel(side: Side, rows: Rows) -> str:
    """The kernel that has more than half of the time of some segments; "" where none has, or it was not recorded."""
    profile, time = side.analysis.profile, Counter[str]()
    for op, seconds in zip(side.segments.op[rows].tolist(), side.seconds[rows].tolist(), strict=True):
        kernels = profile.ops[op].kernels
        whole = sum(own for _, own in kernels)
        for number, own in kernels if whole else ():
            time[kernel_name(profile.kernels[number])] += seconds * own / whole
    name, most = max(time.items(), key=lambda item: item[1], default=("", 0.0))
    return name if 2 * most > float(side.seconds[rows].sum()) else ""


def _has_roof(side: Side, rows: Rows) -> bool:
    """Whether the rate that bounds them is known of the products that have half of some segments' time, or more."""
    known: dict[int, bool] = {}
    for one in (side.segments.signature[row] for row in rows.tolist()):
        if id(one) not in known:
            used = one.precision.arithmetic if one.precision else None
            known[id(one)] = not one.cost.useful_flops or side.analysis.device.rate(f"matrix.{used}") is not None
    chosen = np.asarray([known[id(side.segments.signature[row])] for row in rows.tolist()], bool)
    own = side.own[rows]
    return 2 * float(own[chosen].sum()) >= float(own.sum())


def _after(some: Segments, rows: Rows) -> Rows:
    """The segments of the ops right after those of some segments. Ops are in the order of dispatch."""
    return np.flatnonzero(np.isin(some.op, some.op[rows] + 1))


def _owners_before(some: Segments, entries: Sequence[Rows], pairs: Rows) -> Rows:
    """For each paired segment, the last entry that has an unpaired one of the op right before it; -1 for none."""
    paired = np.zeros(len(some), bool)
    paired[pairs] = True
    owner = np.full(int(some.op.max(initial=-1)) + 2, -1, np.int64)
    for number, rows in enumerate(entries):
        owner[some.op[rows[~paired[rows]]] + 1] = number
    found: Rows = owner[some.op[pairs]]
    return found
