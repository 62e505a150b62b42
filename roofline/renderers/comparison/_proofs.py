"""What became of causes that were taken away: predicted beside observed, for the formats of `roofline compare`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from roofline import units
from roofline.comparison.proof.experiment import Proof
from roofline.comparison.proof.headline import DIFFERENCE
from roofline.renderers import _terminal, _words
from roofline.renderers._markdown import escape

HEADINGS = ("", "cause", "turned", "predicted", "95 %", "observed", "95 %", "verdict")
#: Columns of words; the others hold numbers.
_LEFT = (1, 2, 7)
#: What goes first of number, predicted, interval, observed, interval and verdict for want of room: the highest.
_RANKS = (0, 2, 5, 1, 4, 0)


def rows(proofs: Sequence[Proof]) -> list[tuple[str, ...]]:
    """One line per experiment, in the columns of HEADINGS; what was not measured is a dash."""
    found: list[tuple[str, ...]] = []
    for number, proof in enumerate(proofs, 1):
        found.append(
            (
                str(number),
                _cause(proof),
                _switch(proof),
                units.seconds(proof.predicted),
                _interval(proof.predicted_ci95),
                units.seconds(proof.observed),
                _interval(proof.observed_ci95),
                "no switch for this cause" if proof.switch is None and not proof.reason else proof.verdict,
            )
        )
    return found


def _interval(ends: tuple[float, float] | None) -> str:
    return units.UNKNOWN if ends is None else units.seconds_between(*ends)


def _cause(proof: Proof) -> str:
    return _words.plain(" + ".join(proof.rules), 100)


def _switch(proof: Proof) -> str:
    """What was turned in which run; a dash where there is nothing to turn."""
    if proof.switch is None:
        return units.UNKNOWN
    turned = _words.plain(proof.switch, 80)
    return turned if proof.rule == DIFFERENCE else f"{proof.run.upper()}: {turned}"


def notes(proofs: Sequence[Proof]) -> list[str]:
    """What the table cannot say: why nothing is proven or can be, and that others used the processor."""
    told = []
    for number, proof in enumerate(proofs, 1):
        if proof.reason or proof.contended:
            told.append(f"{number}: {_words.plain(proof.text, 900)}")
    return told


def text(proofs: Sequence[Proof], width: int) -> list[str]:
    """The lines of a terminal."""
    if not proofs:
        return ["Proof: there is no finding to prove."]
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
        what = f"{_cause(proof)}{turned}"
        body += [line, *textwrap.wrap(what, width, initial_indent=indent, subsequent_indent=indent)]
    told = [line for note in notes(proofs) for line in textwrap.wrap(note, width, break_on_hyphens=False)]
    head = textwrap.wrap(HEAD, width)
    return [*head, lines[0], "─" * max(map(len, lines)), *body, *told]


def markdown(proofs: Sequence[Proof]) -> list[str]:
    """The lines of a Markdown document."""
    if not proofs:
        return ["There is no finding to prove."]
    marks = ("---" if column in _LEFT else "---:" for column in range(len(HEADINGS)))
    table = [HEADINGS, tuple(marks), *(tuple(escape(cell) for cell in row) for row in rows(proofs))]
    lines = [f"| {' | '.join(row)} |" for row in table]
    told = [line for note in notes(proofs) for line in ("", escape(note))]
    return [escape(HEAD), "", *lines, *told]


def document(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """The JSON of the proofs (docs/proving.md); seconds, absent is null."""
    return [msgspec.to_builtins(proof) for proof in proofs]


HEAD = (
    "Proof: what turning one switch, and nothing else, was predicted to gain, and what it gained when both forms were "
    "measured again in turns."
)
