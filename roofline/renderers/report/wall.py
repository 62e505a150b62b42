"""Work against busy time, run by run: the wall chart as a picture, and its table."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.renderers._facts import wall as facts
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, section

#: The fields of a row that have a bar, their headings, and where the bars begin and end, as shares of the width.
_BARS = (("flops", "FLOPs", 0.0, 0.22), ("bytes", "bytes", 0.24, 0.52), ("time", "busy time", 0.54, 1.0))
#: The headings, the name of a run, its bars, and all of a run [px].
_HEADS, _NAME, _BAR, _ROW = 18, 16, 20, 46


def wall(runs: Sequence[Run]) -> Html:
    """Build the section; published shares of the same step stand last."""
    chart = facts.chart([run.analysis for run in runs])
    notes = [tag("p", note, class_="note") for note in chart.notes]
    return section(
        "wall", "Work against busy time", tag("p", tag("b", f"{chart.title}.")), _picture(chart), _table(chart), *notes
    )


def _picture(chart: facts.Chart) -> Html:
    drawn: list[Html] = [svg.text(start, 12, heading, "small") for _, heading, start, _ in _BARS]
    for number, run in enumerate(chart.every):
        top = _HEADS + number * _ROW
        drawn.append(svg.clipped(0.0, 1.0, top, _NAME, svg.text(0, 12, run.heading, "label")))
        for field, heading, start, stop in _BARS:
            drawn += _bar(run, field, heading, start, stop - start, top + _NAME)
    about = f"{chart.title}; the table below has the numbers"
    return tag("svg", drawn, class_="bars", height=_HEADS + _ROW * len(chart.every), role="img", aria_label=about)


def _bar(run: facts.Run, field: str, heading: str, start: float, width: float, top: float) -> list[Html]:
    """Draw the shares of one kind; where none is known, why."""
    shares = [(row.group, getattr(row, field)) for row in run.classes]
    if all(share is None for _, share in shares):
        reason = "not published" if run.table is not None else "not timed" if field == "time" else "unknown"
        return [svg.text(start, top + 14, reason, "small")]
    parts = []
    for group, share in shares:
        if share:
            title = f"{group}: {units.percent(share)} of the {heading}"
            parts.append(svg.bar(start, share * width, top, _BAR, f"part group-{group}", title))
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
                tag("th", row.group, scope="row", class_="below"),
                *(cell(column.cell(row), column.number) for column in facts.COLUMNS),
            )
            for row in run.shown
        ]
    return table(chart.about, heads, rows, "Shares of work and of busy time")
