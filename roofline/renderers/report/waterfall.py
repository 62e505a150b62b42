"""From the step of A to that of B: what each part of the model adds or saves, as a table whose rows are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roofline import units
from roofline.comparison.ranking import RankedPair
from roofline.renderers._signed import snapped
from roofline.renderers.comparison import _broken_down, _comparing, _term_table
from roofline.renderers.comparison._term_table import Row
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag

#: Where the parts take less than this share of the walls, the axis does not begin at 0, and the walls are drawn broken.
_CUT = 0.35
#: Rows of parts that are drawn.
_MOST = 12


@dataclass(frozen=True, slots=True)
class Extent:
    """The axis [s]. broken: whether it begins above 0."""

    low: float
    high: float

    @property
    def broken(self) -> bool:
        """Whether it begins above 0."""
        return self.low > 0

    def share(self, seconds: float) -> float:
        """Where a time stands."""
        return (seconds - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def waterfall(pair: RankedPair) -> Html:
    """The drawn table of two runs."""
    found = pair.comparison
    made = (
        _term_table.table(found, _MOST) if pair.breakdown is None else _broken_down.table(pair, pair.breakdown, _MOST)
    )
    walls = [found.a.wall]
    for row in made.rows:
        walls.append(walls[-1] - row.seconds)
    axis = extent(found.a.wall, found.b.wall, walls, made.rows)
    rows = [_wall(_comparing.name(pair, 0), found.a.wall, axis)]
    for number, row in enumerate(made.rows):
        rows.append(_step(row, walls[number], axis, gap=number >= len(made.places)))
    rows.append(_wall(_comparing.name(pair, 1), found.b.wall, axis))
    heads = [head("from A to B", False), head("time of the step", False), head("change"), head("95 % interval")]
    cut = f" The axis begins at {units.seconds(axis.low)}; the bars of the walls are broken." if axis.broken else ""
    caption = f"What B does without (blue) and adds (orange), against A.{cut}"
    return table(caption, heads, rows, "Waterfall from A to B")


def extent(a: float, b: float, walls: Sequence[float], rows: Sequence[Row]) -> Extent:
    """From 0, or nearer where the parts would be too small to be seen."""
    ends = [a, b, *walls]
    for row, wall in zip(rows, walls, strict=False):
        if row.ci95 is not None:
            ends += [wall - row.ci95[0], wall - row.ci95[1]]
    low, high = min(ends), max(ends)
    if high - low >= _CUT * high or high - low < 1e-6 * high:
        return Extent(min(0.0, low), high)
    return Extent(max(0.0, low - 0.25 * (high - low)), high)


def _wall(label: str, seconds: float, axis: Extent) -> Html:
    drawn = [svg.bar(0.0, axis.share(seconds), 3, 14, "part wall")]
    if axis.broken:
        drawn.append(tag("path", d="M14 20l5-20h5l-5 20z", class_="break"))
    picture = tag("svg", drawn, height=20, width="100%", aria_hidden="true")
    row_head = tag("th", name(label, 60), scope="row")
    return tag(
        "tr", row_head, tag("td", picture, class_="drawn"), cell(units.seconds(seconds)), cell(""), class_="total"
    )


def _step(row: Row, wall: float, axis: Extent, gap: bool) -> Html:
    end = wall - row.seconds
    left, right = sorted((axis.share(wall), axis.share(end)))
    look = "saves" if row.seconds > 0 else "adds" if row.seconds < 0 else "same"
    drawn = [svg.bar(left, right - left, 3, 14, f"part {look}{' gap-step' if gap else ''}")]
    if row.ci95 is not None:
        ends = sorted(axis.share(wall - each) for each in row.ci95)
        drawn.append(tag("line", x1=svg.percent(ends[0]), x2=svg.percent(ends[1]), y1=10, y2=10, class_="whisker"))
    at = svg.percent(axis.share(end))
    drawn.append(tag("line", x1=at, x2=at, y1=3, y2=20, class_="joint"))
    change = _signed(-row.seconds)
    interval = ""
    if row.ci95 is not None:
        low, high = (-row.ci95[1], -row.ci95[0])
        interval = f"{_signed(low)} to {_signed(high)}"
    picture = tag("svg", drawn, height=20, width="100%", aria_hidden="true")
    return tag(
        "tr",
        tag("th", name(row.label, 60), scope="row"),
        tag("td", picture, class_="drawn"),
        cell(change),
        cell(interval),
    )


def _signed(seconds: float) -> str:
    seconds = snapped(seconds)
    return f"{'+' if seconds > 0 else '−' if seconds < 0 else ''}{units.seconds(abs(seconds))}"
