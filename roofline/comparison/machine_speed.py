"""Compare the speed of the machine in two measurements, by the ops that both runs have.

On a machine that others share, a step takes up to twice as long for seconds, though nobody takes its cores away: a
neighbour on the other thread of the core, or in the cache that they share. That slows down all that a run does, ops
that stream most, and matmuls a little. Where both kinds are slower in one run by more than processes of one step
differ, and the same settings ran them, it may be the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from roofline.analysis.analysis import Analysis, per_analysis
from roofline.analysis.places import without_number
from roofline.core.arrays import Array
from roofline.core.executor import PROGRAMS, dispatched_alike
from roofline.core.vocabulary import PRODUCTS

#: Half of the 95 % interval of what a process takes, as a share, where one was measured: two processes of one step
#: differed by 10 to 20 % on a quiet machine (docs/comparing.md).
PROCESSES = 0.1


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """Ratios of the times of ops that both runs execute, of A to B: of matmuls and of other ops; 1 where not known.

    seconds: what that adds to wall_A - wall_B in these ops, and in dispatching them, as much longer as other ops [s].
    """

    products: float = 1.0
    other_ops: float = 1.0
    seconds: float = 0.0

    @property
    def uneven(self) -> bool:
        """Return whether both kinds were slower in one run by more than processes of one step differ."""
        ratios = self.products, self.other_ops
        return min(ratios) > 1 + PROCESSES or max(ratios) < 1 / (1 + PROCESSES)


EVEN = MachineSpeed()


def machine_speed(a: Analysis, b: Analysis) -> MachineSpeed:
    """Compare the ops that both runs execute equally often, in order; `EVEN` where there is no telling."""
    # Of a trace from elsewhere nobody knows the settings; others may be why ops take longer.
    if not a.profile.environment or _settings(a) != _settings(b) or not dispatched_alike(a.profile, b.profile):
        return EVEN
    works_a, works_b = _by_work(a), _by_work(b)
    equally_often = [(rows, works_b[work]) for work, rows in works_a.items() if len(rows) == len(works_b.get(work, ()))]
    pairs = np.asarray(
        [pair for matched_rows in equally_often for pair in zip(*matched_rows, strict=True)], np.int64
    ).reshape(-1, 2)
    rows_a, rows_b = pairs[(a.table.own[pairs[:, 0]] > 0) & (b.table.own[pairs[:, 1]] > 0)].T
    own_a, own_b = a.table.own[rows_a], b.table.own[rows_b]
    products = np.asarray([a.op_class(a.profile.ops[row]) in PRODUCTS for row in rows_a.tolist()], bool)
    if products.all() or not products.any():
        return EVEN
    of_products, of_others = (_middle(own_a[chosen], own_b[chosen]) for chosen in (products, ~products))
    hosts = float(a.host_time.dispatch[rows_a].sum()), float(b.host_time.dispatch[rows_b].sum())
    slower = hosts[0] * max(0.0, 1 - 1 / of_others) - hosts[1] * max(0.0, 1 - of_others)
    return MachineSpeed(of_products, of_others, float(own_a.sum() - own_b.sum()) + slower)


def _settings(run: Analysis) -> tuple[object, ...]:
    """Return what was recorded of a run that would make all of its ops slower."""
    profile = run.profile
    versions = {name: version for name, version in profile.versions.items() if name != "roofline"}
    programs = profile.conditions.get(PROGRAMS)
    device = run.device.name, run.device.kind
    return profile.environment, versions, profile.switches, profile.precision, programs, device


@per_analysis
def _by_work(run: Analysis) -> Mapping[Hashable, list[int]]:
    """Group the ops of a run by work and, of products, kernels: others take another time on any machine."""
    works: dict[Hashable, list[int]] = defaultdict(list)
    profile = run.profile
    names = [without_number(name) for name in profile.kernels]
    for row, op in enumerate(profile.ops):
        signature = profile.signatures[op.signature]
        kernels = tuple(names[number] for number, _ in op.kernels) if run.op_class(op) in PRODUCTS else ()
        work = signature.name, signature.shapes, signature.dtype, signature.writes, op.launches
        works[profile.phases[op.phase], work, kernels].append(row)
    return works


def _middle(a: Array, b: Array) -> float:
    """Return the median ratio of two times, each pair with the weight of its shorter time; the inverse for (b, a)."""
    ratios, weights = np.log(a / b), np.minimum(a, b)
    order = np.argsort(ratios, kind="stable")
    reached = np.cumsum(weights[order])
    # Where exactly half is reached, both neighbours of the middle count: then swapping the runs inverts it.
    half = reached[-1] / 2
    low = np.searchsorted(reached, np.nextafter(half, 0))
    high = np.searchsorted(reached, np.nextafter(half, reached[-1]))
    return float(np.exp((ratios[order][low] + ratios[order][high]) / 2))
