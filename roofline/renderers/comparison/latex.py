"""LaTeX for a write-up: the account and the table of what the difference is made of, each in a float of its own."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.renderers import _tables, _words
from roofline.renderers._latex.escape import comment, letters
from roofline.renderers._latex.table import LEAST_LONG_NAME, LEAST_NAME, PACKAGES, Table, floated, label
from roofline.renderers._names.distinct import distinct
from roofline.renderers.comparison import _account, _broken_down, _comparing, _parity, _proofs, _ranked, _term_table
from roofline.renderers.comparison._broken_down import Line


def render(ranking: Ranking, columns: int = 1, caption: str = "short") -> str:
    """Write why two runs differ, where, and what was proven; of more, the table of runs, and each pair's rows by a
    key that was asked for.

    columns: of a two-column page, that the tables are as wide as. caption: "long" also says what the columns are and
    how the runs were measured, which otherwise stands in a comment.
    """
    long = caption == "long"
    lines = [PACKAGES]
    if len(ranking.runs) == 2:
        pair = ranking.pairs[0]
        if _account.rows(pair):
            lines += _why(pair, columns)
        return "\n".join([*lines, *_where(pair, columns, long, 0), *_proven(pair, columns), ""])
    lines += _runs(ranking, columns, long)
    for number, pair in enumerate(ranking.pairs, 1):
        if _broken_down.asked(pair):
            lines += _where(pair, columns, long, number)
    return "\n".join([*lines, ""])


def _why(pair: RankedPair, columns: int) -> list[str]:
    """Draw the largest rows of the account and the sum of the others; what each row says stands in comments."""
    every = _account.rows(pair)
    shown, smaller = every[: _account.MANY], _account.smaller(pair, every[: _account.MANY])
    times = [_account.seconds(row) for row in shown] + ([_account.rest(pair, shown)] if smaller else [])
    rows = [(_account.written(pair, time), _comparing.share(time, pair)) for time in times]
    table = Table(
        name="row",
        heads=[[_account.difference(pair), "share"]],
        rows=rows,
        numbers=[True, True],
        ranks=[0, 1],
        rules=(len(shown),) if smaller else (),
        named=lambda width: distinct([*_account.labels(shown), *filter(None, [smaller])], width, sanitize=letters),
    )
    caption = " ".join(filter(None, (_comparing.warning(pair), _comparing.verdict(pair))))
    lines = []
    for number, row in enumerate(every, 1):
        lines.append(comment(f"{number}: {_account.said(row)} {_account.meaning(row)}".rstrip()))
    key = label(*pair.names, "why")
    return [*lines, *floated(table, columns, f"{caption} {_account.heading(pair)}.", key)]


def _where(pair: RankedPair, columns: int, long: bool, number: int) -> list[str]:
    """Write the rows that add up to the difference: the terms by phase and block, or the ops by another key."""
    unresolved = _broken_down.unresolved(pair)
    caption = " ".join(filter(None, (_comparing.warning(pair), _comparing.verdict(pair), unresolved)))
    explanation = " ".join(filter(None, (_broken_down.legend(pair), _comparing.places(pair), _measured(pair))))
    table = _terms(pair) if pair.breakdown is None else _ops(pair)
    key = label(*pair.names, "where", number or "")
    remarks = _said(pair)
    if long:
        return floated(table, columns, f"{caption} {explanation}", key, remarks)
    return floated(table, columns, caption, key, [*remarks, explanation])


def _said(pair: RankedPair) -> list[str]:
    """Say what parity says: comments, as a table has no room for it."""
    return [f"Parity: {_parity.judged(pair.comparison.parity)}.", *_parity.differences(pair)]


def _proven(pair: RankedPair, columns: int) -> list[str]:
    """Write what taking causes away gained, where that was measured."""
    if not pair.proofs:
        return []
    rows = _proofs.rows(pair.proofs)
    names = [cause if switch == units.UNKNOWN else f"{cause}; {switch}" for _, cause, switch, *_ in rows]
    heads = _proofs.HEADINGS[3:]
    table = Table(
        name="cause",
        heads=[heads],
        rows=[row[3:] for row in rows],
        numbers=[head != "verdict" for head in heads],
        ranks=[2, 4, 1, 3, 0],
        rules=(),
        named=lambda width: distinct(names, width, sanitize=letters),
        least=LEAST_LONG_NAME,
    )
    full_names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return floated(
        table,
        columns,
        _proofs.HEAD,
        label(*pair.names, "proof"),
        [*full_names, *_proofs.notes(pair.proofs), *_proofs.moved_notes(pair.proofs)],
    )


def _measured(pair: RankedPair) -> str:
    runs = (("A", 0, pair.comparison.a), ("B", 1, pair.comparison.b))
    return " ".join(
        f"{letter}: {_comparing.name(pair, side)}; {_comparing.subject([run])}: {_words.provenance(run)}"
        for letter, side, run in runs
    )


def _terms(pair: RankedPair) -> Table:
    terms = _term_table.table(pair.comparison)
    scale, rows = terms.scale, (*terms.rows, terms.total)
    numbers = terms.columns(scale)
    heads = _term_table.headings(numbers)
    return Table(
        name=f"where [{scale.unit}]",
        heads=[[*column] for column in zip(*heads, strict=True)],
        rows=[_term_table.cells(row, numbers, scale) for row in rows],
        numbers=[True] * len(heads),
        ranks=_term_table.ranks(terms, numbers),
        rules=(len(terms.places), len(rows) - 1),
        named=lambda width: [*_term_table.labels(terms, width, letters), terms.total.label],
    )


def _ops(pair: RankedPair) -> Table:
    assert pair.breakdown is not None
    by = pair.breakdown.by
    lines = _broken_down.lines(pair, pair.breakdown)
    rows: Sequence[Line] = (*lines.rows, lines.ops, *lines.gap, lines.total)
    scale = _broken_down.scale_of(lines.rows, rows[len(lines.rows) :])
    heads, *cells = _broken_down.cells(rows, scale)
    return Table(
        name=f"{by} [{scale.unit}]",
        heads=[heads],
        rows=cells,
        numbers=[True] * len(heads),
        ranks=[_broken_down.RANKS[head] for head in heads],
        rules=(len(lines.rows), len(lines.rows) + 1, len(rows) - 1),
        named=lambda width: _broken_down.labels(rows, width, by, letters),
        least=LEAST_LONG_NAME if by in _tables.LONG else LEAST_NAME,
    )


def _runs(ranking: Ranking, columns: int, long: bool) -> list[str]:
    """Write a line per run, the fastest first."""
    names = [ranking.names[number] for number in ranking.order]
    heads = [*_ranked.HEADS[2:-1], "parity"]
    table = Table(
        name="run",
        heads=[heads],
        rows=[row[2:] for row in _ranked.rows(ranking, 200)],
        numbers=[head != "parity" for head in heads],
        ranks=[0, 0, 3, 4, 5, 2],
        rules=(),
        named=lambda width: distinct(names, width, sanitize=letters),
    )
    measured = [
        f"{_words.plain(ranking.names[number], 60)}: {_words.provenance(ranking.runs[number])}"
        for number in ranking.order
    ]
    remarks = [
        f"{_comparing.name(pair, 0)} with {_comparing.name(pair, 1)}: {words}"
        for pair in ranking.pairs
        for words in _said(pair)
    ]
    least = units.seconds(ranking.runs[ranking.fastest].wall)
    caption = f"{_comparing.headline(ranking)} Factors and parity are with the fastest, which takes {least} per step."
    key = label(*names, "runs")
    if long:
        return floated(table, columns, " ".join([caption, *measured]), key, remarks)
    return floated(table, columns, caption, key, [*measured, *remarks])
