"""Say why one run is faster: whether both do the same work, the waterfall, and the rows of the account."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.comparison.account.row import Row as AccountRow
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content import tables
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
    term_table,
)
from roofline.content.comparison.broken_down import Line
from roofline.content.comparison.term_table import Row
from roofline.content.signed import Scale
from roofline.renderers.report.parts.grids import cell, facts, head, table
from roofline.renderers.report.parts.html import Html, join, name, tag
from roofline.renderers.report.parts.run import section
from roofline.renderers.report.waterfall import waterfall

#: Of runs that do not say which is faster, and of those that are not compared.
TITLE = "How the runs compare"


def comparison(ranking: Ranking, allow: bool) -> Html:
    """Write the section. allow: explain differences that parity refuses."""
    explained = [pair for pair in ranking.pairs if allow or pair.comparison.parity.verdict != "not comparable"]
    is_told = any(pair.headline.slower is not None for pair in explained)
    parts: list[Html] = []
    if len(ranking.runs) > 2:
        parts += [_runs(ranking), _matrix(ranking)]
        parts += [_folded(pair, pair in explained, pair is ranking.pairs[-1]) for pair in ranking.pairs]
    else:
        parts.append(_pair(ranking.pairs[0], bool(explained)))
    return section("comparison", "Why one run is faster" if is_told else TITLE, parts)


def _folded(pair: RankedPair, explained: bool, last: bool) -> Html:
    """Write one of several pairs below its names. last: whether it is open, and its verdict stands above the page."""
    warning = comparing.warning(pair)
    parts = [tag("summary", name(pair.names[0], 60), " against ", name(pair.names[1], 60))]
    if explained and warning:
        parts.append(tag("p", warning, class_="warning", role="note"))
    if explained and (warning or not last):
        parts.append(tag("p", comparing.verdict(pair, advise=True), class_="lead"))
    return tag("details", parts, _pair(pair, explained), class_="pair", open=last or not explained)


def _runs(ranking: Ranking) -> Html:
    heads = [head(words, number not in (1, 7)) for number, words in enumerate(ranked.HEADS)]
    rows = [
        tag("tr", [cell(words, number not in (1, 7)) for number, words in enumerate(row)])
        for row in ranked.rows(ranking, 60)
    ]
    return table("The runs, the fastest first", heads, rows, "Runs")


def _matrix(ranking: Ranking) -> Html:
    first, *body = ranked.matrix(ranking, limit=len(ranking.runs))
    heads = [head(words, number != 1) for number, words in enumerate(first)]
    rows = [
        tag("tr", [cell(name(words, 40) if number == 1 else words, number != 1) for number, words in enumerate(row)])
        for row in body
    ]
    marks = f" {comparing.MARKS}." if ranked.marked(ranking) else ""
    return table(f"{ranked.MATRIX}{marks}", heads, rows, "Speedups")


def _pair(pair: RankedPair, explained: bool) -> Html:
    parts = [_same_work(pair, explained)]
    if not explained:
        note = "The difference is not explained: measure the same work in both, or add --allow."
        return join([*parts, facts(pair_facts.runs(pair)), tag("p", note, class_="note")])
    parts += [waterfall(pair), _account_rows(pair)]
    rows, words = broken_down.observed(pair, broken_down.OBSERVED, pair.breakdown)
    if rows:
        parts.append(_lines(rows, (), pair.observations.by if pair.observations else "", words))
    evidence = [facts(pair_facts.runs(pair)), _differences(pair)]
    evidence.append(facts([*pair_facts.table(pair), *pair_facts.doubts(pair)]))
    summary = tag("summary", "Both runs as they were timed, and the table that adds up to the difference")
    return join([*parts, tag("details", summary, evidence)])


def _same_work(pair: RankedPair, explained: bool) -> Html:
    """Write the box that says whether the runs may be compared, and all differences; explained: whether rows follow."""
    alike = [("same work?", f"{parity_words.same_work(pair)}.")]
    if explained:
        settings, doubts = parity_words.settings(pair), parity_words.doubts(pair)
        alike += [("", words) for words in parity_words.work(pair)]
        alike += [(("settings", "")[number > 0], words) for number, words in enumerate(settings)]
        alike += [(("trust", "")[number > 0], words) for number, words in enumerate(doubts)]
    else:
        alike += [("", words) for words in parity_words.differences(pair, numbered=False)]
    return tag("div", facts(alike), class_=f"parity {pair.comparison.parity.verdict.replace(' ', '-')}")


def _account_rows(pair: RankedPair) -> Html:
    """List the rows of the account, the largest first; those after the first few are folded."""
    rows, unresolved = account_rows.rows(pair), broken_down.unresolved(pair)
    notes = [tag("p", unresolved, class_="note")] if unresolved else []
    if not rows:
        return join([*notes, tag("p", "Nothing differs: each row of the account is 0.", class_="note")])
    entries = [_entry(pair, row, label) for row, label in zip(rows, account_rows.labels(rows), strict=True)]
    first, others = rows[: account_rows.FEW], entries[account_rows.FEW :]
    parts = [*notes, tag("p", f"{account_rows.heading(pair)}:"), tag("ol", entries[: len(first)], class_="findings")]
    if others:
        rest = account_rows.rest(pair, first)
        figures = f"{account_rows.written(pair, rest)}, {comparing.share(rest, pair)}"
        listed = tag("ol", others, class_="findings", start=len(first) + 1)
        parts.append(tag("details", tag("summary", f"{account_rows.smaller(pair, first)}: {figures}"), listed))
    return join(parts)


def _entry(pair: RankedPair, row: AccountRow, label: str) -> Html:
    figures = account_rows.size(pair, row), comparing.share(account_rows.seconds(row), pair)
    head = tag("p", tag("b", name(label, 120)), *(tag("span", words, class_="figure") for words in figures))
    return tag("li", head, *(tag("p", words) for words in account_rows.lines(pair, row)))


def _differences(pair: RankedPair) -> Html:
    """Write the table that adds up to the difference."""
    if pair.breakdown is not None:
        content = broken_down.lines(pair, pair.breakdown)
        return _lines(
            content.rows, (content.ops, *content.gap, content.total), pair.breakdown.by, "The sum of the difference"
        )
    terms = term_table.table(pair.comparison)
    scale = terms.scale
    columns = terms.columns(scale)
    heads = [term_table.COLUMNS[number][0].replace("-\n", "").replace("\n", " ").strip() for number in columns]
    rows = [_terms(row, columns, scale) for row in (*terms.rows, terms.total)]
    named = [head(f"where [{scale.unit}]", False), *map(head, (*heads, "total", "95 % interval"))]
    return table("The sum of the difference, A − B", named, rows[:-1], "Terms of the difference", rows[-1:])


def _terms(row: Row, columns: Sequence[int], scale: Scale) -> Html:
    written = ["" if row.terms[number] is None else scale.write(row.terms[number]) for number in columns]
    cells = [*written, scale.write(row.seconds), scale.between(row.ci95)]
    return tag("tr", tag("th", name(row.label, 60), scope="row"), [cell(words) for words in cells])


def _lines(lines: Sequence[Line], sums: Sequence[Line], by: str, caption: str) -> Html:
    rows, scale = (*lines, *sums), broken_down.scale_of(lines, sums)
    heads, *cells = broken_down.cells(rows, scale)
    width = 90 if by in tables.LONG else 60
    table_rows = [
        tag("tr", tag("th", name(row.label, width, by == "scope"), scope="row"), [cell(words) for words in line])
        for row, line in zip(rows, cells, strict=True)
    ]
    named = [head(f"{by} [{scale.unit}]", False), *map(head, heads)]
    return table(caption, named, table_rows[: len(lines)], f"Difference by {by}", table_rows[len(lines) :])
