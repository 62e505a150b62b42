"""Work against time: per group the share of FLOP, of bytes and of time, as in Ivanov et al., with the time's floor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.core.vocabulary import BOUNDS, Bound
from roofline.renderers import _tables, _words
from roofline.renderers._tables import Row
from roofline.renderers.figures import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rows of a panel: more would be too small to read.
MOST = 8


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, str]:
    """One panel per profile by group; beside it, where there is room for two columns, one by block."""
    from matplotlib.patches import Patch

    keys = ("group",) if width < 5 else ("group", "block")
    panels = [[_rows(analysis, key) for key in keys] for analysis in items]
    heights = [max(len(rows) for rows in row) for row in panels]
    fig = _style.canvas(width, 0.75 + sum(0.33 * height + 0.3 for height in heights))
    grid = fig.subplots(len(items), len(keys), squeeze=False, height_ratios=heights)
    bounds: dict[Bound, None] = {}
    for analysis, axes_row, rows_row in zip(items, grid, panels, strict=True):
        for key, axes, rows in zip(keys, axes_row, rows_row, strict=True):
            _panel(axes, rows, bounds)
            room = width / len(keys) - 1.5  # the names of the rows stand left of it
            title = _style.fit(f"{_words.subject(analysis)}, {analysis.profile.backend}", room)
            axes.set_title(f"{title}, by {key}", loc="left", size=_style.TEXT)
    for axes in grid[-1]:
        axes.set_xlabel("share [%]")
    told = [("FLOP", Patch(facecolor="#202020")), ("bytes", Patch(facecolor="#b8b8b8"))]
    for bound in BOUNDS:
        if bound in bounds and bound != "unknown":
            told += [(f"time: {bound} floor", Patch(**_style.solid(bound)))]
            told += [(f"time: {bound} loss", Patch(**_style.lighten(bound)))]
    if "unknown" in bounds:
        told.append(("time: unknown", Patch(**_style.lighten("unknown"))))
    told.append((f"time: {_words.gap_name(items[0])}", Patch(**_style.GAP)))
    _style.keys(fig, [handle for _, handle in told], [label for label, _ in told], 2 if width < 5 else 4)
    return fig, _caption(items, keys)


def _rows(analysis: Analysis, key: str) -> list[Row]:
    """The rows of most time, without the total."""
    *rows, gap, _ = _tables.rows(analysis, key, _words.gap_name(analysis))
    return [*sorted(rows, key=lambda row: -row.seconds)[: MOST - 1], gap]


def _panel(axes: Axes, rows: Sequence[Row], bounds: dict[Bound, None]) -> None:
    for number, row in enumerate(rows):
        under = 0.27 if row.roof else 0.0  # the gap has no work, so its time stands alone
        if row.roof:
            for place, share, shade in ((-0.27, row.flops, "#202020"), (0.0, row.bytes, "#b8b8b8")):
                axes.barh(number + place, 100 * (share or 0.0), height=0.25, color=shade)
                _value(axes, share, number + place)
        _time(axes, row, number + under, bounds)
        _value(axes, row.time, number + under)
    axes.set_yticks(range(len(rows)), [_style.fit(row.label, 1.6) for row in rows], size=_style.TEXT)
    # Room for the percentages right of the longest bar.
    axes.set(xlim=(0, 118), ylim=(len(rows) - 0.5, -0.5), xticks=range(0, 101, 25))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e0e0e0", linewidth=0.5)


def _value(axes: Axes, share: float | None, height: float) -> None:
    text = "unknown" if share is None else _tables.percent(share)
    axes.text(max(0.0, 100 * (share or 0.0)) + 1.2, height, text, ha="left", va="center", size=_style.SMALL)


def _time(axes: Axes, row: Row, height: float, bounds: dict[Bound, None]) -> None:
    """The time bar: floor and loss in the look of the bound that holds most of the row's time."""
    if not row.roof or row.floor is None:
        look = _style.GAP if not row.roof else _style.lighten("unknown")
        axes.barh(height, 100 * max(0.0, row.time), height=0.25, **look)
        if row.roof:
            bounds.setdefault("unknown")
        return
    bounds.setdefault(row.bound)
    own = row.floor + (row.loss or 0.0)
    floor = min(row.time, row.time * row.floor / own) if own > 0 else 0.0
    axes.barh(height, 100 * floor, height=0.25, **_style.solid(row.bound))
    axes.barh(height, 100 * (row.time - floor), left=100 * floor, height=0.25, **_style.lighten(row.bound))


def _caption(items: Sequence[Analysis], keys: Sequence[str]) -> str:
    told = [
        "Share of FLOP (matrix and vector), of compulsory bytes and of the step's time, by "
        f"{' and by '.join(keys)}. The time bar is solid up to the floor and pale beyond it, in the colour and hatch "
        "of the bound that holds most of it."
    ]
    for analysis in items:
        known = units.percent(analysis.coverage["flops"])
        told.append(f"{_words.subject(analysis)}: {units.seconds(analysis.wall)} per step; FLOPs known for {known} of")
        told.append(f"busy time. {_words.provenance(analysis)}")
    return " ".join(told)
