"""Write a table as a float that fits into one column of a two-column paper, or across both, with caption and label.

A column has one unit, which stands in its heading, and its decimal points below each other. Names and words that are
longer than their column take several lines. Widths are those of Computer Modern at 8 pt, the default. Where the fonts
of a paper are wider the table is set smaller (`\\resizebox`), so that it never runs over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from roofline.content.choice import LONG
from roofline.content.grid import Grid
from roofline.content.signed import printed
from roofline.content.wording import conjunction
from roofline.renderers._latex.escape import comment, escape, letters, sentences
from roofline.units import UNKNOWN

#: Widths of a column and of a page [pt]: 3.3 in and 7 in.
_WIDTHS = {1: 3.3 * 72.27, 2: 7.0 * 72.27}
#: Half of the space between two columns of a table [pt].
_SPACE = {1: 2.0, 2: 4.0}
#: Names are given so much before a column makes room for them [pt], long ones more; and so many letters at least, and
#: at most.
LEAST_NAME, LEAST_LONG_NAME = 56.0, 126.0
_FEWEST, _MOST = 12, 120
#: Lines of a name that may be cut. Others take as many as they need.
LINES = 2
#: A column of words is no wider [pt].
_WORDS = 190.0
#: Indentation of the lines of a name after the first [pt].
_INDENT = 6.0
#: Width of a letter [pt] of cmr8, by hundredths of its size, never less than its own (cmr8.tfm, Knuth, Computer Modern
#: Typefaces): letters are 6 % wider than those of cmr10.
_SIZE = 8.0 * 1.0625
_LETTERS = {
    **dict.fromkeys("il.,:;|'!`[]", 0.28), **dict.fromkeys("fj", 0.31), **dict.fromkeys("rst()-I _", 0.4),
    **dict.fromkeys("cez", 0.45), **dict.fromkeys("ago/–", 0.51), **dict.fromkeys("0123456789", 0.501), "w": 0.73,
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ+<>=≤≥×−", 0.79), **dict.fromkeys("mM%#&@", 0.95), "W": 1.03, "…": 1.35,
}  # fmt: skip
_OTHER = 0.56
#: Numbers with a unit behind them; a number alone, and its decimals.
_IN_UNIT = re.compile(r"([^A-Za-zµ%]*\d(?:(?:–| to )[^A-Za-zµ%]*\d)?) ([A-Za-zµ%/]+)")
_NUMBER = re.compile(r"[^\d.]*[\d,]+(?:\.(\d+))?")
#: What is no number in a column of numbers.
_BLANK = ("", UNKNOWN)
#: Where a long word may be broken.
_BREAK = re.compile(r"(?<=[/_.:,;+*-])(?=[^/_.:,;+*-])")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading (up to two lines), a cell of each row, whether these are numbers, and its rank.

    rank: the highest goes first for want of room, 0 stays. about: what a caption says of it, where it is shown. unit:
    where it is the second line of the heading.
    """

    heading: str
    cells: Sequence[str]
    number: bool = True
    rank: int = 0
    about: str = ""
    unit: str = "%"

    @property
    def name(self) -> str:
        """Write the heading on one line."""
        return self.heading.replace("-\n", "").replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Table:
    """A table to set.

    name: the heading of the column of names, and their kind. named: write the name of each row in so many letters.
    rules: the rows below a rule. least: room for names before a column goes [pt]. lines: of a name at most; None: as
    many as it takes, so that none is cut.
    """

    name: str
    columns: Sequence[Column]
    named: Callable[[int], Sequence[str]]
    rules: Sequence[int] = ()
    least: float = LEAST_NAME
    lines: int | None = None


def of_grid(grid: Grid) -> Table:
    """Set a table in words, with the ops fused into a row behind its name where there is room for them."""

    def named(room: int) -> list[str]:
        names = grid.names(room, letters)
        parts = grid.parts or [""] * len(names)
        whole = [f"{name} {letters(words)}".strip() for name, words in zip(names, parts, strict=True)]
        return [long if len(long) <= room else name for name, long in zip(names, whole, strict=True)]

    is_long, columns = grid.by in LONG, zip(*grid.cells, strict=True)
    return Table(
        name=grid.name,
        columns=[
            Column(head.replace("minimum", "min."), cells, number not in grid.words, rank, about)
            for number, (head, cells, rank, about) in enumerate(
                zip(grid.heads, columns, grid.ranks, grid.about, strict=True)
            )
        ],
        named=named,
        rules=grid.rules,
        least=LEAST_LONG_NAME if is_long else LEAST_NAME,
        lines=LINES if is_long else None,
    )


def width(text: str) -> float:
    """Estimate the width of a text in a table [pt]."""
    return sum(_LETTERS.get(letter, _OTHER) for letter in letters(text)) * _SIZE


def label(*words: object) -> str:
    """Make a label of letters, digits and hyphens: tab:bert-torch-infer-group."""
    slug = "-".join(filter(None, (re.sub(r"[^a-z0-9]+", "-", str(word).lower()).strip("-") for word in words)))
    return f"tab:{slug[:80].strip('-') or 'roofline'}"


#: What a document needs for any of them.
PACKAGES = r"% \usepackage{booktabs,graphicx}"


def floated(
    table: Table, columns: int, caption: str, key: str, comments: Sequence[str] = (), further: str = ""
) -> list[str]:
    """Write the lines of the float. columns: of the page, its width; key: its label; comments: lines before it.

    caption: its first sentences, which what is said of the columns that are shown follows, and `further`.
    """
    shown, room = _with_room(table, [_in_unit(column) for column in table.columns], columns)
    omitted = [column.name for number, column in enumerate(table.columns) if number not in shown]
    wider = "; --columns 2 has room for more" if columns == 1 else ""
    omissions = [f"Left out for want of room: {conjunction(omitted)}{wider}."] if omitted else []
    star = "*" if columns == 2 else ""
    whole_caption = " ".join(filter(None, (caption, _legend(shown.values()), further)))
    return [
        *(comment(words) for words in (*comments, *omissions)),
        rf"\begin{{table{star}}}[t]",
        r"  \centering\sloppy",
        rf"  \caption{{{sentences(whole_caption)}}}",
        rf"  \label{{{key}}}",
        rf"  \footnotesize\setlength{{\tabcolsep}}{{{_SPACE[columns]}pt}}",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{''.join('r' if column.number else 'l' for column in shown.values())}@{{}}}}",
        r"    \toprule",
        *_heads(table.name, shown.values()),
        r"    \midrule",
        *_body(table, shown.values(), room),
        r"    \bottomrule",
        r"  \end{tabular}}",
        rf"\end{{table{star}}}",
    ]


def _in_unit(column: Column) -> Column:
    """Move the unit that all numbers of a column have into its heading."""
    parts = [_IN_UNIT.fullmatch(cell) for cell in column.cells if cell not in _BLANK]
    units = {part[2] for part in parts if part is not None}
    if not column.number or len(units) != 1 or None in parts:
        return column
    (unit,) = units
    top, _, bottom = column.heading.partition("\n")
    cells = [cell.removesuffix(f" {unit}") for cell in column.cells]
    heading = f"{top}\n{bottom} [{unit}]" if bottom else f"{top}\n{unit}"
    return replace(column, heading=heading, cells=cells, unit=unit)


def _with_room(table: Table, every: Sequence[Column], columns: int) -> tuple[dict[int, Column], float]:
    """Choose the columns that there is room for, by number; return what is left for names [pt], too."""
    shown = dict(enumerate(every))

    def room_left() -> float:
        return _WIDTHS[columns] - sum(_wide(column) + 2 * _SPACE[columns] for column in shown.values())

    longest = max(map(width, [table.name, *table.named(1000)]))
    while room_left() < min(longest, table.least) and any(column.rank for column in shown.values()):
        del shown[max(shown, key=lambda number: shown[number].rank)]
    return shown, room_left()


def _wide(column: Column) -> float:
    """Return the width of a column [pt]."""
    cells = [f"{cell}{pad}" for cell, pad in zip(column.cells, _pads(column), strict=True)]
    widest = max(map(width, cells), default=0.0)
    return max(*map(width, column.heading.split("\n")), widest if column.number else min(widest, _WORDS))


def _pads(column: Column) -> list[str]:
    """Return what each number lacks at its end to have as many decimals as any; "" where not all are numbers."""
    numbers = [_NUMBER.fullmatch(cell) for cell in column.cells]
    if any(number is None and cell not in _BLANK for number, cell in zip(numbers, column.cells, strict=True)):
        return [""] * len(numbers)
    decimals = [0 if number is None else len(number[1] or "") for number in numbers]
    longest = max(decimals, default=0)
    return [
        "" if number is None or have == longest else f"{'' if have else '.'}{'0' * (longest - have)}"
        for number, have in zip(numbers, decimals, strict=True)
    ]


def _legend(shown: Collection[Column]) -> str:
    """Say what the columns are that are shown: "FLOP and bytes: share of the known work; ..."."""
    bare = [_without_unit(column) for column in shown]
    names: dict[str, list[str]] = {}
    for column, name in zip(shown, bare, strict=True):
        if column.about:
            names.setdefault(column.about, []).append(column.name if bare.count(name) > 1 else name)
    text = "; ".join(f"{conjunction(named)}: {about}" for about, named in names.items())
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _without_unit(column: Column) -> str:
    top, _, bottom = column.heading.partition("\n")
    return top if column.unit and bottom == column.unit else column.name


def _heads(name: str, shown: Collection[Column]) -> Iterator[str]:
    """Write the lines of the heading: the second one only where a column has it."""
    parts = [column.heading.partition("\n") for column in shown]
    yield _line(map(escape, [name, *(top for top, _, _ in parts)]))
    if any(bottom for _, _, bottom in parts):
        yield _line(map(escape, ["", *(bottom for _, _, bottom in parts)]))


def _body(table: Table, shown: Iterable[Column], room: float) -> Iterator[str]:
    """Write the rows with the rules between them."""
    grid = [_names(table, room), *(_cells(column) for column in shown)]
    for place, row in enumerate(zip(*grid, strict=True)):
        if place in table.rules:
            yield r"    \midrule"
        yield _line(row)


def _cells(column: Column) -> Iterator[str]:
    """Write the cells of a column: decimal points below each other, long words in several lines."""
    for cell, pad in zip(column.cells, _pads(column), strict=True):
        if column.number:
            phantom = rf"\phantom{{{pad}}}" if pad else ""
            yield f"{escape(printed(cell))}{phantom}"
        else:
            yield _wrapped(cell, _WORDS)


def _names(table: Table, room: float) -> list[str]:
    """Write the names in as many letters as there is room for [pt]."""
    lines = table.lines or max(map(len, table.named(1000)), default=1)
    number = max(_FEWEST, min(_MOST, int(lines * room / (0.28 * _SIZE))))
    names = table.named(number)
    while number > _FEWEST and max((len(_broken(name, room)) for name in names), default=0) > lines:
        number -= 1
        names = table.named(number)
    return [_wrapped(name, room) for name in names]


def _wrapped(text: str, room: float) -> str:
    """Write a text, in several lines where it is wider than `room` [pt]."""
    lines = _broken(letters(text), room)
    if len(lines) == 1:
        return escape(text)
    wide = max(width(lines[0]), *(_INDENT + width(line) for line in lines[1:]))
    words = r"\newline{}".join(map(escape, lines))
    return rf"\parbox[t]{{{wide:.1f}pt}}{{\raggedright\hangindent{_INDENT}pt {words}\strut}}"


def _broken(text: str, room: float) -> list[str]:
    """Break a text into lines no wider than `room` [pt], those after the first less by their indentation."""
    lines: list[str] = []
    line = ""
    words = re.split(r"(?<=\s)", text)
    # At blanks; inside of a word only where it is too long for a line.
    for piece in (part for word in words for part in ([word] if width(word) < room - _INDENT else _BREAK.split(word))):
        text_left = f"{line}{piece}"
        while width(text_left.rstrip()) > (end := room - (_INDENT if lines else 0.0)) and len(text_left) > 1:
            line = line or _beginning(text_left, end)
            lines.append(line.rstrip())
            text_left, line = text_left[len(line) :], ""
        line = text_left
    return [*lines, line.rstrip()]


def _beginning(text: str, room: float) -> str:
    """Return as much of a text as fits into `room` [pt], a letter at least."""
    place = next((end for end in range(2, len(text)) if width(text[:end]) > room), len(text))
    return text[: place - 1]


def _line(cells: Iterable[str]) -> str:
    """Write a row. A bracket or a star at its beginning would be an argument of the end of the row before."""
    row = " & ".join(cells)
    return f"    {'{}' if row.startswith(('[', '*')) else ''}{row} \\\\"
