"""CSV for spreadsheets and data frames: what the difference of each pair is made of, in rows that add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap

from roofline.comparison.account.annotate import rule_of
from roofline.comparison.account.row import Row as AccountRow
from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.breakdown.rows import Row
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.comparison.terms import Term
from roofline.content.comparison import broken_down, comparing
from roofline.content.comparison.account_rows import label
from roofline.content.signed import snapped
from roofline.renderers._csv import cells

FIELDS = (
    *("a", "b", "parity", "row", "by", "label", "phase", "block", "class", "kind"),
    *("a_seconds", "b_seconds", "seconds", "ci95_low", "ci95_high"),
    *("ceilings_low", "ceilings_high", "kernels_low", "kernels_high", "other"),
)


def render(ranking: Ranking) -> str:
    """Write seconds to 12 digits, 0 below a femtosecond; what is unknown or does not apply is empty; columns are fixed.

    row says what each line is. The seconds of all "account" lines of a pair add up to those of its "difference", and so
    do those of "term" (or, with --by, "op"), "gap" and "residual" together. "finding" repeats the seconds of a row of
    the account that has a name; "proof" says what turning a switch gained. "account", "warning", "parity", "note" and
    "proof" have a sentence as their label.
    """
    return cells.document(FIELDS, (line for pair in ranking.pairs for line in _pair(pair)))


def _pair(pair: RankedPair) -> Iterator[dict[str, str]]:
    comparison = pair.comparison
    start = {
        "a": cells.text(comparing.name(pair, 0)),
        "b": cells.text(comparing.name(pair, 1)),
        "parity": comparison.parity.verdict,
    }
    total = _times(comparison.difference, comparison.ci95) | {
        "a_seconds": _time(comparison.a.wall), "b_seconds": _time(comparison.b.wall)
    }  # fmt: skip
    yield start | {"row": "difference"} | total
    if comparing.warning(pair):
        yield start | {"row": "warning", "label": cells.text(comparing.warning(pair))}
    for difference in comparison.parity.differences:
        yield start | {"row": "parity", "kind": cells.text(difference.what), "label": cells.text(difference.text)}
    gap = [term for term in comparison.work.terms if term.kind.startswith("gap.")]
    if pair.breakdown is None:
        ops: Iterable[dict[str, str]] = (_term(term) for term in comparison.work.terms if term not in gap)
        residual = comparison.work.residual
    else:
        ops = starmap(_op, ((pair.breakdown, row) for row in pair.breakdown.rows))
        residual = comparison.difference - sum(row.seconds for row in pair.breakdown.rows)
        residual -= sum(term.seconds for term in gap)
    for line in (*ops, *(_term(term) | {"row": "gap"} for term in gap)):
        yield start | line
    yield start | {"row": "residual", "seconds": _time(residual)}
    if unresolved := broken_down.unresolved(pair):
        yield start | {"row": "note", "label": cells.text(unresolved)}
    for account_row in pair.account.rows:
        yield start | _account(account_row)
    for named in pair.findings:
        line = {"row": "finding", "kind": cells.text(rule_of(named)), "label": cells.text(label(named))}
        yield start | line | _times(named.seconds, named.ci95)
    for proof in pair.proofs or ():
        proof_line = {"row": "proof", "kind": cells.text(" + ".join(proof.rules)), "label": cells.text(proof.text)}
        yield start | proof_line | _times(proof.observed, proof.observed_ci95)


def _account(row: AccountRow) -> dict[str, str]:
    """Write a row of the account: what each run spends in it; settings have no times."""
    amounts = (None, None) if row.seconds is None else (row.a.seconds, row.b.seconds)
    return {
        "row": "account",
        "label": cells.text(row.text),
        "phase": cells.text(row.phase or ""),
        "class": row.op_class or "",
        "kind": row.kind,
        **{name: _time(seconds) for name, seconds in zip(("a_seconds", "b_seconds"), amounts, strict=True)},
    } | _times(row.seconds, row.ci95)


def _term(term: Term) -> dict[str, str]:
    return {
        "row": "term",
        "phase": cells.text(term.phase or ""),
        "block": cells.text(term.block or ""),
        "class": term.op_class or "",
        "kind": cells.text(term.kind),
    } | _times(term.seconds, term.ci95)


def _op(breakdown: Breakdown, row: Row) -> dict[str, str]:
    """Write a row by a key: what each run spends there, and whose the difference is."""
    line = {"row": "op", "by": breakdown.by, "label": cells.text(row.label)} | _times(row.seconds, row.ci95)
    for name, part in zip(("a_seconds", "b_seconds"), row.parts, strict=True):
        line[name] = _time(None if part is None else part.seconds)
    if row.split is not None:
        for name, ends in (("ceilings", row.split.ceilings), ("kernels", row.split.kernels)):
            line |= {f"{name}_low": _time(ends[0]), f"{name}_high": _time(ends[1])}
        line["other"] = _time(row.split.unshared)
    return line


def _time(value: float | None) -> str:
    return cells.number(None if value is None else snapped(value))


def _times(seconds: float | None, ci95: tuple[float, float] | None) -> dict[str, str]:
    low, high = ci95 or (None, None)
    return {"seconds": _time(seconds), "ci95_low": _time(low), "ci95_high": _time(high)}
