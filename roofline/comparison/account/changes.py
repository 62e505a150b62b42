"""Group the ops without a partner into changes: what one run does in the place of what the other does there.

Stretches between matched ops become one change where the same ops differ in them (equal layers), where they are at one
place in several phases, or where autograd made the one of the other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from roofline.comparison.account.row import Note
from roofline.comparison.account.runs import Runs
from roofline.comparison.matching import UnmatchedStretch
from roofline.core.arrays import Rows

#: What autograd appends to the name of an op for its backward.
_BACKWARD = re.compile("_backward.*$")


@dataclass(frozen=True, slots=True)
class Change:
    """Segments without a partner, and the pairs right after them, by number; their phase, if it is one.

    What a host does between the op before and the op after, it does for what stands between them in either run: views,
    a loop, entering a module. So what dispatching the pairs right after takes is part of the change.
    """

    phase: str | None
    a: Rows
    b: Rows
    after_a: Rows
    after_b: Rows
    notes: tuple[Note, ...]


def group_changes(runs: Runs) -> list[Change]:
    """Group the stretches without a partner, each group with the pairs right after it."""
    pairs_a, pairs_b = runs.matching.pairs_a, runs.matching.pairs_b
    free = np.ones(len(pairs_a), bool)
    changes = []
    for stretches, notes in _merged(runs):
        a, b = (np.concatenate([getattr(stretch, side) for stretch in stretches]) for side in ("a", "b"))
        ops_a, ops_b = runs.a.side.segments.op, runs.b.side.segments.op
        after = free & (np.isin(ops_a[pairs_a], ops_a[a] + 1) | np.isin(ops_b[pairs_b], ops_b[b] + 1))
        free &= ~after
        phases = {stretch.phase for stretch in stretches}
        changes.append(Change(phases.pop() if len(phases) == 1 else None, a, b, pairs_a[after], pairs_b[after], notes))
    return changes


def _merged(runs: Runs) -> Iterator[tuple[list[UnmatchedStretch], tuple[Note, ...]]]:
    """Yield groups of stretches that have a key in common, and why each was merged."""
    stretches = runs.matching.unmatched
    parents = list(range(len(stretches)))
    reasons: list[tuple[int, str]] = []

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    first: dict[Hashable, int] = {}
    lone = Counter({(stretch.phase, _asked_alone(runs, stretch)) for stretch in stretches})
    for number, stretch in enumerate(stretches):
        keys = list(_keys(runs, stretch))
        if (asking_run := _asked_alone(runs, stretch)) is not None and lone[stretch.phase, 1 - asking_run]:
            keys.append(("products that the other run has elsewhere", stretch.phase))
        for reason, key in keys:
            first_root = root(first.setdefault((reason, key), number))
            if first_root != root(number):
                parents[root(number)] = first_root
                reasons.append((number, reason))
    groups: defaultdict[int, list[UnmatchedStretch]] = defaultdict(list)
    for number, stretch in enumerate(stretches):
        groups[root(number)].append(stretch)
    merged: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for number, reason in reasons:
        merged[root(number)][reason] += 1
    for number, group in groups.items():
        counts = merged[number].items()
        yield group, tuple(Note(step="group", reason=f"{count} x {reason}") for reason, count in counts)


def _asked_alone(runs: Runs, stretch: UnmatchedStretch) -> int | None:
    """Return which run alone executes products in a stretch that were asked for: 0 or 1, None if both do or neither."""
    sides = (runs.a.side.segments, stretch.a), (runs.b.side.segments, stretch.b)
    asked = [bool(np.nansum(segments.model_flops[rows]) > 0) for segments, rows in sides]
    return asked.index(True) if sum(asked) == 1 else None


def _keys(runs: Runs, stretch: UnmatchedStretch) -> Iterator[tuple[str, Hashable]]:
    """Yield what stretches of one change have in common, each with the reason to merge them."""
    sides = (runs.a, stretch.a), (runs.b, stretch.b)
    names = [frozenset(run.names[row][0] for row in rows.tolist()) for run, rows in sides]
    yield "the same ops elsewhere", (stretch.phase, *names)
    if stretch.phase == "optimizer":
        return
    scopes = runs.ranked_scopes(stretch.a, stretch.b)
    fused = any(run.side.segments.fused[rows].any() for run, rows in sides)
    for scope in scopes if fused else scopes[:1]:  # a compiler fuses across the places of a phase
        yield "the same place", (stretch.phase, scope)
    if fused:
        return
    yield from (("the same place", scope) for scope in scopes[:1])
    for name in (*names[0], *names[1]):
        yield "the backward of its ops", (scopes[:1], _BACKWARD.sub("", name))
