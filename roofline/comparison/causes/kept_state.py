"""Ops that keep something from step to step up to date, outside of the model: averages of weights, statistics."""

from __future__ import annotations

import numpy as np

from roofline.comparison.arrays import Bools
from roofline.core.executor import PROGRAMS
from roofline.core.rows import buffers_known, per_profile, settled
from roofline.core.schema import Profile

_ELEMENT_BY_ELEMENT = frozenset(("pointwise", "movement", "optimizer"))


@per_profile
def updates(profile: Profile) -> Bools:
    """For each op whether it only keeps up to date what the step found when it began.

    It writes into what was there, and the step computes nothing else with that; or it is there for such ops alone, made
    of what was there. And after the optimizer what is made of that alone, element by element, and of which nothing is
    made: an average that is a new tensor in each step. Histograms and norms of weights are told to somebody, not kept.
    """
    found = np.zeros(len(profile.ops), bool)
    # What one compiled program hands to the next is another buffer there, so that nobody sees what is made of it.
    if not buffers_known(profile) or PROGRAMS in profile.conditions:
        return settled(found)
    was_there = _was_there(profile)
    of_that = _made_of(profile, was_there)
    updated = _last_update(profile)
    # Of each buffer that is read before it is written again, from the end: whether by an op that computes something
    # else with it.
    read: dict[int, bool] = {}
    for number in range(len(profile.ops) - 1, -1, -1):
        op = profile.ops[number]
        after = [read[buffer] for buffer in op.writes if buffer in read]
        kept = bool(op.writes) and was_there.issuperset(op.writes)
        made = number > updated and profile.signatures[op.signature].op_class in _ELEMENT_BY_ELEMENT
        alone = of_that[number] and (bool(after) or made)
        keeps = (kept or alone) and not any(after)
        found[number] = keeps
        for buffer in op.writes:
            read.pop(buffer, None)
        for buffer in op.reads:
            read[buffer] = read.get(buffer, False) or not keeps
    return settled(found)


def _was_there(profile: Profile) -> set[int]:
    """The buffers that are read before any op of the step writes them."""
    seen: set[int] = set()
    found = set()
    for op in profile.ops:
        found |= set(op.reads) - seen
        seen.update(op.reads, op.writes)
    return found


def _made_of(profile: Profile, was_there: set[int]) -> list[bool]:
    """For each op whether all that it reads was there, updated or not, or is made of that by such ops."""
    known, found = set(was_there), []
    for op in profile.ops:
        found.append(bool(op.reads) and known.issuperset(op.reads))
        # What was there and is written with something else is no longer that; the optimizer's update of it is.
        if found[-1] or profile.phases[op.phase] == "optimizer":
            known.update(op.writes)
        else:
            known.difference_update(op.writes)
    return found


def _last_update(profile: Profile) -> int:
    """The number of the last op of the optimizer; that of no op where there is none."""
    return max(
        (number for number, op in enumerate(profile.ops) if profile.phases[op.phase] == "optimizer"),
        default=len(profile.ops),
    )
