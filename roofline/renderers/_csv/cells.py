"""Write the cells of a CSV file, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from roofline.content.wording import plain

_FORMULA = ("=", "+", "-", "@")


def text(value: str) -> str:
    """Write a name as text: spreadsheets run a cell that begins like a formula, unless an apostrophe comes first."""
    value = plain(value)
    return f"'{value}" if value.startswith(_FORMULA) else value


def number(value: float | None) -> str:
    """Write a number to 12 digits; unknown is empty."""
    return "" if value is None else f"{value:.12g}"


def table(fields: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write the file: a line of names, then a line for each row."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(chain([fields], rows))
    return stream.getvalue()


def document(fields: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """Write the file: a line of names, then a line for each row; a field that a row lacks is empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fields, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()
