"""The table of the page on Keras 3, by row and column."""

from __future__ import annotations

from collections.abc import Mapping

from roofline.published.implied import Implied, implied
from roofline.published.publication import Publication

#: (task, batch) of a row.
Place = tuple[str, str]

EAGER, COMPILED, KERAS2 = "Native PyTorch (eager)", "Native PyTorch (compiled)", "Keras 2 (TF)"
JAX, TENSORFLOW, TORCH = "Keras 3 (JAX)", "Keras 3 (TF)", "Keras 3 (PyTorch eager)"
BACKENDS = (TENSORFLOW, JAX, TORCH)
FIRST = "2024-03 first (v0.0.1)"
#: The page counts ten tasks; its table has twelve rows, two of them generating for one prompt.
_TENTH = "1"


class Figures:
    """The table by row and column, as times [s]."""

    def __init__(self, publication: Publication, version: str = "") -> None:
        self.publication = publication
        shown = [cell for cell in publication.cells if cell.version == (version or publication.versions[0])]
        self.cells = {(cell.task, cell.batch, cell.column): cell for cell in shown}
        self.seconds = {place: cell.seconds for place, cell in self.cells.items() if cell.seconds is not None}
        self.rows: tuple[Place, ...] = tuple(dict.fromkeys((cell.task, cell.batch) for cell in shown))

    def best(self, row: Place) -> float:
        """The best backend of Keras 3 [s]."""
        return min(self.seconds[*row, column] for column in BACKENDS)

    def gains(self, column: str) -> dict[Place, float]:
        """How many times as fast Keras 3's best backend is as a column, in the rows that the column has."""
        return {row: self.seconds[*row, column] / self.best(row) for row in self.rows if (*row, column) in self.seconds}

    def rate(self, task: str, column: str) -> Implied:
        """What the cell of a task implies; KeyError where the task has several rows."""
        return implied(self.publication, self.publication.find(task, column))

    def winners(self, columns: tuple[str, ...]) -> dict[str, int]:
        """How many rows each column is the fastest in."""
        fastest = [
            min((self.seconds[*row, column], column) for column in columns if (*row, column) in self.seconds)[1]
            for row in self.rows
        ]
        return {column: fastest.count(column) for column in columns}

    def fastest(self) -> dict[str, int]:
        """How many rows each column of the table is the fastest in."""
        return self.winners(tuple(dict.fromkeys(column for _, _, column in self.seconds)))


def ten_tasks(gains: Mapping[Place, float]) -> dict[Place, float]:
    """Without the rows that generate for one prompt: the ten tasks of the page."""
    return {row: gain for row, gain in gains.items() if not (row[0].endswith("generate") and row[1] == _TENTH)}


def above(gains: Mapping[Place, float], ratio: float) -> int:
    """How many rows have a gain above `ratio`."""
    return sum(gain > ratio for gain in gains.values())


def flops(one: Implied) -> float:
    """The work of a cell [FLOP]."""
    if one.work is None or one.work.flops is None:
        raise ValueError(f"the work of {one.cell.task} is not counted")
    return one.work.flops
