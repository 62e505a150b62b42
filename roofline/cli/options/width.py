"""Read the width of a figure: 3.3in, 8.4cm or 84mm."""

from __future__ import annotations

import re

from roofline.errors import InputError

HELP = "Width in in, cm or mm. The default fits one column of a two-column paper."
#: What fits one column.
COLUMN = "3.3in"
_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4}
#: Limits of the width [in]: text of 6 pt in a narrower figure leaves no room for the data; a wider one fits no page.
_NARROWEST, _WIDEST = 2.5, 20.0


def read_inches(width: str) -> float:
    """Read a width [in]. Raises InputError for what is none, and for one that no figure has."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm)\s*", width, re.ASCII)
    if match is None:
        raise InputError(f"{width!r} is not a width: write it like 3.3in, 8.4cm or 84mm.")
    number = float(match[1]) * _UNITS[match[2]]
    if not _NARROWEST <= number <= _WIDEST:
        raise InputError(f"A figure cannot be {width} wide: choose {_NARROWEST}in to {_WIDEST:g}in.")
    return number
