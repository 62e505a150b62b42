"""Say of several runs by what factor each takes longer than the one with least time, as far as `compare` says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roofline.analysis.analysis import Analysis
from roofline.analysis.bootstrap import draw, interval
from roofline.comparison.headline import Headline, factor_text, judge_runs
from roofline.comparison.parity.parity import Parity, parity
from roofline.content.wording import conjunction, plain

#: What a factor is of, in a caption.
FACTORS = "A factor is that to the fastest, where these runs decide it and do the same work"


@dataclass(frozen=True, slots=True)
class Against:
    """A run next to the one with least time: the headline of `compare`, and whether they are comparable."""

    head: Headline
    parity: Parity

    @property
    def is_longer(self) -> bool:
        """Return whether a factor is to be shown: the runs decide it, and do the same work."""
        return self.head.slower == 0 and not self.parity.is_other_work

    @property
    def mark(self) -> str:
        """Return the mark of a run that is not comparable with the one of least time."""
        return " †" if self.parity.verdict == "not comparable" else ""

    @property
    def factor(self) -> str:
        """Write the factor with its mark: "1.83x"; "" where there is none."""
        return f"{factor_text(self.head.factor)}{self.mark}" if self.is_longer else self.mark.strip()


def against_first(runs: Sequence[Analysis], names: Sequence[str]) -> list[Against | None]:
    """Judge each run against the first, which has the least time; None for that one."""
    first, first_name = runs[0], plain(names[0])
    judged: list[Against | None] = [None]
    for run, name in zip(runs[1:], map(plain, names[1:]), strict=True):
        drawn, drawn_first = draw(run, first), draw(first, run)
        ci95 = interval(drawn.wall - drawn_first.wall, drawn, drawn_first, kind="wall")
        head = judge_runs(run, first, ci95, (name, first_name))
        judged.append(Against(head, parity(run, first, (name, first_name))))
    return judged


def source(a: Analysis, b: Analysis, head: Headline) -> str:
    """Name what the times and the factor of a headline are of; "" where that is the two recorded runs."""
    if head.settled is not None:
        return "turns"
    return "all processes" if a.profile.wall.processes or b.profile.wall.processes else ""


def basis(runs: Sequence[Analysis], judged: Sequence[Against | None]) -> str:
    """Say what the factors are of, where it is not the times next to them, and what a mark says; "" for nothing."""
    longer = [(run, against.head) for run, against in zip(runs, judged, strict=True) if against and against.is_longer]
    sources = list(filter(None, dict.fromkeys(source(run, runs[0], head) for run, head in longer)))
    parts = [f"times are of the profiled process, factors of {conjunction(sources)}"] if sources else []
    is_marked = any(against is not None and against.mark for against in judged)
    return "; ".join([*parts, *(["† is not comparable with the fastest"] * is_marked)])


def refusals(names: Sequence[str], judged: Sequence[Against | None]) -> tuple[list[str], list[str]]:
    """Say why runs with a mark are not comparable: in which facts they differ, and in what."""
    first, facts, sentences = plain(names[0], 60), [], []
    for name, against in zip(names, judged, strict=True):
        if against is not None and against.mark:
            refused = against.parity.of("refused")
            facts.append(f"{plain(name, 60)} ({', '.join(plain(difference.what, 60) for difference in refused)})")
            reasons = " ".join(plain(difference.text, 300) for difference in refused)
            sentences.append(f"† {plain(name, 60)} is not comparable with {first}: {reasons}")
    return [f"† Not comparable with {first}: {', '.join(facts)}."] if facts else [], sentences
