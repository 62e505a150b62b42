"""Draw the table from the step of A to that of B: the seconds that each row of their account adds or saves, B - A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roofline import units
from roofline.analysis.bootstrap import Interval
from roofline.comparison.ranking import RankedPair
from roofline.renderers._signed import snapped
from roofline.renderers.comparison import _account, _comparing
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, name, tag

#: Where the parts take less than this share of the walls, the axis does not begin at 0, and the walls are drawn broken.
_CUT = 0.35


@dataclass(frozen=True, slots=True)
class Part:
    """A row that is drawn [s]. gap: whether it is time in which no op ran."""

    label: str
    seconds: float
    ci95: Interval | None = None
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Extent:
    """The axis [s]. broken: whether it begins above 0."""

    low: float
    high: float

    @property
    def broken(self) -> bool:
        """Return whether the axis begins above 0."""
        return self.low > 0

    def share(self, seconds: float) -> float:
        """Place a time on the axis."""
        return (seconds - self.low) / (self.high - self.low) if self.high > self.low else 0.0


def waterfall(pair: RankedPair) -> Html:
    """Draw the table of two runs."""
    compared, parts = pair.comparison, parts_of(pair)
    walls = [compared.a.wall]
    for part in parts:
        walls.append(walls[-1] - part.seconds)
    axis = extent(compared.a.wall, compared.b.wall, walls, parts)
    rows = [_wall(_comparing.name(pair, 0), compared.a.wall, axis)]
    rows += [_step(part, wall, axis) for part, wall in zip(parts, walls, strict=False)]
    rows.append(_wall(_comparing.name(pair, 1), compared.b.wall, axis))
    heads = [head("from A to B", False), head("time of the step", False), head("B − A"), head("95 % interval")]
    cut = f" The axis begins at {units.seconds(axis.low)}; the bars of the walls are broken." if axis.broken else ""
    caption = f"Blue (−): time that B takes less than A; orange (+): time that B takes more.{cut}"
    return table(caption, heads, rows, "Waterfall from A to B")


def parts_of(pair: RankedPair) -> list[Part]:
    """Return the largest rows of the account and the sum of the others."""
    largest_rows = _account.rows(pair)[: _account.MANY]
    parts = [
        Part(label, _account.seconds(row), row.ci95, row.kind == "gap")
        for label, row in zip(_account.labels(largest_rows), largest_rows, strict=True)
    ]
    smaller = _account.smaller(pair, largest_rows)
    return [*parts, Part(smaller, _account.rest(pair, largest_rows))] if smaller else parts


def extent(a: float, b: float, walls: Sequence[float], parts: Sequence[Part]) -> Extent:
    """Choose the axis from 0, or from nearer where the parts would be too small to be seen."""
    ends = [a, b, *walls]
    for part, wall in zip(parts, walls, strict=False):
        if part.ci95 is not None:
            ends += [wall - part.ci95[0], wall - part.ci95[1]]
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


def _step(part: Part, wall: float, axis: Extent) -> Html:
    end = wall - part.seconds
    start, stop = sorted((axis.share(wall), axis.share(end)))
    look = "saves" if part.seconds > 0 else "adds" if part.seconds < 0 else "same"
    drawn = [svg.bar(start, stop - start, 3, 14, f"part {look}{' gap-step' if part.gap else ''}")]
    if part.ci95 is not None:
        ends = sorted(axis.share(wall - bound) for bound in part.ci95)
        drawn.append(tag("line", x1=svg.percent(ends[0]), x2=svg.percent(ends[1]), y1=10, y2=10, class_="whisker"))
    at = svg.percent(axis.share(end))
    drawn.append(tag("line", x1=at, x2=at, y1=3, y2=20, class_="joint"))
    change = _signed(-part.seconds)
    interval = ""
    if part.ci95 is not None:
        low, high = (-part.ci95[1], -part.ci95[0])
        interval = f"{_signed(low)} to {_signed(high)}"
    picture = tag("svg", drawn, height=20, width="100%", aria_hidden="true")
    return tag(
        "tr",
        tag("th", name(part.label, 60), scope="row"),
        tag("td", picture, class_="drawn"),
        cell(change),
        cell(interval),
    )


def _signed(seconds: float) -> str:
    seconds = snapped(seconds)
    return f"{'+' if seconds > 0 else '−' if seconds < 0 else ''}{units.seconds(abs(seconds))}"
