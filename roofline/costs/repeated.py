"""Count what a backward pass computes again, where functions that do so lie inside of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)


def named_from_outside(members: Mapping[str, Set[_Key]]) -> dict[_Key, str]:
    """Map what checkpoints repeat to the names of all that do, the outermost first, with a ";" behind each.

    members: what each repeats. One that lies inside of another repeats fewer of these.
    """
    names: dict[_Key, str] = {}
    for checkpoint in sorted(members, key=lambda checkpoint: len(members[checkpoint]), reverse=True):
        names |= {member: f"{names.get(member, '')}{checkpoint};" for member in members[checkpoint]}
    return names


def repeated_once(by_checkpoint: Mapping[str, Counter[_Key]]) -> Counter[_Key]:
    """Sum up what is repeated, but the more of what a checkpoint repeats and what those inside of it repeat again.

    by_checkpoint: numbers of what each repeats; the name of one that lies inside of another begins with that one's
    (`named_from_outside`, or what JAX calls it).
    """
    inside: dict[str | None, Counter[_Key]] = {None: Counter()}
    for checkpoint in sorted(by_checkpoint, key=len, reverse=True):
        around = (other for other in by_checkpoint if other != checkpoint and checkpoint.startswith(other))
        sums = inside.get(checkpoint, Counter()) | by_checkpoint[checkpoint]
        inside.setdefault(max(around, key=len, default=None), Counter()).update(sums)
    return inside[None]
