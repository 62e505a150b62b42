"""Compare the speed of the machine in two measurements, by the ops that both runs have.

On a machine that others share, a step takes up to twice as long for seconds, though nobody takes its cores away: a
neighbour on the other thread of the core, or in the cache that they share. That slows down all that a run does, ops
that stream most, and matmuls a little. Where both kinds are slower in one run by more than processes of one step
differ, and the same settings ran them, it may be the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.comparison.arrays import Array, Rows
from roofline.comparison.labels import kernel_name
from roofline.core.executor import PROGRAMS, dispatched_alike
from roofline.core.schema import Profile
from roofline.core.vocabulary import PRODUCTS

#: Half of the 95 % interval of what a process takes, as a share, where one was measured: two processes of one step
#: differed by 10 to 20 % on a quiet machine (docs/comparing.md).
PROCESSES = 0.1


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """How much longer what both runs do took in A than in B: matmuls, and other ops; 1 where there is no telling.

    seconds: what that adds to wall_A - wall_B in these ops, and in dispatching them, if that
    took as much longer as the other ops [s].
    """

    products: float = 1.0
    others: float = 1.0
    seconds: float = 0.0

    @property
    def uneven(self) -> bool:
        """Whether both kinds were slower in one run by more than processes of one step differ."""
        ratios = self.products, self.others
        return min(ratios) > 1 + PROCESSES or max(ratios) < 1 / (1 + PROCESSES)


EVEN = MachineSpeed()


def machine_speed(a: Analysis, b: Analysis) -> MachineSpeed:
    """Compare the ops that both runs execute equally often, in order; `EVEN` where there is no telling."""
    if not _same_settings(a, b):
        return EVEN
    one, other = _paired(a, b)
    times = a.table.own[one], b.table.own[other]
    products = np.asarray([a.op_class(a.profile.ops[row]) in PRODUCTS for row in one.tolist()], bool)
    if products.all() or not products.any():
        return EVEN
    of_products, of_others = (_middle(times[0][chosen], times[1][chosen]) for chosen in (products, ~products))
    hosts = float(a.host_time.dispatch[one].sum()), float(b.host_time.dispatch[other].sum())
    slower = hosts[0] * max(0.0, 1 - 1 / of_others) - hosts[1] * max(0.0, 1 - of_others)
    return MachineSpeed(of_products, of_others, float(times[0].sum() - times[1].sum()) + slower)


def _same_settings(a: Analysis, b: Analysis) -> bool:
    """Whether nothing that was recorded of either run would make all of its ops slower."""
    one, other = a.profile, b.profile
    recorded = bool(one.environment)  # of a trace from elsewhere nobody knows the settings
    same = recorded and _settings(one) == _settings(other) and dispatched_alike(one, other)
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
    names = [kernel_name(recorded) for recorded in profile.kernels]
    for row, op in enumerate(profile.ops):
        one = profile.signatures[op.signature]
        product = run.op_class(op) in PRODUCTS
        kernels = tuple(names[number] for number, _ in op.kernels) if product else ()
        work = one.name, one.shapes, one.dtype, one.writes, op.launches
        found[profile.phases[op.phase], work, kernels].append(row)
    return found


def _middle(one: Array, other: Array) -> float:
    """The median ratio of two times, each pair with the weight of its shorter time; its inverse for (other, one)."""
    ratios, weights = np.log(one / other), np.minimum(one, other)
    order = np.argsort(ratios, kind="stable")
    reached = np.cumsum(weights[order])
    # Where exactly half is reached, both neighbours of the middle count: then swapping the runs inverts it.
    half = reached[-1] / 2
    low = np.searchsorted(reached, np.nextafter(half, 0))
    high = np.searchsorted(reached, np.nextafter(half, reached[-1]))
    return float(np.exp((ratios[order][low] + ratios[order][high]) / 2))
