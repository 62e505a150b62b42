"""Lines and words of the account of two runs, shared by the formats and figures. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roofline import units
from roofline.analysis.gap_parts import PAGE_FAULTS
from roofline.analysis.scope_names import last_parts, name_scopes
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.row import MOVED_BY, NAMES, Row
from roofline.comparison.account.words import (
    class_name,
    describe_amount,
    is_shared,
    list_ops,
    op_name,
)
from roofline.comparison.ranking import RankedPair
from roofline.content import wording
from roofline.content.comparison import comparing
from roofline.content.names.distinct import distinct
from roofline.content.signed import signed, snapped
from roofline.errors import InputError

#: Rows of each pair that are shown where there are more than two runs, and that a paragraph has; and of a figure.
FEW, MANY = 3, 12
#: Letters of a sentence and of a run's name, at most.
_LONGEST, _LONGEST_RUN = 900, 30
#: Letters of the name of a kernel in a sentence.
_LONGEST_KERNEL = 90
#: A row below this part of the longer step is nothing that anybody reads.
_LEAST = 1e-6
#: Bars: of what the slower run takes longer, in eighths of a letter, and of what the other one does.
_EIGHTHS, _OTHER = " ▏▎▍▌▋▊▉█", "▒"


@dataclass(frozen=True, slots=True)
class View:
    """The parts of the output about two runs that are shown next to the largest rows of their account.

    every: all rows; row: the number of one, with its ops; why: what passes merged, moved and left out; details: the
    table of terms and how it adds up.
    """

    every: bool = False
    row: int | None = None
    why: bool = False
    details: bool = False


#: Rows that fit a screen.
SCREEN = View()


def rows(pair: RankedPair) -> tuple[Row, ...]:
    """Return the rows that differ, the largest first: row 1 is the first of them. Settings have a line of their own."""
    least = _LEAST * max(pair.comparison.a.wall, pair.comparison.b.wall)
    return tuple(row for row in pair.account.rows if abs(row.seconds or 0.0) > least)


def row_of(pair: RankedPair, number: int) -> Row:
    """Return a row by its number. Raises InputError where there is none."""
    every = rows(pair)
    if not 1 <= number <= len(every):
        raise InputError(f"There is no row {number}: the account has {wording.counted(len(every), 'row')}.")
    return every[number - 1]


def seconds(row: Row) -> float:
    """Return the seconds of a row that has some."""
    return row.seconds or 0.0


def rest(pair: RankedPair, shown: Sequence[Row]) -> float:
    """Return what closes the sum over some rows [s]."""
    return snapped(pair.comparison.difference - sum(map(seconds, shown)), pair.comparison.a.wall)


def smaller(pair: RankedPair, shown: Sequence[Row]) -> str:
    """Say how many rows the rest is the sum of; empty where all are shown. shown: the first of the rows."""
    hidden = len(rows(pair)) - len(shown)
    return f"{wording.counted(hidden, 'smaller row')}{' together' if hidden > 1 else ''}" if hidden else ""


def smaller_ones(pair: RankedPair, shown: Sequence[Row]) -> str:
    """Say the same, and from where to where these rows go: what cancels out between them is not little."""
    words, hidden = smaller(pair, shown), [seconds(row) for row in rows(pair)[len(shown) :]]
    if len(hidden) < 2:
        return words
    low, high = (written(pair, end) for end in sorted((min(hidden), max(hidden)), reverse=is_turned(pair)))
    return words.replace(" together", f", each {low} to {high}, together")


def is_explained(pair: RankedPair) -> bool:
    """Return whether the headline names the slower run, so that rows are told as what that run takes longer.

    Rows are of the profiled processes, which may differ the other way round than the turns did.
    """
    head, difference = pair.headline, pair.comparison.difference
    return head.slower is not None and head.ci95 is not None and (difference < 0) == (head.slower == 1)


def is_turned(pair: RankedPair) -> bool:
    """Return whether rows are written as B - A: where B is said to be slower."""
    return is_explained(pair) and pair.headline.slower == 1


def difference(pair: RankedPair) -> str:
    """Name what rows are: "A − B"."""
    return "B − A" if is_turned(pair) else "A − B"


def written(pair: RankedPair, time: float) -> str:
    """Write a part of A - B [s] as rows are told."""
    return signed(-time if is_turned(pair) else time)


def size(pair: RankedPair, row: Row) -> str:
    """Write the seconds of a row as it is told, behind its `mark`."""
    return f"{mark(pair, row)}{written(pair, seconds(row))}"


def mark(pair: RankedPair, row: Row) -> str:
    """Mark the time of a row that was seen under the profiler alone, which is an end: "≤ ", "≥ " of a negative one."""
    return "" if not row.upper else "≥ " if (snapped(seconds(row)) < 0) != is_turned(pair) else "≤ "


def heading(pair: RankedPair) -> str:
    """Say what the rows add up to, and what their signs mean."""
    names, head = [comparing.lettered(pair, side) for side in (0, 1)], pair.headline
    if head.slower is None or not is_explained(pair):
        return f"What the steps of {names[0]} and {names[1]} differ by (plus: A takes longer; minus: B does)"
    time = units.seconds(abs(pair.comparison.difference))
    faster = 1 - head.slower
    took, signs = f"{names[head.slower]} took {time} more than {names[faster]}", f"minus: {'AB'[faster]} takes longer"
    if head.settled or in_processes(pair):
        return f"Why {took} in the two processes above; {_compared(pair)} ({signs})"
    return f"Why {took} ({signs})"


def _compared(pair: RankedPair) -> str:
    """Say what the headline compares: turns, without the profiled processes, else all processes."""
    return (
        "the headline compares all processes"
        if pair.headline.settled is None
        else "the headline compares others, run in turns"
    )


def in_processes(pair: RankedPair) -> bool:
    """Return whether a run was timed in other processes than the one that was profiled, too."""
    return any(run.profile.wall.processes for run in (pair.comparison.a, pair.comparison.b))


def said(row: Row) -> str:
    """Say a row: its sentence, and the pages of its annotations."""
    return with_pages(row, wording.plain(row.text, _LONGEST))


def with_pages(row: Row, words: str) -> str:
    """Add the pages of a row's annotations to what is said of it."""
    if not row.annotations:
        return words
    pages = comparing.pages(row.annotations)
    return f"{words} See {pages}." if words.endswith(".") else f"{words} (see {pages})"


def lines(pair: RankedPair, row: Row) -> list[str]:
    """Say a row: what it is, then of each run where its ops are, what they take and which they are; the longer first.

    Where both run the same ops, or one some more, it is said in one sentence, as other rows are.
    """
    style, sides = pair.account.style, (0, 1)[:: row.sign]
    if row.kind != "only" or any(is_shared(row, side) for side in sides):
        return [wording.plain(row.text, _LONGEST), *filter(None, [meaning(row)])]
    causes = list(_causes(row))
    places = [name_scopes(scopes) for scopes in row.run_scopes]
    has_own = all(places) and not {*row.run_scopes[0]} & {*row.run_scopes[1]}
    scope, within = "" if has_own else name_scopes(row.scopes), f"in {wording.in_words(row.phase)}" if row.phase else ""
    place = ", ".join(filter(None, (f"at {scope}" if scope and scope != row.phase else "", within)))
    around = ". This row also holds the other ops that differ at its places" if holds_neighbours(row) else ""
    # Other rows have what both runs run there.
    opening = f"ops that differ {place}".rstrip()
    if causes:
        opening = ", ".join(filter(None, (f"{' '.join(causes).rstrip('.')}{around}", place)))
    said_runs = []
    for side, ops in zip(sides, list_ops(row, style), strict=True):
        amount = ": ".join(filter(None, (describe_amount(side, row, style), ops))) or "nothing instead"
        where = f"; at {places[side]}" if has_own else ""
        said_runs.append(f"{wording.plain(style.names[side], _LONGEST_RUN)}: {amount}{where}")
    slower = wording.plain(style.names[sides[0]], _LONGEST_RUN)
    advice = [f"Try in {slower}: {row.advice}."] if row.advice else []
    return [wording.plain(text, _LONGEST) for text in (f"{opening}{_parts(pair, row)}", *said_runs, *advice)]


def holds_neighbours(row: Row) -> bool:
    """Return whether a row has more ops than those that its cause names."""
    return row.kind == "only" and len(row.ops) > 2 * NAMES


def _parts(pair: RankedPair, row: Row) -> str:
    """Say how much of a row's time is in ops, and how much passes while they are dispatched; "" where it has one part.

    What page faults take of a row is in neither.
    """
    dispatch = row.a.dispatch - row.b.dispatch
    is_moved = any(note.step == MOVED_BY for note in row.notes)
    if not dispatch or is_moved or None in (row.a.seconds, row.b.seconds):
        return ""
    idle = "GPU idle while dispatching" if pair.account.style.kernels else "dispatching"
    noun = "kernels" if pair.account.style.kernels else "ops"
    return f": {written(pair, seconds(row) - dispatch)} in {noun}, {written(pair, dispatch)} {idle}"


def meaning(row: Row) -> str:
    """Say what the annotations of a row mean, of A and B, what to try, and which kernels differ; empty without any."""
    sentences = [*_causes(row), *([f"Try: {row.advice}."] if row.advice else []), *_kernels(row)]
    return wording.plain(" ".join(sentences), _LONGEST)


def _kernels(row: Row) -> Iterator[str]:
    """Name the kernels that the same ops run in A and in B, where these differ most, and count the others that do."""
    if not row.kernels:
        return
    change, others = row.kernels[0], row.kernels[1:]
    names = distinct([name for kernels in change.kernels for name in kernels[:1]], _LONGEST_KERNEL, "kernel")
    words = []
    for run, kernels, time in zip("AB", change.kernels, change.seconds, strict=True):
        name = names.pop(0) if kernels else "no other kernel"
        more = f" and {wording.counted(len(kernels) - 1, 'other')}" if len(kernels) > 1 else ""
        words.append(f"{name}{more} in {run} ({units.seconds(time)})")
    ops = wording.counted(change.ops, "op")
    rest = f", and {wording.counted(sum(each.ops for each in others), 'op')} by others" if others else ""
    yield f"Other kernels: {ops} by {words[0]} and {words[1]}{rest}."


def _causes(row: Row) -> Iterator[str]:
    """Say what the annotations of a row mean, of A and B."""
    row_annotations = (known_annotations().get(name) for name in row.annotations)
    return (annotation.sentence(row, ("A", "B")) for annotation in row_annotations if annotation)


def notes(pair: RankedPair) -> Iterator[str]:
    """Say of each row of a pair what passes merged into it, moved and left out, and how many rows are not listed."""
    every = rows(pair)
    for number, (row, name) in enumerate(zip(every, labels(every), strict=True), 1):
        if row.notes:
            reasons = (f"{wording.plain(note.step, 40)}: {wording.plain(note.reason, 200)}" for note in row.notes)
            yield f"row {number} ({name}), {'; '.join(reasons)}"
    unlisted = sum(bool(row.seconds) for row in pair.account.rows) - len(every)
    if unlisted:
        yield f"{wording.counted(unlisted, 'row')} of next to nothing, of less than a millionth of a step, not listed"


def label(row: Row) -> str:
    """Name a row, for a table or a figure: by its annotation, if it has one, and where it is."""
    match row.kind:
        case "setting":
            place = "settings"
        case "rate":
            place = f"the same {class_name(row.op_class)} ops"
        case "gap":
            place = "page faults" if row.place == PAGE_FAULTS else row.place or ""
        case "only":
            first = last_parts(row.scopes[0]) if row.scopes else op_name(row.ops[0].name) if row.ops else ""
            place = ", ".join(dict.fromkeys(filter(None, (first, row.phase))))
    return f"{row.annotations[0]}: {wording.plain(place)}" if row.annotations else wording.plain(place)


def labels(some: Sequence[Row]) -> list[str]:
    """Name some rows in a few words each; those that would have one name are numbered."""
    names = [wording.plain(label(row)) for row in some]
    return [f"{name} ({number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]


def bar(pair: RankedPair, row: Row, longest: float, width: int) -> str:
    """Draw the size of a row, `longest` [s] as `width` letters; hatched where it is written with a minus."""
    letters = width * abs(seconds(row)) / longest if longest else 0.0
    if (seconds(row) < 0) != is_turned(pair):
        return _OTHER * max(1, round(letters))
    full, part = divmod(max(1, round(8 * letters)), 8)
    return "█" * full + _EIGHTHS[part].strip()
