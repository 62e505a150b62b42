"""What both runs recorded of their conditions, for rules that rest on it."""

from __future__ import annotations

from roofline.comparison.causes.attribution import Attribution
from roofline.core.schema import Profile


def of_both(attribution: Attribution, condition: str) -> tuple[float, float] | None:
    """A condition of both runs; None where one of them did not record it."""
    a, b = (run.profile.conditions.get(condition) for run in (attribution.comparison.a, attribution.comparison.b))
    return None if a is None or b is None else (a, b)


def threads(profile: Profile) -> str | None:
    """How many threads a run had."""
    return profile.environment.get("threads")
