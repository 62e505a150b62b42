"""What turning switches gained and moved, for the formats of `roofline compare`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from roofline import units
from roofline.comparison.proof.proof import Proof
from roofline.renderers import _terminal, _words
from roofline.renderers._markdown import escape
from roofline.renderers._signed import signed, snapped

HEADINGS = ("", "rows", "turned", "predicted", "95 %", "observed", "95 %", "verdict")
#: Columns of words; the others hold numbers.
_LEFT = (1, 2, 7)
#: What goes first of number, predicted, interval, observed, interval and verdict for want of room: the highest.
_RANKS = (0, 2, 5, 1, 4, 0)
#: Rows of the account that are told of each switch, of those that it moved.
_MOVED = 4


def rows(proofs: Sequence[Proof]) -> list[tuple[str, ...]]:
    """One line per experiment, in the columns of HEADINGS; what was not measured or predicted is a dash."""
    found: list[tuple[str, ...]] = []
    for number, proof in enumerate(proofs, 1):
        found.append(
            (
                str(number),
                _names(proof),
                _switch(proof),
                units.seconds(proof.predicted),
                _interval(proof.predicted_ci95),
                units.seconds(proof.observed),
                _interval(proof.observed_ci95),
                proof.verdict,
            )
        )
    return found


def _interval(ends: tuple[float, float] | None) -> str:
    return units.UNKNOWN if ends is None else units.seconds_between(*ends)


def _names(proof: Proof) -> str:
    return _words.plain(" + ".join(proof.rules), 100)


def _switch(proof: Proof) -> str:
    """What was turned in which run; a dash where there is nothing to turn."""
    return units.UNKNOWN if proof.switch is None else f"{proof.run.upper()}: {_words.plain(proof.switch, 80)}"


def notes(proofs: Sequence[Proof]) -> list[str]:
    """What the table cannot say: why nothing is proven or can be, and that others used the processor."""
    told = []
    for number, proof in enumerate(proofs, 1):
        if proof.reason or proof.contended:
            told.append(f"{number}: {_words.plain(proof.text, 900)}")
    return told


def moved(proof: Proof) -> list[tuple[str, str, str]]:
    """The rows of the account before and after a switch was turned, what moved most first, and their sum."""
    shown = [each for each in proof.moved if snapped(each.seconds)][:_MOVED]
    rest = [each for each in proof.moved if each not in shown]
    rows = [(_time(each.before), _time(each.after), _words.plain(each.label, 100)) for each in shown]
    for some, label in ((rest, _words.counted(len(rest), "other row")), (proof.moved, "A − B")):
        if some:
            before, after = (sum(getattr(each, side) or 0.0 for each in some) for side in ("before", "after"))
            rows.append((signed(before), signed(after), label))
    return rows


def moved_notes(proofs: Sequence[Proof]) -> list[str]:
    """The same in a sentence for each switch."""
    return [
        f"{number}, {MOVED}: {'; '.join(f'{label} {before} to {after}' for before, after, label in moved(proof))}."
        for number, proof in enumerate(proofs, 1)
        if proof.moved
    ]


def _time(seconds: float | None) -> str:
    return "none" if seconds is None else signed(seconds)


def text(proofs: Sequence[Proof], width: int) -> list[str]:
    """The lines of a terminal."""
    if not proofs:
        return [NOTHING]
    heads: Sequence[str] = (HEADINGS[0], *HEADINGS[3:])
    cells: list[Sequence[str]] = [heads, *((row[0], *row[3:]) for row in rows(proofs))]
    kept = _terminal.kept(cells, _RANKS, width + 2)
    heads, cells = [heads[number] for number in kept], [[row[number] for number in kept] for row in cells]
    wide = _terminal.widths(cells)
    lines = _terminal.columns(cells, left=(len(heads) - 1,))
    body = []
    for proof, line in zip(proofs, lines[1:], strict=True):
        indent = " " * (wide[0] + 2)
        turned = "" if proof.switch is None else f"; {_switch(proof)}"
        what = f"{_names(proof)}{turned}"
        body += [line, *textwrap.wrap(what, width, initial_indent=indent, subsequent_indent=indent)]
    told = [line for note in notes(proofs) for line in textwrap.wrap(note, width, break_on_hyphens=False)]
    for number, proof in enumerate(proofs, 1):
        if proof.moved:
            table = _terminal.columns([("before", "after", f"{number}: {MOVED}"), *moved(proof)], left=(2,))
            told += ["", *(line[:width] for line in table)]
    head = textwrap.wrap(HEAD, width)
    return [*head, lines[0], "─" * max(map(len, lines)), *body, *told]


def markdown(proofs: Sequence[Proof]) -> list[str]:
    """The lines of a Markdown document."""
    if not proofs:
        return [NOTHING]
    marks = ("---" if column in _LEFT else "---:" for column in range(len(HEADINGS)))
    table = [HEADINGS, tuple(marks), *(tuple(escape(cell) for cell in row) for row in rows(proofs))]
    lines = [f"| {' | '.join(row)} |" for row in table]
    told = [line for note in (*notes(proofs), *moved_notes(proofs)) for line in ("", escape(note))]
    return [escape(HEAD), "", *lines, *told]


def document(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """The JSON of the proofs (docs/proving.md); seconds, absent is null."""
    return [msgspec.to_builtins(proof) for proof in proofs]


HEAD = (
    "Proof: what turning one switch, and nothing else, gained in turns, in fresh processes, held against what the rows "
    "that it answers say."
)
MOVED = "rows of A − B, as profiled"
NOTHING = "Proof: no row of the account has a switch."
