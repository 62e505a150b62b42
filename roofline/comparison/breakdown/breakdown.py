"""By what two runs are told apart: by phase and block where their ops say where in the model they are, else by class.

What both runs have decides: rows that only one of them has cancel and compare nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from roofline import units
from roofline.comparison.breakdown.rows import Ends, Row, rows
from roofline.comparison.terms import Comparison, Side
from roofline.core.vocabulary import Phase

#: By phase and block the terms of a comparison are: what is asked for by this name has no rows of its own.
BLOCK = "block"
#: What runs without blocks are compared by, the first that tells something; `FINER` is what their ops are named by.
_COARSE, _FINER = ("class", "op", "kernel"), ("op", "kernel")


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
        """busy_A - busy_B [s]."""
        return sum(row.seconds for row in self.rows)


def breakdown(comparison: Comparison, by: str | None = None) -> Breakdown | None:
    """The rows of a comparison by a key; None where these are phases and blocks, as the terms are.

    by: the key; None chooses it by what the runs have in common.
    """
    if by is not None:
        return None if by == BLOCK else _broken_down(comparison, by)
    why = _no_blocks(comparison)
    if not why:
        return None
    tried = (_broken_down(comparison, key) for key in _COARSE)
    telling = next((found for found in tried if _tells(found)), None)
    # Where nothing tells them apart, a class is at least the same word in both.
    return replace(telling or _broken_down(comparison, _COARSE[0]), why=why)


def observations(comparison: Comparison, shown: Breakdown | None) -> Breakdown | None:
    """The ops that differ, beside what is shown: None where the terms or findings of blocks tell that.

    They are told where there is no interval, so that nothing can be a finding, and where no block says where to look.
    """
    return _by_name(comparison) if comparison.ci95 is None or (shown is not None and shown.why) else None


def _by_name(comparison: Comparison) -> Breakdown:
    """The rows of two runs by the finest key by which most of both have names in common: op or kernel, else class."""
    tried = (_broken_down(comparison, key) for key in _FINER)
    common = next((found for found in tried if is_most(min(found.common))), None)
    return common or _broken_down(comparison, "class")


def _broken_down(comparison: Comparison, key: str) -> Breakdown:
    found = rows(comparison, key)
    busy = [_time(found, side) for side in (0, 1)]
    shared = [_time([row for row in found if all(row.parts)], side) for side in (0, 1)]
    common = [part / whole if whole > 0 else 0.0 for part, whole in zip(shared, busy, strict=True)]
    return Breakdown(key, "", found, (common[0], common[1]))


def _time(found: Iterable[Row], side: int) -> float:
    """The time of one run in some rows [s]."""
    return sum(part.seconds for row in found if (part := row.parts[side]))


def _tells(found: Breakdown) -> bool:
    """Whether most of both runs is in common rows, and not all of it in one."""
    return is_most(min(found.common)) and len(found.rows) > 1


def is_most(share: float) -> bool:
    """Whether what both runs have is a place or a name of most of their ops, by its share of the time."""
    return 2 * share >= 1


# ------------------------------------------------------------------------------------------------------------ blocks


def _no_blocks(comparison: Comparison) -> str:
    """Why the terms by phase and block say nothing; empty where they do."""
    placed = [_share_placed(side) for side in (comparison.work.a, comparison.work.b)]
    if not any(map(is_most, placed)):
        return "The runs do not say which part of the model most of their ops belong to"
    common = common_places(comparison)
    if not is_most(common):
        return f"Only {units.percent(common, 0)} of the ops' time is at the same phase and block in both runs"
    return ""


def common_places(comparison: Comparison) -> float:
    """How much of the ops' time is at the same phase and block in both runs, of the run with less of it; 1 of none."""
    times = [_by_place(side) for side in (comparison.work.a, comparison.work.b)]
    least = min(sum(each.values()) for each in times)
    common = sum(min(times[0].get(place, 0.0), time) for place, time in times[1].items())
    return common / least if least > 0 else 1.0


def _by_place(side: Side) -> Mapping[tuple[str, str], float]:
    """Time of the ops by phase and block [s]."""
    found: dict[tuple[str, str], float] = {}
    for place, seconds in zip(side.segments.places, side.seconds.tolist(), strict=True):
        where = place.phase, place.block
        found[where] = found.get(where, 0.0) + seconds
    return found


def _share_placed(side: Side) -> float:
    """Return the share of the ops' time that is in blocks of the model; 0 of one block, which tells nothing apart."""
    blocks: dict[str, float] = {}
    for (_, block), seconds in _by_place(side).items():
        # What stands for a block where there is none: nothing, the phase, or words in brackets, as "(top)".
        named = not block.startswith("(") and block not in get_args(Phase)
        blocks[block if named else ""] = blocks.get(block if named else "", 0.0) + seconds
    whole, nowhere = sum(blocks.values()), blocks.pop("", 0.0)
    return 1 - nowhere / whole if len(blocks) > 1 and whole > 0 else 0.0
