"""Work against time: per group the share of FLOP, of bytes and of time, as in Ivanov et al., with the time's floor.

Of a step that was counted and not timed there are the shares of FLOP and bytes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import KEYS, Analysis, WorkAnalysis
from roofline.analysis.run_names import called
from roofline.content import tables, titles, wording
from roofline.content.choice import Choice
from roofline.content.tables import Row, WorkRow
from roofline.errors import InputError
from roofline.renderers.figures import _bars, _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITHOUT_TIMES = "the shares of FLOP and bytes"
#: What its rows can be.
BY = KEYS
#: Rows of a panel: more would be too small to read.
MOST = 8
_FLOP, _BYTES = "#202020", "#b8b8b8"
#: The places of the parts of time in the key; those of work are before them.
_ORDER = {label: place for place, label in enumerate((*_bars.ORDER, "minimum of the known part"))}
#: Behind the time of a row of which FLOP or bytes are not known.
_UNKNOWN = "?"
#: Between the columns of panels, and between rows of them [in].
_APART, _BELOW = 0.15, 0.08


class _Size(NamedTuple):
    """Heights of the bars of work and of time, and of a row [in]; whether each bar has its number or time alone."""

    work: float
    time: float
    row: float
    numbered: bool


#: Of bars with their numbers, and of those for which a page has no room with theirs.
_FULL, _DENSE = _Size(0.09, 0.09, 0.33, True), _Size(0.035, 0.09, 0.19, False)


class _Bar(NamedTuple):
    """A bar: its place [in], its beginning `left` [%], its look, and the text behind it ("" for nothing)."""

    middle: float
    height: float
    left: float
    share: float
    look: dict[str, Any]
    label: str


class _Panel(NamedTuple):
    title: str
    key: str
    rows: Sequence[Row | WorkRow]
    size: _Size

    @property
    def bars(self) -> list[_Bar]:
        """Return the bars of all rows."""
        return [
            bar for number, row in enumerate(self.rows) for bar in _row_bars(row, number * self.size.row, self.size)
        ]

    @property
    def high(self) -> float:
        """Return the height of all rows [in]."""
        return self.size.row * len(self.rows)


def figure(items: Sequence[WorkAnalysis], width: float, by: str | None = None) -> tuple[Figure, Caption]:
    """Draw one panel per profile by group; beside it, where two columns have room for it, one by block.

    by: the key of the only panel instead. Raises InputError where no profile holds an op.
    """
    wide, number = width >= _frame.WIDE, len(items)
    keys = (by,) if by else ("group", "block") if wide and number <= 3 else ("group",)
    columns = len(keys) if len(keys) > 1 or number <= 2 else 3 if wide else 2
    names = called(analysis.profile for analysis in items)
    heading = _frame.heading(items, names, width, titles.work(items, keys[0]))
    rows_of_keys = {key: _in_one_order([_rows(analysis, key) for analysis in items]) for key in keys}
    if not any(rows for rows_of_runs in rows_of_keys.values() for rows in rows_of_runs):
        raise InputError(f"{wording.subject(items[0])} has no op, so there is nothing to draw: measure it again.")

    def panels(size: _Size) -> list[_Panel]:
        titled = [(row, key) for row in enumerate(heading.rows) for key in keys]
        return [
            _Panel(
                ", ".join(part for part in (name, f"by {key}" if len(keys) > 1 else "") if part),
                key,
                rows_of_keys[key][number],
                size,
            )
            for (number, name), key in titled
        ]

    try:
        drawn, is_numbered = _drawn(panels(_FULL), columns, heading, width), True
    except InputError:  # higher than a page
        drawn, is_numbered = _drawn(panels(_DENSE), columns, heading, width), False
    return drawn, _caption(items, names, keys, heading.title, is_numbered)


def _drawn(panels: Sequence[_Panel], columns: int, heading: _frame.Heading, width: float) -> Figure:
    """Draw panels in rows, as many `columns` next to each other; all share their axis, and their names in a column."""
    grid = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(panel.high for panel in row) for row in grid]
    title = _measure.line(_measure.SMALL) + 0.02 if any(panel.title for panel in panels) else 0.0
    top = _frame.EDGE + heading.height + 0.03
    panel_width = (width - 0.14 - (columns - 1) * _APART) / columns
    titles = iter(_measure.fit_apart([panel.title for panel in panels], panel_width))
    names = [_names(panel, 0.42 * panel_width) for panel in panels]
    rooms = [
        panel_width - max(map(_measure.widest, names[column::columns]), default=0.0) - 0.06 for column in range(columns)
    ]
    labelled = [(panel, rooms[place % columns]) for place, panel in enumerate(panels)]
    end = max(100.0, *(_end(panel.bars, room) for panel, room in labelled))
    looks = {"FLOP": {"facecolor": _FLOP}, "bytes": {"facecolor": _BYTES}}
    looks |= {
        label: look
        for panel, room in labelled
        for row in panel.rows
        for label, share, look in _time(row)
        if 100 * share / end * room >= _bars.SEEN
    }
    labels = sorted(looks, key=lambda label: _ORDER.get(label.removeprefix("time: "), -1))
    keys = _frame.keys([_frame.Key(label, looks[label]) for label in labels], width)
    high = sum(heights) + (title + _BELOW) * len(grid)
    below = _frame.TICKS + _frame.LABEL + 0.02 + keys.height
    fig = _frame.blank(width, top + high + below)
    heading.draw(fig)
    at = top
    for after, (row, height) in enumerate(zip(grid, heights, strict=True), 1):
        for column, panel in enumerate(row):
            left_edge = _frame.EDGE + column * (panel_width + _APART)
            _frame.write(fig, left_edge, at, [next(titles)], _measure.SMALL)
            room, right = rooms[column], left_edge + panel_width
            axes = _frame.bars(fig, right - room, at + title, room, panel.high)
            axes.set_xlim(0, end)
            _panel(axes, panel, names[(after - 1) * columns + column], room)
            if after == len(grid) or column >= len(grid[after]):
                _frame.name_below(fig, right - room / 2, "share [%]", at + title + panel.high + _frame.TICKS)
            else:
                axes.tick_params(axis="x", labelbottom=False)
        at += title + height + _BELOW
    _frame.draw_keys(fig, keys, top + high - _BELOW + _frame.TICKS + _frame.LABEL + 0.02)
    return fig


def _names(panel: _Panel, inches: float) -> list[str]:
    """Fit the names of rows; sums of others and the gap are no names of ops."""
    named = iter(_measure.fit_apart([row.label for row in panel.rows if row.named], inches, by=panel.key))
    return [next(named) if row.named else _measure.fit(row.label, inches, _measure.SMALL) for row in panel.rows]


def _end(bars: Sequence[_Bar], room: float) -> float:
    """Return the end of an axis of `room` [in] that has room for the text behind each bar [%]."""
    labelled = [bar for bar in bars if bar.label]
    return _frame.reach(0.0, [bar.left + bar.share for bar in labelled], [bar.label for bar in labelled], room)


def _rows(analysis: WorkAnalysis, key: str) -> Sequence[Row | WorkRow]:
    """List the rows of most time, the others summed, and the gap; where nothing was timed those of most FLOP."""
    number = len(analysis.by(key))
    if not isinstance(analysis, Analysis):
        return tables.work_rows(analysis, key, Choice(top=MOST if number <= MOST else MOST - 1, sort="flop"))[:-1]
    room = MOST - 1  # the gap has a row
    rows = tables.rows(analysis, key, Choice(top=room if number <= room else room - 1, sort="time"))[:-1]
    flops, traffic = (tables.says_shares(analysis.coverage[name]) for name in ("flops", "bytes"))
    return [replace(row, flops=row.flops if flops else None, bytes=row.bytes if traffic else None) for row in rows]


def _in_one_order(rows_of_runs: Sequence[Sequence[Row | WorkRow]]) -> list[list[Row | WorkRow]]:
    """Put the rows of all runs in the order of their sums over the runs; sums of others and the gap stay last."""
    sums: dict[str, float] = {}
    for row in (row for rows in rows_of_runs for row in rows if row.named):
        amount = row.time if isinstance(row, Row) else row.flops
        sums[row.label] = sums.get(row.label, 0.0) + (amount or 0.0)
    return [sorted(rows, key=lambda row: -sums[row.label] if row.named else 1.0) for rows in rows_of_runs]


def _panel(axes: Axes, panel: _Panel, names: Sequence[str], room: float) -> None:
    """Draw the bars of one run by one key, and write the names of its rows."""
    for bar in panel.bars:
        axes.barh(bar.middle, bar.share, left=bar.left, height=bar.height, **bar.look)
        if bar.label:
            text_style: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "va": "center"}
            axes.annotate(bar.label, (bar.left + bar.share, bar.middle), (2, 0), size=_measure.SMALL, **text_style)
    axes.set_yticks([(number + 0.5) * panel.size.row for number in range(len(names))], names, size=_measure.SMALL)
    _frame.linear(axes.xaxis, room, 5)


def _row_bars(row: Row | WorkRow, top: float, size: _Size) -> list[_Bar]:
    """Make the bars of a row: FLOP, bytes, and time in its parts. The gap has no work: its time stands alone."""
    bars: list[_Bar] = []
    middle = top + size.row / 2
    # Bars of work that have no numbers do not tell none from unknown: a mark does.
    unknown = _UNKNOWN * (not size.numbered and _lacks_work(row))
    timed = isinstance(row, Row)
    if row.ops is not None:
        at = middle - (2 * size.work + size.time * timed) / 2
        for share, shade in ((row.flops, _FLOP), (row.bytes, _BYTES)):
            label = "unknown" if share is None else tables.percent(share)
            percents = max(0.0, 100 * (share or 0.0))
            look = {"facecolor": shade}
            bars.append(_Bar(at + size.work / 2, size.work * 0.92, 0.0, percents, look, label if size.numbered else ""))
            at += size.work
        middle = at + size.time / 2
    if isinstance(row, WorkRow):
        known = max((bar.share for bar in bars), default=0.0)
        return [*bars, *([_Bar(middle, 0.0, known, 0.0, {}, unknown)] if unknown else [])]
    begin = 0.0
    parts = _time(row)
    if row.time is None:  # of a gap that scaled ops fill
        return [*bars, _Bar(middle, size.time * 0.92, 0.0, 0.0, {}, "unknown")]
    for number, (_, share, look) in enumerate(parts):
        label = " ".join(filter(None, (tables.percent(row.time), unknown))) if number == len(parts) - 1 else ""
        bars.append(_Bar(middle, size.time * 0.92, begin, 100 * share, look, label))
        begin += 100 * share
    return bars


def _lacks_work(row: Row | WorkRow) -> bool:
    """Return whether FLOP or bytes of a row are not known; of the gap, which has none, they are."""
    return row.ops is not None and None in (row.flops, row.bytes)


def _time(row: Row | WorkRow) -> list[tuple[str, float, dict[str, Any]]]:
    """Split the time of a row: the name of each part in the key, its share of the step, and its look.

    The minimum and what is above it are in the look of the bound that holds most of the row's time. Nothing where it
    was not timed.
    """
    if isinstance(row, WorkRow) or row.time is None:
        return []
    time = max(0.0, row.time)
    if row.ops is None:
        return [(f"time: {row.label}", time, _style.GAP)]
    if row.floor is None:
        return [("time: unknown", time, _style.lighten("unknown"))]
    own_seconds = row.floor + (row.loss or 0.0)
    floor = min(time, time * row.floor / own_seconds) if own_seconds > 0 else 0.0
    if row.bound == "unknown":
        solid, pale = "time: minimum of the known part", "time: unknown"
    else:
        solid, pale = (f"time: {row.bound}, {part}" for part in ("minimum", "above it"))
    parts = [(solid, floor, _style.solid(row.bound)), (pale, time - floor, _style.lighten(row.bound))]
    return [part for part in parts if part[1] > 0] or parts[1:]


def _caption(
    items: Sequence[WorkAnalysis],
    names: Sequence[str],
    keys: Sequence[str],
    title: Sequence[str],
    is_numbered: bool,
) -> Caption:
    timed = any(isinstance(analysis, Analysis) for analysis in items)
    shares = "FLOP (matrix and vector), compulsory bytes and time" if timed else "FLOP (matrix and vector) and bytes"
    explanation = f"Shares of {shares}, by {' and by '.join(keys)}."
    if timed:
        explanation += (
            " The bar of time is solid up to the minimum time and pale above it, in the colour and hatch of the bound "
            "that holds most of it."
        )
    if not is_numbered:
        explanation += f" {_UNKNOWN}: FLOP or bytes are not known."
    short, long = [explanation], [explanation]
    for analysis, name in zip(items, names, strict=True):
        of = f"{wording.subject(analysis)}, {wording.plain(name, 60)}"
        if not isinstance(analysis, Analysis):
            coverage = (
                f"FLOPs and bytes known of {analysis.total.costed} of {wording.counted(analysis.total.ops, 'op')}"
            )
            short.append(f"{of}: counted and not timed.")
            long += [f"{of}: counted and not timed; {coverage}.", wording.provenance(analysis)]
            continue
        coverage = units.percent(analysis.coverage["flops"])
        short.append(f"{of} on {wording.device(analysis)}: {units.seconds(analysis.wall)} per step.")
        long.append(f"{of}: {units.seconds(analysis.wall)} per step; FLOPs known for {coverage} of busy time.")
        long.append(wording.provenance(analysis))
    return Caption(" ".join(title), " ".join(short), " ".join(long))
