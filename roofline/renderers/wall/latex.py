"""Write the table as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from roofline.renderers._facts.wall import COLUMNS, Chart, in_lines
from roofline.renderers._latex.escape import letters
from roofline.renderers._latex.table import LEAST_NAME, PACKAGES, Table, floated, label
from roofline.renderers._names.distinct import distinct

#: Letters of a line of the column of words.
_LETTERS = 46


def render(chart: Chart, columns: int = 1, caption: str = "short") -> str:
    """Write the float. Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, the width of the table. caption: "short" is the sentence and the kind of the shares;
    "long" has the notes too, which otherwise stand in comments.
    """
    runs = chart.every
    rows: list[list[str]] = []
    groups: list[list[str]] = []  # of each run, one name per row below its own
    rules = []
    for run in runs:
        if rows:
            rules.append(len(rows))
        groups.append([])
        rows.append([""] * len(COLUMNS))
        for row in run.shown:
            lines = in_lines([column.cell(row) for column in COLUMNS], _LETTERS)
            rows += lines
            groups[-1] += [row.group, *[""] * (len(lines) - 1)]

    def named(room: int) -> list[str]:
        names = distinct([run.name for run in runs], room, sanitize=letters)
        return [name for run, below in zip(names, groups, strict=True) for name in (run, *below)]

    heads = [column.heading.partition("\n") for column in COLUMNS]
    table = Table(
        name="group",
        heads=[[top for top, _, _ in heads], [bottom for _, _, bottom in heads]],
        rows=rows,
        numbers=[column.number for column in COLUMNS],
        ranks=[column.rank for column in COLUMNS],
        rules=rules,
        named=named,
        least=LEAST_NAME,
    )
    sentences = f"{chart.title}. {chart.about}"
    notes = [*(f"{run.heading}." for run in runs if run.about), *chart.notes]
    long = caption == "long"
    first = next((run.analysis.profile for run in runs if run.analysis is not None), None)
    words = (first.model, first.mode) if first is not None else ()
    written = floated(
        table,
        columns,
        " ".join([sentences, *notes]) if long else sentences,
        label(*words, "wall"),
        [] if long else notes,
    )
    return "\n".join([PACKAGES, *written, ""])
