"""What a cause of a difference claims, and what of it was entered in the attribution (attribution.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from roofline.comparison.arrays import Array, Bools, Rows

NONE = np.zeros(0, np.int64)
#: A finding matters from this share of the longer step. By choice.
MATERIAL = 0.02
#: The rule of what no finding has: what ops that are no cause's own work are slower by in the plain steps.
DRIFT = "drift"
#: What a claim is `about` if it is about one op: then it is a finding of its own.
OP = "op"


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """What a cause adds to wall_A - wall_B at one place [s]; phase, block and class are None for the gap."""

    phase: str | None
    block: str | None
    op_class: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What a cause has: segments of either run by number, and shares of either gap (1 is all of it).

    part_a, part_b: how much of what is left of the segments' time, where several causes share it.
    host: with the host's time for these ops, where both runs are dispatched alike. before: segments of A and their
    partners of B, before which all of the host's time is part of it, where both runs are dispatched alike. about: what
    the sentence needs to know besides, by name. after: the number of the entry, of the same rule, whose ops these ones
    follow: what they take longer is part of that one, what they do and their drift is not.
    """

    rule: str
    a: Rows = field(default_factory=lambda: NONE)
    b: Rows = field(default_factory=lambda: NONE)
    gap_a: float = 0.0
    gap_b: float = 0.0
    part_a: float = 1.0
    part_b: float = 1.0
    host: bool = False
    before: tuple[Rows, Rows] | None = None
    about: dict[str, str] = field(default_factory=dict)
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A claim that was entered: its segments with how much of each it got, and shares of either gap.

    own_a, own_b: which of the segments are what the claim is about, and not ops that follow those. drift_a, drift_b:
    shares of the gaps that are no idle time: plain steps slower than the profiled ones throughout.
    """

    claim: Claim
    a: Rows
    b: Rows
    parts_a: Array
    parts_b: Array
    own_a: Bools
    own_b: Bools
    gap_a: float
    gap_b: float
    drift_a: float
    drift_b: float

    @property
    def alone(self) -> Entry:
        """The same without the ops that follow."""
        a, b = self.own_a, self.own_b
        one = replace(self, a=self.a[a], parts_a=self.parts_a[a], own_a=a[a])
        return replace(one, b=self.b[b], parts_b=self.parts_b[b], own_b=b[b])


def together(entries: Sequence[Entry], claim: Claim) -> Entry:
    """Several entries as one, of that claim."""
    return Entry(
        claim=claim,
        a=np.concatenate([entry.a for entry in entries]),
        b=np.concatenate([entry.b for entry in entries]),
        parts_a=np.concatenate([entry.parts_a for entry in entries]),
        parts_b=np.concatenate([entry.parts_b for entry in entries]),
        own_a=np.concatenate([entry.own_a for entry in entries]),
        own_b=np.concatenate([entry.own_b for entry in entries]),
        gap_a=sum(entry.gap_a for entry in entries),
        gap_b=sum(entry.gap_b for entry in entries),
        drift_a=sum(entry.drift_a for entry in entries),
        drift_b=sum(entry.drift_b for entry in entries),
    )


@dataclass(frozen=True, slots=True)
class Work:
    """What one run does in the segments of a claim, per step. names: its ops, longest time first.

    own: with the instants that other ops have a share of, seconds: without [s]. bytes, flops: of what is known; None
    where segments have none that is. whole: whether that is all of them. floor: of those that have one, and reach its
    upper end [s]. fused: how many of the ops are kernels that were fused from several. unknown: the names of ops of
    unknown work, longest time first. kernel: the one with most of the time, "" for none. has_roof: whether the roof of
    most of it by time is known: the floor of a product of unknown arithmetic is that of its memory traffic alone.
    """

    ops: float
    fused: float
    launches: float
    own: float
    seconds: float
    floor: float
    bytes: float | None
    flops: float | None
    whole: bool
    names: tuple[str, ...]
    classes: frozenset[str]
    unknown: tuple[str, ...] = ()
    kernel: str = ""
    has_roof: bool = True
    reach: float = 0.0

    @property
    def attained(self) -> float | None:
        """floor / own time, of segments that have a floor at all: whatever runs beside them."""
        return self.floor / self.own if self.has_roof and self.own > 0 and self.floor > 0 else None

    @property
    def attained_reach(self) -> float | None:
        """The upper end of what is attained; None where that is."""
        return None if self.attained is None else max(self.attained, self.reach / self.own)
