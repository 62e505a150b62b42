"""A row of the account as annotations see it: with the run that spends more as A."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from roofline.comparison.account.row import NAMES, NAMESPACE, OpChange, Row


class Use(NamedTuple):
    """The executions of the ops of one name in both runs, and by how much longer the run that spends more takes [s]."""

    slower_count: float
    faster_count: float
    seconds: float


@dataclass(frozen=True)
class OrientedRow:
    """A row whose A is the run that spends more on it.

    alike: whether both runs execute ops of the same names by and large. other_ops: bare names of the ops that the run
    which spends less executes in any row.
    """

    row: Row
    alike: bool
    other_ops: frozenset[str]

    @cached_property
    def uses(self) -> Mapping[str, Use]:
        """Sum up the ops of the row by bare name; of what is fused into a kernel, how often the kernel is executed."""
        uses: dict[str, Use] = {}
        for change in filter(lambda change: any(change.counts), self.row.ops):
            for name in bare_names(change):
                before, (slower_count, faster_count) = uses.get(name, Use(0.0, 0.0, 0.0)), change.counts
                seconds = (change.seconds or 0.0) if name == bare_name(change.name) else 0.0
                uses[name] = Use(
                    before.slower_count + slower_count, before.faster_count + faster_count, before.seconds + seconds
                )
        return uses

    @cached_property
    def more_of_classes(self) -> Mapping[str, float]:
        """Count how much more often the run that spends more executes ops of each class, whatever they are called."""
        excess: defaultdict[str, float] = defaultdict(float)
        for change in self.row.ops:
            for name in change.classes:
                excess[name] += change.counts[0] - change.counts[1]
        return excess

    @cached_property
    def named(self) -> Sequence[OpChange]:
        """Return the ops that the row's sentence names of the run that spends more."""
        return [change for change in self.row.ops if change.counts[0] > change.counts[1]][:NAMES]

    def have_most(self, names: Collection[str]) -> bool:
        """Return whether some ops have more than half of what the run that spends more takes longer for any op."""
        longer = sum(max(0.0, use.seconds) for use in self.uses.values())
        return 2 * sum(self.uses[name].seconds for name in names) > longer


def from_slower(row: Row) -> Row:
    """Return a row with the run that spends more on it as A."""
    if row.sign > 0:
        return row
    ops = tuple(replace(change, a=change.b, b=change.a, seconds=-(change.seconds or 0.0)) for change in row.ops)
    return replace(row, seconds=-(row.seconds or 0.0), a=row.b, b=row.a, ops=ops)


def bare_names(change: OpChange) -> frozenset[str]:
    """Return the bare names of ops and of what is fused into them."""
    return frozenset(map(bare_name, (change.name, *change.parts)))


def bare_name(name: str) -> str:
    """Return the name of an op without a namespace and the underscores around it, in lower case."""
    return name.removeprefix(NAMESPACE).strip("_").lower()
