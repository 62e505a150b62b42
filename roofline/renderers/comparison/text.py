"""Plain text for a terminal: the verdict, parity, the findings, and the table that they are taken from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.renderers import _tables, _terminal, _words
from roofline.renderers._signed import Scale, signed
from roofline.renderers._terminal import WIDTH
from roofline.renderers.comparison import _broken_down, _comparing, _evidence, _proofs, _ranked, _term_table
from roofline.renderers.comparison._broken_down import Line
from roofline.renderers.comparison._term_table import Row

#: Differences that parity names and that are shown of each of several pairs.
_FEW = 3


def render(ranking: Ranking) -> str:
    """Two runs in full; of more, the table of runs, the matrix, and the largest findings of each."""
    lines = _two(ranking.pairs[0]) if len(ranking.runs) == 2 else _several(ranking)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _two(pair: RankedPair) -> list[str]:
    lines = [*_wrap(_comparing.warning(pair)), *_wrap(_verdict(pair, advise=True)), ""]
    lines += _terminal.facts(_evidence.runs(pair))
    lines += _terminal.facts(_judged(pair))
    lines += ["", *_findings(pair, len(pair.findings)), *_wrap(_comparing.tendencies(pair)), *_proven(pair)]
    lines += [*_observed(pair, _broken_down.OBSERVED, pair.breakdown), "", *_differences(pair), ""]
    lines += _terminal.facts(_evidence.told(pair))
    return lines


def _several(ranking: Ranking) -> list[str]:
    lines = [*_wrap(_comparing.headline(ranking)), "", *_runs(ranking), "", *_matrix(ranking)]
    for pair in ranking.pairs:
        lines += ["", "─" * WIDTH, *_wrap(_comparing.warning(pair))]
        lines += [
            *_wrap(_verdict(pair)),
            *_terminal.facts(_judged(pair, _FEW)),
            *_findings(pair, _comparing.TOP),
            *_wrap(_comparing.tendencies(pair)),
            *_proven(pair),
            *_observed(pair, _broken_down.FEW, _broken_down.asked(pair)),
        ]
        if _broken_down.asked(pair):
            lines += ["", *_differences(pair)]
    return lines


def _proven(pair: RankedPair) -> list[str]:
    return [] if pair.proofs is None else ["", *_proofs.text(pair.proofs, WIDTH)]


def _verdict(pair: RankedPair, advise: bool = False) -> str:
    told = (_comparing.verdict(pair, advise), _comparing.causes(pair), _comparing.again(pair))
    return " ".join(filter(None, told))


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _judged(pair: RankedPair, most: int | None = None) -> Iterator[tuple[str, str]]:
    found = pair.comparison.parity
    yield "parity", _comparing.judged(found)
    told = _comparing.differences(pair)
    for words in told[:most]:
        yield "", f"- {words}"
    if most is not None and len(told) > most:
        yield "", f"- and {len(told) - most} more: compare the two alone"


def _findings(pair: RankedPair, most: int) -> list[str]:
    """The findings, the largest first: time, share of the difference, rule and sentence; below it what to try."""
    if not pair.findings:
        return _wrap(_broken_down.no_finding(pair))
    rows = []
    for finding in pair.findings[:most]:
        rows.append((signed(finding.seconds), _comparing.share(finding.seconds, pair), finding))
    left = pair.findings[most:]
    rest = pair.rest + sum(finding.seconds for finding in left)
    wide = max(len(signed(rest)), *(len(time) for time, _, _ in rows))
    lines = _wrap(f"Why ({_comparing.sign(pair)}):")
    indent = 4 + wide + 8
    for number, (time, share, finding) in enumerate(rows, 1):
        head = f"{number:>2}  {time:>{wide}}  {share:>5} "
        body = f"{_words.plain(finding.text, 900)} [{_words.plain(finding.rule, 40)}]"
        lines += textwrap.wrap(head + body, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)
        if finding.advice:
            advice = f"Try: {_words.plain(finding.advice, 600)}"
            lines += textwrap.wrap(
                advice, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent, break_on_hyphens=False
            )
    more = f"{_words.counted(len(left), 'more finding')}, and what none accounts for" if left else "the rest"
    lines.append(f"    {signed(rest):>{wide}}  {_comparing.share(rest, pair):>5} {more}")
    return lines


def _observed(pair: RankedPair, most: int, table: Breakdown | None) -> list[str]:
    """The ops that differ most, where they are told."""
    found, told = _broken_down.observed(pair, most, table)
    if not found:
        return []
    return ["", *_wrap(told), *_names_last(found, (), pair.observations.by if pair.observations else "")]


def _differences(pair: RankedPair) -> list[str]:
    """The table that adds up to the difference: the terms by phase and block, or the ops by another key."""
    if pair.breakdown is None:
        return _terms(pair, _term_table.table(pair.comparison))
    found = _broken_down.lines(pair, pair.breakdown)
    sums = (found.ops, *found.gap, found.total)
    if pair.breakdown.by in _tables.LONG:
        return _names_last(found.rows, sums, pair.breakdown.by)
    rows, scale = (*found.rows, *sums), _broken_down.scale_of(found.rows, sums)
    cells = _broken_down.cells(rows, scale)
    room = WIDTH - sum(2 + each for each in _terminal.widths(cells))
    labels = [f"{pair.breakdown.by} [{scale.unit}]", *(_cut(row.label, max(room, 12)) for row in rows)]
    grid = _terminal.columns([[label, *each] for label, each in zip(labels, cells, strict=True)], left=(0,))
    return _terminal.ruled(grid, 1, 1 + len(found.rows), 2 + len(found.rows), -1)


def _names_last(some: Sequence[Line], sums: Sequence[Line], by: str) -> list[str]:
    """Rows whose names are long, so that they come last, and their sums."""
    rows, scale = (*some, *sums), _broken_down.scale_of(some, sums)
    cells = _broken_down.cells(rows, scale)
    room = WIDTH - sum(2 + each for each in _terminal.widths(cells))
    labels = [f"{by} [{scale.unit}]", *(_cut(row.label, max(room, 12), by) for row in rows)]
    grid = [[*each, label] for each, label in zip(cells, labels, strict=True)]
    found = _terminal.columns(grid, left=(len(cells[0]),))
    return _terminal.ruled(found, *((1, 1 + len(some), 2 + len(some), -1) if sums else (1,)))


def _terms(pair: RankedPair, table: _term_table.Table) -> list[str]:
    """The table of terms; a dropped column holds nothing that would be written."""
    scale = table.scale
    columns = table.columns(scale)
    heads = [_term_table.COLUMNS[number][0].split("\n") for number in columns]
    body = [_cells(row, columns, scale) for row in (*table.rows, table.total)]
    tops = [*(head[0] for head in heads), "total", "95 % interval"]
    bottoms = [*(head[1] for head in heads), "", ""]
    cells = [tops, bottoms, *body]
    room = WIDTH - sum(2 + each for each in _terminal.widths(cells))
    labels = [f"where [{scale.unit}]", "", *(_cut(row.label, room) for row in (*table.rows, table.total))]
    lines = _terminal.columns([[label, *line] for label, line in zip(labels, cells, strict=True)], left=(0,))
    head = [line for line in lines[:2] if line]
    return _terminal.ruled([*head, *lines[2:]], len(head), len(head) + len(table.places), -1)


def _cells(row: Row, columns: Sequence[int], scale: Scale) -> list[str]:
    terms = [scale.write(row.terms[number]) if row.terms[number] is not None else "" for number in columns]
    return [*terms, scale.write(row.seconds), scale.between(row.ci95)]


def _cut(label: str, room: int, by: str = "") -> str:
    """A label that fits. The end of a scope says most, the beginning of everything else."""
    if len(label) <= room:
        return label
    return f"…{label[-room + 1 :]}" if by == "scope" else f"{label[: room - 1]}…"


def _runs(ranking: Ranking) -> list[str]:
    """One line per run, the fastest first."""
    return _terminal.ruled(_terminal.columns([_ranked.HEADS, *_ranked.rows(ranking, 30)], left=(1, 7)), 1)


def _matrix(ranking: Ranking) -> list[str]:
    """How many times faster the column's run is than the row's."""
    head, *rows = _ranked.matrix(ranking, most=10)
    rows = [(place, _words.plain(name, 26), *cells) for place, name, *cells in rows]
    lines = _terminal.ruled(_terminal.columns([head, *rows], left=(1,)), 1)
    lines += _wrap(_ranked.MATRIX)
    return [*lines, _comparing.MARKS] if _ranked.marked(ranking) else lines
