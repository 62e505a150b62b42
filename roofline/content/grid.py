"""A table in words: columns and names give way where a format has no room for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. by: what its rows are; unit: of all numbers. heads: of the columns, with a second line after "\\n".

    cells: of each row. ranks: of the columns: the highest goes first for want of room, 0 stays. about: what a caption
    says of them. labels: the whole name of each row; names: write these in so many letters (None: as many as it takes),
    fit for a format by a function. rules: the rows below a rule. last: names are long, so that they stand behind.
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

    @property
    def name(self) -> str:
        """Write the head of the column of names."""
        return f"{self.by} [{self.unit}]"

    def head(self, number: int) -> str:
        """Write the head of a column on one line."""
        return self.heads[number].replace("-\n", "").replace("\n", " ")
