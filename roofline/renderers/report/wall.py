"""Work against busy time, run by run: the wall chart as a picture, and its table."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.content.facts import wall as facts
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, section

#: The fields of a row that have a bar, their headings, and where the bars begin and end, as shares of the width.
_BARS = (("flops", "FLOPs", 0.0, 0.22), ("bytes", "bytes", 0.24, 0.52), ("time", "busy time", 0.54, 1.0))
#: The words above a bar, and both [px].
_WORDS, _ROW = 16, 38


def wall(runs: Sequence[Run]) -> Html:
    """Build the section; published shares of the same step stand last."""
    chart = facts.chart([run.analysis for run in runs])
    notes = [tag("p", note, class_="note") for note in chart.notes]
    parts = [tag("p", tag("b", f"{chart.title}.")), _heads(), *map(_picture, chart.every), _table(chart), *notes]
    return section("wall", "Work against busy time", parts)


def _heads() -> Html:
    heads = [svg.text(start, 12, heading, "small") for _, heading, start, _ in _BARS]
    return tag("svg", heads, class_="bars", height=_WORDS, aria_hidden="true")


def _picture(run: facts.Run) -> Html:
    drawn = [_bar(run, field, heading, start, stop - start) for field, heading, start, stop in _BARS]
    about = f"Work and busy time of {run.heading}; the table below has the numbers"
    picture = tag("svg", drawn, class_="bars", height=_ROW, role="img", aria_label=about)
    return tag("div", tag("p", name(run.heading, 200)), picture, class_="shares")


def _bar(run: facts.Run, field: str, heading: str, start: float, width: float) -> list[Html | None]:
    """Draw the shares of one kind; where none is known, why."""
    shares = [(row.group, getattr(row, field)) for row in run.classes]
    if all(share is None for _, share in shares):
        reason = "not published" if run.table is not None else "not timed" if field == "time" else "unknown"
        return [svg.text(start, _WORDS + 14, reason, "small")]
    parts: list[Html | None] = []
    for group, share in shares:
        if share:
            number = units.percent(share)
            parts.append(svg.above(start, share * width, 0, group, number))
            title = f"{group}: {number} of the {heading}"
            parts.append(svg.bar(start, share * width, _WORDS, _ROW - _WORDS - 2, f"part group-{group}", title))
            start += share * width
    return parts


def _table(chart: facts.Chart) -> Html:
    heads = [head("group", number=False), *(head(column.name, column.number) for column in facts.COLUMNS)]
    rows = []
    for run in chart.every:
        rows.append(tag("tr", tag("th", name(run.heading, 100), scope="rowgroup", colspan=len(heads))))
        rows += [
            tag(
                "tr",
                tag("th", svg.swatch(f"group-{row.group}"), row.name, scope="row", class_="below"),
                *(cell(column.cell(row), column.number) for column in facts.COLUMNS),
            )
            for row in run.shown
        ]
    return table(chart.about, heads, rows, "Shares of work and of busy time")
