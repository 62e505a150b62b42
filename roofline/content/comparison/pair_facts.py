"""Say what a comparison rests on: both runs as they were timed, the table of terms, and doubts."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.comparison.ranking import RankedPair
from roofline.content import wording
from roofline.content.comparison import account_rows, broken_down, comparing
from roofline.content.facts import energy, host
from roofline.content.signed import signed, snapped


def runs(pair: RankedPair) -> Iterator[tuple[str, str]]:
    """Yield the step, how long it takes in A and in B, and, where known, how much of the difference is time of ops."""
    analyses = (pair.comparison.a, pair.comparison.b)
    subjects = {(wording.subject(run), wording.device(run)) for run in analyses}
    if len(subjects) == 1:
        yield "step", comparing.subject(analyses)
    for letter, side, run in (("A", 0, analyses[0]), ("B", 1, analyses[1])):
        subject = "" if len(subjects) == 1 else f"{comparing.subject([run])}: "
        times = f"{units.seconds(run.busy)} busy, {wording.gap_name(run)} {host.gap_time(run)}"
        head = f"{comparing.name(pair, side)}, {subject}{units.seconds(run.wall)} per step"
        head += " in one process" if run.profile.wall.processes else ""
        yield letter, f"{head} ({times if run.busy else 'its ops were not seen'}); {wording.spread(run)}"
    if energies := _energies(pair):
        yield "energy", energies
    a, b = analyses
    if a.busy and b.busy and None not in (a.gap_told, b.gap_told):
        gap = " or ".join(dict.fromkeys(map(wording.gap_name, analyses)))
        parts = {"busy": snapped(a.busy - b.busy, a.wall), gap: snapped(a.gap - b.gap, a.wall)}
        words = [f"{signed(seconds)} {part}" for part, seconds in sorted(parts.items(), key=lambda part: -abs(part[1]))]
        where = " in these two processes" if account_rows.in_processes(pair) else ""
        yield "A − B", f"{signed(pair.comparison.difference)}{where}: {', '.join(words)}"


def _energies(pair: RankedPair) -> str:
    """Say what both runs use of energy, and of equal work how many times as much one uses; "" where none is known.

    As far as their uncertainties tell which of them uses more.
    """
    runs = [run.profile for run in (pair.comparison.a, pair.comparison.b)]
    used = {letter: run.energy for letter, run in zip("AB", runs, strict=True) if run.energy is not None}
    if not used:
        return ""
    parts = [
        f"{letter} {', '.join(energy.amounts(run)) or 'not known'}" for letter, run in zip("AB", runs, strict=True)
    ]
    if len(used) == len(runs) and not pair.comparison.parity.is_other_work:
        more, less = sorted(used, key=lambda letter: -used[letter].per_step)
        most, least = used[more], used[less]
        if most.per_step - least.per_step <= most.uncertainty + least.uncertainty:
            parts.append("which uses more is not known")
        elif least.per_step > 0:
            parts.append(f"{more} uses {units.significant(most.per_step / least.per_step)} times as much per step")
    return "; ".join(parts)


def table(pair: RankedPair) -> Iterator[tuple[str, str]]:
    """Yield what rows and columns of the table of terms are, and how its sum closes."""
    if places := comparing.places(pair):
        yield "places", places
    if rows := broken_down.why(pair):
        yield "rows", rows
    if columns := broken_down.legend(pair):
        yield "columns", columns
    yield "sum", comparing.closing(pair.comparison)


def origins(pair: RankedPair) -> str:
    """Say of both runs what they are, on what they ran and how they were timed."""
    return " ".join(
        f"{letter}: {comparing.name(pair, side)}; {comparing.subject([run])}: {wording.provenance(run)}"
        for letter, side, run in (("A", 0, pair.comparison.a), ("B", 1, pair.comparison.b))
    )


def doubts(pair: RankedPair) -> Iterator[tuple[str, str]]:
    """Yield what hardware and collectives make of the difference, and the flags of both runs."""
    for head, words in (("hardware", broken_down.hardware(pair)), ("collectives", comparing.communication(pair))):
        if words:
            yield head, words
    a, b = (wording.flags(run) for run in (pair.comparison.a, pair.comparison.b))
    parts = {
        "flags, both": [words for words in a if words in b],
        "flags of A": [words for words in a if words not in b],
        "flags of B": [words for words in b if words not in a],
    }
    for head, flags in parts.items():
        yield from (("" if number else head, words) for number, words in enumerate(flags))
