"""Show one profile at a time on a screen where a report has several, and all of them on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.renderers.report.parts.html import Html, name, tag


@dataclass(frozen=True, slots=True)
class Run:
    """A profile and its analysis. number: its place among those given; called: a name that no other run has.

    letter: what sentences about two runs call it, A or B; "" in a page of more, where each pair has an A and a B.
    """

    number: int
    called: str
    analysis: WorkAnalysis
    letter: str = ""

    @property
    def key(self) -> str:
        """Return the beginning of its elements' ids."""
        return f"run{self.number}"

    @property
    def title(self) -> Html:
        """Write letter and name."""
        return tag("span", tag("b", self.letter, " ") if self.letter else "", name(self.called, 60), class_="called")


@dataclass(frozen=True, slots=True)
class TimedRun(Run):
    """A run whose ops have times."""

    analysis: Analysis


def runs_of(named: Sequence[tuple[str, WorkAnalysis]]) -> list[Run]:
    """Make runs of named analyses: a TimedRun where its ops have times."""
    letters = "AB" if len(named) == 2 else [""] * len(named)
    return [
        TimedRun(number, called, analysis, letter)
        if isinstance(analysis, Analysis)
        else Run(number, called, analysis, letter)
        for number, (letter, (called, analysis)) in enumerate(zip(letters, named, strict=True))
    ]


def for_each_run(runs: Sequence[Run], build: Callable[[Run], Html]) -> list[Html]:
    """Write the part of a section that each run has; of several, each below its name."""
    if len(runs) == 1:
        return [build(runs[0])]
    looks = ["run", *["run later"] * (len(runs) - 1)]
    return [
        tag("div", tag("h3", run.title), build(run), class_=look, data_run=run.number)
        for run, look in zip(runs, looks, strict=True)
    ]


def section(key: str, title: str, *content: object) -> Html:
    """Write a part of the page with a heading that can be linked to."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title")


def scrolled(content: Html, label: str) -> Html:
    """Put content that may be wider than the page into a region of its own that the keyboard can scroll."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)
