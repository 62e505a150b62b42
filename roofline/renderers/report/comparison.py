"""Compare the runs: whether they may be compared, the waterfall, and the account with its observations and advice."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.comparison.ranking import RankedPair, Ranking
from roofline.renderers import _tables
from roofline.renderers._signed import Scale
from roofline.renderers.comparison import _account, _broken_down, _comparing, _evidence, _parity, _ranked, _term_table
from roofline.renderers.comparison._broken_down import Line
from roofline.renderers.comparison._term_table import Row
from roofline.renderers.report.parts.grids import cell, facts, head, table
from roofline.renderers.report.parts.html import Html, join, name, tag
from roofline.renderers.report.parts.run import section
from roofline.renderers.report.waterfall import waterfall

#: Of runs that say which is faster, that do not, and that are not compared.
TITLE = "How the runs compare"


def comparison(ranking: Ranking, allow: bool) -> Html:
    """Write the section. allow: explain differences that parity refuses."""
    parts: list[Html] = []
    if len(ranking.runs) > 2:
        parts += [_runs(ranking), _matrix(ranking)]
    for number, pair in enumerate(ranking.pairs):
        body = _pair(pair, allow or pair.comparison.parity.verdict != "not comparable")
        if len(ranking.pairs) == 1:
            parts.append(body)
        else:
            title = tag("summary", name(pair.names[0], 60), " against ", name(pair.names[1], 60))
            parts.append(tag("details", title, body, class_="pair", open=number == len(ranking.pairs) - 1))
    return section("comparison", TITLE, parts)


def _runs(ranking: Ranking) -> Html:
    heads = [head(words, number not in (1, 7)) for number, words in enumerate(_ranked.HEADS)]
    rows = [
        tag("tr", [cell(words, number not in (1, 7)) for number, words in enumerate(row)])
        for row in _ranked.rows(ranking, 60)
    ]
    return table("The runs, the fastest first", heads, rows, "Runs")


def _matrix(ranking: Ranking) -> Html:
    first, *body = _ranked.matrix(ranking, limit=len(ranking.runs))
    heads = [head(words, number != 1) for number, words in enumerate(first)]
    rows = [
        tag("tr", [cell(name(words, 40) if number == 1 else words, number != 1) for number, words in enumerate(row)])
        for row in body
    ]
    marks = f" {_comparing.MARKS}." if _ranked.marked(ranking) else ""
    return table(f"{_ranked.MATRIX}{marks}", heads, rows, "Speedups")


def _pair(pair: RankedPair, explained: bool) -> Html:
    lead = tag("p", _comparing.verdict(pair, advise=True), class_="lead")
    parts = [_parity_box(pair, explained)]
    if not explained:
        note = "The difference is not explained: measure the same work in both, or add --allow."
        return join([*parts, facts(_evidence.runs(pair)), tag("p", note, class_="note")])
    if warning := _comparing.warning(pair):
        parts.append(tag("p", warning, class_="warning", role="note"))
    parts += [lead, facts(_evidence.runs(pair)), waterfall(pair), _account_rows(pair)]
    rows, words = _broken_down.observed(pair, _broken_down.OBSERVED, pair.breakdown)
    if rows:
        parts.append(_lines(rows, (), pair.observations.by if pair.observations else "", words))
    parts += [_differences(pair), facts([*_evidence.table(pair), *_evidence.doubts(pair)])]
    return join(parts)


def _parity_box(pair: RankedPair, explained: bool) -> Html:
    """Write the box that says whether the runs may be compared, and all differences; explained: whether rows follow."""
    parity = pair.comparison.parity
    differences = [tag("li", words) for words in _parity.differences(pair, numbered=explained)]
    look = parity.verdict.replace(" ", "-")
    listed = tag("ul", differences) if differences else tag("p", "Nothing differs that is known to matter.")
    head_line = tag("p", tag("b", "Parity "), _parity.judged(parity), class_="judged")
    return tag("div", head_line, listed, class_=f"parity {look}")


def _account_rows(pair: RankedPair) -> Html:
    """List the rows of the account, the largest first."""
    account_rows, unresolved = _account.rows(pair), _broken_down.unresolved(pair)
    notes = [tag("p", unresolved, class_="note")] if unresolved else []
    if not account_rows:
        return join([*notes, tag("p", "Nothing differs: each row of the account is 0.", class_="note")])
    entries = []
    for row, label in zip(account_rows, _account.labels(account_rows), strict=True):
        times = [_account.size(pair, row), _comparing.share(_account.seconds(row), pair)]
        figures = [tag("span", words, class_="figure") for words in times]
        meaning = _account.meaning(row)
        entries.append(
            tag(
                "li",
                tag("p", tag("b", name(label, 120)), *figures, class_="what"),
                tag("p", tag("i", "Seen "), _account.said(row)),
                tag("p", meaning) if meaning else None,
            )
        )
    about = tag("p", f"{_account.heading(pair)}.", class_="note")
    return join([tag("h3", "The account"), *notes, about, tag("ol", entries, class_="findings")])


def _differences(pair: RankedPair) -> Html:
    """Write the table that adds up to the difference."""
    if pair.breakdown is not None:
        content = _broken_down.lines(pair, pair.breakdown)
        return _lines(
            content.rows, (content.ops, *content.gap, content.total), pair.breakdown.by, "The sum of the difference"
        )
    terms = _term_table.table(pair.comparison)
    scale = terms.scale
    columns = terms.columns(scale)
    heads = [_term_table.COLUMNS[number][0].replace("-\n", "").replace("\n", " ").strip() for number in columns]
    rows = [_terms(row, columns, scale) for row in (*terms.rows, terms.total)]
    named = [head(f"where [{scale.unit}]", False), *map(head, (*heads, "total", "95 % interval"))]
    return table("The sum of the difference, A − B", named, rows[:-1], "Terms of the difference", rows[-1:])


def _terms(row: Row, columns: Sequence[int], scale: Scale) -> Html:
    written = ["" if row.terms[number] is None else scale.write(row.terms[number]) for number in columns]
    cells = [*written, scale.write(row.seconds), scale.between(row.ci95)]
    return tag("tr", tag("th", name(row.label, 60), scope="row"), [cell(words) for words in cells])


def _lines(lines: Sequence[Line], sums: Sequence[Line], by: str, caption: str) -> Html:
    rows, scale = (*lines, *sums), _broken_down.scale_of(lines, sums)
    heads, *cells = _broken_down.cells(rows, scale)
    width = 90 if by in _tables.LONG else 60
    table_rows = [
        tag("tr", tag("th", name(row.label, width, by == "scope"), scope="row"), [cell(words) for words in line])
        for row, line in zip(rows, cells, strict=True)
    ]
    named = [head(f"{by} [{scale.unit}]", False), *map(head, heads)]
    return table(caption, named, table_rows[: len(lines)], f"Difference by {by}", table_rows[len(lines) :])
