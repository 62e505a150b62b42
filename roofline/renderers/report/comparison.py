"""Say why one run is faster: whether both do the same work, the waterfall, and the rows of the account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.row import Row as AccountRow
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
)
from roofline.content.comparison import waterfall as steps
from roofline.renderers.report.parts.grids import cell, facts, head, table, table_of
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
        parts += [table_of(ranked.grid(ranking), "The runs, the fastest first", "Runs"), _matrix(ranking)]
        parts += [_folded(pair, explained, is_last=pair is ranking.pairs[-1]) for pair in ranking.pairs]
    else:
        parts.append(_pair(ranking.pairs[0], bool(explained)))
    return section("comparison", "Why one run is faster" if is_told else TITLE, parts)


def _folded(pair: RankedPair, explained: Sequence[RankedPair], *, is_last: bool) -> Html:
    """Write one of several pairs below its names: of those `explained` the last is open, of others the line says why.

    is_last: of all pairs, so that its verdict stands at the head of the page.
    """
    names = join([name(pair.names[0], 60), " against ", name(pair.names[1], 60)])
    if pair not in explained:
        summary = tag("summary", names, f": not comparable. {comparing.refusal(pair)}.")
        return tag("details", summary, _pair(pair, explained=False), class_="pair")
    warning, parts = comparing.warning(pair), [tag("summary", names)]
    if warning:
        parts.append(tag("p", warning, class_="warning", role="note"))
    if warning or not is_last:
        parts.append(tag("p", comparing.verdict(pair, advise=True), class_="lead"))
    return tag("details", parts, _pair(pair, explained=True), class_="pair", open=pair is explained[-1])


def _matrix(ranking: Ranking) -> Html:
    (_, corner, *places), *body = ranked.matrix(ranking, limit=len(ranking.runs))
    heads = [head(corner, False), *map(head, places)]
    rows = [
        tag("tr", tag("th", f"{place} ", name(called, 40), scope="row"), map(cell, factors))
        for place, called, *factors in body
    ]
    return table(" ".join(ranked.legend(ranking)), heads, rows, "Speedups")


def _pair(pair: RankedPair, explained: bool) -> Html:
    parts = [_same_work(pair, explained)]
    if not explained:
        note = "The difference is not explained: measure the same work in both, or add --allow."
        return join([*parts, facts(pair_facts.runs(pair)), tag("p", note, class_="note")])
    chart = steps.waterfall(pair)
    parts += [waterfall(chart), _account_rows(pair, chart.rows)]
    observed, words = broken_down.observed(pair, broken_down.OBSERVED, pair.breakdown)
    if observed:
        parts.append(table_of(observed, words, f"Difference by {observed.by}"))
    differences = broken_down.differences(pair)
    evidence = [
        facts(pair_facts.runs(pair)),
        table_of(differences, "The sum of the difference, A − B", "Sum of the difference"),
    ]
    evidence.append(facts([*pair_facts.table(pair), *pair_facts.doubts(pair)]))
    summary = tag("summary", "Both runs as they were timed, and the table that adds up to the difference")
    return join([*parts, tag("details", summary, evidence)])


def _same_work(pair: RankedPair, explained: bool) -> Html:
    """Write the box that says whether the runs may be compared, and all differences; explained: whether rows follow."""
    if explained:
        alike = [*parity_words.alike(pair), *_names(pair)]
    else:
        alike = [("same work?", f"{parity_words.same_work(pair)}.")]
        alike += [("", words) for words in parity_words.differences(pair, numbered=False)]
    return tag("div", facts(alike), class_=f"parity {pair.comparison.parity.verdict.replace(' ', '-')}")


def _names(pair: RankedPair) -> Iterator[tuple[str, str]]:
    """Say what the names of settings mean, as rows do of theirs: whoever the page is sent to has no other page."""
    known = known_annotations()
    names = dict.fromkeys(parity_words.settings_annotations(pair))
    for number, called in enumerate(called for called in names if called in known):
        yield "" if number else "names", f"{called}: {known[called].title}"


def _account_rows(pair: RankedPair, first: Sequence[AccountRow]) -> Html:
    """List the rows of the account, the largest first; those after the `first`, which the waterfall has, are folded."""
    rows, unresolved = account_rows.rows(pair), broken_down.unresolved(pair)
    notes = [tag("p", unresolved, class_="note")] if unresolved else []
    if not rows:
        return join([*notes, tag("p", "Nothing differs: each row of the account is 0.", class_="note")])
    entries = [_entry(pair, row, label) for row, label in zip(rows, account_rows.labels(rows), strict=True)]
    parts = [*notes, tag("p", f"{account_rows.heading(pair)}:"), tag("ol", entries[: len(first)], class_="findings")]
    if others := entries[len(first) :]:
        rest = account_rows.rest(pair, first)
        figures = f"{account_rows.written(pair, rest)}, {comparing.share(rest, pair)}"
        listed = tag("ol", others, class_="findings", start=len(first) + 1)
        parts.append(tag("details", tag("summary", f"{account_rows.smaller(pair, first)}: {figures}"), listed))
    return join(parts)


def _entry(pair: RankedPair, row: AccountRow, label: str) -> Html:
    figures = account_rows.size(pair, row), comparing.share(account_rows.seconds(row), pair)
    head = tag("p", tag("b", name(label, 120)), *(tag("span", words, class_="figure") for words in figures))
    return tag("li", head, *(tag("p", words) for words in account_rows.lines(pair, row)))
