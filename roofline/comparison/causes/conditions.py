"""What both runs recorded of their conditions, for rules that rest on it."""

from __future__ import annotations

from roofline.comparison.causes.attribution import Attribution
from roofline.core.schema import Profile

#: Results that the host reads in a step (`.item()`).
READS = "host_reads_per_step"
#: Time in which the thread that dispatches was on no core [s].
AWAY = "away_seconds_per_step"
#: The same without waiting for threads of its own ops, of PyTorch's steps that are not long [s].
ASLEEP = "asleep_seconds_per_step"
#: Compiled programs that a step runs.
PROGRAMS = "programs_per_step"


def of_both(attribution: Attribution, condition: str) -> tuple[float, float] | None:
    """A condition of both runs; None where one of them did not record it."""
    a, b = (run.profile.conditions.get(condition) for run in (attribution.comparison.a, attribution.comparison.b))
    return None if a is None or b is None else (a, b)


def threads(profile: Profile) -> str | None:
    """How many threads a run had."""
    return profile.environment.get("threads")
