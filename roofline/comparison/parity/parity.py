"""The parity gate: whether two runs may be compared, before anything is said about their times (docs/comparing.md).

Published comparisons were wrong by exactly this: TF32 on in one framework only, another intermediate size, CUDA graphs
in one. The rules, each with its reason, are in `work` (the same work), `precision`, `settings` (the same model in
detail) and `measurement` (the same conditions).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from roofline.analysis.analysis import Analysis, timed
from roofline.comparison.parity.difference import Difference, Pair, Severity, recorded
from roofline.comparison.parity.measurement import measurement
from roofline.comparison.parity.precision import precision
from roofline.comparison.parity.settings import settings
from roofline.comparison.parity.work import work
from roofline.errors import InputError

__all__ = ["Difference", "Parity", "Verdict", "parity", "refusal"]

Verdict = Literal["comparable", "named differences", "not comparable"]

#: What differences of each severity make of two runs, those first that decide it.
_VERDICTS: dict[Severity, Verdict] = {
    "refused": "not comparable",
    "named": "named differences",
    "warning": "comparable",
}
#: How the names of differences in work begin (work.py).
_OF_WORK = ("mode", "model", "batch", "sequence length", "parameters", "trainable parameters", "samples", "tokens")


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict whether two runs are comparable, and all differences: those that refuse, named ones, then warnings.

    Warnings are doubts about a measurement; they leave runs comparable.
    """

    verdict: Verdict
    differences: tuple[Difference, ...] = ()

    @property
    def settings(self) -> tuple[Difference, ...]:
        """Return the named differences that are settings, and not what is known of the work."""
        return tuple(named for named in self.of("named") if not named.what.startswith(_OF_WORK))

    @property
    def is_other_work(self) -> bool:
        """Return whether the runs do different work, so that their times have no ratio."""
        return any(refused.what.startswith(_OF_WORK) for refused in self.of("refused"))

    def of(self, severity: Severity) -> tuple[Difference, ...]:
        """Return the differences of one severity."""
        return tuple(difference for difference in self.differences if difference.severity == severity)


def parity(a: Analysis, b: Analysis, names: tuple[str, str] | None = None) -> Parity:
    """Judge whether two runs are comparable. Swapping them swaps a and b in every difference and changes nothing else.

    A run is comparable with itself, whatever is to be said about it. names: what sentences call the runs where their
    backends do not tell them apart. InputError where one was not timed.
    """
    for run, ordinal in ((a, "first"), (b, "second")):
        timed(run, f"The {ordinal} profile")
        if not run.profile.wall.steps:
            raise InputError(f"The {ordinal} profile holds no timed steps: measure it with --steps 3 or more.")
    if a.profile == b.profile and a.device == b.device:
        return Parity(verdict="comparable")
    pair = Pair(a, b, names)
    differences = [*work(pair), *precision(pair), *settings(pair), *measurement(pair)]
    differences.sort(key=lambda difference: [*_VERDICTS].index(difference.severity))
    return Parity(
        verdict=_VERDICTS[differences[0].severity if differences else "warning"], differences=tuple(differences)
    )


def refusal(parity: Parity, option: str = "--allow") -> str:
    """Say in one sentence why runs are not comparable, and how to go on, by `option`; "" for all others."""
    reasons = [f"{reason.what} ({recorded(reason.a)} against {recorded(reason.b)})" for reason in parity.of("refused")]
    if not reasons:
        return ""
    return (
        f"The runs are not comparable, they differ in {', '.join(reasons)}: measure the same work in both, or go on "
        f"with {option}, which keeps this warning in every output."
    )
