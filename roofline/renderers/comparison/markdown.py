"""GitHub Markdown for a write-up: the verdict, parity, the account and the table of terms."""

from __future__ import annotations

from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content import wording
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
)
from roofline.content.grid import Grid
from roofline.renderers._markdown import escape, grid
from roofline.renderers.comparison import _proofs

#: Letters of a name in a table.
_LONGEST = 120


def render(ranking: Ranking) -> str:
    """Write two runs in full; of more, the table of runs, the matrix, and the largest rows of each account."""
    lines = _two(ranking.pairs[0]) if len(ranking.runs) == 2 else _several(ranking)
    return "\n".join(lines) + "\n"


def _two(pair: RankedPair) -> list[str]:
    comparison = pair.comparison
    lines = [*_head(pair), *_rows(pair, len(pair.account.rows)), *_proven(pair)]
    lines += [*_observed(pair, broken_down.OBSERVED, pair.breakdown), "", *_grid(broken_down.differences(pair))]
    facts = [comparing.places(pair), broken_down.why(pair), broken_down.legend(pair)]
    facts.append(f"{comparing.closing(comparison)}.")
    facts = [words for words in (*facts, broken_down.hardware(pair), comparing.communication(pair)) if words]
    return [*lines, "", f"*{escape(' '.join([*facts, pair_facts.origins(pair)]))}*"]


def _several(ranking: Ranking) -> list[str]:
    lines = [escape(comparing.headline(ranking)), "", *_grid(ranked.grid(ranking)), "", *_matrix(ranking)]
    for pair in ranking.pairs:
        lines += ["", *_head(pair), *_rows(pair, account_rows.FEW), *_proven(pair)]
        lines += _observed(pair, broken_down.FEW, broken_down.asked(pair))
        if broken_down.asked(pair):
            lines += ["", *_grid(broken_down.differences(pair))]
    return [*lines, "", f"*{escape(ranked.origins(ranking))}*"]


def _proven(pair: RankedPair) -> list[str]:
    return [] if pair.proofs is None else ["", *_proofs.markdown(pair.proofs)]


def _head(pair: RankedPair) -> list[str]:
    """Write the verdict, the warning and what parity says."""
    parity = pair.comparison.parity
    lines = [f"**{escape(comparing.verdict(pair))}**", ""]
    if comparing.warning(pair):
        lines = [f"**{escape(comparing.warning(pair))}**", "", *lines]
    lines += [f"Parity: {escape(parity_words.judged(parity))}.", ""]
    differences = [f"- {escape(words)}" for words in parity_words.differences(pair)]
    return [*lines, *differences, ""] if differences else lines


def _rows(pair: RankedPair, limit: int) -> list[str]:
    """Draw the rows of the account, the largest first, and the sum of the others."""
    every, unresolved = account_rows.rows(pair), broken_down.unresolved(pair)
    lines = [escape(unresolved), ""] if unresolved else []
    if not every:
        return [*lines, "Nothing differs: each row of the account is 0."]
    rows = [
        [
            str(number),
            account_rows.size(pair, row),
            comparing.share(account_rows.seconds(row), pair),
            escape(account_rows.said(row)),
            escape(account_rows.meaning(row)),
        ]
        for number, row in enumerate(every[:limit], 1)
    ]
    if smaller := account_rows.smaller_ones(pair, every[:limit]):
        others_seconds = account_rows.rest(pair, every[:limit])
        rows.append(
            ["", account_rows.written(pair, others_seconds), comparing.share(others_seconds, pair), smaller, ""]
        )
    heads = ["", account_rows.difference(pair), "share", "what was seen", "what that is, and what to try"]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return [*lines, f"{escape(account_rows.heading(pair))}:", "", *grid(heads, rows, numbers=(0, 1, 2))]


def _observed(pair: RankedPair, limit: int, table: Breakdown | None) -> list[str]:
    """Write the ops that differ most, where they are told."""
    lines, sentence = broken_down.observed(pair, limit, table)
    return ["", escape(sentence), "", *_grid(lines)] if lines else []


def _grid(table: Grid) -> list[str]:
    """Write a table of rows that add up to the difference."""
    names = map(escape, table.names(_LONGEST, wording.plain))
    body = [[name, *line] for name, line in zip(names, table.cells, strict=True)]
    heads = [escape(table.name), *map(table.head, range(len(table.heads)))]
    return grid(heads, body, numbers=[number + 1 for number in range(len(table.heads)) if number not in table.words])


def _matrix(ranking: Ranking) -> list[str]:
    head, *rows = ranked.matrix(ranking, limit=len(ranking.order))
    cells = [list(map(escape, row)) for row in rows]
    return [*grid(list(head), cells, numbers=(0, *range(2, len(head)))), "", escape(" ".join(ranked.legend(ranking)))]
