"""Two runs side by side, and one thing in which they are not alike: what the parity gate (parity.py) is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from roofline.analysis.analysis import Analysis
from roofline.core.schema import Op
from roofline.units import LONGEST_NAME, plain

#: refused: the runs do not do the same work; named: they do, in another way; warning: a time may not be what it seems.
Severity = Literal["refused", "named", "warning"]

T = TypeVar("T")
#: A value of each run, for people; None: not recorded.
Values = tuple[str | None, str | None]

#: Model FLOPs that differ by no more than this share of the larger are the same. By choice (docs/comparing.md).
SAME_WORK = 1e-3
#: A share of busy time that ops of unknown work have, or of FLOPs that another arithmetic does, counts above this. By
#: choice.
SLIGHT = 1e-2
#: What runs of one backend are called where nobody gave them names.
_UNNAMED = ("the first run", "the second run")


class Contraction(msgspec.Struct, frozen=True, kw_only=True):
    """A matrix product that the runs execute differently often.

    what: "matmul", "convolution" or "attention". batch, m, n, k: `batch` products of (m x k) and (k x n), the larger of
    m and n first, since a product and its transpose are the same work; None where the recorded shapes do not tell.
    flops: of one execution [FLOP]. a, b: executions per step in each run.
    """

    phase: str
    what: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    flops: float
    a: int
    b: int


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which two runs differ, or one doubt about them.

    what: a stable key ("batch", "dropout", ...). a, b: how it is in each run, for people; None: not recorded.
    seconds: how much of the difference of the walls it can explain at most, by the rule that found it [s]; share: the
    same of that difference, at most 1. None where no such rule is known.
    contractions: of a difference in model FLOPs.
    """

    what: str
    a: str | None
    b: str | None
    severity: Severity
    text: str
    seconds: float | None = None
    share: float | None = None
    contractions: tuple[Contraction, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs that are to be compared. called: what they are called where their backends do not tell them apart."""

    a: Analysis
    b: Analysis
    called: tuple[str, str] | None = None

    @property
    def names(self) -> tuple[str, str]:
        """What the runs are called in sentences: their backends, where these differ."""
        a, b = plain(self.a.profile.backend), plain(self.b.profile.backend)
        if a != b and a and b:
            return a, b
        one, other = self.called or _UNNAMED
        return plain(one, LONGEST_NAME), plain(other, LONGEST_NAME)

    def each(self, of: Callable[[Analysis], T]) -> tuple[T, T]:
        """The same of both runs."""
        return of(self.a), of(self.b)

    def switches(self, name: str) -> Values:
        """What both runs recorded under one name."""
        return self.each(lambda run: run.profile.switches.get(name))

    def differ(
        self,
        what: str,
        values: Values,
        text: str,
        severity: Severity = "named",
        seconds: float | None = None,
        contractions: tuple[Contraction, ...] = (),
    ) -> Difference:
        """A difference whose sentence is `text` and both values: "The batches differ: 4 in torch and 8 in jax."."""
        a, b = (None if value is None else plain(value) for value in values)
        first, second = self.names
        told = f"{'not recorded' if a is None else a} in {first} and {'not recorded' if b is None else b} in {second}"
        apart = abs(self.a.wall - self.b.wall)
        return Difference(
            what=what,
            a=a,
            b=b,
            severity=severity,
            text=f"{text}: {told}.",
            seconds=seconds,
            share=None if seconds is None or not apart else min(1.0, seconds / apart),
            contractions=contractions,
        )

    def apart(self, key: str, rows: Collection[str]) -> float | None:
        """|t_A - t_B| [s] of what both runs spend in `rows` of `Analysis.by(key)`; None where neither has any."""
        tables = [self.a.by(key), self.b.by(key)]
        if not any(row in table for table in tables for row in rows):
            return None
        first, second = (sum(table[row].seconds for row in rows if row in table) for table in tables)
        return abs(first - second)

    def apart_where(self, chosen: Callable[[Analysis, Op], bool]) -> float | None:
        """|t_A - t_B| [s] of the ops that are `chosen`; None where there are none."""
        rows = [[row for row, op in enumerate(run.profile.ops) if chosen(run, op)] for run in (self.a, self.b)]
        if not any(rows):
            return None
        first, second = (float(run.table.share[each].sum()) for run, each in zip((self.a, self.b), rows, strict=True))
        return abs(first - second)
