"""Say what turning switches gained and moved, for the formats of `roofline compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from roofline import units
from roofline.comparison.proof.proof import Proof
from roofline.content import terminal, wording
from roofline.content.signed import signed, snapped
from roofline.content.terminal import Page
from roofline.renderers._markdown import escape, grid

HEADINGS = ("", "rows", "turned", "predicted", "95 %", "observed", "95 %", "verdict")
#: Columns of words; the others hold numbers.
_LEFT = (1, 2, 7)
#: What goes first of number, predicted, interval, observed, interval and verdict for want of room: the highest.
_RANKS = (0, 2, 5, 1, 4, 0)
#: Rows of the account that are told of each switch, of those that it moved.
_MOVED = 4


def rows(proofs: Sequence[Proof], write: Callable[[float | None], str] | None = None) -> list[tuple[str, ...]]:
    """Return a line per experiment, in the columns of HEADINGS; what was not measured or predicted is a dash.

    write: writes all times in one unit (`in_one_unit`); None: each in its own.
    """
    seconds = write or units.seconds
    lines: list[tuple[str, ...]] = []
    for number, proof in enumerate(proofs, 1):
        lines.append(
            (
                str(number),
                _names(proof),
                _switch(proof),
                seconds(proof.predicted),
                _interval(proof.predicted_ci95, write),
                seconds(proof.observed),
                _interval(proof.observed_ci95, write),
                proof.verdict,
            )
        )
    return lines


def in_one_unit(proofs: Sequence[Proof]) -> Callable[[float | None], str]:
    """Make a function that writes all times of a table in the unit of the largest."""
    times = (time for proof in proofs for time in (proof.predicted, proof.observed) if time is not None)
    return units.seconds_unit(max(map(abs, times), default=0.0))


def _interval(ends: tuple[float, float] | None, write: Callable[[float | None], str] | None) -> str:
    return units.UNKNOWN if ends is None else units.seconds_between(*ends, write=write)


def _names(proof: Proof) -> str:
    return wording.plain(" + ".join(proof.rules), 100)


def _switch(proof: Proof) -> str:
    """Say what was turned in which run; a dash where there is nothing to turn."""
    return units.UNKNOWN if proof.switch is None else f"{proof.run.upper()}: {wording.plain(proof.switch, 80)}"


def notes(proofs: Sequence[Proof]) -> list[str]:
    """Say what the table cannot: why nothing is proven or can be, and that others used the processor."""
    sentences = []
    for number, proof in enumerate(proofs, 1):
        if proof.reason or proof.contended:
            sentences.append(f"{number}: {wording.plain(proof.text, 900)}")
    return sentences


def moved(proof: Proof) -> list[tuple[str, str, str]]:
    """Return the rows of the account before and after a switch was turned, what moved most first, and their sum."""
    shown = [change for change in proof.moved if snapped(change.seconds)][:_MOVED]
    small = [change for change in proof.moved if change not in shown]
    rows = [(_time(change.before), _time(change.after), wording.plain(change.label, 100)) for change in shown]
    for group, label in ((small, wording.counted(len(small), "other row")), (proof.moved, "A − B")):
        if group:
            before, after = (sum(getattr(change, side) or 0.0 for change in group) for side in ("before", "after"))
            rows.append((signed(before), signed(after), label))
    return rows


def moved_notes(proofs: Sequence[Proof]) -> list[str]:
    """Say in a sentence for each switch what it moved."""
    return [
        f"{number}, {MOVED}: {'; '.join(f'{label} {before} to {after}' for before, after, label in moved(proof))}."
        for number, proof in enumerate(proofs, 1)
        if proof.moved
    ]


def _time(seconds: float | None) -> str:
    return "none" if seconds is None else signed(seconds)


def text(proofs: Sequence[Proof], page: Page) -> list[str]:
    """Return the lines of a terminal."""
    if not proofs:
        return [NOTHING]
    heads: Sequence[str] = (HEADINGS[0], *HEADINGS[3:])
    cells: list[Sequence[str]] = [heads, *((row[0], *row[3:]) for row in rows(proofs))]
    columns = terminal.fitting_columns(cells, _RANKS, page.prose + 2)
    heads, cells = [heads[number] for number in columns], [[row[number] for number in columns] for row in cells]
    wide = terminal.widths(cells)
    lines = terminal.columns(cells, left_aligned=(len(heads) - 1,))
    body = []
    for proof, line in zip(proofs, lines[1:], strict=True):
        indent = " " * (wide[0] + 2)
        turned = "" if proof.switch is None else f"; {_switch(proof)}"
        words = f"{_names(proof)}{turned}"
        body += [line, *terminal.broken(f"{indent}{words}", page, indent)]
    remarks = [line for note in notes(proofs) for line in terminal.wrapped(note, page)]
    for number, proof in enumerate(proofs, 1):
        if proof.moved:
            table = terminal.columns([("before", "after", f"{number}: {MOVED}"), *moved(proof)], left_aligned=(2,))
            remarks += ["", *(line[: page.prose] for line in table)]
    head = terminal.wrapped(HEAD, page)
    return [*head, lines[0], "─" * max(map(len, lines)), *body, *remarks]


def markdown(proofs: Sequence[Proof]) -> list[str]:
    """Return the lines of a Markdown document."""
    if not proofs:
        return [NOTHING]
    numbers = [column for column in range(len(HEADINGS)) if column not in _LEFT]
    lines = grid(HEADINGS, (tuple(map(escape, row)) for row in rows(proofs)), numbers)
    remarks = [line for note in (*notes(proofs), *moved_notes(proofs)) for line in ("", escape(note))]
    return [escape(HEAD), "", *lines, *remarks]


def document(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """Return the JSON of the proofs (docs/proving.md); seconds, absent is null."""
    return [msgspec.to_builtins(proof) for proof in proofs]


HEAD = (
    "Proof: what turning one switch, and nothing else, gained in turns, in fresh processes, held against what the rows "
    "that it answers say."
)
MOVED = "rows of A − B, as profiled"
NOTHING = "Proof: no row of the account has a switch."
