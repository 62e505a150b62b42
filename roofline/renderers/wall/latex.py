"""The table as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from roofline.renderers._facts.wall import COLUMNS, Chart
from roofline.renderers._latex.escape import letters
from roofline.renderers._latex.table import LEAST_NAME, PACKAGES, Table, floated, label
from roofline.renderers._names.distinct import distinct


def render(chart: Chart, columns: int = 1, caption: str = "short") -> str:
    """Write the float. Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, that the table is as wide as. caption: "short" is the sentence and what the shares
    are of; "long" has the notes too, which otherwise stand in comments.
    """
    runs = chart.every
    rows: list[list[str]] = []
    rules = []
    for run in runs:
        if rows:
            rules.append(len(rows))
        rows += [[""] * len(COLUMNS), *([column.cell(row) for column in COLUMNS] for row in run.shown)]

    def named(most: int) -> list[str]:
        names = iter(distinct([run.name for run in runs], most, made=letters))
        return [name for run in runs for name in (next(names), *(row.group for row in run.shown))]

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
    more = [*(f"{run.heading}." for run in runs if run.about), *chart.notes]
    long = caption == "long"
    first = next((run.analysis.profile for run in runs if run.analysis is not None), None)
    words = (first.model, first.mode) if first is not None else ()
    lines = floated(
        table,
        columns,
        " ".join([sentences, *more]) if long else sentences,
        label(*words, "wall"),
        [] if long else more,
    )
    return "\n".join([PACKAGES, *lines, ""])
