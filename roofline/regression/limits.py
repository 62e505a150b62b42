"""Define the limits of `roofline check`, the allowed growth over the baseline, and parse their texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from roofline.errors import InputError
from roofline.units import quote

#: Sums of the same numbers in another order differ by less than this share.
ROUNDING = 1e-9
#: A limit beyond this many times the baseline, or this many kernels, is a mistake in writing.
_LARGEST_SHARE, _LARGEST_COUNT = 100.0, 10**9


@dataclass(frozen=True, slots=True)
class Limit:
    """Hold the allowed growth over the baseline: a share of it, or (absolute) a count or a number of points."""

    value: float
    absolute: bool = False

    def allows(self, growth: float) -> bool:
        """Tell whether the growth, a share or an absolute one, is within the limit."""
        return growth <= self.value + ROUNDING

    def growth(self, before: float, after: float) -> float:
        """Subtract before from after, as a share of before unless the limit is absolute; infinite from 0."""
        if self.absolute:
            return after - before
        if before == 0:
            return math.inf if after > 0 else 0.0
        return after / before - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold the limits of `roofline check`; gap is in points of the wall."""

    time: Limit = Limit(0.05)
    bytes: Limit = Limit(0.01)
    kernels: Limit = Limit(0, absolute=True)
    gap: Limit = Limit(0.03, absolute=True)
    memory: Limit = Limit(0.02)


def share(text: str, option: str) -> Limit:
    """Parse a limit like "5%" or "0.05". Raises InputError for other texts, and for 1 or more without "%"."""
    return Limit(_number(text, option))


def points(text: str, option: str) -> Limit:
    """Parse a limit like "5%" or "0.05", in points of the wall."""
    return Limit(_number(text, option), absolute=True)


def count(text: str, option: str) -> Limit:
    """Parse a limit that is a whole number, or like "5%" of the baseline's."""
    if text.strip().endswith("%"):
        return share(text, option)
    if not re.fullmatch(r"\s*\d{1,12}\s*", text, re.ASCII) or int(text) > _LARGEST_COUNT:
        raise InputError(
            f"{option} {quote(text)} is no limit: give a whole number of at most {_LARGEST_COUNT:,}, or a percentage "
            "like 5%."
        )
    return Limit(int(text), absolute=True)


#: The parser of each limit's text.
PARSERS: Mapping[str, Callable[[str, str], Limit]] = {
    "time": share,
    "bytes": share,
    "kernels": count,
    "gap": points,
    "memory": share,
}


def parse_limits(texts: Mapping[str, str], limits: Limits, before: str) -> Limits:
    """Replace limits by those in `texts`, by name; before: the words before the name in an error."""
    return replace(limits, **{name: PARSERS[name](text, f"{before}{name}") for name, text in texts.items()})


def _number(text: str, option: str) -> float:
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})\s*(%?)\s*", text, re.ASCII)
    if match is None:
        raise InputError(f"{option} {quote(text)} is no limit: give a percentage like 5%, or a share like 0.05.")
    value = float(match[1]) / (100 if match[2] else 1)
    if value > _LARGEST_SHARE:
        raise InputError(f"{option} {quote(text)} is too large: give at most {_LARGEST_SHARE * 100:.0f}%.")
    if value >= 1 and not match[2]:  # meant as 5 %, or 1 %, and anything would pass
        raise InputError(f"{option} {quote(text)} would be {100 * value:g} %: give {value:g}% or {value / 100:g}.")
    return value
