"""Times of a Chrome trace, numbers in µs, as whole nanoseconds.

An epoch in µs read as float64 would lose 0.25 µs: such numbers are taken from their text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import msgspec
import numpy as np

_LARGEST = 2**62  # [ns] the difference of two times must fit 63 bits
_WIDTH = 32  # characters of a number that are decoded together; a longer one goes the slow way
_FINE = 2.0**43  # [µs] below it the neighbours of a float64 are less than 1 ns apart: three decimals are exact
_WHOLE = 2.0**53  # [µs] below it a float64 holds every integer


def from_floats(values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """float64 [µs] as int64 [ns] and which are numbers (bool); None where their text may have told more."""
    usable = np.isfinite(values)
    values = np.where(usable, values, 0.0)
    microseconds = np.floor(values)
    fraction = values - microseconds
    size = np.abs(values)
    if np.any((size >= _FINE) & (fraction != 0) | (size >= _WHOLE)):
        return None
    time = microseconds.astype(np.int64) * 1000 + np.rint(fraction * 1000).astype(np.int64)
    usable &= np.abs(time) < _LARGEST
    return np.where(usable, time, 0), usable


def from_texts(texts: Sequence[bytes | msgspec.Raw]) -> tuple[np.ndarray, np.ndarray]:
    """JSON numbers in µs as int64 [ns], rounded to nearest, and which of them are numbers (bool).

    Plain decimals are decoded together, a column of characters at a time; exponents and numbers in quotes one
    by one. Null, text, an absent value and what does not fit 63 bits are no numbers: their value is 0.
    """
    texts = [bytes(text) for text in texts]
    if not texts:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    cells = np.array(texts, f"S{_WIDTH}").view(np.uint8).reshape(len(texts), _WIDTH)
    cells = cells[:, : max(1, min(_WIDTH, int(length.max())))]
    digit = (cells >= ord("0")) & (cells <= ord("9"))
    point = cells == ord(".")
    minus = cells[:, 0] == ord("-")
    # Position of the point; a number without one has it behind its last digit.
    at = np.where(point.any(axis=1), point.argmax(axis=1), length)
    plain = (digit.sum(axis=1) + point.sum(axis=1) + minus == length) & (point.sum(axis=1) <= 1)
    # Sixteen digits of microseconds (an epoch) still fit 63 bits as nanoseconds.
    plain &= (at - minus >= 1) & (at - minus <= 16) & (length <= _WIDTH)
    microseconds, fraction = np.zeros((2, len(texts)), np.int64)
    for column in range(cells.shape[1]):
        is_digit = plain & digit[:, column]
        number = (cells[:, column] - ord("0")).astype(np.int64)
        microseconds = np.where(is_digit & (column < at), microseconds * 10 + number, microseconds)
        # Three decimals of a microsecond are nanoseconds; the fourth rounds.
        fraction = np.where(is_digit & (column > at) & (column <= at + 3), fraction * 10 + number, fraction)
    value = microseconds * 1000 + fraction * 10 ** (3 - np.clip(length - at - 1, 0, 3))
    fourth = np.minimum(at + 4, cells.shape[1] - 1)
    value += plain & (at + 4 < length) & (cells[np.arange(len(texts)), fourth] >= ord("5"))
    value = np.where(minus, -value, value)
    usable = plain & (microseconds < _LARGEST // 1000)
    value[~usable] = 0
    for row, time in _slowly(texts, np.flatnonzero(~plain)):
        value[row], usable[row] = time, True
    return value, usable


def _slowly(texts: list[bytes], rows: np.ndarray) -> Iterator[tuple[int, int]]:
    for row in rows.tolist():
        try:
            number = Decimal(texts[row][:80].strip(b'"').decode())
            if number.is_finite() and abs(number) < _LARGEST // 1000:
                yield row, int((number * 1000).to_integral_value())
        except (ArithmeticError, UnicodeDecodeError):  # every error of decimal is the former
            continue
