"""Choose the rows that a reader asked for (`--top`, `--all`, `--sort`, `--filter`), and sum the others: totals close.

A renderer takes a `Choice` as its argument `rows` if its tables can be chosen from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, overload

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.totals import AnyTotal, RowSums, Total, WorkTotal
from roofline.errors import InputError

#: Keys that have no natural end, and how many rows of them are shown.
LONG = ("op", "scope", "kernel", "source")
TOP = 25
#: Keys whose rows are ops, so that what was fused into them can be told.
OPS = ("op", "kernel")

#: Columns by name, each of the name of a row and its sums.
_Sorts: TypeAlias = Mapping[str, Callable[[str, AnyTotal], float | str | None]]


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows that are shown.

    top: the first so many; None: 25 of a table that has no natural end, all of others. every: all of any. sort: the
    column that they are sorted by (`SORTS`), largest first, words in their order; None: as the table is. contains:
    only rows whose whole name, or the name of an op fused into theirs, has this text in it, whatever its case.
    """

    top: int | None = None
    every: bool = False
    sort: str | None = None
    contains: str = ""

    def most(self, by: str) -> int | None:
        """Return how many rows of a table by a key are shown at most; None: all."""
        return None if self.every else self.top if self.top is not None else TOP if by in LONG else None


#: The table as it is.
USUAL = Choice()


@dataclass(frozen=True, slots=True)
class Chosen(Generic[AnyTotal]):
    """Rows by name, and the sums of the hidden ones, each with its label: "(5 more)".

    fused: the ops fused into those of a row, by its name.
    """

    shown: Mapping[str, AnyTotal]
    remainders: tuple[tuple[str, AnyTotal], ...]
    fused: Mapping[str, tuple[str, ...]]


def _known(total: Total, unknown_seconds: float, quantity: float) -> float | None:
    return quantity if total.own_seconds > unknown_seconds else None


#: What `--sort` takes of a step that was counted and not timed.
WORK_SORTS: _Sorts[WorkTotal] = {
    "name": lambda name, total: name.casefold(),
    "ops": lambda name, total: total.ops,
    "flop": lambda name, total: total.flops + total.vector_flops if total.costed else None,
    "bytes": lambda name, total: total.bytes_read + total.bytes_written if total.costed else None,
}
#: What `--sort` takes: a number of a row, or a word. Unknown comes last.
SORTS: _Sorts[Total] = {
    "name": WORK_SORTS["name"],
    "ops": WORK_SORTS["ops"],
    "flop": lambda name, total: _known(total, total.unknown_flops, total.flops + total.vector_flops),
    "bytes": lambda name, total: _known(total, total.unknown_bytes, total.bytes_read + total.bytes_written),
    "time": lambda name, total: total.seconds,
    "minimum": lambda name, total: _known(total, total.uncosted, total.floor),
    "above": lambda name, total: _known(total, total.uncosted, total.loss),
    "rate": lambda name, total: _known(total, total.unknown_flops, total.flop_rate or 0.0),
    "roof": lambda name, total: total.bound,
    "attained": lambda name, total: total.attained if total.mostly_costed else None,
}
#: What columns were called, which `--sort` still takes.
FORMER = {"floor": "minimum", "loss": "above"}


@overload
def chosen(analysis: Analysis, by: str, choice: Choice) -> Chosen[Total]: ...


@overload
def chosen(analysis: WorkAnalysis, by: str, choice: Choice) -> Chosen[WorkTotal]: ...


def chosen(analysis: WorkAnalysis, by: str, choice: Choice) -> Chosen[Total] | Chosen[WorkTotal]:
    """Choose the rows by a key. Raises InputError for a column that there is none of, or a text that no row has."""
    if isinstance(analysis, Analysis):
        return _chosen(analysis, analysis.by(by), SORTS, by, choice)
    if choice.sort in SORTS and choice.sort not in WORK_SORTS:
        raise InputError(
            f"The profile has no times, so nothing can be sorted by {choice.sort!r}: sort by {', '.join(WORK_SORTS)}."
        )
    return _chosen(analysis, analysis.by(by), WORK_SORTS, by, choice)


def _chosen(
    analysis: WorkAnalysis, sums: RowSums[AnyTotal], sorts: _Sorts[AnyTotal], by: str, choice: Choice
) -> Chosen[AnyTotal]:
    fused = analysis.fused(by) if by in OPS else {}
    names = list(sums)
    if choice.contains:
        wanted = choice.contains.casefold()
        names = [name for name in sums if any(wanted in label.casefold() for label in (name, *fused.get(name, ())))]
        if not names:
            raise InputError(f"No {by} has {choice.contains!r} in its name: give another text to --filter.")
    if choice.sort is not None:
        names = _sorted(names, sums, choice.sort, sorts)
    limit = choice.most(by)
    rows_beyond = names[limit:] if limit is not None else []
    matching = set(names)
    filtered_out = [name for name in sums if name not in matching]
    remainders = [(f"({len(rows_beyond)} more)", sums.together(rows_beyond))] if rows_beyond else []
    if filtered_out:
        remainders.append((f"({len(filtered_out)} filtered out)", sums.together(filtered_out)))
    return Chosen({name: sums[name] for name in names[:limit]}, tuple(remainders), fused)


def _sorted(names: list[str], sums: Mapping[str, AnyTotal], column: str, sorts: _Sorts[AnyTotal]) -> list[str]:
    if column not in sorts:
        raise InputError(f"There is no column {column!r} to sort by; there are: {', '.join(sorts)}.")
    values = {name: sorts[column](name, sums[name]) for name in names}
    words = [name for name in names if isinstance(values[name], str)]
    numbers = [name for name in names if isinstance(values[name], int | float)]
    names_without_number = [name for name in names if values[name] is None]
    words.sort(key=lambda name: str(values[name]))
    numbers.sort(key=lambda name: -float(values[name] or 0.0))
    return [*words, *numbers, *names_without_number]
