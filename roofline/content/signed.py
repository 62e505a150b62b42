"""Write differences of times with their sign, in one unit for a whole table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from roofline import units

Interval = tuple[float, float]
#: What is left of times [s] that cancel is rounding: below a femtosecond, and below this part of them (by choice, far
#: above the rounding of sums of times).
_ROUNDING, _OF_WHOLE = 1e-15, 1e-12
#: A hyphen that is the sign of a number.
_NEGATIVE = re.compile(r"(?<!\S)-(?=\d)")


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit for a whole table, and the decimals that give its largest number three digits or more."""

    factor: float
    unit: str
    decimals: int

    def write(self, value: float | None) -> str:
        """Write a signed number; unknown or absent is a dash."""
        if value is None:
            return units.UNKNOWN
        text = f"{snapped(value) / self.factor:+.{self.decimals}f}"
        return text if float(text) else f"{0:.{self.decimals}f}"

    def between(self, ci95: Interval | None) -> str:
        """Write an interval: "+1.2 to +3.4"."""
        return "" if ci95 is None else f"{self.write(ci95[0])} to {self.write(ci95[1])}"


def scale(values: Iterable[float]) -> Scale:
    """Choose the unit of `values` [s]."""
    largest = max((abs(value) for value in values), default=0.0)
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if largest >= factor or unit == "ns":
            break
    digits = largest / factor
    return Scale(factor, unit, 2 if digits < 100 else 1)


def signed(value: float) -> str:
    """Write a time [s] with its sign."""
    value = snapped(value)
    return f"+{units.seconds(value)}" if value > 0 else units.seconds(value)


def printed(text: str) -> str:
    """Set the minus of numbers as long as the plus, for pictures and papers.

    What is searched and copied (text, a page, CSV, JSON) has the minus of a keyboard.
    """
    return _NEGATIVE.sub("−", text)


def snapped(value: float, total: float = 0.0) -> float:
    """Round a difference of times [s] to 0 where its digits are rounding errors of the arithmetic.

    total: the times that it is a difference of [s].
    """
    return 0.0 if abs(value) < max(_ROUNDING, _OF_WHOLE * total) else value


def rounding(residual: float) -> str:
    """Write a residual [s]."""
    return f"{residual:.0e} s" if snapped(residual) else "below 1 fs"
