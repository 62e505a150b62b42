"""Two runs side by side, and one thing in which they are not alike: what the parity gate (parity.py) is made of."""

from __future__ import annotations

from collections.abc import Callable
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
#: A number of each run.
Both = tuple[float, float]

#: Model FLOPs that differ by no more than this share of the larger are the same. By choice (docs/comparing.md).
SAME_WORK = 1e-3
#: By choice, a share of busy time of ops of unknown work, or of FLOPs in another arithmetic, counts above this.
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
    """A difference of two runs, or a doubt about them.

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
        """Return what the runs are called in sentences: their backends, where these differ."""
        a, b = plain(self.a.profile.backend), plain(self.b.profile.backend)
        if a != b and a and b:
            return a, b
        first, second = self.called or _UNNAMED
        return plain(first, LONGEST_NAME), plain(second, LONGEST_NAME)

    def each(self, of: Callable[[Analysis], T]) -> tuple[T, T]:
        """Return the same of both runs."""
        return of(self.a), of(self.b)

    def against(self, of: Callable[[Analysis, Analysis], T]) -> tuple[T, T]:
        """Return the same of each run held against the other one."""
        return of(self.a, self.b), of(self.b, self.a)

    def switches(self, name: str) -> Values:
        """Return what both runs recorded under one name."""
        return self.each(lambda run: run.profile.switches.get(name))

    def differ(
        self,
        key: str,
        values: Values,
        text: str,
        severity: Severity = "named",
        seconds: float | None = None,
        contractions: tuple[Contraction, ...] = (),
    ) -> Difference:
        """Make a difference of a text and both values: "The batches differ: 4 in torch and 8 in jax."."""
        a, b = (None if value is None else plain(value) for value in values)
        first, second = self.names
        wall_difference = abs(self.a.wall - self.b.wall)
        return Difference(
            what=key,
            a=a,
            b=b,
            severity=severity,
            text=f"{text}: {recorded(a)} in {first} and {recorded(b)} in {second}.",
            seconds=seconds,
            share=None if seconds is None or not wall_difference else min(1.0, seconds / wall_difference),
            contractions=contractions,
        )

    def compare(
        self, key: str, values: Values, text: str, severity: Severity = "named", seconds: float | None = None
    ) -> list[Difference]:
        """Make a difference of values that are not equal; where one is not recorded, the text says so."""
        if values[0] == values[1]:
            return []
        text = f"The {key.replace('gelu', 'GELU')} of one run is not known" if None in values else text
        return [self.differ(key, values, text, severity, seconds)]

    def apart(self, key: str, row: str) -> float | None:
        """Return |t_A - t_B| [s] of a row of `Analysis.by(key)`; None where neither run has it."""
        return _apart(*self.each(lambda run: seconds_of(run, key, row)))

    def apart_where(self, chosen: Callable[[Analysis, Op], bool]) -> float | None:
        """Return |t_A - t_B| [s] of the ops that are `chosen`; None where there are none."""
        return _apart(*self.each(lambda run: seconds_where(run, chosen)))

    def explains(self, seconds: Callable[[Analysis], float | None]) -> float | None:
        """Return how much longer some ops take in the run that takes longer [s]; None where neither run has them.

        0 where they take longer in the other one. seconds: of these ops in a run, None where it has none.
        """
        a, b = self.each(seconds)
        longer = (a or 0.0) - (b or 0.0)
        return None if a is None and b is None else max(0.0, longer if self.a.wall > self.b.wall else -longer)


def recorded(value: str | None) -> str:
    """Say a value of a run."""
    return "not recorded" if value is None else value


def seconds_of(run: Analysis, key: str, row: str) -> float | None:
    """Return the time of a row of `Analysis.by(key)` [s]; None where there is none."""
    sums = run.by(key)
    return sums[row].seconds if row in sums else None


def seconds_where(run: Analysis, chosen: Callable[[Analysis, Op], bool]) -> float | None:
    """Return the time of the ops that are `chosen` [s]; None where there are none."""
    rows = [row for row, op in enumerate(run.profile.ops) if chosen(run, op)]
    return float(run.table.share[rows].sum()) if rows else None


def _apart(a: float | None, b: float | None) -> float | None:
    return None if a is None and b is None else abs((a or 0.0) - (b or 0.0))
