"""Say where the answer of a sweep changes. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.account.row import Row
from roofline.comparison.account.words import class_name
from roofline.content import wording
from roofline.sweeping.grid import GAP, Border, Grid
from roofline.sweeping.plan import Point

#: What limits a step, in words: a bound of ops, or the time in which none ran.
LIMITS = {GAP: "idle or host time", "near ridge": "compute and memory alike", "unknown": "work that is not known"}


def limit(name: str) -> str:
    """Name what limits a step."""
    return LIMITS.get(name, wording.plain(name, 20))


def place(cell: Point, *without: str) -> str:
    """Name a cell, but for some of its coordinates: "bert infer, batch 4, 128 tokens, bf16"."""
    return wording.plain(cell.place(*without), 120)


def cause(row: Row | None) -> str:
    """Name the largest row of an account in a few words; "" for none."""
    if row is None:
        return ""
    if row.annotations:
        return row.annotations[0]
    return wording.plain(row.place or "", 60) or (
        f"the same {class_name(row.op_class)} ops" if row.kind == "rate" else "other ops"
    )


def border(edge: Border) -> str:
    """Say a border: "bert train, 128 tokens: torch is fastest up to batch 2, jax from batch 4 on (dispatching)."."""
    noun = "batch {}" if edge.axis == "batch" else "{} tokens"
    low, high = noun.format(edge.low), noun.format(edge.high)
    where, backend = place(edge.cell, edge.axis), wording.plain(edge.backend, 40)
    if edge.kind == "winner":
        before, after = (wording.plain(name, 40) for name in (edge.before, edge.after))
        largest = f"; the largest row before: {cause(edge.cause)}" if edge.cause else ""
        return f"{where}: {before} is fastest up to {low}, {after} from {high} on{largest}."
    before, after = limit(edge.before), limit(edge.after)
    return f"{where}, {backend}: over half of the step is {before} up to {low}, {after} from {high} on."


def sentences(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield what the grid lacks, and its borders: id and sentence."""
    if grid.missing:
        yield "missing", f"{wording.counted(grid.missing, 'point')} not measured yet: roofline sweep -o DIR goes on."
    for edge in grid.borders:
        yield edge.kind, border(edge)
