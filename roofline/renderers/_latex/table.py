"""Write a table as a float that fits into one column of a two-column paper, or across both, with caption and label.

Widths are those of Computer Modern at 8 pt, the default. Where the fonts of a paper are wider the table is set smaller
(`\\resizebox`), so that it never runs over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roofline.renderers._latex.escape import comment, escape, letters, sentences
from roofline.renderers._words import conjunction

#: Widths of a column and of a page [pt]: 3.3 in and 7 in.
_WIDTHS = {1: 3.3 * 72.27, 2: 7.0 * 72.27}
#: Half of the space between two columns of a table [pt].
_SPACE = {1: 2.5, 2: 4.0}
#: Names are given so much before a column makes room for them [pt], long ones more; and so many letters at least.
LEAST_NAME, LEAST_LONG_NAME = 72.0, 126.0
_FEWEST = 12
#: Width of a letter [pt] of cmr8, by hundredths of its size: cmr10's (Knuth, Computer Modern Typefaces), 6 % wider.
_SIZE = 8.0 * 1.0625
_LETTERS = {
    **dict.fromkeys("ijl.,:;|'!`I[]", 0.28), **dict.fromkeys("frst()-/ _", 0.39), **dict.fromkeys("mwMW%#&@<>×−", 0.95),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 0.75), "…": 1.2, "~": 0.52, "^": 0.52,
}  # fmt: skip
_OTHER = 0.55
#: A hyphen that is the sign of a number.
_NEGATIVE = re.compile(r"(?<!\S)-(?=\d)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table to set. heads: the lines of the heading, without the names' column; rows: of cells; names: one for each.

    name: the heading of the column of names, and their kind. numbers: whether each column holds numbers; ranks: the
    highest goes first for want of room, 0 stays. rules: the rows below a rule. named: write the names in so many
    letters. least: room for them before a column goes [pt].
    """

    name: str
    heads: Sequence[Sequence[str]]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[bool]
    ranks: Sequence[int]
    rules: Sequence[int]
    named: Callable[[int], Sequence[str]]
    least: float = LEAST_NAME


def width(text: str) -> float:
    """Estimate the width of a text in a table [pt]."""
    return sum(_LETTERS.get(letter, _OTHER) for letter in letters(text)) * _SIZE


def label(*words: object) -> str:
    """Make a label of letters, digits and hyphens: tab:bert-torch-infer-group."""
    slug = "-".join(filter(None, (re.sub(r"[^a-z0-9]+", "-", str(word).lower()).strip("-") for word in words)))
    return f"tab:{slug[:80].strip('-') or 'roofline'}"


def floated(table: Table, columns: int, caption: str, key: str, comments: Sequence[str] = ()) -> list[str]:
    """Write the lines of the float. columns: of the page, its width; key: its label; comments: lines before it."""
    room = _WIDTHS[columns]
    columns_of_cells = [[*column] for column in zip(*table.heads, *table.rows, strict=True)]
    wide = [max(map(width, column)) for column in columns_of_cells]
    shown = list(range(len(wide)))

    def room_left() -> float:
        return room - sum(wide[number] + 2 * _SPACE[columns] for number in shown)

    longest = max(map(width, [table.name, *table.named(1000)]))
    while room_left() < min(longest, table.least) and any(table.ranks[number] for number in shown):
        shown.remove(max(shown, key=lambda number: table.ranks[number]))
    names = _fitting(table, room_left())
    omitted = [" ".join(filter(None, (head[number] for head in table.heads))) for number in range(len(wide))]
    omitted = [name for number, name in enumerate(omitted) if number not in shown]
    heads = [
        _line([table.name if place == 0 else "", *(head[n] for n in shown)]) for place, head in enumerate(table.heads)
    ]
    body = []
    for place, (name, row) in enumerate(zip(names, table.rows, strict=True)):
        body += [r"    \midrule"] if place in table.rules else []
        body.append(_line([name, *(_NEGATIVE.sub("−", row[n]) if table.numbers[n] else row[n] for n in shown)]))
    star = "*" if columns == 2 else ""
    wider = "; --columns 2 has room for more" if columns == 1 else ""
    omissions = [f"Left out for want of room: {conjunction(omitted)}{wider}."] if omitted else []
    return [
        *(comment(words) for words in (*comments, *omissions)),
        rf"\begin{{table{star}}}[t]",
        r"  \centering\sloppy",
        rf"  \caption{{{sentences(caption)}}}",
        rf"  \label{{{key}}}",
        rf"  \footnotesize\setlength{{\tabcolsep}}{{{_SPACE[columns]}pt}}",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{''.join('r' if table.numbers[number] else 'l' for number in shown)}@{{}}}}",
        r"    \toprule",
        *heads,
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}}",
        rf"\end{{table{star}}}",
    ]


#: What a document needs for any of them.
PACKAGES = r"% \usepackage{booktabs,graphicx}"


def _fitting(table: Table, room: float) -> Sequence[str]:
    """Write the names in as many letters as there is room for [pt]."""
    letters = max(_FEWEST, min(400, int(room / (0.28 * _SIZE))))
    names = table.named(letters)
    while letters > _FEWEST and max(map(width, names), default=0.0) > room:
        letters -= 1
        names = table.named(letters)
    return names


def _line(cells: Sequence[str]) -> str:
    return f"    {' & '.join(escape(cell) for cell in cells)} \\\\"
