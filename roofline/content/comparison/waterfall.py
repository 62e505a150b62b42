"""Build the way from one step's time to another's: what each row of their account adds or saves; no format draws.

Rows have the signs of the account: where that is written as A - B, the way leads from the step of B to that of A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roofline import units
from roofline.analysis.bootstrap import Interval
from roofline.comparison.account.row import Row
from roofline.comparison.ranking import RankedPair
from roofline.content import signed
from roofline.content.comparison import account_rows, comparing

#: Where the steps between the two walls take less than this share of them, the axis does not begin at 0. By choice.
_CUT = 0.35
#: Rows below this share of the axis share one. By choice.
_SMALL = 0.01


@dataclass(frozen=True, slots=True)
class Part:
    """A bar from `begin` to `end` [s]: a whole step, or what the last one saves or adds, or of no width.

    ci95: where its end may be [s]. is_gap: whether it is time in which no op ran.
    """

    label: str
    begin: float
    end: float
    look: Literal["wall", "saves", "adds", "same"]
    ci95: Interval | None = None
    is_gap: bool = False

    @property
    def text(self) -> str:
        """Write the time of a whole step, or what is added or saved: "-980 µs"."""
        return units.seconds(self.end) if self.look == "wall" else signed.signed(self.end - self.begin)

    @property
    def interval(self) -> str:
        """Write the 95 % interval of what is added or saved; "" where there is none."""
        return " to ".join(signed.signed(end - self.begin) for end in self.ci95 or ())

    @property
    def reach(self) -> tuple[float, float]:
        """Return the lowest and the highest time that is drawn [s]."""
        ends = (self.begin, self.end, *(self.ci95 or ()))
        return min(ends), max(ends)


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A step, each row from where the one before it ended, and the other step; low, high: the axis [s].

    sides: the runs of the pair that are first and last, 0 for A and 1 for B. rows: those with a bar of their own; the
    others share one.
    """

    sides: tuple[int, int]
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]
    low: float
    high: float

    @property
    def is_broken(self) -> bool:
        """Return whether the axis begins above 0."""
        return self.low > 0

    def share(self, seconds: float) -> float:
        """Place a time on the axis."""
        return (seconds - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def waterfall(pair: RankedPair) -> Waterfall:
    """Build the bars of two runs: the largest rows of the account that can be seen, and the sum of the others."""
    sides = (0, 1) if account_rows.is_turned(pair) else (1, 0)
    walls = pair.comparison.a.wall, pair.comparison.b.wall
    first, last = (Part(comparing.name(pair, side), 0.0, walls[side], "wall") for side in sides)
    rows = account_rows.rows(pair)
    low, high = axis(first.end, last.end, [part.reach for part in _between(pair, rows, first.end)])
    shown = tuple(row for row in rows[: account_rows.MANY] if abs(account_rows.seconds(row)) >= _SMALL * (high - low))
    return Waterfall(sides, shown, (first, *_between(pair, shown, first.end), last), low, high)


def axis(a: float, b: float, reaches: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the ends of the axis [s]: from 0, or nearer where the steps would be too small to be seen."""
    ends = [a, b, *(end for reach in reaches for end in reach)]
    low, high = min(ends), max(ends)
    if high - low >= _CUT * high or high - low < 1e-6 * high:
        return min(0.0, low), high
    return max(0.0, low - 0.25 * (high - low)) if low > 0 else low, high


def _between(pair: RankedPair, rows: Sequence[Row], wall: float) -> list[Part]:
    """Return the bars of some rows and of the sum of the others, from `wall` [s] on."""
    parts = []
    for row, name in zip(rows, account_rows.labels(rows), strict=True):
        parts.append(_part(pair, name, wall, account_rows.seconds(row), row.ci95, is_gap=row.kind == "gap"))
        wall = parts[-1].end
    if smaller := account_rows.smaller(pair, rows):
        parts.append(_part(pair, smaller, wall, account_rows.rest(pair, rows)))
    return parts or [_part(pair, "no row differs", wall, 0.0)]


def _part(
    pair: RankedPair, name: str, wall: float, seconds: float, ci95: Interval | None = None, *, is_gap: bool = False
) -> Part:
    """Return the bar of some seconds of A - B, from where the step ended that far."""
    seconds, sign = signed.snapped(seconds), -1 if account_rows.is_turned(pair) else 1
    low, high = sorted(wall + sign * end for end in ci95 or (0.0, 0.0))
    added = sign * seconds
    return Part(
        label=name,
        begin=wall,
        end=wall + added,
        look="adds" if added > 0 else "saves" if added < 0 else "same",
        ci95=(low, high) if ci95 else None,
        is_gap=is_gap,
    )
