"""A table in words: columns and names give way where a format has no room for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. by: what its rows are; unit: of all numbers, "" of none. cells: of each row.

    heads: of the columns, with a second line after "\\n". ranks: of the columns: the highest goes first for want of
    room, 0 stays. about: what a caption says of them. words: the columns that hold no numbers. labels: the whole names
    of rows; names: write these in so many letters (None: as many as it takes), fit for a format by a function. rules:
    the rows below a rule. last: names are long, so that they stand behind. parts: what was fused into each row; empty:
    nothing anywhere.
    """

    by: str
    unit: str
    heads: Sequence[str]
    cells: Sequence[Sequence[str]]
    ranks: Sequence[int]
    about: Sequence[str]
    labels: Sequence[str]
    names: Callable[[int | None, Callable[[str], str]], Sequence[str]]
    rules: tuple[int, ...] = ()
    last: bool = False
    words: Collection[int] = ()
    parts: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Write the head of the column of names."""
        return f"{self.by} [{self.unit}]" if self.unit else self.by

    def head(self, number: int) -> str:
        """Write the head of a column on one line."""
        return self.heads[number].replace("-\n", "").replace("\n", " ")
