"""Tell which rank of a job a profile is of: a trace says it, and a measured one's environment."""

from __future__ import annotations

from roofline.core.numerals import whole
from roofline.core.schema import Profile

#: Names in the environment of a measured profile.
RANK, RANKS = "rank", "ranks"


def number_of(profile: Profile) -> int | None:
    """Return the number of the rank; None where it is not known."""
    if profile.imported is not None:
        return profile.imported.rank
    return whole(profile.environment.get(RANK, ""))


def ranks_of(profile: Profile) -> int | None:
    """Return how many ranks the job has; None where it is not known."""
    if profile.imported is not None:
        return profile.imported.ranks
    return whole(profile.environment.get(RANKS, ""))
