"""Read whole numbers from texts that anybody wrote: variables of the environment, settings in a profile."""

from __future__ import annotations

#: Digits that a 64-bit integer always holds; Python refuses to read numbers of thousands of them.
_MOST = 18


def whole(text: str) -> int | None:
    """Read a whole number of decimal digits, 0 or more; None for any other text, and for too many digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST else None
