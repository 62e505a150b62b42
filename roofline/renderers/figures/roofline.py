"""Draw the roofline: ops under the ceilings of the device, on logarithmic axes that all panels share."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.run_names import called
from roofline.comparison.common_ceilings import best_ceilings
from roofline.core.vocabulary import GROUPS, Group
from roofline.errors import InputError
from roofline.renderers import _words
from roofline.renderers._points import Bubble, Points, Stream, points
from roofline.renderers.figures import _frame, _labels, _measure, _roofs, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITHOUT_TIMES = "the intensity of its ops"
#: Area of the marker of most time in a panel of one column, and of the least [pt^2].
LARGEST, LEAST = 110.0, 3.0
#: The panel of ops without FLOP, and between panels [in].
_STRIP, _BESIDE, _APART, _BELOW = 0.24, 0.05, 0.12, 0.07
#: Panels that are narrower are as high as wide [in].
_SMALL = 1.4
#: Widths of the ticks of most and least work [pt]; their height as a share of an axis with ceilings, and without any.
_THICKEST, _THINNEST, _TICK, _TICK_ALONE = 2.5, 0.5, 0.12, 0.75
#: The height of panels that have nothing but ticks, in widths.
_FLAT = 0.2
#: Axes of runs that have nothing to put on them.
_NO_LIMITS = _roofs.Limits(0.1, 100.0, 1e9, 1e12)
#: The ends of an axis of byte/s; None: there is none.
Rates = tuple[float, float] | None
_EMPTY = "no op of known work and time"


class _Run(NamedTuple):
    """A run, its name, its points and its ceilings."""

    analysis: WorkAnalysis
    name: str
    points: Points
    lines: _roofs.Ceilings


class _Scales(NamedTuple):
    """The axes of all panels, the ends of the one of byte/s (None: no panel has one), and the scale of the markers."""

    limits: _roofs.Limits
    rates: Rates
    longest: float
    largest: float

    def area(self, seconds: float) -> float:
        """Return the area of a marker [pt^2]."""
        return max(LEAST, self.largest * seconds / self.longest) if self.longest else LEAST


def figure(items: Sequence[WorkAnalysis], width: float) -> tuple[Figure, Caption]:
    """Draw one panel per profile, in a grid; beside each one, where there are any, a panel of ops without FLOP.

    Of ops without times only the intensity is known: each is a tick.
    """
    names = called(analysis.profile for analysis in items)
    heading = _frame.heading(items, names, width)
    # What a device was seen to reach in one of the runs is its ceiling in all panels.
    devices_by_name = {
        item.device.name: [other_run.device for other_run in items if other_run.device.name == item.device.name]
        for item in items
    }
    best = {name: best_ceilings(devices) for name, devices in devices_by_name.items()}
    runs = [
        _Run(item, name, points(item), _roofs.ceilings(best[item.device.name], _roofs.precisions(item), vector=True))
        for item, name in zip(items, heading.rows, strict=True)
    ]
    if not any(run.points.all for run in runs):
        raise InputError(_nothing(runs))
    notes: list[str] = []
    for _ in range(3):  # what stands below the panels may take of their height, and so of the room for names
        fig, left_out = _drawn(runs, heading.lines, notes, width)
        before, notes = notes, _notes(runs, left_out, width)
        if notes == before:
            break
    return fig, _caption(runs)


def _notes(runs: Sequence[_Run], left_out: Sequence[str], width: float) -> list[str]:
    """Write the notes below the panels: ceilings whose names have no room, and devices without ceilings."""
    notes = [f"Without a label: {'; '.join(left_out)}."] if left_out else []
    bare = [_words.device(run.analysis) for run in runs if not run.lines.labels]
    notes += [f"No ceilings are known of {name}." for name in dict.fromkeys(bare) if name]
    room = width - 2 * _frame.EDGE
    return [line for text in notes for line in _measure.wrap(text, room, _measure.SMALL, 3)]


def _nothing(runs: Sequence[_Run]) -> str:
    """Say why there is nothing to draw, and how to mend it."""
    subject = _words.subject(runs[0].analysis)
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
    number: int, heading: int, below: float, limits: _roofs.Limits, rates: Rates, width: float, rated: bool
) -> _Grid:
    """Arrange panels, as high as the width asks for or as a page allows. heading: lines above.

    below: height that the axis, the key and the notes take [in]. rated: whether any panel has an axis of FLOP/s.
    """
    wide = width >= _frame.WIDE
    columns = 1 if number == 1 else (2 if number <= 4 else 3) if wide else (1 if number == 2 else 2)
    rows = -(-number // columns)
    left_edge = _frame.EDGE + 0.13 + _measure.widest(_frame.log_labels(limits.low, limits.high)) + 0.06
    right = 0.1 if rates is None else _measure.widest(_frame.log_labels(*rates)) + 0.23 + _frame.EDGE
    panel = (width - left_edge - right - (columns - 1) * _APART) / columns
    plot = panel if rates is None else panel - _STRIP - _BESIDE
    above = _measure.line(_measure.SMALL) + 0.02 if number > 1 else 0.0
    top = _frame.EDGE + _measure.line(_measure.TEXT) * heading + 0.03
    highest = (_frame.PAGE - top - below) / rows - above - _BELOW
    shape = (0.55 if wide else 0.75) if number == 1 else 1.0 if plot < _SMALL else 0.75
    shape = shape if rated else _FLAT
    high = max(0.5, min(plot * shape, highest))
    pitch = above + high + _BELOW
    return _Grid(columns, left_edge, top, plot, high, panel + _APART, pitch, above, top + rows * pitch - _BELOW)


def _drawn(
    runs: Sequence[_Run], heading: Sequence[str], notes: Sequence[str], width: float
) -> tuple[Figure, tuple[str, ...]]:
    """Draw the figure; return it and the ceilings whose names no panel had room for. notes: lines below the key."""
    bubbles = [
        (intensity, bubble.rate)
        for run in runs
        for bubble in run.points.bubbles
        for intensity in (bubble.intensity, bubble.compulsory)
        if intensity is not None
    ]
    rates = [rate for _, rate in bubbles] + [peak for run in runs for _, peak in run.lines.peaks]
    # The axes hold the intensity of every tick; a rate it has none.
    bubbles += [(tick.intensity, max(rates, default=_NO_LIMITS.low)) for run in runs for tick in run.points.ticks]
    limits = _roofs.limits([run.lines for run in runs], bubbles) or _NO_LIMITS
    scales = _Scales(limits, _rates(runs), max(run.points.longest for run in runs), LARGEST)
    keys = _frame.keys(_keys(runs, scales), width, 0.15)
    below = _frame.TICKS + _frame.LABEL + 0.03 + keys.height + _measure.line(_measure.SMALL) * len(notes)
    grid = _grid(len(runs), len(heading), below, limits, scales.rates, width, bool(rates))
    limits = limits.with_room_above([peak for run in runs for _, peak in run.lines.peaks], grid.high)
    grid = _grid(len(runs), len(heading), below, limits, scales.rates, width, bool(rates))
    scales = scales._replace(limits=limits)
    if (largest := LARGEST * min(1.0, max(0.3, grid.plot / 2.3))) < LARGEST:
        scales = scales._replace(largest=largest)
        keys = _frame.keys(_keys(runs, scales), width, 0.15)
    fig = _frame.blank(width, grid.bottom + below)
    _frame.write(fig, _frame.EDGE, _frame.EDGE, heading, _measure.TEXT)
    names = _measure.fit_apart([run.name for run in runs], grid.column_pitch - _APART)
    labelled: set[str] = set()
    unlabelled: dict[str, None] = {}
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        left_edge, top = grid.at(place)
        _frame.write(fig, left_edge, top - grid.above, [name] if grid.above else [], _measure.SMALL)
        axes = _frame.panel(fig, left_edge, top, grid.plot, grid.high)
        first, last = place % grid.columns == 0, place % grid.columns == grid.columns - 1 or place == len(runs) - 1
        _axes(axes, limits, grid, first and bool(rates), place + grid.columns >= len(runs))
        if not rates:
            axes.yaxis.set_visible(False)
            axes.spines["left"].set_visible(False)
        missing = _panel(axes, run, scales, bool(rates))
        labelled |= set(run.lines.labels) - set(missing)
        unlabelled |= dict.fromkeys(missing)
        if first and rates:
            _frame.upright(fig, _frame.EDGE, top, grid.high, ["FLOP/s"])
        if scales.rates is not None:
            strip_axes = _frame.panel(fig, left_edge + grid.plot + _BESIDE, top, _STRIP, grid.high)
            _strip(strip_axes, run, scales, grid.high, last)
            if last:
                x = left_edge + grid.column_pitch - _APART + _measure.widest(_frame.log_labels(*scales.rates)) + 0.1
                _frame.upright(fig, x, top, grid.high, ["byte/s of ops without FLOP", "byte/s, no FLOP", "byte/s"])
    under = grid.bottom + _frame.TICKS
    _frame.name_below(
        fig,
        grid.left + min(len(runs), grid.columns) * grid.column_pitch / 2,
        "intensity [FLOP/byte of main-memory traffic]",
        under,
    )
    _frame.draw_keys(fig, keys, under + _frame.LABEL + 0.03)
    _frame.write(fig, _frame.EDGE, under + _frame.LABEL + 0.03 + keys.height, notes, _measure.SMALL)
    return fig, tuple(text for text in unlabelled if text not in labelled)


def _rates(runs: Sequence[_Run]) -> Rates:
    """Fit the axis of byte/s to all ops without FLOP and the bandwidths; None where no run has such ops."""
    streams = [stream for run in runs for stream in run.points.streams]
    rates = [rate for stream in streams for rate in (stream.rate, stream.compulsory) if rate is not None]
    if not rates:
        return None
    rates += [rate for run in runs for _, rate in run.lines.slopes]
    return min(rates) / 2.5, max(rates) * 2.5


def _axes(axes: Axes, limits: _roofs.Limits, grid: _Grid, first: bool, lowest: bool) -> None:
    """Set limits and ticks; with numbers only at the left and the lower edge of the grid."""
    axes.set(xscale="log", yscale="log", xlim=limits[:2], ylim=limits[2:])
    _frame.logarithmic(axes.xaxis, grid.plot)
    _frame.logarithmic(axes.yaxis, grid.high, upright=True)
    axes.tick_params(which="minor", length=1.5, width=0.4)
    axes.tick_params(labelleft=first, labelbottom=lowest)


def _panel(axes: Axes, run: _Run, scales: _Scales, rated: bool) -> list[str]:
    """Draw ceilings, ops and names of one run; return the names for which there is no room."""
    board = _labels.Board(_labels.window(axes))
    _roofs.draw(axes, run.lines, scales.limits, _style.BLACK)
    _roofs.take(board, axes, run.lines, scales.limits)
    _shifts(
        axes,
        [
            (bubble.group, (bubble.compulsory, bubble.rate), (bubble.intensity, bubble.rate))
            for bubble in run.points.bubbles
            if bubble.compulsory is not None
        ],
    )
    centres = _labels.places(axes, [(bubble.intensity, bubble.rate) for bubble in run.points.bubbles])
    _mark(axes, run.points.bubbles, [(bubble.intensity, bubble.rate) for bubble in run.points.bubbles], scales)
    for bubble, (x, y) in zip(run.points.bubbles, centres, strict=True):
        half = (sqrt(scales.area(bubble.seconds)) + 0.7) / 2 / 72
        board.box(x - half, y - half, x + half, y + half)
    left_out = _roofs.label(board, axes, run.lines, scales.limits, _style.BLACK)
    _ticks(axes, run, scales.limits, _TICK if rated else _TICK_ALONE)
    if not run.points.bubbles and not run.points.ticks:
        ways = (_EMPTY, "no op of known FLOP", "nothing known")
        place = next((place_found for text in ways if (place_found := board.inside(text))), None)
        if place is not None:
            _labels.write(axes, place, (0.0, 0.0, 0.0))
    return left_out


def _mark(axes: Axes, points: Sequence[Bubble | Stream], at: Sequence[tuple[float, float]], scales: _Scales) -> None:
    """Draw markers at places of the axes; those of a group at once, which is many times as fast as one by one."""
    for group in GROUPS:
        points_of_group = [(point, place) for point, place in zip(points, at, strict=True) if point.group == group]
        if points_of_group:
            colour, marker = _style.GROUP[group]
            look: dict[str, Any] = {"facecolor": (*_style.pale(colour, 0.6), 0.75), "edgecolor": colour}
            xs, ys = zip(*(place for _, place in points_of_group), strict=True)
            areas = [scales.area(point.seconds) for point, _ in points_of_group]
            axes.scatter(xs, ys, s=areas, marker=marker, zorder=3, linewidth=0.7, **look)


def _shifts(axes: Axes, shifts: Sequence[tuple[Group, tuple[float, float], tuple[float, float]]]) -> None:
    """Draw a thin line from an op's place by compulsory traffic, marked with a dot, to that by counted traffic."""
    for group, start, end in shifts:
        colour = _style.pale(_style.GROUP[group][0], 0.45)
        axes.plot(*zip(start, end, strict=True), color=colour, linewidth=0.6, zorder=2.5)
        axes.plot(*start, color=colour, marker=".", markersize=2.5, markeredgewidth=0, zorder=2.5)


def _ticks(axes: Axes, run: _Run, limits: _roofs.Limits, share: float) -> None:
    """Draw a tick at the intensity of each op without a time; the more work, the thicker. share: of the axis."""
    most_work = max((tick.work for tick in run.points.ticks), default=0.0)
    top = limits.low * (limits.high / limits.low) ** share
    for tick in reversed(run.points.ticks):
        colour, marker = _style.GROUP[tick.group]
        line = max(_THINNEST, _THICKEST * tick.work / most_work)
        axes.plot(
            [tick.intensity] * 2, [limits.low, top], color=colour, linewidth=line, zorder=2.5, solid_capstyle="butt"
        )
        foot: dict[str, Any] = {"markerfacecolor": _style.pale(colour, 0.6), "markeredgewidth": 0.7, "markersize": 4}
        axes.plot([tick.intensity], [limits.low], color=colour, marker=marker, clip_on=False, zorder=3, **foot)


def _strip(axes: Axes, run: _Run, scales: _Scales, high: float, numbered: bool) -> None:
    """Draw ops without FLOP, by the bandwidth that they attain; the lines are those of the slopes."""
    axes.set(yscale="log", xlim=(0, 1), ylim=scales.rates, xticks=[])
    _frame.logarithmic(axes.yaxis, high, upright=True)
    axes.yaxis.tick_right()
    axes.spines["left"].set_visible(False)
    axes.spines["right"].set_visible(True)
    axes.tick_params(which="minor", length=1.5, width=0.4)
    axes.tick_params(labelright=numbered)
    for number, (_, rate) in enumerate(run.lines.slopes):
        axes.plot([0, 1], [rate, rate], color=_style.BLACK, linewidth=0.8 if number else 1.1, zorder=2)
    # Side by side where rates are alike: the golden section never comes near a place that it had.
    streams = run.points.streams
    across = [0.2 + 0.6 * (n * 0.618 % 1.0) for n in range(len(streams))]
    _shifts(
        axes,
        [
            (stream.group, (x, stream.compulsory), (x, stream.rate))
            for x, stream in zip(across, streams, strict=True)
            if stream.compulsory is not None
        ],
    )
    _mark(axes, streams, [(x, stream.rate) for x, stream in zip(across, streams, strict=True)], scales)


def _keys(runs: Sequence[_Run], scales: _Scales) -> list[_frame.Key]:
    """Make the key: groups by marker, and times by area."""
    present = {point.group for run in runs for point in run.points.all}
    keys = []
    for group in GROUPS:
        if group in present:
            colour, marker = _style.GROUP[group]
            look = {"markerfacecolor": _style.pale(colour, 0.6), "markeredgecolor": colour, "markersize": 5}
            keys.append(_frame.Key(group, {**look, "marker": marker, "markeredgewidth": 0.7}, "marker"))
    for seconds in _round_times(scales):
        look = {"markerfacecolor": "white", "markeredgecolor": "black", "markersize": sqrt(scales.area(seconds))}
        label = f"area: {units.seconds(seconds).replace('.00', '').replace('.0 ', ' ')}"
        keys.append(_frame.Key(label, {**look, "marker": "o", "markeredgewidth": 0.7}, "marker"))
    return keys


def _round_times(scales: _Scales) -> list[float]:
    """Choose a round time below the longest, and one tenth of it if that is above the least marker [s]."""
    if not scales.longest:
        return []
    decade = 10.0 ** floor(log10(scales.longest))
    first = max(m * decade for m in (1, 2, 5) if m * decade <= scales.longest * (1 + 1e-9))
    return [time for time in (first, first / 10) if scales.largest * time / scales.longest >= LEAST]


def _caption(runs: Sequence[_Run]) -> Caption:
    counted = any(
        point.compulsory is not None
        for run in runs
        for kind in (run.points.bubbles, run.points.streams)
        for point in kind
    )
    sentences = []
    if any(isinstance(run.analysis, Analysis) for run in runs):
        sentences.append(
            "Each marker is all ops with one signature: FLOP (matrix and vector) per byte of "
            f"{'main-memory' if counted else 'compulsory'} traffic, and FLOP/s in their own time, which is its area."
        )
    if any(run.points.ticks for run in runs):
        sentences.append(
            "Each tick is all ops with one signature that were counted and not timed, at their FLOP (matrix and "
            "vector) per byte of compulsory traffic; a thicker tick is more FLOP. How fast they run is not known."
        )
    if any(run.lines.labels for run in runs):
        sentences.append("Lines are the ceilings of the device, white marks the ridge points.")
    if any(run.points.streams for run in runs):
        sentences.append("Next to the panel: ops without FLOP, by their byte/s.")
    if counted:
        sentences.append(
            "Where hardware counted traffic, that is used; a line leads there from the place by compulsory traffic."
        )
    explanation = " ".join(sentences)
    short, long = [explanation], [explanation]
    for run in runs:
        analysis = run.analysis
        of = f"{_words.subject(analysis)}, {run.name}" if run.name else _words.subject(analysis)
        long.append(f"{of}: {_words.provenance(analysis)}")
        if not isinstance(analysis, Analysis):
            short.append(f"{of}: counted and not timed.")
            continue
        short.append(f"{of} on {_words.device(analysis)}: {units.seconds(analysis.wall)} per step.")
        if run.points.bubbles:
            first = run.points.bubbles[0]
            long.append(f"The largest marker is {_words.plain(first.name)}, {units.seconds(first.seconds)} per step.")
        if run.points.absent > 0.0005:
            missing = (
                f"{units.percent(run.points.absent)} of its busy time is in ops of unknown work, which are not shown."
            )
            short.append(missing)
            long.append(missing)
        if analysis.above_ceiling:
            long.append(
                f"{analysis.above_ceiling} ops ran faster than their minimum time: a defect of count or ceiling."
            )
    return Caption("Roofline", " ".join(short), " ".join(long))
