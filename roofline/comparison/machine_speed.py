"""Whether the machine ran at the same speed in both measurements, by the ops that both runs have.

On a machine that others share, a step takes up to twice as long for seconds, though nobody takes its cores away: a
neighbour on the other thread of the core, or in the cache that they share. That slows down all that a run does, most of
all the host, then ops that stream, and products a little. A cause in the step hardly slows down products that both
runs execute alike; so where these, too, are slower in one run, and the same settings ran them, it may be the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.host_time import host_time
from roofline.comparison.labels import kernel_name
from roofline.core.executor import PROGRAMS, dispatched_alike
from roofline.core.schema import Profile
from roofline.core.vocabulary import PRODUCTS

#: So much slower products must be in one run, and so much the other ops, to tell of a slower machine. By choice: of 21
#: pairs of equal steps on one machine, as they were first measured (docs/plants.md), 19 had products within 6 % of each
#: other; the other two had 16 and 41 %.
_PRODUCTS, _OTHERS = 1.07, 1.1
#: No more than this is put down to the machine, by choice: of steps of a millisecond or more, other ops took up to 1.8
#: times as long, and the host up to 2.7 times.
_MOST, _MOST_HOST = 2.0, 3.0
#: Mean clocks that differ by more than this share of the higher are two settings. By choice.
CLOCKS = 0.03
#: To both sides of the middle, for what rounding makes of it. By choice.
_ROUNDING = np.asarray([-1e-9, 1e-9])
#: There must be so many of either kind, with such a share of the shorter step. By choice.
_FEWEST, _SHARE = 3, 0.03

#: What a machine is slower at: products, all other ops, or what the host does.
Speed = Literal["products", "others", "host"]


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """How much longer what both runs do took in A than in B: products, other ops, and the host between them.

    seconds: what that adds to wall_A - wall_B, in these ops and, by the host's ratio, before them [s].
    """

    products: float = 1.0
    others: float = 1.0
    host: float = 1.0
    seconds: float = 0.0

    @property
    def uneven(self) -> bool:
        """Whether the machine was slower during one of the measurements."""
        slower = self.products > _PRODUCTS and self.others > _OTHERS
        return slower or (self.products < 1 / _PRODUCTS and self.others < 1 / _OTHERS)

    def excuses(self, what: Speed) -> float:
        """How much longer the machine may have taken in A for the same; else 1.

        A machine slows products down least: where they are slower than all else, they have a cause of their own.
        """
        if not self.uneven:
            return 1.0
        least = min(self.products, self.others) if self.products > 1 else max(self.products, self.others)
        most = _MOST_HOST if what == "host" else _MOST
        ratio = {"products": least, "others": self.others, "host": self.host}[what]
        return min(max(ratio, 1 / most), most)


EVEN = MachineSpeed()


def machine_speed(a: Analysis, b: Analysis) -> MachineSpeed:
    """Compare the ops that both runs execute equally often, in order; `EVEN` where there is no telling."""
    if not _same_settings(a, b):
        return EVEN
    rows = _paired(a, b)
    times = a.table.own[rows[0]], b.table.own[rows[1]]
    products = np.asarray([a.op_class(a.profile.ops[row]) in PRODUCTS for row in rows[0].tolist()], bool)
    ratios = []
    for chosen in (products, ~products):
        one, other = times[0][chosen], times[1][chosen]
        if len(one) < _FEWEST or min(one.sum(), other.sum()) < _SHARE * min(a.wall, b.wall):
            return EVEN
        ratios.append(_middle(one, other))
    hosts = [_dispatching(run, side) for run, side in ((a, rows[0]), (b, rows[1]))]
    both = (hosts[0] > 0) & (hosts[1] > 0)
    host = _middle(hosts[0][both], hosts[1][both]) if both.sum() >= _FEWEST else 1.0
    excused = min(max(host, 1 / _MOST_HOST), _MOST_HOST)
    slower = (hosts[0] * max(0.0, 1 - 1 / excused) - hosts[1] * max(0.0, 1 - excused)).sum()
    return MachineSpeed(ratios[0], ratios[1], host, float(times[0].sum() - times[1].sum() + slower))


def _dispatching(run: Analysis, rows: Rows) -> Array:
    """The host's time before some ops, as far as that is usual before an op [s]: what is more is no dispatch."""
    host = host_time(run)
    return np.minimum(host.all, host.usual * host.times)[rows] * 1e-9 * run.scale


def _same_settings(a: Analysis, b: Analysis) -> bool:
    """Whether nothing that was recorded of either run would make all of its ops slower."""
    one, other = a.profile, b.profile
    recorded = bool(one.environment)  # of a trace from elsewhere nobody knows the settings
    same = recorded and _settings(one) == _settings(other) and dispatched_alike(one, other)
    clocks = one.conditions.get("sm_clock", 0.0), other.conditions.get("sm_clock", 0.0)
    same = same and max(clocks) * (1 - CLOCKS) <= min(clocks)
    return same and (a.device.name, a.device.kind) == (b.device.name, b.device.kind)


def _settings(run: Profile) -> dict[str, object]:
    return {
        "environment": dict(run.environment),
        "versions": {name: version for name, version in run.versions.items() if name != "roofline"},
        "switches": dict(run.switches),
        "precision": run.precision,
        "programs": run.conditions.get(PROGRAMS),
    }


def _paired(a: Analysis, b: Analysis) -> tuple[Rows, Rows]:
    """Ops of A and of B that are equal and equally many, in order, where both took time.

    Products of other kernels, and what writes another amount, take another time on any machine.
    """
    tables = [_by_work(run) for run in (a, b)]
    pairs = [
        pair
        for key, rows in tables[0].items()
        if len(rows) == len(tables[1].get(key, ()))
        for pair in zip(rows, tables[1][key], strict=True)
    ]
    one, other = np.asarray(pairs, np.int64).reshape(-1, 2).T
    timed = (a.table.own[one] > 0) & (b.table.own[other] > 0)
    return one[timed], other[timed]


def _by_work(run: Analysis) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    profile = run.profile
    for row, op in enumerate(profile.ops):
        one = profile.signatures[op.signature]
        product = run.op_class(op) in PRODUCTS
        kernels = tuple(kernel_name(profile.kernels[number]) for number, _ in op.kernels) if product else ()
        work = one.name, one.shapes, one.dtype, one.writes, op.launches
        found[profile.phases[op.phase], work, kernels].append(row)
    return found


def _middle(one: Array, other: Array) -> float:
    """The median ratio of two times, each pair with the weight of its shorter time; its inverse for (other, one)."""
    ratios, weights = np.log(one / other), np.minimum(one, other)
    order = np.argsort(ratios, kind="stable")
    reached = np.cumsum(weights[order])
    # Where exactly half is reached, both neighbours of the middle count: then swapping the runs inverts it.
    low, high = np.searchsorted(reached, reached[-1] / 2 * (1 + _ROUNDING))
    return float(np.exp((ratios[order][low] + ratios[order][high]) / 2))
