"""Write the table as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from roofline.content.facts.wall import COLUMNS, Chart, Row
from roofline.content.names.distinct import distinct
from roofline.content.tables import Column as ChartColumn
from roofline.renderers._latex.escape import letters
from roofline.renderers._latex.table import PACKAGES, Column, Table, floated, label


def render(chart: Chart, columns: int = 1, caption: str = "short") -> str:
    """Write the float. Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, the width of the table. caption: "short" is the sentence and the kind of the shares;
    "long" has the notes too, which otherwise stand in comments.
    """
    rows: list[Row | None] = []  # None: the line with the name of a run, above its rows
    rules = []
    for run in chart.every:
        rules.append(len(rows))
        rows += [None, *run.shown]

    def named(room: int) -> list[str]:
        names = iter(distinct([run.name for run in chart.every], room, sanitize=letters))
        return [next(names) if row is None else row.name for row in rows]

    table = Table(
        name="group",
        columns=[Column(column.heading, _cells(column, rows), column.number, column.rank) for column in COLUMNS],
        named=named,
        rules=rules[1:],
    )
    sentences = f"{chart.title}. {chart.about}"
    notes = [*(f"{run.heading}." for run in chart.every if run.about), *chart.notes]
    long = caption == "long"
    first = next((run.analysis.profile for run in chart.every if run.analysis is not None), None)
    words = (first.model, first.mode) if first is not None else ()
    written = floated(
        table,
        columns,
        sentences,
        label(*words, "wall"),
        [] if long else notes,
        " ".join(notes) if long else "",
    )
    return "\n".join([PACKAGES, *written, ""])


def _cells(column: ChartColumn, rows: list[Row | None]) -> list[str]:
    """Write the cells of a column; the lines with the name of a run have none."""
    cells = iter(column.cells([row for row in rows if row is not None]))
    return ["" if row is None else next(cells) for row in rows]
