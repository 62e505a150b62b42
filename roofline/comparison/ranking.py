"""Several runs side by side: each against the fastest, and every two of them as a speedup with its parity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from roofline.analysis.analysis import Analysis, analyze_timed, why_untimed
from roofline.analysis.launch_floor import seen_device
from roofline.analysis.run_names import called
from roofline.comparison.account.account import account
from roofline.comparison.account.row import Account, Row
from roofline.comparison.breakdown.breakdown import Breakdown, breakdown, observations
from roofline.comparison.common_ceilings import best_ceilings, same_device
from roofline.comparison.headline import Headline, headline
from roofline.comparison.parity.parity import Verdict, parity
from roofline.comparison.proof.proof import Proof
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.repr_mixin import ReprMixin
from roofline.units import plain


@dataclass(frozen=True, slots=True)
class RankedPair:
    """Two runs, what they are called, and why they differ: the account of wall_A - wall_B.

    proofs: what turning switches moved; None where nobody asked. breakdown: the ops by another key; None where they are
    told by phase and block. observations: the ops that differ, of runs without blocks or without steps enough to tell
    a difference from noise; None of others.
    """

    names: tuple[str, str]
    comparison: Comparison
    account: Account
    proofs: tuple[Proof, ...] | None = None
    breakdown: Breakdown | None = None
    observations: Breakdown | None = None

    @property
    def findings(self) -> tuple[Row, ...]:
        """Return the rows of the account that have a name, less settings, which have no seconds."""
        return tuple(row for row in self.account.rows if row.annotations and row.seconds is not None)

    @property
    def headline(self) -> Headline:
        """Say which of the two is faster, as far as they tell."""
        return headline(self.comparison, (plain(self.names[0]), plain(self.names[1])))


@dataclass(frozen=True, repr=False)
class Ranking(ReprMixin):
    """Runs in the order given, the number of the fastest, and the pairs that are shown.

    pairs: of two runs one; of more, each against the fastest, which is B, the fastest of them first.
    """

    names: tuple[str, ...]
    runs: tuple[Analysis, ...]
    fastest: int
    pairs: tuple[RankedPair, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Return the numbers of the runs, the fastest first."""
        return tuple(sorted(range(len(self.runs)), key=lambda number: (number != self.fastest, self.runs[number].wall)))

    @cached_property
    def speedups(self) -> tuple[tuple[float, ...], ...]:
        """Return wall of the row's run / wall of the column's: how many times faster the column's is."""
        return tuple(tuple(row.wall / column.wall for column in self.runs) for row in self.runs)

    @cached_property
    def verdicts(self) -> tuple[tuple[Verdict, ...], ...]:
        """Judge the parity of every two runs; swapping them changes nothing."""
        judged: dict[tuple[int, int], Verdict] = {}
        for row, a in enumerate(self.runs):
            judged[row, row] = "comparable"
            for column, b in enumerate(self.runs[:row]):
                judged[row, column] = judged[column, row] = parity(a, b).verdict
        return tuple(tuple(judged[row, column] for column in range(len(self.runs))) for row in range(len(self.runs)))


def rank(
    profiles: Sequence[Profile], *, as_given: bool = False, by: str | None = None, fastest: int | None = None
) -> Ranking:
    """Compare runs with the fastest of them; as_given: of two, the first with the second; by: a key for their ops.

    fastest: the number of the run that counts as the fastest, by another statistic than our median.

    Raises InputError for fewer than two runs and for one without times of ops.
    """
    if len(profiles) < 2:
        raise InputError("Only one run is given: give at least two.")
    names = called(profiles)
    for name, profile in zip(names, profiles, strict=True):
        check_timed(profile, plain(name))
    # Every pair must be under the same ceilings, or a run would have another floor in each.
    profiles = on_common_ceilings(profiles)
    runs = tuple(analyze_timed(profile) for profile in profiles)
    if fastest is None:
        fastest = min(range(len(runs)), key=lambda number: runs[number].wall)
    if len(runs) == 2 and as_given:
        order = [(0, 1)]
    else:
        slower = sorted((n for n in range(len(runs)) if n != fastest), key=lambda number: runs[number].wall)
        order = [(number, fastest) for number in slower]
    if order == [(1, 0)]:  # of two runs A is the slower one, whatever the order given
        names = called(profiles[::-1])[::-1]
    pairs = []
    for a, b in order:
        pair = names[a], names[b]
        comparison = compare(profiles[a], profiles[b], pair)
        rows, shown = account(comparison, _short_names(comparison)), breakdown(comparison, by)
        pairs.append(RankedPair(pair, comparison, rows, breakdown=shown, observations=observations(comparison, shown)))
    return Ranking(names, runs, fastest, tuple(pairs))


def _short_names(comparison: Comparison) -> tuple[str, str]:
    """Return what the sentences of an account call two runs: their backends where these differ, else A and B."""
    a, b = (plain(run.profile.backend) for run in (comparison.a, comparison.b))
    return (a, b) if a != b and a and b else ("A", "B")


def check_timed(profile: Profile, name: str) -> None:
    """Raise InputError for a profile that was counted and not timed: it has nothing to compare."""
    if not profile.has_times:
        raise InputError(f"{name} {why_untimed(profile)}.")


def on_common_ceilings(profiles: Sequence[Profile]) -> list[Profile]:
    """Give the profiles of one device the best ceilings that any of them has seen."""
    seen = [seen_device(profile) for profile in profiles]
    return [
        msgspec.structs.replace(profile, device=best_ceilings(other for other in seen if same_device(device, other)))
        for profile, device in zip(profiles, seen, strict=True)
    ]
