"""Plain text for a terminal: the verdict, parity, the findings, and the table that they are taken from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.renderers import _tables, _terminal, _words
from roofline.renderers._names.distinct import distinct
from roofline.renderers._signed import signed
from roofline.renderers._terminal import SHEET, Page, wrapped
from roofline.renderers.comparison import _broken_down, _comparing, _evidence, _proofs, _ranked, _term_table
from roofline.renderers.comparison._broken_down import Line

#: Differences that parity names and that are shown of each of several pairs.
_FEW = 3
#: Letters that names are given before a column makes room for them, and at most in the table of runs.
_LEAST_NAME, _LEAST_LABEL, _LONGEST_RUN = 12, 16, 30
#: What goes first of the table of runs for want of room: the highest.
_RUN_RANKS = (0, 0, 0, 1, 4, 5, 3, 2)


def render(ranking: Ranking, page: Page = SHEET) -> str:
    """Two runs in full; of more, the table of runs, the matrix, and the largest findings of each."""
    lines = _two(ranking.pairs[0], page) if len(ranking.runs) == 2 else _several(ranking, page)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _two(pair: RankedPair, page: Page) -> list[str]:
    lines = [*_warning(pair, page), *wrapped(_verdict(pair, advise=True), page, "bold"), ""]
    lines += _terminal.facts(_evidence.runs(pair), page)
    lines += _terminal.facts(_judged(pair), page)
    lines += ["", *_findings(pair, len(pair.findings), page), *wrapped(_comparing.beside(pair), page)]
    lines += _proven(pair, page)
    lines += [*_observed(pair, _broken_down.OBSERVED, pair.breakdown, page), "", *_differences(pair, page), ""]
    lines += _terminal.facts(_evidence.told(pair), page)
    return lines


def _several(ranking: Ranking, page: Page) -> list[str]:
    lines = [*wrapped(_comparing.headline(ranking), page, "bold"), "", *_runs(ranking, page), ""]
    lines += _matrix(ranking, page)
    for pair in ranking.pairs:
        lines += ["", page.painted("─" * page.prose, "dim"), *_warning(pair, page)]
        lines += [
            *wrapped(_verdict(pair), page, "bold"),
            *_terminal.facts(_judged(pair, _FEW), page),
            *_findings(pair, _comparing.TOP, page),
            *wrapped(_comparing.beside(pair), page),
            *_proven(pair, page),
            *_observed(pair, _broken_down.FEW, _broken_down.asked(pair), page),
        ]
        if _broken_down.asked(pair):
            lines += ["", *_differences(pair, page)]
    return lines


def _warning(pair: RankedPair, page: Page) -> list[str]:
    return wrapped(_comparing.warning(pair), page, "red")


def _proven(pair: RankedPair, page: Page) -> list[str]:
    return [] if pair.proofs is None else ["", *_proofs.text(pair.proofs, page.prose)]


def _verdict(pair: RankedPair, advise: bool = False) -> str:
    told = (_comparing.verdict(pair, advise), _comparing.causes(pair), _comparing.again(pair))
    return " ".join(filter(None, told))


def _judged(pair: RankedPair, most: int | None = None) -> Iterator[tuple[str, str]]:
    found = pair.comparison.parity
    yield "parity", _comparing.judged(found)
    told = _comparing.differences(pair)
    for words in told[:most]:
        yield "", f"- {words}"
    if most is not None and len(told) > most:
        yield "", f"- and {len(told) - most} more: compare the two alone"


def _findings(pair: RankedPair, most: int, page: Page) -> list[str]:
    """The findings, the largest first: time, share of the difference, rule and sentence; below it what to try."""
    if not pair.findings:
        return wrapped(_broken_down.no_finding(pair), page)
    rows = []
    for finding in pair.findings[:most]:
        rows.append((signed(finding.seconds), _comparing.share(finding.seconds, pair), finding))
    left = pair.findings[most:]
    rest = pair.rest + sum(finding.seconds for finding in left)
    wide = max(len(signed(rest)), *(len(time) for time, _, _ in rows))
    lines = wrapped(f"Why ({_comparing.sign(pair)}):", page)
    indent = 4 + wide + 8
    for number, (time, share, finding) in enumerate(rows, 1):
        head = f"{number:>2}  {time:>{wide}}  {share:>5} "
        body = f"{_words.plain(finding.text, 900)} [{_words.plain(finding.rule, 40)}]"
        lines += textwrap.wrap(head + body, page.prose, subsequent_indent=" " * indent, break_on_hyphens=False)
        if finding.advice:
            advice = f"Try: {_words.plain(finding.advice, 600)}"
            lines += textwrap.wrap(
                advice, page.prose, initial_indent=" " * indent, subsequent_indent=" " * indent, break_on_hyphens=False
            )
    more = f"{_words.counted(len(left), 'more finding')}, and what none accounts for" if left else "the rest"
    lines.append(f"    {signed(rest):>{wide}}  {_comparing.share(rest, pair):>5} {more}")
    return lines


def _observed(pair: RankedPair, most: int, table: Breakdown | None, page: Page) -> list[str]:
    """The ops that differ most, where they are told."""
    found, told = _broken_down.observed(pair, most, table)
    if not found:
        return []
    by = pair.observations.by if pair.observations else ""
    return ["", *wrapped(told, page), *_lines(found, (), by, page, last=True)]


def _differences(pair: RankedPair, page: Page) -> list[str]:
    """The table that adds up to the difference: the terms by phase and block, or the ops by another key."""
    if pair.breakdown is None:
        return _terms(pair, _term_table.table(pair.comparison), page)
    found = _broken_down.lines(pair, pair.breakdown)
    sums = (found.ops, *found.gap, found.total)
    return _lines(found.rows, sums, pair.breakdown.by, page, last=pair.breakdown.by in _tables.LONG)


def _lines(some: Sequence[Line], sums: Sequence[Line], by: str, page: Page, last: bool) -> list[str]:
    """Rows and their sums. last: names are long, so that they come last."""
    rows, scale = (*some, *sums), _broken_down.scale_of(some, sums)
    cells = _broken_down.cells(rows, scale)
    longest = max((len(row.label) for row in rows), default=0)
    kept = _terminal.kept(
        cells, [_broken_down.RANKS[head] for head in cells[0]], page.width - min(longest, _LEAST_NAME)
    )
    out = [head for number, head in enumerate(cells[0]) if number not in kept]
    cells = [[line[number] for number in kept] for line in cells]
    room = page.room(page.width - sum(2 + each for each in _terminal.widths(cells)), longest)
    labels = [f"{by} [{scale.unit}]", *_broken_down.labels(rows, max(room, _LEAST_NAME), by)]
    if last:
        grid = [[*each, label] for each, label in zip(cells, labels, strict=True)]
        found = _painted(grid, (len(kept),), 1, page)
    else:
        grid = [[label, *each] for label, each in zip(labels, cells, strict=True)]
        found = _painted(grid, (0,), 1, page)
    places = (1, 1 + len(some), 2 + len(some), -1) if sums else (1,)
    return [*_terminal.ruled(found, *places, page=page), *_terminal.left_out(out, page)]


def _painted(grid: Sequence[Sequence[str]], left: Sequence[int], heads: int, page: Page) -> list[str]:
    """The lines of a table whose first `heads` are its heading."""
    return _terminal.columns(grid, left, paint=lambda row, _, cell: page.painted(cell, "dim" if row < heads else None))


def _terms(pair: RankedPair, table: _term_table.Table, page: Page) -> list[str]:
    """The table of terms; a dropped column holds nothing that would be written, or there was no room for it."""
    scale, rows = table.scale, (*table.rows, table.total)
    numbers = table.columns(scale)
    heads = _term_table.headings(numbers)
    cells = [[*column] for column in zip(*heads, strict=True)]
    cells += [_term_table.cells(row, numbers, scale) for row in rows]
    longest = max(len(row.label) for row in rows)
    kept = _terminal.kept(cells, _term_table.ranks(table, numbers), page.width - min(longest, _LEAST_LABEL))
    out = [_term_table.joined(*head) for number, head in enumerate(heads) if number not in kept]
    cells = [[line[number] for number in kept] for line in cells]
    room = page.room(page.width - sum(2 + each for each in _terminal.widths(cells)), longest)
    names = _term_table.labels(table, max(room, _LEAST_NAME))
    labels = [f"where [{scale.unit}]", "", *names, table.total.label]
    grid = [[label, *line] for label, line in zip(labels, cells, strict=True)]
    lines = _painted(grid, (0,), 2, page)
    head = [line for line in lines[:2] if line]
    ruled = _terminal.ruled([*head, *lines[2:]], len(head), len(head) + len(table.places), -1, page=page)
    return [*ruled, *_terminal.left_out(out, page)]


def _runs(ranking: Ranking, page: Page) -> list[str]:
    """One line per run, the fastest first."""
    cells: list[Sequence[str]] = [_ranked.HEADS, *_ranked.rows(ranking, _LONGEST_RUN)]
    names = [ranking.names[number] for number in ranking.order]
    others = [[cell for number, cell in enumerate(row) if number != 1] for row in cells]
    ranks = [rank for number, rank in enumerate(_RUN_RANKS) if number != 1]
    kept = _terminal.kept(others, ranks, page.width - _LEAST_LABEL)
    room = page.width - sum(_terminal.widths(others)[number] + 2 for number in kept)
    shown = ["run", *distinct(names, max(min(room, _LONGEST_RUN), _LEAST_NAME))]
    grid = [
        [row[0], name, *(row[number] for number in kept if number)] for row, name in zip(others, shown, strict=True)
    ]
    left = [number for number, head in enumerate(grid[0]) if head in ("run", _ranked.HEADS[-1])]
    heads = [head for number, head in enumerate(others[0]) if number not in kept]
    return [*_terminal.ruled(_painted(grid, left, 1, page), 1, page=page), *_terminal.left_out(heads, page)]


def _matrix(ranking: Ranking, page: Page) -> list[str]:
    """How many times faster the column's run is than the row's."""
    head, *rows = _ranked.matrix(ranking, most=len(ranking.order))
    names = distinct([row[1] for row in rows], min(26, page.width // 3))
    rows = [(row[0], name, *row[2:]) for row, name in zip(rows, names, strict=True)]
    wide = _terminal.widths([head, *rows])
    most = len(head)
    while most > 3 and sum(wide[:most]) + 2 * (most - 1) > page.width:
        most -= 1
    lines = _terminal.ruled(_painted([row[:most] for row in (head, *rows)], (1,), 1, page), 1, page=page)
    lines += wrapped(_ranked.MATRIX, page)
    if most < len(head):
        lines += wrapped(f"Columns 1 to {most - 2} of {len(head) - 2}: --width N takes more.", page)
    return [*lines, *wrapped(_comparing.MARKS, page)] if _ranked.marked(ranking) else lines
