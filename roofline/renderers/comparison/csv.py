"""CSV for spreadsheets and data frames: what the difference of each pair is made of, in rows that add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap

from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.breakdown.rows import Row
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Term
from roofline.renderers._csv import cells
from roofline.renderers.comparison import _comparing

FIELDS = (
    *("a", "b", "parity", "row", "by", "label", "phase", "block", "class", "kind"),
    *("a_seconds", "b_seconds", "seconds", "ci95_low", "ci95_high"),
    *("ceilings_low", "ceilings_high", "kernels_low", "kernels_high", "other"),
)


def render(ranking: Ranking) -> str:
    """Seconds, to 12 digits; what is unknown or does not apply is empty; the columns are always the same.

    row says what each line is: of "term" (or, with --by, "op"), "gap" and "residual" the seconds of a pair add up to
    those of its "difference". "finding" names a cause of a part of it, and is no further part.
    """
    return cells.document(FIELDS, (line for pair in ranking.pairs for line in _pair(pair)))


def _pair(pair: RankedPair) -> Iterator[dict[str, str]]:
    found = pair.comparison
    start = {
        "a": cells.text(_comparing.name(pair, 0)),
        "b": cells.text(_comparing.name(pair, 1)),
        "parity": found.parity.verdict,
    }
    whole = _times(found.difference, found.ci95) | {
        "a_seconds": cells.number(found.a.wall), "b_seconds": cells.number(found.b.wall)
    }  # fmt: skip
    yield start | {"row": "difference"} | whole
    gap = [term for term in found.work.terms if term.kind.startswith("gap.")]
    if pair.breakdown is None:
        ops: Iterable[dict[str, str]] = (_term(term) for term in found.work.terms if term not in gap)
        residual = found.work.residual
    else:
        ops = starmap(_op, ((pair.breakdown, row) for row in pair.breakdown.rows))
        residual = found.difference - sum(row.seconds for row in pair.breakdown.rows)
        residual -= sum(term.seconds for term in gap)
    for line in (*ops, *(_term(term) | {"row": "gap"} for term in gap)):
        yield start | line
    yield start | {"row": "residual", "seconds": cells.number(residual)}
    for finding in pair.findings:
        told = {"row": "finding", "kind": cells.text(finding.rule), "label": cells.text(finding.label)}
        yield start | told | _times(finding.seconds, finding.ci95)


def _term(term: Term) -> dict[str, str]:
    return {
        "row": "term",
        "phase": cells.text(term.phase or ""),
        "block": cells.text(term.block or ""),
        "class": term.op_class or "",
        "kind": cells.text(term.kind),
    } | _times(term.seconds, term.ci95)


def _op(found: Breakdown, row: Row) -> dict[str, str]:
    """A row by a key: what each run spends there, and whose the difference is."""
    line = {"row": "op", "by": found.by, "label": cells.text(row.label)} | _times(row.seconds, row.ci95)
    for name, part in zip(("a_seconds", "b_seconds"), row.parts, strict=True):
        line[name] = cells.number(None if part is None else part.seconds)
    if row.split is not None:
        for name, ends in (("ceilings", row.split.ceilings), ("kernels", row.split.kernels)):
            line |= {f"{name}_low": cells.number(ends[0]), f"{name}_high": cells.number(ends[1])}
        line["other"] = cells.number(row.split.other)
    return line


def _times(seconds: float, ci95: tuple[float, float] | None) -> dict[str, str]:
    low, high = ci95 or (None, None)
    return {"seconds": cells.number(seconds), "ci95_low": cells.number(low), "ci95_high": cells.number(high)}
