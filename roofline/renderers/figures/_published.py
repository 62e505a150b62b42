"""Show a published table: how many times as fast as one of its columns the others are, row by row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.content import wording
from roofline.errors import InputError
from roofline.published.means import Row, rows_over
from roofline.published.publication import Picture, Publication
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A column's line in a row, air between rows, and what stands above a panel [in].
_LINE, _AIR, _HEAD = 0.062, 0.06, 0.17
#: Of a row with one or two lines, its name needs this height [in].
_LEAST = 0.12
#: The most of a figure's width that names take, and the free ends of an axis, as a factor.
_NAMES = 0.45
_FREE = 1.18
#: What an axis has on it at least.
_SPAN = (0.5, 2.0)


class _Panel(NamedTuple):
    """A panel: the column that others are held against, its head, these, and the rows with their names."""

    baseline: str
    head: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    names: tuple[str, ...]

    @property
    def row(self) -> float:
        """Return the height of a row [in]."""
        return max(_LEAST, _LINE * len(self.columns)) + _AIR


def figure(publication: Publication, width: float) -> tuple[Figure, Caption]:
    """Draw the panels of a publication below each other, on equal axes: in each row a line per column, from 1 on."""
    panels = [_panel(publication, picture) for picture in publication.pictures]
    if not panels:
        raise InputError(f"{publication.name} has no picture: `roofline published {publication.name}` has its figures.")
    shown = {column for panel in panels for column in panel.columns}
    looks = {column: _look(number) for number, column in enumerate(filter(shown.__contains__, publication.columns))}
    unread = {cell.column for cell in publication.cells if not cell.citable}
    entries = [_frame.Key(f"{column}{' ?' * (column in unread)}", look, "line") for column, look in looks.items()]
    keys, room = _frame.keys(entries, width), width - 2 * _frame.EDGE
    names_room = min(_measure.widest([name for panel in panels for name in panel.names]), _NAMES * room)
    left_edge, tops = _frame.EDGE + names_room + 0.06, [_frame.EDGE]
    for panel in panels:
        tops.append(tops[-1] + _HEAD + panel.row * len(panel.rows) + _frame.TICKS)
    ratios = [*_SPAN, *(ratio for panel in panels for row in panel.rows for ratio in row.ratios.values())]
    drawn = _frame.blank(width, tops[-1] + 0.04 + keys.height)
    for panel, top in zip(panels, tops, strict=False):
        _frame.write(drawn, _frame.EDGE, top, [_measure.fit(panel.head, room)], _measure.TEXT)
        axes = _frame.bars(drawn, left_edge, top + _HEAD, width - left_edge - 0.1, panel.row * len(panel.rows))
        axes.set(xscale="log", xlim=(min(ratios) / _FREE, max(ratios) * _FREE))
        _draw(axes, panel, looks, names_room)
        _frame.logarithmic(axes.xaxis, width - left_edge - 0.1)
    _frame.draw_keys(drawn, keys, tops[-1] + 0.04)
    return drawn, _caption(publication, panels, unread & shown)


def _panel(publication: Publication, picture: Picture) -> _Panel:
    """Collect the rows of a panel, with what tells them apart in their names."""
    wanted = [name for name in publication.columns if not picture.columns or name in picture.columns]
    rows = []
    for row in rows_over(publication, picture.over):
        ratios = {name: row.ratios[name] for name in wanted if name in row.ratios}
        rows += [Row(row.task, row.batch, row.hardware, ratios)] if ratios else []
    tasks, names = list(dict.fromkeys(row.task for row in rows)), []
    for row in rows:
        batches, machines = zip(*((run.batch, run.hardware) for run in rows if run.task == row.task), strict=True)
        parts = [row.task] if len(tasks) > 1 else []
        parts += [f"batch {row.batch}"] if row.batch and len({*batches}) > 1 else []
        parts += [row.hardware] if len({*machines}) > 1 else []
        names.append(", ".join(parts))
    head = f"times as fast as {picture.over}{f': {tasks[0]}' if len(tasks) == 1 else ''}"
    columns = tuple(name for name in wanted if any(name in row.ratios for row in rows))
    return _Panel(picture.over, head, columns, tuple(rows), tuple(names))


def _look(number: int) -> dict[str, Any]:
    """Draw the line and the mark of the n-th column."""
    colour, _, marker = _style.SERIES[number % len(_style.SERIES)]
    return {"color": colour, "marker": marker, "markersize": 3.2, "linewidth": 1.0, "markeredgewidth": 0.0}


def _draw(axes: Axes, panel: _Panel, looks: dict[str, dict[str, Any]], room: float) -> None:
    """Draw the rows of a panel: each with its name in `room` [in], and its columns from 1 on."""
    axes.axvline(1.0, color="#808080", linewidth=0.6, zorder=1)
    names = _measure.fit_apart(panel.names, room)
    for number, (row, name) in enumerate(zip(panel.rows, names, strict=True)):
        middle = (number + 0.5) * panel.row
        axes.annotate(
            name, (0, middle), xycoords=("axes fraction", "data"), xytext=(-3, 0), textcoords="offset points",
            ha="right", va="center", size=_measure.SMALL,
        )  # fmt: skip
        for place, (column, ratio) in enumerate(row.ratios.items()):
            at = middle + (place - (len(row.ratios) - 1) / 2) * _LINE
            axes.plot([1.0, ratio], [at] * 2, markevery=[1], zorder=3, **looks[column])


def _caption(publication: Publication, panels: Sequence[_Panel], unread: Collection[str]) -> Caption:
    """Say what is drawn, and of each panel which column is how much faster at most."""
    sentences = [
        "Published times, not measured here: how many times as fast as one column of the table others are, row by row "
        "(of several runs the fastest); left of 1 they are slower."
    ]
    for panel in panels:
        marks = [
            (ratio, column, f" in {name}" if name else "")
            for row, name in zip(panel.rows, panel.names, strict=True)
            for column, ratio in row.ratios.items()
        ]
        ratio, column, name = max(marks)
        most = f"{column}{name}, {units.significant(ratio)} times as fast"
        sentences.append(f"Over {panel.baseline}, {wording.counted(len(panel.rows), 'row')}: at most {most}.")
    sentences += ["? marks columns with figures that nobody read in a source that can be cited."] if unread else []
    short = " ".join(sentences)
    return Caption(publication.title, short, f"{short} {publication.statistic} {publication.setup}")
