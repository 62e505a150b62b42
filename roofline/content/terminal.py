"""Write text for a terminal: cells in columns, rules between the lines, and names with words beside them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from roofline.content.grid import Grid
from roofline.content.wording import conjunction, plain
from roofline.units import BEFORE_UNIT

#: Letters in a line.
WIDTH = 100
#: What a page must have room for, and what is too wide to be read.
NARROWEST, WIDEST = 40, 200
_INDENT = 13
#: Letters that names are given before a column makes room for them.
_LEAST_NAME = 16

Style = Literal["bold", "dim", "red", "green", "yellow", "magenta", "cyan"]
_CODES: dict[Style, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_PAINTED = re.compile(r"\x1b\[(?:0|1|2|3[0-7])m")
#: Colours of roofs: what is above most of a row's time.
ROOFS: dict[str, Style] = {
    "compute": "cyan", "memory": "yellow", "near ridge": "green", "overhead": "magenta", "unknown": "dim"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """The page that a text is written on.

    width: letters in a line. names: letters that a name in a table may have, though a line becomes wider; None: as many
    as the line has room for. colour: whether the reader's terminal shows colours.
    """

    width: int = WIDTH
    names: int | None = None
    colour: bool = False

    @property
    def prose(self) -> int:
        """Limit the letters in a line of sentences: wider lines are hard to read."""
        return min(self.width, WIDTH)

    def room(self, spare: int, longest: int) -> int:
        """Return the letters for each name of a column, `longest` at most; the other columns leave `spare`."""
        return spare if self.names is None else max(spare, min(longest, self.names))

    def painted(self, text: str, style: Style | None) -> str:
        """Colour `text`, where the page has colours. Text of a profile must have been made plain before."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour and style and text else text


#: What is written on where nothing else is said.
SHEET = Page()


def letters(line: str) -> int:
    """Count the letters that a reader sees of a line."""
    return len(_PAINTED.sub("", line))


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Count the letters of the longest cell in each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def columns(
    rows: Sequence[Sequence[str]],
    left_aligned: Collection[int],
    separator: str = "  ",
    least: Sequence[int] = (),
    paint: Callable[[int, int, str], str] = lambda row, column, cell: cell,
) -> list[str]:
    """Write one line per row, without blanks at its end.

    left_aligned: the columns of words; the others hold numbers and end at one place. least: the least width of each
    column. paint: a cell in its colour, by the numbers of its row and column.
    """
    wide = widths([*rows, [" " * width for width in least]] if least else rows)
    lines = []
    for place, row in enumerate(rows):
        cells = []
        for number, (cell, size) in enumerate(zip(row, wide, strict=True)):
            blank, painted = " " * (size - len(cell)), paint(place, number, cell)
            cells.append(f"{painted}{blank}" if number in left_aligned else f"{blank}{painted}")
        lines.append(separator.join(cells).rstrip())
    return lines


def fitting_columns(cells: Sequence[Sequence[str]], ranks: Sequence[int], room: int) -> list[int]:
    """Choose the columns that fit into `room`, two blanks behind each; the highest ranks go first.

    A rank of 0 stays.
    """
    wide = widths(cells)
    numbers = list(range(len(wide)))
    while sum(wide[number] + 2 for number in numbers) > room and any(ranks[number] for number in numbers):
        numbers.remove(max(numbers, key=lambda number: ranks[number]))
    return numbers


def fitted(
    rows: Sequence[Sequence[str]], word_columns: Collection[int], ranks: Sequence[int], page: Page, *before: int
) -> list[str]:
    """Write the lines of a table that fits, with rules as `ruled` draws them, and name the columns left out.

    rows: the heads first. ranks: as in `fitting_columns`, for all columns.
    """
    numbers = fitting_columns(rows, ranks, page.width + 2)
    words = {place for place, number in enumerate(numbers) if number in word_columns}
    lines = columns(
        [[row[number] for number in numbers] for row in rows],
        words,
        paint=lambda row, _, cell: page.painted(cell, "dim" if row == 0 else None),
    )
    heads_left_out = [head for number, head in enumerate(rows[0]) if number not in numbers]
    return [*ruled(lines, *before, page=page), *left_out(heads_left_out, page)]


def table(grid: Grid, page: Page, least: int = _LEAST_NAME) -> list[str]:
    """Write a table whose columns go before its names get fewer than `least` letters, and name the columns left out."""
    tops, bottoms = zip(*(head.partition("\n")[::2] for head in grid.heads), strict=True)
    heads = [tops, bottoms] if any(bottoms) else [tops]
    longest = max(map(len, grid.labels), default=0)
    kept = fitting_columns([*heads, *grid.cells], grid.ranks, page.width - min(longest, least))
    cells = [[line[number] for number in kept] for line in (*heads, *grid.cells)]
    room = page.width - sum(wide + 2 for wide in widths(cells))
    names = [grid.name, *[""] * (len(heads) - 1), *grid.names(page.room(room, longest), plain)]
    lines = [[*line, name] if grid.last else [name, *line] for name, line in zip(names, cells, strict=True)]
    words = {place + (not grid.last) for place, number in enumerate(kept) if number in grid.words}

    def paint(place: int, number: int, cell: str) -> str:
        return page.painted(cell, "dim" if place < len(heads) else ROOFS.get(cell) if number in words else None)

    text = columns(lines, {*words, len(kept) if grid.last else 0}, paint=paint)
    written, places = text[: len(heads)], []
    for row, line in enumerate(text[len(heads) :]):
        places += [len(written)] if row == 0 or row in grid.rules else []
        written += _with_parts(line, grid.parts[row] if grid.parts else "", room, page)
    out = [grid.head(number) for number in range(len(grid.heads)) if number not in kept]
    return [*ruled(written, *places, page=page), *left_out(out, page)]


def _with_parts(line: str, parts: str, room: int, page: Page) -> list[str]:
    """Write the line of a row and the ops fused into its own: after its name where there is room, else below."""
    if not parts or letters(line) + 2 + len(parts) <= page.width:
        return [f"{line}  {parts}" if parts else line]
    indent = page.width - room + 2
    below = textwrap.wrap(
        parts, page.width - indent, subsequent_indent=" ", max_lines=2, placeholder=" …", break_on_hyphens=False
    )
    return [line, *(" " * indent + words for words in below)]


def left_out(heads: Sequence[str], page: Page) -> list[str]:
    """Name the columns that there was no room for, if any, in a sentence."""
    return wrapped(f"No room for {conjunction(heads)}: --width N takes more.", page) if heads else []


def ruled(lines: Sequence[str], *before: int, page: Page = SHEET) -> list[str]:
    """Draw a rule before each of the lines `before` of a table; -1 is the last one."""
    rule = page.painted("─" * min(page.width, max(map(letters, lines))), "dim")
    places = {number % len(lines) for number in before}
    return [part for number, line in enumerate(lines) for part in ([rule, line] if number in places else [line])]


def wrapped(text: str, page: Page, style: Style | None = None) -> list[str]:
    """Break sentences into lines."""
    return [page.painted(line, style) for line in broken(text, page)]


def broken(text: str, page: Page, margin: str = "") -> list[str]:
    """Break a text into lines of prose, no word at its hyphen and no number from its unit.

    margin: the blanks before each line but the first.
    """
    glued = BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(glued, page.prose, subsequent_indent=margin, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def facts(pairs: Iterable[tuple[str, str]], page: Page = SHEET) -> list[str]:
    """Write names with words beside them, which stay beside them where they take several lines."""
    return [line for name, words in pairs for line in broken(f"{name:<{_INDENT}}{words}", page, " " * _INDENT)]
