"""Draw the table from one step to another: the seconds that each row of their account adds or saves."""

from __future__ import annotations

from roofline import units
from roofline.content.comparison.waterfall import Part, Waterfall
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag


def waterfall(chart: Waterfall) -> Html:
    """Draw the table of two runs."""
    first, last = ("AB"[side] for side in chart.sides)
    way = f"from {first} to {last}"
    heads = [head(way, False), head("time of the step", False), head(f"{last} − {first}"), head("95 % interval")]
    cut = (
        f" The axis begins at {units.seconds(chart.low)}; the bars of the walls are broken." if chart.is_broken else ""
    )
    caption = f"Orange (+): time that {last} takes more than {first}; grey (-): less; pale: no op runs.{cut}"
    return table(caption, heads, [_row(part, chart) for part in chart.parts], f"Waterfall {way}")


def _row(part: Part, chart: Waterfall) -> Html:
    is_wall = part.look == "wall"
    start, stop = sorted(chart.share(max(chart.low, end)) for end in (part.begin, part.end))
    drawn = [svg.bar(start, stop - start, 3, 14, f"part {part.look}{' gap-step' if part.is_gap else ''}")]
    if is_wall and chart.is_broken:
        drawn.append(tag("path", d="M14 20l5-20h5l-5 20z", class_="break"))
    if part.ci95 is not None:
        ends = sorted(map(chart.share, part.ci95))
        drawn.append(tag("line", x1=svg.percent(ends[0]), x2=svg.percent(ends[1]), y1=10, y2=10, class_="whisker"))
    if not is_wall:
        at = svg.percent(chart.share(part.end))
        drawn.append(tag("line", x1=at, x2=at, y1=3, y2=20, class_="joint"))
    picture = tag("svg", drawn, height=20, width="100%", aria_hidden="true")
    row_head, cells = tag("th", name(part.label, 60), scope="row"), (cell(part.text), cell(part.interval))
    return tag("tr", row_head, tag("td", picture, class_="drawn"), *cells, class_="total" if is_wall else None)
