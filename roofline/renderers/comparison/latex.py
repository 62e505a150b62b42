"""LaTeX for a write-up: the account and the table of what the difference is made of, each in a float of its own."""

from __future__ import annotations

from dataclasses import replace

from roofline import units
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content import captions
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
)
from roofline.content.names.distinct import distinct
from roofline.content.signed import scale
from roofline.renderers._latex.escape import comment, letters
from roofline.renderers._latex.table import (
    LEAST_LONG_NAME,
    PACKAGES,
    Column,
    Table,
    floated,
    label,
    of_grid,
)
from roofline.renderers.comparison import _proofs


def render(ranking: Ranking, columns: int = 1, caption: str = "short") -> str:
    """Write why two runs differ, where, and what was proven; of more, the table of runs, and each pair's rows by a
    key that was asked for.

    columns: of a two-column page, that the tables are as wide as. caption: "short" says what was measured and what the
    columns are; "long" also all versions and the spread of the steps, which otherwise stand in a comment.
    """
    long = caption == "long"
    lines = [PACKAGES]
    if len(ranking.runs) == 2:
        pair = ranking.pairs[0]
        if account_rows.rows(pair):
            lines += _why(pair, columns)
        return "\n".join([*lines, *_where(pair, columns, long, 0), *_proven(pair, columns), ""])
    lines += _runs(ranking, columns, long)
    for number, pair in enumerate(ranking.pairs, 1):
        if broken_down.asked(pair):
            lines += _where(pair, columns, long, number)
    return "\n".join([*lines, ""])


def _why(pair: RankedPair, columns: int) -> list[str]:
    """Draw the largest rows of the account and the sum of the others; what each row says stands in comments."""
    every = account_rows.rows(pair)
    shown, smaller = every[: account_rows.MANY], account_rows.smaller(pair, every[: account_rows.MANY])
    times = [account_rows.seconds(row) for row in shown] + ([account_rows.rest(pair, shown)] if smaller else [])
    sign, in_unit = -1 if account_rows.is_turned(pair) else 1, scale(times)
    marks = [account_rows.mark(pair, row) for row in shown] + [""] * bool(smaller)
    cells = [f"{mark}{in_unit.write(sign * time)} {in_unit.unit}" for mark, time in zip(marks, times, strict=True)]
    table = Table(
        name="row",
        columns=[
            Column(account_rows.difference(pair), cells),
            Column("share", [comparing.share(time, pair) for time in times], rank=1),
        ],
        named=lambda width: distinct([*account_rows.labels(shown), *filter(None, [smaller])], width, sanitize=letters),
        rules=(len(shown),) if smaller else (),
    )
    sentences = [
        comment(f"{number}: {account_rows.said(row)} {account_rows.meaning(row)}".rstrip())
        for number, row in enumerate(every, 1)
    ]
    caption = _compared(account_rows.heading(pair), pair)
    return [*sentences, *floated(table, columns, caption, label(*pair.names, "why"), [comparing.verdict(pair)])]


def _compared(head: str, pair: RankedPair) -> str:
    """Write the first sentences of a caption: what its table is of, what was compared, and how."""
    runs = captions.compared((pair.comparison.a, pair.comparison.b), pair.names, ("A: ", "B: "))
    return f"{comparing.warning(pair)} {head}: {runs} {comparing.ratio(pair)}".strip()


def _where(pair: RankedPair, columns: int, long: bool, number: int) -> list[str]:
    """Write the rows that add up to the difference: the terms by phase and block, or the ops by another key."""
    by = "phase and block" if pair.breakdown is None else pair.breakdown.by
    names = [comparing.lettered(pair, side) for side in (0, 1)]
    caption = _compared(f"A − B, the difference of {names[0]} and {names[1]}, by {by}", pair)
    further = (broken_down.remarks(pair), comparing.places(pair), pair_facts.origins(pair))
    remarks = " ".join(filter(None, further))
    return floated(
        of_grid(broken_down.differences(pair)),
        columns,
        f"{caption} {broken_down.unresolved(pair)}".strip(),
        label(*pair.names, "where", number or ""),
        [comparing.verdict(pair), *_said(pair), *([] if long else [remarks])],
        remarks if long else "",
    )


def _said(pair: RankedPair) -> list[str]:
    """Say what parity says: comments, as a table has no room for it."""
    return [f"Parity: {parity_words.judged(pair.comparison.parity)}.", *parity_words.differences(pair)]


def _proven(pair: RankedPair, columns: int) -> list[str]:
    """Write what taking causes away gained, where that was measured."""
    if not pair.proofs:
        return []
    rows = _proofs.rows(pair.proofs, _proofs.in_one_unit(pair.proofs))
    names = [cause if switch == units.UNKNOWN else f"{cause}; {switch}" for _, cause, switch, *_ in rows]
    cells, heads = zip(*(row[3:] for row in rows), strict=True), _proofs.HEADINGS[3:]
    table = Table(
        name="cause",
        columns=[
            Column(head, column, head != "verdict", rank)
            for head, column, rank in zip(heads, cells, (2, 4, 1, 3, 0), strict=True)
        ],
        named=lambda width: distinct(names, width, sanitize=letters),
        least=LEAST_LONG_NAME,
    )
    return floated(
        table,
        columns,
        _proofs.HEAD,
        label(*pair.names, "proof"),
        [
            *(f"{number}: {name}" for number, name in enumerate(names, 1)),
            *_proofs.notes(pair.proofs),
            *_proofs.moved_notes(pair.proofs),
        ],
    )


def _runs(ranking: Ranking, columns: int, long: bool) -> list[str]:
    """Write a line per run, the fastest first."""
    names = [ranking.names[number] for number in ranking.order]
    runs = [ranking.runs[number] for number in ranking.order]
    grid = ranked.grid(ranking, numbered=False)
    table = of_grid(replace(grid, heads=[*grid.heads[:-1], "parity"]))
    measured = ranked.origins(ranking)
    remarks = [
        f"{comparing.name(pair, 0)} with {comparing.name(pair, 1)}: {words}"
        for pair in ranking.pairs
        for words in _said(pair)
    ]
    caption = f"Time of one step of {len(runs)} runs: {captions.compared(runs, names)}"
    comments = [comparing.headline(ranking), *([] if long else [measured]), *remarks]
    return floated(table, columns, caption, label(*names, "runs"), comments, measured if long else "")
