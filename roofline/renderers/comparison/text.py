"""Plain text for a terminal: the verdict, parity, the account, and the table of terms or ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofline import units
from roofline.comparison.account.row import OpChange, Row
from roofline.comparison.breakdown.breakdown import Breakdown
from roofline.comparison.ranking import RankedPair, Ranking
from roofline.content import terminal, wording
from roofline.content.comparison import (
    account_rows,
    broken_down,
    comparing,
    pair_facts,
    parity_words,
    ranked,
)
from roofline.content.comparison.account_rows import SCREEN, View
from roofline.content.names.distinct import distinct
from roofline.content.signed import scale, snapped
from roofline.content.terminal import SHEET, Page, wrapped
from roofline.renderers.comparison import _proofs

#: Lines of a screen, and letters of a bar, for which a page must be as wide as a sheet.
_LINES, _BAR = 24, 8
#: Letters that the body of a row is given beside its numbers, else it stands below them.
_LEAST_BODY = 40
#: Letters that names are given before a column makes room for them, and at most in the tables of runs and of ops.
_LEAST_NAME, _LEAST_LABEL, _LONGEST_RUN, _LONGEST_OP = 12, 16, 30, 60


def render(ranking: Ranking, page: Page = SHEET, view: View = SCREEN) -> str:
    """Write two runs in full; of more, the table of runs, the matrix, and the largest rows of each account."""
    if view.row is not None:
        lines = _row(ranking.pairs[0], view.row, page)
    else:
        lines = _two(ranking.pairs[0], page, view) if len(ranking.runs) == 2 else _several(ranking, page, view)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _two(pair: RankedPair, page: Page, view: View) -> list[str]:
    lines = [*_warning(pair, page), *wrapped(comparing.verdict(pair, advise=True), page, "bold"), ""]
    lines += terminal.facts(pair_facts.runs(pair), page)
    lines += _alike(pair, page)
    lines += ["", *_rows(pair, page, view), *_proven(pair, page)]
    if view.details or broken_down.asked(pair):
        lines += [
            *_observed(pair, broken_down.OBSERVED, pair.breakdown, page),
            "",
            *terminal.table(broken_down.differences(pair), page),
            "",
        ]
        lines += terminal.facts(pair_facts.table(pair), page)
    doubts = terminal.facts(pair_facts.doubts(pair), page)
    return [*lines, "", *doubts] if doubts else lines


def _several(ranking: Ranking, page: Page, view: View) -> list[str]:
    lines = [*wrapped(comparing.headline(ranking), page, "bold"), "", *terminal.table(ranked.grid(ranking), page)]
    lines += ["", *_matrix(ranking, page)]
    for pair in ranking.pairs:
        lines += ["", page.painted("─" * page.prose, "dim"), *_warning(pair, page)]
        lines += [
            *wrapped(comparing.verdict(pair), page, "bold"),
            *_alike(pair, page, account_rows.FEW),
            *_rows(pair, page, view, account_rows.FEW),
            *_proven(pair, page),
            *_observed(pair, broken_down.FEW, broken_down.asked(pair), page),
        ]
        if broken_down.asked(pair):
            lines += ["", *terminal.table(broken_down.differences(pair), page)]
    return lines


def _alike(pair: RankedPair, page: Page, limit: int | None = None) -> list[str]:
    """Say whether both runs do the same work, and which pages of the documentation explain the settings that differ."""
    pages = comparing.pages(parity_words.settings_annotations(pair))
    return terminal.facts([*parity_words.alike(pair, limit), *([("see", pages)] if pages else [])], page)


def _warning(pair: RankedPair, page: Page) -> list[str]:
    return wrapped(comparing.warning(pair), page, "red")


def _proven(pair: RankedPair, page: Page) -> list[str]:
    return [] if pair.proofs is None else ["", *_proofs.text(pair.proofs, page)]


def _rows(pair: RankedPair, page: Page, view: View, limit: int | None = None) -> list[str]:
    """List the rows of the account that fit a screen, or `limit`, and the sum of the others."""
    every = account_rows.rows(pair)
    lines = wrapped(broken_down.unresolved(pair), page)
    if not every:
        return [*lines, *wrapped("Nothing differs: each row of the account is 0.", page)]
    lines += wrapped(f"{account_rows.heading(pair)}:", page)
    shown: list[Row] = []
    for row, body in zip(every, _bodies(pair, every, page), strict=True):
        next_to_nothing = comparing.share(account_rows.seconds(row), pair) == "0 %"
        no_room = limit is not None or len(lines) + len(body) > _LINES
        full = next_to_nothing or (len(shown) >= (limit or account_rows.FEW) and no_room)
        if full and not view.every:
            break
        shown.append(row)
        lines += body
    if smaller := account_rows.smaller_ones(pair, shown):
        others_seconds = account_rows.rest(pair, shown)
        widest = max(len(account_rows.size(pair, row)) for row in every)
        time = account_rows.written(pair, others_seconds)
        head = f"    {time:>{widest}}  {comparing.share(others_seconds, pair):>6}  "
        lines += terminal.broken(f"{head}{smaller} (--all shows them)", page, _margin(head, page))
    if view.why:
        notes = list(account_rows.notes(pair)) or ["no pass merged or moved anything"]
        lines += ["", *terminal.facts((("passes" if not n else "", note) for n, note in enumerate(notes)), page)]
    return lines


def _bodies(pair: RankedPair, rows: Sequence[Row], page: Page) -> Iterator[list[str]]:
    """Yield the lines of each row: number, time, share of the difference, a bar, what it says, and its meaning."""
    sizes = [account_rows.seconds(row) for row in rows]
    times = [account_rows.size(pair, row) for row in rows]
    widest, largest = max(map(len, times)), max(map(abs, sizes))
    width = _BAR if page.width >= SHEET.width else 0
    for number, (row, size, time) in enumerate(zip(rows, sizes, times, strict=True), 1):
        head = f"{number:>2}  {time:>{widest}}  {comparing.share(size, pair):>6}  "
        head += f"{account_rows.bar(pair, row, largest, width):<{width}}  " if width else ""
        indent = _margin(head, page)
        opening, *others = account_rows.lines(pair, row)
        lines = terminal.broken(f"{head}{account_rows.with_pages(row, opening)}", page, indent)
        for words in others:
            lines += terminal.broken(f"{indent}{words}", page, f"{indent}  ")
        yield lines


def _margin(head: str, page: Page) -> str:
    """Return the blanks before what stands below the body of a row, which has its numbers in front."""
    return " " * (len(head) if page.prose - len(head) >= _LEAST_BODY else 4)


def _row(pair: RankedPair, number: int, page: Page) -> list[str]:
    """List what one row rests on: its ops in both runs."""
    row = account_rows.row_of(pair, number)
    share = comparing.share(account_rows.seconds(row), pair)
    low, high = row.ci95 or (0.0, 0.0)
    ends = (-high, -low) if account_rows.is_turned(pair) else (low, high)
    ci95 = "" if row.ci95 is None else f", 95 % interval {units.seconds_between(*map(snapped, ends))}"
    time = account_rows.size(pair, row)
    lines = wrapped(f"{account_rows.heading(pair)}.", page)
    lines += wrapped(f"Row {number}: {time}, {share}{ci95}.", page, "bold")
    lines += [*wrapped(account_rows.said(row), page), *wrapped(account_rows.meaning(row), page)]
    return [*lines, "", *_ops(pair, row.ops, page)] if row.ops else lines


def _ops(pair: RankedPair, ops: Sequence[OpChange], page: Page) -> list[str]:
    """Draw the table of a row's ops: how often each run executes them, and their part of its seconds."""
    times = [change.seconds for change in ops if change.seconds is not None]
    written, sign = scale(times), -1 if account_rows.is_turned(pair) else 1
    grid = [["type", "A", "B", f"{account_rows.difference(pair)} [{written.unit}]"]]
    for change in ops:
        time = None if change.seconds is None else sign * change.seconds
        kind = wording.plain(change.type or "", 20)
        grid.append([kind, _count(change.a), _count(change.b), written.write(time)])
    if not times:
        grid = [cells[:-1] for cells in grid]
    room = page.width - sum(2 + width for width in terminal.widths(grid))
    listed = [f"{'part of ' if change.is_part else ''}{change.name}" for change in ops]
    names = ["op", *(wording.plain(name, min(_LONGEST_OP, max(room, _LEAST_NAME))) for name in listed)]
    table = [[name, *cells] for name, cells in zip(names, grid, strict=True)]
    return terminal.fitted(table, (0, 1), (0, 3, 0, 0, 0)[: len(table[0])], page, 1)


def _count(value: float | str | None) -> str:
    """Write how often an op runs in a step; what runs in some steps only has a fraction."""
    if not isinstance(value, (int, float)):
        return units.UNKNOWN
    return units.significant(value) if value % 1 and value < 100 else units.count(value)


def _observed(pair: RankedPair, limit: int, table: Breakdown | None, page: Page) -> list[str]:
    """Write the ops that differ most, where they are told."""
    grid, sentence = broken_down.observed(pair, limit, table)
    return ["", *wrapped(sentence, page), *terminal.table(grid, page)] if grid else []


def _matrix(ranking: Ranking, page: Page) -> list[str]:
    """Write how many times faster the column's run is than the row's."""
    head, *rows = ranked.matrix(ranking, limit=len(ranking.order))
    names = distinct([row[1] for row in rows], min(26, page.width // 3))
    rows = [(row[0], name, *row[2:]) for row, name in zip(rows, names, strict=True)]
    wide = terminal.widths([head, *rows])
    limit = len(head)
    while limit > 3 and sum(wide[:limit]) + 2 * (limit - 1) > page.width:
        limit -= 1
    lines = terminal.fitted([row[:limit] for row in (head, *rows)], (1,), (0,) * limit, page, 1)
    if limit < len(head):
        lines += wrapped(f"Columns 1 to {limit - 2} of {len(head) - 2}: --width N takes more.", page)
    return [*lines, *(line for words in ranked.legend(ranking) for line in wrapped(words, page))]
