"""What every recorder adds to its rows: the block of each scope, and what could not be said."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from roofline.core.step import Step
from roofline.costs.counted import Counted
from roofline.timing.timed import Timed
from roofline.units import seconds


def block_of_scopes(step: Step, scopes: Sequence[str]) -> list[str]:
    """The block of each scope: by the model's map, else the scope's first part."""
    if not step.blocks:
        return [path.partition("/")[0] or "(top)" for path in scopes]
    return [next((block for pattern, block in step.blocks if fnmatchcase(path, pattern)), "other") for path in scopes]


def notes(counted: Counted, timed: Timed | None) -> tuple[str, ...]:
    """What the profile cannot say, by name: ops whose work is unknown, and events that no counted call explains."""
    unknown = [f"the work of {name} ({why})" for name, why in sorted(counted.unknown.items())]
    lost = timed.unmatched if timed else {}
    return (*unknown, *(f"what {name} is ({seconds(time)} per step)" for name, time in sorted(lost.items())))
