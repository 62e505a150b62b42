"""Format quantities, and texts from elsewhere, for people: the only place that does.

Inside the program everything is in base units: FLOP, byte, second, FLOP/s, byte/s. Unknown is None and is
written as a dash, never as 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

UNKNOWN = "–"
#: What clocks count [s].
NANOSECOND = 1e-9
#: Digits that distinguish numbers which differ by 0.1 %.
PRECISE = 5
#: Letters of a text in a sentence, and of a name there; longer ones are cut.
LONGEST, LONGEST_NAME = 80, 60

#: The blank between a number and its unit, where no line ends.
BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|[kMGTPmµn]?(?:s|B|Hz|FLOP)\b)")

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)

#: The beginning of a command to a runner of GitHub, `::error::...`: a line begins with any word of a name.
_COMMAND = re.compile(r"(?<!\S)::(?=[A-Za-z])")

#: Units of time, and the least time that is written in each [s]; the last one serves all shorter times.
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def significant(value: float, digits: int = 3) -> str:
    """Write `value` with at least `digits` significant digits and no exponent: 0.0123, 4.56, 789, 1235."""
    if value == 0:
        return "0"
    # Rounded first: 99.96 has its third digit where 100 has it, and 1e-4 / 1e-6 is 99.99999999999999.
    magnitude = abs(float(f"{value:.{digits - 1}e}"))
    decimals = digits - 1
    while magnitude >= 10 and decimals > 0:
        magnitude /= 10
        decimals -= 1
    while 0 < magnitude < 1 and decimals < 9:
        magnitude *= 10
        decimals += 1
    return f"{value:.{decimals}f}"


def scaled(value: float | None, unit: str, digits: int = 3) -> str:
    """Write `value` [unit] with an SI prefix: scaled(9.89e14, "FLOP/s") is "989 TFLOP/s"."""
    return scaled_unit(abs(value or 0.0), unit, digits)(value)


def scaled_unit(largest: float, unit: str, digits: int = 3) -> Callable[[float | None], str]:
    """Make a function that writes the amounts of a column: all with the prefix of the largest [unit]."""
    # 999.6 G would print as "1000 G": the next prefix takes over half a digit early.
    ends = ((factor, prefix) for factor, prefix in _PREFIXES if largest >= factor * (1 - 0.5 * 10**-digits))
    factor, prefix = next(ends, (1.0, ""))
    return lambda value: UNKNOWN if value is None else f"{significant(value / factor, digits)} {prefix}{unit}"


def tick(value: float, unit: str = "") -> str:
    """Write a tick of a logarithmic axis, without exponents: "100 G", "0.01"."""
    factor, prefix = next((scale for scale in _PREFIXES if value >= scale[0] * 0.999), (1.0, ""))
    return f"{value / factor:g} {prefix}{unit}".rstrip()


def flop(value: float | None) -> str:
    """Write work [FLOP]."""
    return scaled(value, "FLOP")


def flop_rate(value: float | None) -> str:
    """Write a rate of work [FLOP/s]."""
    return scaled(value, "FLOP/s")


def byte(value: float | None) -> str:
    """Write traffic or size [byte]; decimal prefixes, as memory bandwidths are quoted."""
    return scaled(value, "B")


def byte_rate(value: float | None) -> str:
    """Write a bandwidth [byte/s]."""
    return scaled(value, "B/s")


def intensity(value: float | None) -> str:
    """Write operational intensity [FLOP/byte]."""
    return UNKNOWN if value is None else f"{significant(value)} FLOP/B"


def seconds(value: float | None, digits: int = 3) -> str:
    """Write a time [s] in s, ms, µs or ns."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0 s"
    factor, unit = next(((factor, unit) for factor, unit in _SECONDS if abs(value) >= factor * 0.9995), _SECONDS[-1])
    return f"{significant(value / factor, digits)} {unit}"


def seconds_unit(largest: float) -> Callable[[float | None], str]:
    """Make a function that writes the times of a column: all in the unit of the largest [s], with three digits each."""
    factor, unit = next(((factor, unit) for factor, unit in _SECONDS if largest >= factor * 0.9995), _SECONDS[-1])
    return lambda value: UNKNOWN if value is None else f"{significant(value / factor)} {unit}"


def seconds_between(low: float, high: float, *, write: Callable[[float | None], str] | None = None) -> str:
    """Write two times [s]: "12.4–12.6 ms"; with one unit where they share it, and around 0: "-0.224 to 10.0 ms".

    write: of the column that they stand in (`seconds_unit`); None: each in its own unit.
    """
    write = write or (seconds_unit(max(-low, high)) if low < 0 else seconds)
    first, second = write(low), write(high)
    number, _, unit = first.partition(" ")
    if not second.endswith(f" {unit}"):
        return f"{first} to {second}"
    return f"{number}{'–' if low >= 0 else ' to '}{second}"


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share of one as percent; a share above 0 that rounds to 0 is "<0.1 %"."""
    if share is None:
        return UNKNOWN
    least = 10**-digits
    value = 100 * share
    if 0 < value < least / 2:
        return f"<{least:.{digits}f} %"
    text = f"{value:.{digits}f}"
    if value < 100 and text.startswith("100"):
        return f">{100 - least:.{digits}f} %"  # never round up to all of it
    return f"{text} %"


def is_whole(share: float) -> bool:
    """Return whether a share rounds to 100 %, so that what lacks is not said."""
    return share >= 0.995


def percent_between(low: float, high: float) -> str:
    """Write a range of shares of one in whole percents: "24–48 %", "up to 3 %", "24 %" where the ends agree."""
    first, second = percent(low, 0), percent(high, 0)
    if first == second:
        return first
    return f"up to {second}" if first in ("0 %", "<1 %") else f"{first.removesuffix(' %')}–{second}"


def count(value: float | None) -> str:
    """Write a count, with thousands separators."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def plain(text: str, width: int | None = LONGEST) -> str:
    """Write a text of a profile, which may be anything, on one line, cut to `width` letters; None: as long as it is.

    Control characters, terminal escapes and bidirectional marks are left out; what a runner of CI takes for a command
    is broken.
    """
    text = text if width is None else text[: 4 * width]  # enough for the omitted characters, and no more work than that
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in _ESCAPE.sub("", text))
    text = " ".join(text.split())
    if "::" in text or "##[" in text:
        text = _COMMAND.sub(": :", text).replace("##[", "# #[")
    return text if width is None else cut(text, width)


def cut(text: str, width: int, keep_end: bool = False) -> str:
    """Cut a text to `width` letters (at least 1), an ellipsis among them, at its end or at its beginning."""
    if len(text) <= width:
        return text
    return f"…{text[len(text) - width + 1 :]}" if keep_end else f"{text[: width - 1]}…"


def printable(text: object) -> str:
    """Replace characters that act on a terminal, each by a question mark: a file may have any name."""
    return "".join(character if character.isprintable() else "?" for character in str(text))


def quote(text: object) -> str:
    """Quote a text from elsewhere in an error: its beginning, with unprintable characters escaped."""
    return repr(text if len(str(text)) <= 40 else cut(str(text), 40))
