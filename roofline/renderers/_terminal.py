"""Text for a terminal: cells in columns, rules between the lines, and names with words beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

#: Letters in a line.
WIDTH = 100
_INDENT = 13


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The letters of the longest cell in each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def columns(
    rows: Sequence[Sequence[str]], left: Collection[int], separator: str = "  ", least: Sequence[int] = ()
) -> list[str]:
    """One line per row, without blanks at its end.

    left: the columns of words; the others hold numbers and end at one place. least: the least width of each column.
    """
    wide = widths([*rows, [" " * each for each in least]] if least else rows)
    return [
        separator.join(
            cell.ljust(size) if number in left else cell.rjust(size)
            for number, (cell, size) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]


def ruled(lines: Sequence[str], *before: int) -> list[str]:
    """The lines of a table with a rule before each of the lines `before`; -1 is the last one."""
    rule = "─" * max(map(len, lines))
    places = {number % len(lines) for number in before}
    return [part for number, line in enumerate(lines) for part in ([rule, line] if number in places else [line])]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Names with words beside them, which stay beside them where they take several lines."""
    return [
        line
        for name, words in pairs
        for line in textwrap.wrap(
            f"{name:<{_INDENT}}{words}", WIDTH, subsequent_indent=" " * _INDENT, break_on_hyphens=False
        )
    ]
