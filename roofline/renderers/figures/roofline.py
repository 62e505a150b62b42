"""Draw the roofline: ops under the ceilings of their devices; some runs in one frame, more in a panel each."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.places import place_name
from roofline.analysis.run_names import called
from roofline.analysis.scope_names import name_scopes
from roofline.comparison.common_ceilings import best_ceilings, same_device
from roofline.content import titles, wording
from roofline.content.points import ALL, COUNTED, Point, Points, points
from roofline.content.roofs import MAIN, Extent, Roofs, extent, roofs
from roofline.core.vocabulary import GROUPS, Group
from roofline.errors import InputError
from roofline.renderers.figures import _ceilings, _frame, _labels, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITHOUT_TIMES = "the intensity of its ops"
#: Area of the marker of most time in a panel of one column, and of the least [pt^2].
LARGEST, LEAST = 110.0, 3.0
#: What a printer or a PNG sets at a time [pt].
_DOT = 72 / 300
#: The looks of runs in one frame, which a grey print tells apart: how full a marker is, and whether its edge is black.
_FILLS: tuple[tuple[float, bool], ...] = ((0.6, False), (0.0, False), (0.25, True), (1.0, True))
#: The edge of a marker [pt], and of a large hollow one as a share of its width.
_EDGE, _RING = 0.7, 0.12
#: Ops that are named below the panels of all runs.
_NAMED = 6
#: The panel of ops without FLOP, and between panels [in].
_STRIP, _BESIDE, _APART, _BELOW = 0.3, 0.05, 0.12, 0.07
#: Panels that are narrower are as high as wide [in].
_SMALL = 1.4
#: Widths of the ticks of most and least work [pt]; their height as a share of an axis with ceilings, and without any.
_THICKEST, _THINNEST, _TICK, _TICK_ALONE = 2.5, 0.5, 0.12, 0.75
#: The height of panels that have nothing but ticks, in widths.
_FLAT = 0.2
#: Axes of runs that have nothing to put on them.
_NO_LIMITS = _ceilings.Limits(0.1, 100.0, 1e9, 1e12)
#: The ends of an axis of byte/s; None: there is none.
Rates = tuple[float, float] | None
#: A ceiling of a device, as its label names it.
_Name = tuple[Roofs, str]
_EMPTY = "no op of known work and time"


class _Run(NamedTuple):
    """A run, its name that no other has, the same with its model and device, its points, ceilings, and looks.

    name, heading: "" of a single run. fill: how full its markers are.
    """

    analysis: WorkAnalysis
    name: str
    heading: str
    points: Points
    lines: Roofs
    fill: tuple[float, bool]


class _Mark(NamedTuple):
    """A marker: the point of a run, and its place on the axes."""

    run: _Run
    point: Point
    at: tuple[float, float]


class _Panel(NamedTuple):
    """A frame with one run, or with several."""

    runs: tuple[_Run, ...]
    name: str

    @property
    def lines(self) -> list[Roofs]:
        """Return the roofs of each device."""
        return list(dict.fromkeys(run.lines for run in self.runs))


class _Scales(NamedTuple):
    """The axes of all panels, the ends of the one of byte/s (None: no panel has one), and the scale of the markers."""

    limits: _ceilings.Limits
    rates: Rates
    longest: float
    largest: float

    def area(self, seconds: float) -> float:
        """Return the area of a marker [pt^2]."""
        return max(LEAST, self.largest * seconds / self.longest) if self.longest else LEAST

    def reach(self, point: Point) -> float:
        """Return how far a marker with its edge reaches from its middle [in]; a square on its corner more."""
        width = sqrt(self.area(point.seconds) * (2 if _style.GROUP[point.group][1] == "D" else 1))
        return (width + max(_EDGE, _RING * width)) / 2 / 72


def figure(items: Sequence[WorkAnalysis], width: float) -> tuple[Figure, Caption]:
    """Draw runs in one frame, or, of more than can be told apart, a panel each; beside it those of ops without FLOP.

    Of ops without times only the intensity is known: each is a tick.
    """
    names = called(analysis.profile for analysis in items)
    timed = [item for item in items if isinstance(item, Analysis)]
    sentence = titles.limits(timed, names, of_ops=True) if len(timed) == len(items) else WITHOUT_TIMES
    heading = _frame.heading(items, names, width, sentence)
    runs = _runs(items, names if len(items) > 1 else ("",), heading.rows)
    if not any(run.points.all or run.points.ticks for run in runs):
        raise InputError(_nothing(runs))
    is_one = len(runs) <= len(_FILLS)
    panels = [_Panel(tuple(runs), "")] if is_one else [_Panel((run,), run.heading) for run in runs]
    number = sum(len(named) + (len(named) > 1 and bool(run.name)) for panel in panels for run, named in _largest(panel))
    for _ in range(3):  # lines of notes take of the height of the panels, and so of the room for names
        fig, left_out, numbered, below = _drawn(panels, heading, number, width)
        notes, room = _notes(runs, left_out, numbered, width), number
        number = len(notes)
        if number == room:
            break
    _frame.write(fig, _frame.EDGE, below, notes, _measure.SMALL)
    return fig, _caption(runs, heading.title)


def _runs(items: Sequence[WorkAnalysis], names: Sequence[str], headings: Sequence[str]) -> list[_Run]:
    """Collect the points of each run; what a device was seen to reach in one of them is its ceiling in all."""
    plotted = [points(item) for item in items]
    lines = []
    is_one = len(items) <= len(_FILLS)
    for place, item in enumerate(items):
        alike = [number for number, run in enumerate(items) if same_device(run.device, item.device)]
        used = [kind for number in alike if is_one or number == place for kind in plotted[number].used]
        all_lines = roofs(best_ceilings([items[number].device for number in alike]), used)
        caches = [slope for slope in all_lines.slopes if slope.name != MAIN][:1]
        main = [slope for slope in all_lines.slopes if slope.name == MAIN]
        lines.append(Roofs(all_lines.peaks, (*main, *caches)))
    fills = [_FILLS[number] if is_one else _FILLS[0] for number in range(len(items))]
    names = [wording.plain(name, 60) for name in names]
    return [_Run(*parts) for parts in zip(items, names, headings, plotted, lines, fills, strict=True)]


def _notes(runs: Sequence[_Run], left_out: Sequence[_Name], numbered: Sequence[str], width: float) -> list[str]:
    """Write the notes below the panels: named ops, ceilings whose names have no room, devices without ceilings."""
    devices = {run.lines: wording.device(run.analysis) for run in runs}
    notes = []
    for lines, device in devices.items():
        if texts := [text for name_of, text in left_out if name_of == lines]:
            notes.append(f"Without a label{f', {device}' * (len(devices) > 1)}: {'; '.join(texts)}.")
    bare = [wording.device(run.analysis) for run in runs if not _ceilings.texts(run.lines)]
    notes += [f"No ceilings are known of {name}." for name in dict.fromkeys(bare) if name]
    room = width - 2 * _frame.EDGE
    return [*numbered, *(line for text in notes for line in _measure.wrap(text, room, _measure.SMALL, 3))]


def _nothing(runs: Sequence[_Run]) -> str:
    """Say why there is nothing to draw, and how to mend it."""
    subject = wording.subject(runs[0].analysis)
    cure = "draw --kind bound, which needs no work"
    if any("replays" in flag for run in runs for flag in run.analysis.flags):
        cure = "import it with --capture, which says what its graph replays"
    elif any(flag.startswith("no-shapes") for run in runs for flag in run.analysis.flags):
        cure = "record it with record_shapes=True"
    return f"No op of {subject} has a known work and a time, so there is nothing to put under a roof: {cure}."


class _Grid(NamedTuple):
    """Places of panels: from the left and from the top, their plots, from one to the next, and the bottom [in]."""

    columns: int
    left: float
    top: float
    plot: float
    high: float
    column_pitch: float
    pitch: float
    above: float
    bottom: float

    def at(self, place: int) -> tuple[float, float]:
        """Return left and top of a panel."""
        row, column = divmod(place, self.columns)
        return self.left + column * self.column_pitch, self.top + row * self.pitch + self.above


def _grid(
    number: int, heading: float, below: float, limits: _ceilings.Limits, rates: Rates, width: float, rated: bool
) -> _Grid:
    """Arrange panels, as high as the width asks for or as a page allows. heading: its height [in].

    below: height that the axis, the key and the notes take [in]. rated: whether any panel has an axis of FLOP/s.
    """
    wide = width >= _frame.WIDE
    columns = 1 if number == 1 else 3 if wide else 2
    rows = -(-number // columns)
    left_edge = _frame.EDGE + 0.13 + _measure.widest(_frame.log_labels(limits.low, limits.high)) + 0.06
    right = 0.1 if rates is None else _measure.widest(_frame.log_labels(*rates)) + 0.23 + _frame.EDGE
    panel = (width - left_edge - right - (columns - 1) * _APART) / columns
    plot = panel if rates is None else panel - _STRIP - _BESIDE
    above = _measure.line(_measure.SMALL) + 0.02 if number > 1 else 0.0
    top = _frame.EDGE + heading + 0.03
    highest = (_frame.PAGE - top - below) / rows - above - _BELOW
    shape = (0.55 if wide else 0.75) if number == 1 else 1.0 if plot < _SMALL else 0.75
    shape = shape if rated else _FLAT
    high = max(0.5, min(plot * shape, highest))
    pitch = above + high + _BELOW
    return _Grid(columns, left_edge, top, plot, high, panel + _APART, pitch, above, top + rows * pitch - _BELOW)


def _drawn(
    panels: Sequence[_Panel], heading: _frame.Heading, notes: int, width: float
) -> tuple[Figure, list[_Name], list[str], float]:
    """Draw the figure; return it, the ceilings whose names no panel had room for, and what is said of numbered ops.

    notes: how many lines there is room for below the key; last of what is returned: from the top to these [in].
    """
    runs = [run for panel in panels for run in panel.runs]
    lines = [run.lines for run in runs]
    held = extent(lines, [run.points for run in runs], (ALL, COUNTED))
    rated = bool(held.rates)
    held = held if rated else Extent(held.intensities, (_NO_LIMITS.low,), held.bandwidths)  # a tick has no rate
    limits = _ceilings.limits(held, lines, drawn=any(run.points.placed for run in runs)) or _NO_LIMITS
    rates = (min(held.bandwidths) / 2.5, max(held.bandwidths) * 2.5) if held.bandwidths else None
    scales = _Scales(limits, rates, max(run.points.longest for run in runs), LARGEST)
    keys = _frame.keys(_keys(runs, scales), width, 0.15)
    below = _frame.TICKS + _frame.LABEL + 0.03 + keys.height + _measure.line(_measure.SMALL) * notes
    grid = _grid(len(panels), heading.height, below, limits, rates, width, rated)
    limits = limits.with_room_above([peak.rate for roofs in lines for peak in roofs.peaks], grid.high)
    grid = _grid(len(panels), heading.height, below, limits, rates, width, rated)
    scales = scales._replace(limits=limits, largest=LARGEST * min(1.0, max(0.3, grid.plot / 2.3)))
    keys = _frame.keys(_keys(runs, scales), width, 0.15)
    fig = _frame.blank(width, grid.bottom + below)
    heading.draw(fig)
    unlabelled, numbered = _panels(fig, panels, scales, grid, rated)
    under = grid.bottom + _frame.TICKS
    middle = grid.left + min(len(panels), grid.columns) * grid.column_pitch / 2
    _frame.name_below(fig, middle, "intensity [FLOP/byte of main-memory traffic]", under)
    _frame.draw_keys(fig, keys, under + _frame.LABEL + 0.03)
    return fig, unlabelled, numbered, under + _frame.LABEL + 0.03 + keys.height


def _panels(
    fig: Figure, panels: Sequence[_Panel], scales: _Scales, grid: _Grid, rated: bool
) -> tuple[list[_Name], list[str]]:
    """Draw all panels; return the ceilings that none of them names, and the sentences of the numbered ops."""
    names = _measure.fit_apart([panel.name for panel in panels], grid.column_pitch - _APART)
    labelled: set[_Name] = set()
    unlabelled: dict[_Name, None] = {}
    numbered: list[str] = []
    for place, (panel, name) in enumerate(zip(panels, names, strict=True)):
        left_edge, top = grid.at(place)
        _frame.write(fig, left_edge, top - grid.above, [name] if grid.above else [], _measure.SMALL)
        axes = _frame.panel(fig, left_edge, top, grid.plot, grid.high)
        first, last = place % grid.columns == 0, place % grid.columns == grid.columns - 1 or place == len(panels) - 1
        _axes(axes, scales.limits, grid, first and rated, place + grid.columns >= len(panels))
        if not rated:
            axes.yaxis.set_visible(False)
            axes.spines["left"].set_visible(False)
        missing, sentences = _panel(axes, panel, scales, rated, fig.get_figwidth() - 2 * _frame.EDGE)
        numbered += sentences
        labelled |= {(lines, text) for lines in panel.lines for text in _ceilings.texts(lines)} - set(missing)
        unlabelled |= dict.fromkeys(missing)
        if first and rated:
            _frame.upright(fig, _frame.EDGE, top, grid.high, ["FLOP/s"])
        if scales.rates is not None:
            strip_axes = _frame.panel(fig, left_edge + grid.plot + _BESIDE, top, _STRIP, grid.high)
            _strip(strip_axes, panel, scales, grid.high, last)
            if last:
                x = left_edge + grid.column_pitch - _APART + _measure.widest(_frame.log_labels(*scales.rates)) + 0.1
                _frame.upright(fig, x, top, grid.high, ["byte/s of ops without FLOP", "byte/s, no FLOP", "byte/s"])
    return [name for name in unlabelled if name not in labelled], numbered


def _axes(axes: Axes, limits: _ceilings.Limits, grid: _Grid, first: bool, lowest: bool) -> None:
    """Set limits and ticks; with numbers only at the left and the lower edge of the grid."""
    axes.set(xscale="log", yscale="log", xlim=limits[:2], ylim=limits[2:])
    _frame.logarithmic(axes.xaxis, grid.plot)
    _frame.logarithmic(axes.yaxis, grid.high, upright=True)
    axes.tick_params(which="minor", length=1.5, width=0.4)
    # Where numbers stand, ticks between show that they are logarithmic.
    axes.tick_params(labelleft=first, labelbottom=lowest)
    axes.tick_params(which="minor", left=first, bottom=lowest)


def _panel(axes: Axes, panel: _Panel, scales: _Scales, rated: bool, room: float) -> tuple[list[_Name], list[str]]:
    """Draw ceilings, ops and names; return the ceilings without a place, and a line of `room` [in] on numbered ops."""
    board = _labels.Board(_labels.window(axes))
    for lines, (_, style, _) in zip(panel.lines, _style.SERIES, strict=False):
        _ceilings.draw(axes, lines, scales.limits, _style.BLACK, style)
        _ceilings.take(board, axes, lines, scales.limits)
    marks: list[_Mark] = []
    for run in panel.runs:
        at = [(_intensity(point), point.rate) for point in run.points.placed]
        for point, (x, y) in zip(run.points.placed, _labels.places(axes, at) if at else (), strict=True):
            half = scales.reach(point)
            board.box(x - half, y - half, x + half, y + half)
        _shifts(axes, run.points.placed, [(point.intensity[ALL] or 0.0, point.rate) for point in run.points.placed], at)
        marks += [_Mark(run, *mark) for mark in zip(run.points.placed, at, strict=True)]
    _draw_marks(axes, marks, scales)
    _leads(axes, panel, board)
    left_out = [
        (lines, text)
        for lines in panel.lines
        for text in _ceilings.label(board, axes, lines, scales.limits, _style.BLACK)
    ]
    most_work = max((tick.work for run in panel.runs for tick in run.points.ticks), default=0.0)
    for run in panel.runs:
        _ticks(axes, run, scales.limits, _TICK if rated else _TICK_ALONE, most_work)
    if not any(run.points.placed or run.points.ticks for run in panel.runs):
        ways = (_EMPTY, "no op of known FLOP", "nothing known")
        place = next((place_found for text in ways if (place_found := board.inside(text))), None)
        if place is not None:
            _labels.write(axes, place, (0.0, 0.0, 0.0))
    return left_out, _numbers(axes, panel, scales, board, room)


def _numbers(axes: Axes, panel: _Panel, scales: _Scales, board: _labels.Board, room: float) -> list[str]:
    """Number the ops of most time, each with a line to its marker; return lines of `room` [in] on them, run by run."""
    lines: list[str] = []
    number = 0
    for run, named in _largest(panel):
        sentences = []
        for point in named:
            ((x, y),) = _labels.places(axes, [(_intensity(point), point.rate)])
            place = board.beside(str(number + 1), (x, y), scales.reach(point))
            if place is not None and isinstance(run.analysis, Analysis):
                _labels.write(axes, place, (0.0, 0.0, 0.0))
                number += 1
                sentences.append(f"{number}: {_op_words(run.analysis, point)}")
        if run.name and len(sentences) == 1:
            sentences = [sentences[0].replace(": ", f": {run.name}, ", 1)]
        elif run.name and sentences:
            lines.append(_measure.fit(f"{run.name}:", room, _measure.SMALL))
        lines += [line for words in sentences for line in _measure.wrap(words, room, _measure.SMALL)]
    return lines


def _largest(panel: _Panel) -> list[tuple[_Run, Sequence[Point]]]:
    """List the ops of most time of each run, which are to be named; the panels of many runs have no room for names."""
    return [] if panel.name else [(run, run.points.placed[: _NAMED // len(panel.runs)]) for run in panel.runs]


def _leads(axes: Axes, panel: _Panel, board: _labels.Board) -> None:
    """Lead a thin line from each named op up to the roof that binds it.

    Of memory that is the line that is drawn: by the bytes of an op's place, and not by the fewer ones that may have
    moved, nor by the bandwidth of its own pattern.
    """
    for run, point in ((run, point) for run, named in _largest(panel) for point in named):
        low, bandwidth, intensity = point.attained[0], run.lines.bandwidth(point.ceiling), _intensity(point)
        roof = 0.0 if not low else bandwidth * intensity if bandwidth else point.rate / low
        if roof <= point.rate:
            continue
        xs, ys = [intensity] * 2, [point.rate, min(roof, axes.get_ylim()[1])]
        look: dict[str, Any] = {"marker": "_", "markersize": 3.0, "markeredgewidth": 0.7, "markevery": [1]}
        colour = _style.pale(_style.GROUP[point.group][0], 0.8)
        axes.plot(xs, ys, color=colour, linewidth=0.6, zorder=2.5, **look)
        (x, start), (_, end) = _labels.places(axes, list(zip(xs, ys, strict=True)))
        board.line((x, start), (x, end))
        board.box(x - 0.025, end - 0.01, x + 0.025, end + 0.01)


def _op_words(analysis: Analysis, point: Point) -> str:
    """Say what ops a point is, their share of the step, and how close they come to the roof that binds them."""
    op_name = wording.plain(place_name(analysis.profile.signatures[point.signature]), 40)
    blocks = name_scopes(point.blocks)
    name = f"{units.count(point.number)} x {op_name}{f' ({blocks})' if blocks else ''}"
    share, (low, high) = f", {units.percent(point.seconds / analysis.wall)} of the step", point.attained
    roof = "" if low is None or high is None else f", at {wording.of_roofs(low, high, [point.roof])}"
    return name + share + roof


def _intensity(point: Point) -> float:
    """Return FLOP per byte of the traffic that hardware counted, else of compulsory traffic."""
    return point.intensity.get(COUNTED) or point.intensity[ALL] or 0.0


def _draw_marks(axes: Axes, marks: Sequence[_Mark], scales: _Scales) -> None:
    """Draw markers, the largest first, so that none hides a smaller one of another run.

    Those of a run, a group and a size are drawn at once: a file holds their shape once. Sizes are whole dots of a
    print, which nobody tells apart more finely.
    """
    alike: dict[tuple[int, tuple[float, bool], Group], list[tuple[float, float]]] = {}
    for run, point, at in marks:
        dots = round(sqrt(scales.area(point.seconds)) / _DOT)
        alike.setdefault((dots, run.fill, point.group), []).append(at)
    for (dots, fill, group), places in sorted(alike.items(), key=lambda drawn: -drawn[0][0]):
        colour, marker, _ = _style.GROUP[group]
        look = _look(colour, fill, dots * _DOT) | {"clip_on": False, "zorder": 3}
        xs, ys = zip(*places, strict=True)
        axes.scatter(xs, ys, s=(dots * _DOT) ** 2, marker=marker, **look)


def _look(colour: str, fill: tuple[float, bool], width: float = 0.0) -> dict[str, Any]:
    """Fill a marker [pt]. A hollow one shows what is behind it, and its thicker edge is seen around one of its size."""
    share, is_black = fill
    return {
        "facecolor": (*_style.pale(colour, share), 0.75 if share else 0.0),
        "edgecolor": _style.BLACK if is_black else colour,
        "linewidth": _EDGE if share else max(_EDGE, _RING * width),
    }


def _shifts(
    axes: Axes, placed: Sequence[Point], before: Sequence[tuple[float, float]], at: Sequence[tuple[float, float]]
) -> None:
    """Draw a thin line from an op's place by compulsory traffic, marked with a dot, to that by counted traffic."""
    for point, start, end in zip(placed, before, at, strict=True):
        if point.counted_traffic is not None:
            colour = _style.pale(_style.GROUP[point.group][0], 0.45)
            axes.plot(*zip(start, end, strict=True), color=colour, linewidth=0.6, zorder=2.5)
            axes.plot(*start, color=colour, marker=".", markersize=2.5, markeredgewidth=0, zorder=2.5)


def _ticks(axes: Axes, run: _Run, limits: _ceilings.Limits, share: float, most_work: float) -> None:
    """Draw a tick at the intensity of each op without a time; the more work, the thicker. share: of the axis."""
    top = limits.low * (limits.high / limits.low) ** share
    for tick in reversed(run.points.ticks):
        colour, marker, _ = _style.GROUP[tick.group]
        line = max(_THINNEST, _THICKEST * tick.work / most_work)
        axes.plot(
            [tick.intensity] * 2, [limits.low, top], color=colour, linewidth=line, zorder=2.5, solid_capstyle="butt"
        )
        foot: dict[str, Any] = {"markerfacecolor": _style.pale(colour, 0.6), "markeredgewidth": 0.7, "markersize": 4}
        axes.plot([tick.intensity], [limits.low], color=colour, marker=marker, clip_on=False, zorder=3, **foot)


def _strip(axes: Axes, panel: _Panel, scales: _Scales, high: float, numbered: bool) -> None:
    """Draw ops without FLOP, by the bandwidth that they attain; the lines are those of the slopes."""
    axes.set(yscale="log", xlim=(0, 1), ylim=scales.rates, xticks=[])
    _frame.logarithmic(axes.yaxis, high, upright=True)
    axes.yaxis.tick_right()
    axes.spines["left"].set_visible(False)
    axes.spines["right"].set_visible(True)
    axes.tick_params(which="minor", length=1.5, width=0.4)
    axes.tick_params(labelright=numbered)
    axes.tick_params(which="minor", right=numbered)
    for lines, (_, style, _) in zip(panel.lines, _style.SERIES, strict=False):
        for number, slope in enumerate(lines.slopes):
            look: dict[str, Any] = {"linewidth": 0.8 if number else 1.1, "linestyle": style, "zorder": 2}
            axes.plot([0, 1], [slope.rate] * 2, color=_style.BLACK, **look)
    # Side by side where rates are alike: the golden section never comes near a place that it had. The largest marker
    # has room at both edges.
    edge = max(map(scales.reach, (point for run in panel.runs for point in run.points.flopless)), default=0.0) / _STRIP
    marks: list[_Mark] = []
    for run in panel.runs:
        flopless = run.points.flopless
        across = [edge + (1 - 2 * edge) * ((0.25 + (len(marks) + n) * 0.618) % 1.0) for n in range(len(flopless))]
        at = [(x, point.counted_traffic or point.traffic) for x, point in zip(across, flopless, strict=True)]
        _shifts(axes, flopless, [(x, point.traffic) for x, point in zip(across, flopless, strict=True)], at)
        marks += [_Mark(run, *mark) for mark in zip(flopless, at, strict=True)]
    _draw_marks(axes, marks, scales)


def _keys(runs: Sequence[_Run], scales: _Scales) -> list[_frame.Key]:
    """Make the key: groups by marker, runs by how full it is, devices by line, and times by area."""
    present = {point.group for run in runs for point in run.points.all}
    present |= {tick.group for run in runs for tick in run.points.ticks}
    edge: dict[str, Any] = {"markeredgewidth": _EDGE, "markersize": 5}
    keys = []
    for group in GROUPS:
        if group in present:
            colour, marker, _ = _style.GROUP[group]
            look = {"markerfacecolor": _style.pale(colour, 0.6), "markeredgecolor": colour, "marker": marker, **edge}
            keys.append(_frame.Key(group, look, "marker"))
    if 1 < len(runs) <= len(_FILLS):
        for run in runs:
            face = _look(_style.GREY, run.fill)
            look = {"markerfacecolor": face["facecolor"], "markeredgecolor": face["edgecolor"], "marker": "o", **edge}
            keys.append(_frame.Key(run.heading, look, "marker"))
    if len(runs) <= len(_FILLS) and len(lines := {run.lines: wording.device(run.analysis) for run in runs}) > 1:
        for name, (_, style, _) in zip(lines.values(), _style.SERIES, strict=False):
            keys.append(_frame.Key(name, {"color": _style.BLACK, "linestyle": style, "linewidth": 1.1}, "line"))
    for seconds in _round_times(scales):
        look = {"markerfacecolor": "white", "markeredgecolor": "black", "marker": "o", **edge}
        label = f"area: {units.seconds(seconds).replace('.00', '').replace('.0 ', ' ')}"
        keys.append(_frame.Key(label, {**look, "markersize": sqrt(scales.area(seconds))}, "marker"))
    return keys


def _round_times(scales: _Scales) -> list[float]:
    """Choose a round time below the longest, and one tenth of it if that is above the least marker [s]."""
    if not scales.longest:
        return []
    decade = 10.0 ** floor(log10(scales.longest))
    first = max(m * decade for m in (1, 2, 5) if m * decade <= scales.longest * (1 + 1e-9))
    return [time for time in (first, first / 10) if scales.largest * time / scales.longest >= LEAST]


def _caption(runs: Sequence[_Run], title: Sequence[str]) -> Caption:
    all_points = [point for run in runs for point in run.points.all]
    counted = any(COUNTED in point.moved for point in all_points)
    sentences = []
    if any(isinstance(run.analysis, Analysis) for run in runs):
        sentences.append(
            "Each marker is all ops with one signature in one phase: FLOP (matrix and vector) per byte of "
            f"{'main-memory' if counted else 'compulsory'} traffic, and FLOP/s in their own time; its area is their "
            "time. From a numbered one a thin line leads up to the roof that binds its ops."
        )
    if any(run.points.ticks for run in runs):
        sentences.append(
            "Each tick is all ops with one signature that were counted and not timed, at their FLOP (matrix and "
            "vector) per byte of compulsory traffic; a thicker tick is more FLOP. How fast they run is not known."
        )
    if any(_ceilings.texts(run.lines) for run in runs):
        sentences.append("Black lines are the ceilings of the device, white marks the ridge points.")
    if any(run.points.flopless for run in runs):
        sentences.append("Next to the panel: ops without FLOP, by their byte/s.")
    if counted:
        sentences.append(
            "Where hardware counted traffic, that is used; a line leads there from the place by compulsory traffic."
        )
    explanation = " ".join(sentences)
    short, long = [explanation], [explanation]
    for run in runs:
        of_run, more = _about(run)
        short += of_run
        long += [f"{of_run[0]} {wording.provenance(run.analysis)}", *of_run[1:], *more]
    return Caption(" ".join(title), " ".join(short), " ".join(long))


def _about(run: _Run) -> tuple[list[str], list[str]]:
    """Say of a run what the short caption has, and what the long one has in addition."""
    analysis = run.analysis
    of = f"{wording.subject(analysis)}, {run.name}" if run.name else wording.subject(analysis)
    if not isinstance(analysis, Analysis):
        return [f"{of}: counted and not timed."], []
    short = [f"{of} on {wording.device(analysis)}: {units.seconds(analysis.wall)} per step."]
    if analysis.busy > 0 and (unknown := run.points.unknown / analysis.busy) > 0.0005:
        short.append(f"{units.percent(unknown)} of its busy time is in ops of unknown work, which are not shown.")
    long = [f"The largest marker is {_op_words(analysis, point)}." for point in run.points.placed[:1]]
    if analysis.above_ceiling:
        long.append(f"{analysis.above_ceiling} ops ran faster than their minimum time: a defect of count or ceiling.")
    return short, long
