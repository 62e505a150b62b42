"""The facts of a finding, seen from the run that spends more: what a sentence about it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.comparison.causes.claim import Entry, Work
from roofline.comparison.labels import called, numbered
from roofline.comparison.terms import Comparison
from roofline.core.framework import written_in


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sentence is made of. more, less: names of the run that spends more on this and of the other one.

    seconds: how much more [s]; does_more, does_less: their work; idle_more, idle_less: their gaps [s]; launches_more,
    launches_less: of the whole step; about: what the claim says, of the one that spends more and of the other one;
    where: the place with most of it; certain: whether both views agree about its classes; dispatch: what of it is the
    host's dispatching, after: what the ops that follow take longer [s]. graphs_more, graphs_less: compiled graphs in a
    step; breaks: what breaks those of `more`. programs_more, programs_less: of XLA that a step runs, 0 where that is
    not known. written_in_more: what the program of `more` is written in (`core.framework`).
    """

    more: str
    less: str
    seconds: float
    does_more: Work
    does_less: Work
    idle_more: float
    idle_less: float
    launches_more: float
    launches_less: float
    about_more: str
    about_less: str
    of: str
    host: str
    where: str
    certain: bool
    dispatch: float
    after: float
    graphs_more: int
    graphs_less: int
    breaks: tuple[str, ...]
    programs_more: float
    programs_less: float
    written_in_more: str


def run_names(comparison: Comparison) -> tuple[str, str]:
    """What sentences call the two runs: by backend, by what else tells them apart, else as in the whole comparison."""
    runs = comparison.a.profile, comparison.b.profile
    one, other = comparison.names if comparison.names and numbered(runs) else called(runs)
    return printable(one), printable(other)


def facts_of(
    comparison: Comparison, entry: Entry, seconds: float, work: tuple[Work, Work], where: str, after: float
) -> Facts:
    """The facts of an entry, seen from the run that spends more. seconds, after: A - B [s]."""
    both = run_names(comparison)
    launches = [float(side.segments.launches.sum()) for side in (comparison.work.a, comparison.work.b)]
    idle = [comparison.a.gap, comparison.b.gap]
    about = [printable(entry.claim.about.get("a", "")), printable(entry.claim.about.get("b", ""))]
    order = (0, 1) if seconds >= 0 else (1, 0)
    gap = entry.gap_a * comparison.a.gap - entry.gap_b * comparison.b.gap
    compiled = comparison.a.profile.compilation, comparison.b.profile.compilation
    graphs = [one.graphs if one else 0 for one in compiled]
    broken = compiled[order[0]]
    runs = comparison.a.profile, comparison.b.profile
    programs = [run.conditions.get("programs_per_step") or 0.0 for run in runs]
    pick = [[each[number] for number in order] for each in (both, list(work), idle, launches, about)]
    return Facts(
        more=str(pick[0][0]),
        less=str(pick[0][1]),
        seconds=abs(seconds),
        does_more=work[order[0]],
        does_less=work[order[1]],
        idle_more=idle[order[0]],
        idle_less=idle[order[1]],
        launches_more=launches[order[0]],
        launches_less=launches[order[1]],
        about_more=about[order[0]],
        about_less=about[order[1]],
        of=entry.claim.about.get("of", ""),
        host=entry.claim.about.get("host", ""),
        where=where,
        certain=all(comparison.agree(one) for one in work[0].classes | work[1].classes),
        dispatch=gap if seconds >= 0 else -gap,
        after=after if seconds >= 0 else -after,
        graphs_more=graphs[order[0]],
        graphs_less=graphs[order[1]],
        programs_more=programs[order[0]],
        programs_less=programs[order[1]],
        written_in_more=written_in(runs[order[0]]),
        breaks=tuple(printable(reason) for reason in (broken.breaks if broken else ())),
    )


def printable(text: str) -> str:
    """What of a text from a profile a sentence shows."""
    return "".join(c for c in text if c.isprintable())[:60]
