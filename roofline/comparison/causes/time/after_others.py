"""What ops take longer, or less, right after ops that only one run has: likely, other caches. No cause of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Rule
from roofline.comparison.causes.claim import NONE, Claim, Entry
from roofline.comparison.causes.select import first_times

#: What ops take longer after others is a consequence of those up to this part of what those take. By choice.
CONSEQUENCE = 0.5


def claim(attribution: Attribution) -> Iterator[Claim]:
    """For each cause, what ops that follow its own take longer or less.

    And what is computed again later takes longer at first, as it is kept track of: hooks run inside an op's event. Not
    where that were more than `CONSEQUENCE` of what a cause takes itself: then it has another one.
    """
    if not (attribution.one_executor and attribution.matching.alike):
        return
    following = attribution.following()
    claims: dict[tuple[str, bool], list[Claim]] = {}
    for number, rows in [*following.items(), *_kept_track_of(attribution, [rows for rows, _ in following.values()])]:
        name, slower = attribution.entries[number].claim.rule, attribution.seconds(attribution.entries[number]) > 0
        claims.setdefault((name, slower), []).append(Claim(name, *rows, after=number))
    itself: dict[tuple[str, bool], float] = {}
    for entry in attribution.entries:
        seconds = attribution.seconds(entry)
        itself[entry.claim.rule, seconds > 0] = itself.get((entry.claim.rule, seconds > 0), 0.0) + seconds
    for cause, each in claims.items():
        a, b = (np.concatenate(rows) for rows in ([claim.a for claim in each], [claim.b for claim in each]))
        later = float(attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum())
        if abs(later) <= CONSEQUENCE * abs(itself[cause]):
            yield from each


def _kept_track_of(attribution: Attribution, followers: Sequence[Rows]) -> Iterator[tuple[int, tuple[Rows, Rows]]]:
    """Of either run the first entry in which it computes again, by number, and what it did of that in the forward pass.

    As far as that is matched and not claimed. followers: segments of A that are claimed because they follow others.
    """
    sides = [
        [
            number
            for number, entry in enumerate(attribution.entries)
            if entry.claim.rule == "recomputation" and (attribution.seconds(entry) < 0) == bool(side)
        ]
        for side in (0, 1)
    ]
    repeated = [
        np.concatenate([NONE, *(_rows(attribution.entries[number], side) for number in numbers)])
        for side, numbers in enumerate(sides)
    ]
    taken = np.concatenate([NONE, *followers])
    for numbers, (a, b) in zip(sides, first_times(attribution, repeated), strict=True):
        if numbers:
            free = (attribution.left_a[a] == 1) & (attribution.left_b[b] == 1) & ~np.isin(a, taken)
            yield numbers[0], (a[free], b[free])


def _rows(entry: Entry, side: int) -> Rows:
    return entry.b if side else entry.a


RULE = Rule(name="after-others", claim=claim, after=("host-idle",))
