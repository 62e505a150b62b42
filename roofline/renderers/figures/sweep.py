"""Show a sweep as a map: a cell for each batch and length, coloured by the fastest backend or by what limits a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.content import palette, wording
from roofline.content.facts import sweep
from roofline.errors import InputError
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption
from roofline.sweeping.grid import GAP, Border, Cell, Grid, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: It draws the folder of a sweep, and no profiles.
OF_FOLDERS = True
#: What colours stand for: the fastest backend, or, with a panel for each backend, the largest part of its step.
BY = ("fastest", "limit")
#: What a pale cell lacks.
_PALE = {"fastest": "pale: alone, or predicted", "limit": "pale: not over half, or disturbed"}

#: The height of a cell, its largest width, and what a text and a mark leave free at its edges [in].
_HIGH, _WIDEST, _PAD = 0.27, 0.75, 0.03
#: Between panels, around the name of the vertical axis, and between the rows' names and cells [in].
_APART, _UPRIGHT, _NAMES = 0.16, 0.13, 0.05
#: A mark [pt], and the place of its middle from the edges of the cell [in].
_MARK, _MIDDLE = 3.6, 0.055

_UNSETTLED: _style.Look = {"facecolor": "white", "edgecolor": "#8a8f94", "hatch": "////", "linewidth": 0.0}
_EMPTY: _style.Look = {"facecolor": "#f1f1f1", "edgecolor": "white", "linewidth": 0.0}
_BORDER: _style.Look = {"color": "black", "linewidth": 1.6, "solid_capstyle": "butt"}
_BETWEEN: _style.Look = {"color": "black", "linewidth": 1.2, "linestyle": (0, (1.5, 1.0)), "dash_capstyle": "butt"}
#: Of the backends in turn, for a grey print: of two colours that are one in grey the hatches differ.
_HATCHES = ("", "---", "|||", "xxx", "\\\\\\")
#: Marks of points without a time, and of times that are too long: thin strokes, which no backend has.
_MARKERS = {
    "out of memory": "2",
    "failed": "x",
    "refused": "_",
    "missing": "+",
    "not measured": ".",
    "predicted": "4",
    "disturbed": (6, 2, 0),
}


class _Fill(NamedTuple):
    """How a cell is filled, and its entry in the key. ink: of a text on it."""

    label: str
    look: _style.Look
    ink: str = "black"
    is_pale: bool = False

    def pale(self) -> _Fill:
        """Return the fill of a cell of which its label is not all that is to say."""
        look = {**self.look, "facecolor": _style.pale(self.look["facecolor"])}
        return self._replace(look=look, ink="black", is_pale=True)


_NOT_SETTLED = _Fill("not settled", _UNSETTLED)
#: What limits a step: a bound, or that no op runs.
_LIMITS: dict[str, _Fill] = {
    GAP: _Fill(sweep.limit(GAP), _style.GAP),
    **{
        bound: _Fill(sweep.limit(bound), {**_style.solid(bound), "edgecolor": "white"}, palette.on(colour))
        for bound, colour in _style.BOUND.items()
    },
}


class _Square(NamedTuple):
    """A cell as it is drawn: its fill, what it says, the widest way first, and the names of its `_MARKERS`."""

    fill: _Fill
    texts: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Panel:
    """A panel: its head, the names of its rows and columns, its cells by (row, column), and the lines between them.

    down, across: the names of its axes. lines: the ends of a border in cells from the upper left corner, and whether
    the answer changes right there, or somewhere between two such lines.
    """

    head: str
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    squares: dict[tuple[int, int], _Square] = field(default_factory=dict)
    lines: list[tuple[tuple[int, int], tuple[int, int], bool]] = field(default_factory=list)

    @property
    def names(self) -> float:
        """Return the room for the names left of its cells [in]."""
        return _UPRIGHT * bool(self.down) + _measure.widest(self.rows) + _NAMES

    @property
    def height(self) -> float:
        """Return its height with its head and the names below it [in]."""
        below = _frame.TICKS + _frame.LABEL * bool(self.across) if self.columns != ("",) else 0.0
        return self.above + _HIGH * len(self.rows) + below

    @property
    def above(self) -> float:
        """Return the height of its head [in]."""
        return _measure.line(_measure.TEXT) + 0.03 if self.head else 0.0


def figure(items: Sequence[Grid], width: float, by: str | None = None) -> tuple[Figure, Caption]:
    """Draw a panel for each model, mode and precision; by limit one for each backend of these."""
    if len(items) > 1:
        raise InputError(f"A map is of one sweep, and {len(items)} are given: leave the others out.")
    (grid,) = items
    by = by or ("fastest" if len(grid.backends) > 1 else "limit")
    panels = list(_of_limits(grid) if by == "limit" else _of_fastest(grid))
    if not any(result.wall is not None for cell in grid.cells for result in cell.results):
        raise InputError("No point of this sweep is measured yet: `roofline sweep -o DIR` goes on with it.")
    title = f"{sweep.subject(grid)}: {sweep.limits(grid) if by == 'limit' else sweep.headline(grid)}"
    if len(panels) == 1:
        panels[0].head = panels[0].head.removeprefix(sweep.subject(grid)).removeprefix(", ")
    room = width - 2 * _frame.EDGE
    on = [_measure.fit(", ".join(grid.devices), room)] if grid.devices else []
    heading = _frame.Heading(tuple(_measure.wrap(title, room, _frame.TITLE, 3)), tuple(on))
    keys = _frame.keys(_entries(panels, _PALE[by]), width)
    drawn = _sheet(panels, heading, keys, width)
    return drawn, _caption(grid, by, title)


# ---------------------------------------------------------------------------------------------------- what is drawn


def _of_fastest(grid: Grid) -> Iterator[_Panel]:
    fills = {}
    for backend, (colour, *_), hatch in zip(grid.backends, cycle(_style.SERIES), cycle(_HATCHES), strict=False):
        look = {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "linewidth": 0.0}
        fills[backend] = _Fill(wording.plain(backend, 40), look, palette.on(colour))
    for table in sweep.tables(grid):
        panel = _panel(table, sweep.place(table.part))
        for place, cell in table.by_place.items():
            panel.squares[_at(table, place)] = _fastest(cell, fills)
        borders = [border for border in grid.borders if border.kind == "winner"]
        panel.lines += [line for border in borders for line in _lines(table, border)]
        yield panel


def _fastest(cell: Cell, fills: dict[str, _Fill]) -> _Square:
    marks = dict.fromkeys(_mark(result) for result in cell.results)
    if cell.predicted is not None:
        return _Square(fills[cell.predicted].pale(), marks=tuple(filter(None, marks)))
    if len(cell.machines) > 1:
        return _Square(_NOT_SETTLED, marks=tuple(filter(None, marks)))
    if cell.fastest is None:
        return _Square(_Fill("", _EMPTY), marks=tuple(filter(None, marks)))
    marks |= dict.fromkeys(["disturbed"] if sweep.is_disturbed(cell) else [])
    shown = tuple(filter(None, marks))
    fill = fills[cell.fastest]
    if cell.factor is None:
        return _Square(fill.pale(), marks=shown)
    if not cell.is_settled:
        return _Square(_NOT_SETTLED, marks=shown)
    return _Square(fill, (f"{units.significant(cell.factor)}x", f"{units.significant(cell.factor, 2)}x"), shown)


def _of_limits(grid: Grid) -> Iterator[_Panel]:
    for table in sweep.tables(grid):
        for backend in grid.backends:
            head = (
                f"{sweep.place(table.part)}, {wording.plain(backend, 40)}"
                if len(grid.backends) > 1
                else sweep.place(table.part)
            )
            panel = _panel(table, head)
            for place, cell in table.by_place.items():
                result = sweep.result_of(cell, backend)
                if result is not None:
                    panel.squares[_at(table, place)] = _limited(result)
            borders = [border for border in grid.borders if (border.kind, border.backend) == ("limit", backend)]
            panel.lines += [line for border in borders for line in _lines(table, border)]
            yield panel


def _limited(result: Result) -> _Square:
    """Fill a cell by the largest part of the step, pale where that is not over half, or the run was disturbed."""
    marks = tuple(filter(None, (_mark(result), "disturbed" if result.is_disturbed else "")))
    short = sweep.time(result, 2)
    texts = sweep.time(result), short, short.replace(" ", "\n")
    if result.limit is None:
        return _Square(_Fill("", _EMPTY), texts, marks)
    fill = _LIMITS[result.limit]
    return _Square(fill if result.mostly else fill.pale(), texts, marks)


def _mark(result: Result) -> str:
    """Name the mark of a point without a time; "" for one with."""
    if result.wall is not None:
        return ""
    return result.failure.kind if result.failure else "predicted" if result.predicted else "not measured"


def _panel(table: sweep.Table, head: str) -> _Panel:
    """Lay out a table: batches down and lengths across, or the batches across where there is one length."""
    if len(table.seqs) == 1:
        length = f", {table.seqs[0]} tokens" if table.seqs[0] else ""
        named = tuple(str(batch) if batch else "" for batch in table.batches)
        return _Panel(head + length, "", "batch" if any(named) else "", ("",), named)
    batches = tuple(str(batch) if batch else "" for batch in table.batches)
    return _Panel(head, "batch" if any(batches) else "", "tokens", batches, tuple(map(str, table.seqs)))


def _at(table: sweep.Table, place: tuple[int, int]) -> tuple[int, int]:
    """Return row and column of the cell of a batch and a length."""
    row, column = table.batches.index(place[0]), table.seqs.index(place[1])
    return (row, column) if len(table.seqs) > 1 else (0, row)


def _lines(table: sweep.Table, border: Border) -> Iterator[tuple[tuple[int, int], tuple[int, int], bool]]:
    """Place a border between its two cells, or one line behind each where cells between them do not tell."""
    if border.cell.without("batch", "seq", "backend") != table.part:
        return
    place = {"batch": border.cell.batch or 0, "seq": border.cell.seq or 0}
    (low_row, low_column), (high_row, high_column) = (
        _at(table, ((place | {border.axis: end})["batch"], (place | {border.axis: end})["seq"]))
        for end in (border.low, border.high)
    )
    ends = {low_row + 1, high_row} if low_row != high_row else {low_column + 1, high_column}
    for at in ends:
        if low_row != high_row:
            yield (at, low_column), (at, low_column + 1), len(ends) == 1
        else:
            yield (low_row, at), (low_row + 1, at), len(ends) == 1


# -------------------------------------------------------------------------------------------------------- the drawing


def _entries(panels: Sequence[_Panel], pale: str) -> list[_frame.Key]:
    """Write the key of what is drawn, and of nothing else. pale: what a pale cell lacks."""
    squares = [square for panel in panels for square in panel.squares.values()]
    fills = [square.fill for square in squares if square.fill.label]
    by_label = {fill.label: fill for fill in sorted(fills, key=lambda fill: (fill == _NOT_SETTLED, not fill.is_pale))}
    entries = [_frame.Key(label, fill.look) for label, fill in by_label.items()]
    entries += [_frame.Key(pale, {"facecolor": _style.pale("#404040")})] if any(fill.is_pale for fill in fills) else []
    ends = {is_there for panel in panels for _, _, is_there in panel.lines}
    entries += [_frame.Key("changes here", _BORDER, "line")] if True in ends else []
    entries += [_frame.Key("changes between", _BETWEEN, "line")] if False in ends else []
    marks = {mark for square in squares for mark in square.marks}
    return entries + [_frame.Key(mark, _mark_look(mark), "marker") for mark in _MARKERS if mark in marks]


def _mark_look(mark: str) -> dict[str, Any]:
    return {"marker": _MARKERS[mark], "markersize": _MARK, "markeredgewidth": 0.7, "color": "black"}


def _sheet(panels: Sequence[_Panel], heading: _frame.Heading, keys: _frame.Keys, width: float) -> Figure:
    """Place the panels, as many beside each other as have room for the texts of their cells."""
    room = width - 2 * _frame.EDGE
    names, most = max(panel.names for panel in panels), max(len(panel.columns) for panel in panels)
    texts = [text for panel in panels for square in panel.squares.values() for text in square.texts[:1]]
    needed = _measure.widest([*texts, *(name for panel in panels for name in panel.columns)]) + 2 * _PAD
    beside = max(1, min(len(panels), int((room + _APART) / (names + most * needed + _APART))))
    slot = (room - _APART * (beside - 1)) / beside
    cell = min(_WIDEST, (slot - names) / most)
    rows = [panels[start : start + beside] for start in range(0, len(panels), beside)]
    tops = [_frame.EDGE + heading.height + 0.06]
    for row in rows:
        tops.append(tops[-1] + max(panel.height for panel in row) + 0.08)
    if tops[-1] + keys.height > _frame.PAGE:
        raise InputError(
            f"{wording.counted(len(panels), 'map')} do not fit on a page {_frame.PAGE:g} in high: `roofline report` "
            f"has room for all{'' if width >= _frame.WIDE else ', and --width 7in for more'}."
        )
    drawn = _frame.blank(width, tops[-1] + keys.height)
    heading.draw(drawn)
    for row, top in zip(rows, tops, strict=False):
        for place, panel in enumerate(row):
            _draw(drawn, panel, _frame.EDGE + place * (slot + _APART), top, slot, names, cell)
    _frame.draw_keys(drawn, keys, tops[-1])
    return drawn


def _draw(drawn: Figure, panel: _Panel, left_edge: float, top: float, slot: float, names: float, cell: float) -> None:
    """Draw a panel in a slot [in from the upper left corner], its names left of cells of a width [in]."""
    _frame.write(drawn, left_edge, top, [_measure.fit(panel.head, slot)], _measure.TEXT)
    top += panel.above
    high, wide = len(panel.rows) * _HIGH, len(panel.columns) * cell
    axes = _frame.panel(drawn, left_edge + names, top, wide, high)
    axes.set(xlim=(0, wide), ylim=(high, 0))
    axes.set_axis_off()
    _fill(axes, panel, cell)
    _mark_cells(axes, panel, cell)
    for place, square in panel.squares.items():
        _say(axes, square, place, cell)
    for is_there, look in ((True, _BORDER), (False, _BETWEEN)):
        ends = [(start, end) for start, end, kind in panel.lines if kind is is_there]
        xs = [x for start, end in ends for x in (start[1] * cell, end[1] * cell, nan)]
        ys = [y for start, end in ends for y in (start[0] * _HIGH, end[0] * _HIGH, nan)]
        axes.plot(xs, ys, clip_on=False, zorder=4, **look)
    middle = _HIGH / 2 - _measure.line(_measure.SMALL) / 2
    for number, name in enumerate(panel.rows):
        at = left_edge + names - _NAMES
        _frame.write(drawn, at, top + number * _HIGH + middle, [name], _measure.SMALL, ha="right")
    if panel.down:
        _frame.upright(drawn, left_edge, top, high, [panel.down] if high > _measure.width(panel.down) else [""])
    for number, name in _apart(panel.columns, cell):
        at = left_edge + names + (number + 0.5) * cell
        _frame.write(drawn, at, top + high + 0.03, [name], _measure.SMALL, ha="center")
    if panel.across:
        below = [panel.across]
        at = left_edge + names + wide / 2
        _frame.write(drawn, at, top + high + _frame.TICKS, below, _measure.TEXT, ha="center")


def _apart(columns: Sequence[str], cell: float) -> Iterator[tuple[int, str]]:
    """Yield the names of columns that have room beside each other: all, or every second, third ..."""
    strides = range(1, len(columns))
    stride = next((n for n in strides if _measure.widest(columns[::n]) + _PAD <= n * cell), len(columns))
    yield from list(enumerate(columns))[::stride]


def _fill(axes: Axes, panel: _Panel, cell: float) -> None:
    """Fill the cells, those that look alike as one shape, and rule white lines between them."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    alike: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    for place, square in panel.squares.items():
        alike.setdefault((square.fill.label, square.fill.is_pale), []).append(place)
    for places in alike.values():
        look = panel.squares[places[0]].fill.look
        corners = [
            ((column + right) * cell, (row + down) * _HIGH)
            for row, column in places
            for right, down in ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
        ]
        shape = Path(corners, [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * len(places))
        axes.add_patch(PathPatch(shape, **{**look, "linewidth": 0.0, "clip_on": False}))
    wide, high = len(panel.columns) * cell, len(panel.rows) * _HIGH
    for number in range(1, len(panel.columns)):
        axes.plot([number * cell] * 2, [0, high], color="white", linewidth=0.6)
    for number in range(1, len(panel.rows)):
        axes.plot([0, wide], [number * _HIGH] * 2, color="white", linewidth=0.6)


def _mark_cells(axes: Axes, panel: _Panel, cell: float) -> None:
    """Mark what there is to mark in each cell, from its upper right corner on."""
    alike: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (row, column), square in panel.squares.items():
        for number, mark in enumerate(square.marks[: max(1, int(cell / (2 * _MIDDLE)) - 1)]):
            at = (column + 1) * cell - (2 * number + 1) * _MIDDLE
            alike.setdefault((mark, square.fill.ink), []).append((at, row * _HIGH + _MIDDLE))
    for (mark, ink), places in alike.items():
        axes.plot(*zip(*places, strict=True), **{**_mark_look(mark), "linestyle": "", "color": ink})


def _say(axes: Axes, square: _Square, place: tuple[int, int], cell: float) -> None:
    """Write what a cell says, as long as it has room for it."""
    text = next((text for text in square.texts if _measure.width(text) <= cell - 2 * _PAD), "")
    if text:
        under = square.fill.look
        box = {"facecolor": under["facecolor"], "pad": 0.4, "linewidth": 0} if under.get("hatch") else None
        high = (1 + text.count("\n")) * _measure.line(_measure.SMALL)
        at = ((place[1] + 0.5) * cell, (place[0] + 1) * _HIGH - high / 2 - 0.01)
        look: _style.Look = {"ha": "center", "va": "center", "color": square.fill.ink, "bbox": box, "linespacing": 1.0}
        axes.text(*at, text, size=_measure.SMALL, **look)


def _caption(grid: Grid, by: str, title: str) -> Caption:
    """Explain the cells; the long one says each border in a sentence."""
    if by == "fastest":
        explanation = (
            "Fastest backend of each cell, where its run and that of the next one tell so, with how many times the "
            "next one takes; hatched where they do not tell."
        )
    else:
        explanation = (
            "Time of a step, coloured by what takes over half of it; pale by the largest part where none takes over "
            "half, or where other programs disturbed the run."
        )
    sentences = [sentence for _, sentence in sweep.sentences(grid)]
    return Caption(title, explanation, " ".join([explanation, *sentences]))
