"""The parity gate: whether two runs may be compared, before anything is said about their times (docs/comparing.md).

Published comparisons were wrong by exactly this: TF32 on in one framework only, another intermediate size, CUDA graphs
in one. The rules, each with its reason, are in `work` (the same work), `precision`, `settings` (the same model in
detail) and `measurement` (the same conditions).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from roofline.analysis.analysis import Analysis, timed
from roofline.comparison.parity.difference import Contraction, Difference, Pair, Severity
from roofline.comparison.parity.measurement import measurement
from roofline.comparison.parity.precision import precision
from roofline.comparison.parity.settings import settings
from roofline.comparison.parity.work import work
from roofline.errors import InputError

__all__ = ["Contraction", "Difference", "Parity", "Severity", "Verdict", "parity", "refusal"]

Verdict = Literal["comparable", "named differences", "not comparable"]

#: How the names of differences in work begin (work.py).
_OF_WORK = ("mode", "model", "batch", "sequence length", "parameters", "trainable parameters", "samples", "tokens")
_ORDER: tuple[Severity, ...] = ("refused", "named", "warning")


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """Whether two runs are comparable, and all that differs: what refuses first, then what is named, then warnings.

    Warnings are doubts about a measurement; they leave runs comparable.
    """

    verdict: Verdict
    differences: tuple[Difference, ...] = ()

    @property
    def settings(self) -> tuple[Difference, ...]:
        """The named differences that are settings, and not what is known of the work."""
        return tuple(each for each in self.of("named") if not each.what.startswith(_OF_WORK))

    def of(self, severity: Severity) -> tuple[Difference, ...]:
        """The differences of one severity."""
        return tuple(difference for difference in self.differences if difference.severity == severity)


def parity(a: Analysis, b: Analysis, names: tuple[str, str] | None = None) -> Parity:
    """Judge whether two runs are comparable. Swapping them swaps a and b in every difference and changes nothing else.

    A run is comparable with itself, whatever is to be said about it. names: what sentences call the runs where their
    backends do not tell them apart. InputError where one was not timed.
    """
    for run, which in ((a, "first"), (b, "second")):
        _measured(run, which)
    if a.profile == b.profile and a.device == b.device:
        return Parity(verdict="comparable")
    pair = Pair(a, b, names)
    found = [*work(pair), *precision(pair), *settings(pair), *measurement(pair)]
    found.sort(key=lambda difference: _ORDER.index(difference.severity))
    severities = {difference.severity for difference in found}
    verdict: Verdict = "comparable"
    if "refused" in severities:
        verdict = "not comparable"
    elif "named" in severities:
        verdict = "named differences"
    return Parity(verdict=verdict, differences=tuple(found))


def refusal(parity: Parity, option: str = "--allow") -> str:
    """One sentence for runs that are not comparable: the reasons, and how to go on, by `option`; "" for all others."""
    reasons = [f"{each.what} ({_value(each.a)} against {_value(each.b)})" for each in parity.of("refused")]
    if not reasons:
        return ""
    return (
        f"The runs are not comparable, they differ in {', '.join(reasons)}: measure the same work in both, or go on "
        f"with {option}, which keeps this warning in every output."
    )


def _value(text: str | None) -> str:
    return "not recorded" if text is None else text


def _measured(run: Analysis, which: str) -> None:
    """Refuse a run without times: there is nothing to compare."""
    timed(run, f"The {which} profile")
    if not run.profile.wall.steps:
        raise InputError(f"The {which} profile holds no timed steps: measure it with --steps 3 or more.")
