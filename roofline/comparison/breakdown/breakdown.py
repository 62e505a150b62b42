"""Break two runs down: by phase and block where their ops say where in the model they are, else by class.

What both runs have decides: rows that only one of them has cancel and compare nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

from roofline import units
from roofline.comparison.breakdown.rows import Ends, Row, rows
from roofline.comparison.terms import Comparison, Side
from roofline.core.vocabulary import Phase

#: What is asked for by this name has no rows of its own: the terms of a comparison are by phase and block.
BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The ops of two runs in rows by a key of `Analysis.by`. Its rows and the gap add up to wall_A - wall_B.

    why: a sentence that says why it is this key; empty where the user asked for it. common: shares of the time of A's
    and of B's ops in rows that both runs have.
    """

    by: str
    why: str
    rows: tuple[Row, ...]
    common: Ends

    @property
    def seconds(self) -> float:
        """Return busy_A - busy_B [s]."""
        return sum(row.seconds for row in self.rows)


def breakdown(comparison: Comparison, by: str | None = None) -> Breakdown | None:
    """Break a comparison down by a key; None where its rows are phases and blocks, as the terms are.

    by: the key; None chooses it by what the runs have in common.
    """
    if by is not None:
        return None if by == BLOCK else _broken_down(comparison, by)
    why = _no_blocks(comparison)
    return replace(_first_common(comparison, ("class", "op", "kernel"), 2), why=why) if why else None


def observations(comparison: Comparison, shown: Breakdown | None) -> Breakdown | None:
    """Break a comparison down by name where no block says where to look, or not all rows have intervals; else None."""
    if not comparison.has_intervals or (shown is not None and shown.why):
        return _first_common(comparison, ("op", "kernel"), 1)
    return None


def _first_common(comparison: Comparison, keys: Iterable[str], least: int) -> Breakdown:
    """Break down by the first key by which most of both runs is in common rows, of which there are at least so many.

    Where there is none, a class is at least the same word in both.
    """
    tried = (_broken_down(comparison, key) for key in keys)
    common = (shown for shown in tried if is_most(min(shown.common)) and len(shown.rows) >= least)
    return next(common, None) or _broken_down(comparison, "class")


def _broken_down(comparison: Comparison, key: str) -> Breakdown:
    summed = rows(comparison, key)
    shares = []
    for side in (0, 1):
        parts = [(part.seconds, all(row.parts)) for row in summed if (part := row.parts[side])]
        busy, common = sum(seconds for seconds, _ in parts), sum(seconds for seconds, is_common in parts if is_common)
        shares.append(common / busy if busy > 0 else 0.0)
    return Breakdown(key, "", summed, (shares[0], shares[1]))


def is_most(share: float) -> bool:
    """Return whether a share of the time, at places or of names that both runs have, is that of most of their ops."""
    return 2 * share >= 1


def _no_blocks(comparison: Comparison) -> str:
    """Say why the terms by phase and block say nothing; empty where they do."""
    if not any(is_most(_share_placed(side)) for side in (comparison.work.a, comparison.work.b)):
        return "The runs do not say which part of the model most of their ops belong to"
    common = common_places(comparison)
    if not is_most(common):
        return f"Only {units.percent(common, 0)} of the ops' time is at the same phase and block in both runs"
    return ""


def common_places(comparison: Comparison) -> float:
    """Return the share of the ops' time at phases and blocks of both runs, of the run with less time; 1 of none."""
    a, b = (_by_place(side) for side in (comparison.work.a, comparison.work.b))
    least = min(sum(a.values()), sum(b.values()))
    return sum(min(a.get(place, 0.0), seconds) for place, seconds in b.items()) / least if least > 0 else 1.0


def _by_place(side: Side) -> dict[tuple[str, str], float]:
    """Sum the ops' time by phase and block [s]."""
    times: dict[tuple[str, str], float] = {}
    for (phase, block, _), seconds in zip(side.segments.places, side.seconds.tolist(), strict=True):
        times[phase, block] = times.get((phase, block), 0.0) + seconds
    return times


def _share_placed(side: Side) -> float:
    """Return the share of the ops' time that is in blocks of the model; 0 of one block, which tells nothing apart."""
    blocks: dict[str, float] = {}
    for (_, block), seconds in _by_place(side).items():
        # What stands for a block where there is none: nothing, the phase, or words in brackets, as "(top)".
        name = "" if block.startswith("(") or block in get_args(Phase) else block
        blocks[name] = blocks.get(name, 0.0) + seconds
    total, nowhere = sum(blocks.values()), blocks.pop("", 0.0)
    return 1 - nowhere / total if len(blocks) > 1 and total > 0 else 0.0
