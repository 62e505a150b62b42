"""Say where the answer of a sweep changes. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.account.row import Row
from roofline.comparison.account.words import class_name
from roofline.renderers import _words
from roofline.sweeping.grid import GAP, Border, Grid
from roofline.sweeping.plan import Point

#: What limits a step, in words: a bound of ops, or the time in which none ran.
LIMITS = {GAP: "idle or host time", "near ridge": "compute and memory alike", "unknown": "work that is not known"}


def limit(name: str) -> str:
    """Name what limits a step."""
    return LIMITS.get(name, _words.plain(name, 20))


def place(cell: Point, *without: str) -> str:
    """Name a cell, but for some of its coordinates: "bert inference, batch 4, 128 tokens, bf16"."""
    parts = [
        " ".join(filter(None, (_words.plain(cell.model, 40), cell.size if cell.size not in ("base", "-") else "")))
    ]
    parts[0] += f" {cell.mode}"
    parts += [f"batch {cell.batch}"] if cell.batch is not None and "batch" not in without else []
    parts += [f"{cell.seq} tokens"] if cell.seq is not None and "seq" not in without else []
    parts += [_words.plain(cell.precision, 20)] if cell.precision != "default" else []
    return ", ".join(parts)


def cause(row: Row | None) -> str:
    """Name the largest row of an account in a few words; "" for none."""
    if row is None:
        return ""
    if row.annotations:
        return row.annotations[0]
    return row.place or (f"the same {class_name(row.op_class)} ops" if row.kind == "rate" else "other ops")


def border(one: Border) -> str:
    """Say a border: "bert train, 128 tokens: torch is fastest up to batch 2, jax from batch 4 on (dispatching)."."""
    noun = "batch {}" if one.axis == "batch" else "{} tokens"
    ends = noun.format(one.low), noun.format(one.high)
    where = place(one.cell, one.axis)
    if one.what == "winner":
        largest = f"; the largest row before: {cause(one.cause)}" if one.cause else ""
        return f"{where}: {one.before} is fastest up to {ends[0]}, {one.after} from {ends[1]} on{largest}."
    before, after = limit(one.before), limit(one.after)
    return f"{where}, {one.backend}: over half of the step is {before} up to {ends[0]}, {after} from {ends[1]} on."


def sentences(grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield what the grid lacks, and its borders: id and sentence."""
    if grid.missing:
        yield "missing", f"{_words.counted(grid.missing, 'point')} not measured yet: roofline sweep -o DIR goes on."
    for one in grid.borders:
        yield one.what, border(one)
