"""The facts of a finding, seen from the run that spends more: what a sentence about it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roofline.analysis.analysis import Analysis
from roofline.comparison.causes.claim import Entry, Work
from roofline.comparison.labels import called, numbered
from roofline.comparison.terms import Comparison

#: What a claim says of a run has so many characters at most. By choice: our own words, around names of few ops.
_WORDS = 160


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sentence is made of. more, less: names of the run that spends more on this and of the other one.

    run_more, run_less: the two runs, for what one cause alone asks of them. seconds: how much more [s]; does_more,
    does_less: their work; launches_more, launches_less: of the whole step; about: what the claim says; about_more,
    about_less: of that, what it says of the one that spends more and of the other one; where: the place with most of
    it; certain: whether both views agree about its classes; dispatch: what of it is the host's dispatching, after: what
    the ops that follow take longer [s].
    """

    more: str
    less: str
    run_more: Analysis
    run_less: Analysis
    seconds: float
    does_more: Work
    does_less: Work
    launches_more: float
    launches_less: float
    about: Mapping[str, str]
    about_more: str
    about_less: str
    where: str
    certain: bool
    dispatch: float
    after: float


def run_names(comparison: Comparison) -> tuple[str, str]:
    """What sentences call the two runs: by backend, by what else tells them apart, else as in the whole comparison."""
    runs = comparison.a.profile, comparison.b.profile
    one, other = comparison.names if comparison.names and numbered(runs) else called(runs)
    return printable(one), printable(other)


def facts_of(
    comparison: Comparison, entry: Entry, seconds: float, work: tuple[Work, Work], where: str, after: float
) -> Facts:
    """The facts of an entry, seen from the run that spends more. seconds, after: A - B [s]."""
    runs, about = (comparison.a, comparison.b), entry.claim.about
    names, told = run_names(comparison), (printable(about.get("a", ""), _WORDS), printable(about.get("b", ""), _WORDS))
    launches = [float(side.segments.launches.sum()) for side in (comparison.work.a, comparison.work.b)]
    gap = entry.gap_a * runs[0].gap - entry.gap_b * runs[1].gap
    more, less = (0, 1) if seconds >= 0 else (1, 0)
    return Facts(
        more=names[more],
        less=names[less],
        run_more=runs[more],
        run_less=runs[less],
        seconds=abs(seconds),
        does_more=work[more],
        does_less=work[less],
        launches_more=launches[more],
        launches_less=launches[less],
        about=about,
        about_more=told[more],
        about_less=told[less],
        where=where,
        certain=all(comparison.agree(one) for one in work[0].classes | work[1].classes),
        dispatch=gap if seconds >= 0 else -gap,
        after=after if seconds >= 0 else -after,
    )


def printable(text: str, longest: int = 60) -> str:
    """What of a text from a profile a sentence shows."""
    return "".join(c for c in text if c.isprintable())[:longest]
