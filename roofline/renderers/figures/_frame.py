"""Lay out the sheet of a figure: panels at given places [in], headings, the key, and axes that fit their room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.content import signed, wording
from roofline.errors import InputError
from roofline.renderers.figures import _measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Left free at the edges of a figure, and a page's height [in].
EDGE, PAGE = 0.04, 9.0
#: What tick labels take below an axis, and an axis' name below them [in].
TICKS, LABEL = 0.16, 0.14
#: A pixel of a saved figure [in]: what is thinner has no entry in the key.
PIXEL = 1 / 300
#: The size of the sentence above a figure [pt], and the colour of what stands below it.
TITLE, FAINT = 8.0, "#595959"
#: From this width on a figure has room for two columns of a paper [in].
WIDE = 5.0

#: How far the label of a tick may reach beyond the end of a linear axis and of a logarithmic one [in].
_BEYOND, _BEYOND_LOG = 0.13, 0.05

_SYMBOL, _PAD, _APART, _ROW = 0.15, 0.05, 0.12, 0.128


def blank(width: float, height: float) -> Figure:
    """Make an empty figure [in]. InputError for one that is higher than a page."""
    if height > PAGE:
        raise InputError(f"These do not fit on a page {PAGE:g} in high: draw fewer of them in one figure.")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height))
    FigureCanvasAgg(figure)
    return figure


def panel(figure: Figure, left_edge: float, top: float, width: float, height: float) -> Axes:
    """Put axes at a place of the figure, from its upper left corner [in]."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left_edge / wide, 1 - (top + height) / high, width / wide, height / high))


def bars(figure: Figure, left_edge: float, top: float, width: float, height: float) -> Axes:
    """Put axes for horizontal bars, whose heights are inches from the top."""
    axes = panel(figure, left_edge, top, width, height)
    axes.set(ylim=(height, 0), yticks=[])
    axes.tick_params(axis="y", length=0, pad=2.5)
    axes.spines["left"].set_visible(False)
    return axes


def write(figure: Figure, left_edge: float, top: float, lines: Sequence[str], size: float, **look: Any) -> None:
    """Write lines of text, the first with its upper edge at `top` [in from the upper left corner]."""
    high = figure.get_figheight()
    for number, line in enumerate(lines):
        at = (left_edge, high - top - number * _measure.line(size))
        figure.text(*at, line, va="top", size=size, transform=figure.dpi_scale_trans, **look)


def name_below(figure: Figure, middle: float, text: str, top: float) -> None:
    """Name a horizontal axis [in from the left and the top]: in its middle, or as near as the edges allow."""
    wide = figure.get_figwidth()
    text = _measure.fit(text, wide - 2 * EDGE)
    half = _measure.width(text, _measure.TEXT) / 2
    middle = min(max(middle, EDGE + half), wide - EDGE - half)
    write(figure, middle, top, [text], _measure.TEXT, ha="center")


def upright(figure: Figure, x: float, top: float, high: float, texts: Sequence[str]) -> None:
    """Name a vertical axis, turned, with the first of several texts that is not longer than the axis."""
    text = _measure.first_that_fits(texts, high, _measure.TEXT)
    look: dict[str, Any] = {"rotation": 90, "ha": "left", "va": "center", "size": _measure.TEXT}
    figure.text(x, figure.get_figheight() - top - high / 2, text, transform=figure.dpi_scale_trans, **look)


# ----------------------------------------------------------------------------------------------------------- headings


class Heading(NamedTuple):
    """Hold what stands above a figure: a sentence, what all runs have in common, and the name of each beside them."""

    title: tuple[str, ...]
    lines: tuple[str, ...]
    rows: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        """Return how high it is [in]."""
        return _measure.line(TITLE) * len(self.title) + _measure.line(_measure.TEXT) * len(self.lines)

    def draw(self, figure: Figure, top: float = EDGE) -> None:
        """Write it, with its upper edge at `top` [in]."""
        write(figure, EDGE, top, self.title, TITLE)
        below = top + _measure.line(TITLE) * len(self.title)
        write(figure, EDGE, below, self.lines, _measure.TEXT, color=FAINT)


def heading(
    runs: Sequence[WorkAnalysis], names: Sequence[str], width: float, sentence: str, basis: str = ""
) -> Heading:
    """Write model and device in the heading where all runs share them, else in the name of each run.

    names: of `called`. width: of the figure [in]. sentence: what the figure shows, after the common subject. basis:
    what its numbers are of, below the device.
    """
    subjects = [wording.subject(run) for run in runs]
    # A name that tells the threads of a run need not be told them again with its device.
    on = [_untold(wording.device(run), name) for run, name in zip(runs, names, strict=True)]
    rows = []
    for subject, name, device in zip(subjects, names, on, strict=True):
        parts = [subject] if len(set(subjects)) > 1 else []
        parts.append(wording.plain(name))
        if len(set(on)) > 1 and device and device not in parts[-1]:
            parts.append(device)
        rows.append(", ".join(parts))
    common = [on[0]] if len(set(on)) == 1 and on[0] else []
    if len(runs) == 1:
        common, rows = [" on ".join([rows[0], *common])], [""]
    room = width - 2 * EDGE
    sentence = f"t{sentence[1:]}" if sentence.startswith("These ") else sentence
    title = f"{_subject(runs[0])}: {sentence}" if len(set(subjects)) == 1 else f"{sentence[:1].upper()}{sentence[1:]}"
    lines = [_measure.fit(line, room) for line in common]
    lines += _measure.wrap(f"{basis[:1].upper()}{basis[1:]}", room) if basis else []
    return Heading(tuple(_measure.wrap(title, room, TITLE, 3)), tuple(lines), tuple(rows))


def _untold(device: str, name: str) -> str:
    """Return a device without the part that the name of its run has in brackets: "AMD EPYC" of "torch (1 thread)"."""
    head, _, part = device.rpartition(", ")
    return head if head and f"({part})" in name else device


def _subject(run: WorkAnalysis) -> str:
    """Say what was run: "bert inference, batch 1 x 128 tokens"."""
    model, mode, lengths = wording.subject_parts(run.profile)
    return ", ".join(filter(None, (f"{model} {mode}", lengths)))


# ------------------------------------------------------------------------------------------------------------ the key


class Key(NamedTuple):
    """An entry of the key: its label, its look, and its shape: a filled box, a line or a marker."""

    label: str
    look: dict[str, Any]
    shape: Literal["box", "line", "marker"] = "box"


class Keys(NamedTuple):
    """The key, arranged: entries with the places of their symbols [in from its upper left corner], and its height."""

    placed: tuple[tuple[Key, float, float], ...]
    height: float


def keys(entries: Sequence[Key], width: float, row: float = _ROW) -> Keys:
    """Arrange a key in as many columns as fit a figure of `width` [in], filled row by row.

    Where no two columns fit, entries stand one behind the other; one that is too long is broken into two lines.
    """
    room, symbol_width = width - 2 * EDGE, _SYMBOL + _PAD
    entries = [key._replace(label=_measure.level(key.label)) for key in entries]
    wide = [symbol_width + _measure.width(key.label) for key in entries]
    for columns in range(min(len(entries), 6), 1, -1):
        of_columns = [max(wide[n::columns]) for n in range(columns)]
        if sum(of_columns) + _APART * (columns - 1) <= room:
            lefts = [sum(of_columns[:n]) + _APART * n for n in range(columns)]
            placed = [(key, lefts[n % columns], (n // columns + 0.5) * row) for n, key in enumerate(entries)]
            return Keys(tuple(placed), row * -(-len(entries) // columns) + EDGE)
    placed, left_edge, height = [], 0.0, 0.0
    for key, needed in zip(entries, wide, strict=True):
        if left_edge and left_edge + needed > room:
            left_edge, height = 0.0, height + row
        lines = _measure.wrap(key.label, room - symbol_width, _measure.SMALL)
        high = row + (len(lines) - 1) * _measure.line(_measure.SMALL)
        placed.append((key._replace(label="\n".join(lines)), left_edge, height + high / 2))
        height += high - row
        left_edge += needed + _APART
    return Keys(tuple(placed), height + row * bool(entries) + EDGE)


def draw_keys(figure: Figure, arranged: Keys, top: float) -> None:
    """Draw a key below `top` [in from the upper edge]."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    high, inches = figure.get_figheight(), figure.dpi_scale_trans
    for key, left_edge, middle in arranged.placed:
        x, y = EDGE + left_edge, high - top - middle
        if key.shape == "box":
            figure.add_artist(Rectangle((x, y - 0.036), _SYMBOL, 0.072, transform=inches, **key.look))
        elif key.shape == "line":
            xs = [x - 0.01, x + _SYMBOL / 2, x + _SYMBOL + 0.01]
            figure.add_artist(Line2D(xs, [y] * 3, markevery=[1], transform=inches, **key.look))
        else:
            figure.add_artist(Line2D([x + _SYMBOL / 2], [y], linestyle="", transform=inches, **key.look))
        figure.text(x + _SYMBOL + _PAD, y, key.label, va="center", size=_measure.SMALL, transform=inches)


# --------------------------------------------------------------------------------------------------------------- axes


class Unit(NamedTuple):
    """A unit of time: its name, and the seconds that times in it are divided by."""

    seconds: float
    name: str


def unit(longest: float) -> Unit:
    """Choose the unit of an axis that goes up to a time [s]."""
    scale = signed.scale([longest])
    return Unit(scale.factor, scale.unit)


def reach(low: float, ends: Sequence[float], texts: Sequence[str], room: float, pad: float = 0.05) -> float:
    """Return the end of an axis from `low` that has room for a text behind each of some bars.

    ends: of the bars; room: of the axis [in]; pad: between a bar and its text [in].
    """
    scales = [
        (room - pad - _measure.width(text)) / (end - low)
        for end, text in zip(ends, texts, strict=True)
        if end > low
    ]  # fmt: skip
    per = min(scales, default=0.0)
    longest = max((end - low for end in ends), default=0.0)
    # Texts that leave no room for bars: these get a third of it.
    per = max(per, room / (3 * longest)) if longest > 0 else 1.0
    return low + room / per


def linear(axis: Axis, room: float, max_ticks: int = 8) -> None:
    """Set ticks of a linear axis of `room` [in] whose labels stand apart; never an offset or an exponent beside it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    low, high = sorted(axis.get_view_interval())
    for number in range(max_ticks, 0, -1):
        at = [float(v) for v in MaxNLocator(number, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)]
        at = [v for v in at if low - 1e-9 * (high - low) <= v <= high + 1e-9 * (high - low)]
        labels = plain_numbers(at)
        inside = [
            abs((v - low) / (high - low) - 0.5) * room + _measure.width(text) / 2
            for v, text in zip(at, labels, strict=True)
        ]
        inside_numbers = [n for n, reach in enumerate(inside) if reach <= room / 2 + _BEYOND]
        at, labels = [at[n] for n in inside_numbers], [labels[n] for n in inside_numbers]
        if len(at) < 2 or _measure.widest(labels) + 0.08 <= room * (at[1] - at[0]) / (high - low):
            break
    texts = dict(zip(at, labels, strict=True))
    axis.set_major_locator(FixedLocator(at))
    axis.set_major_formatter(FuncFormatter(lambda value, _: texts.get(value, "")))


def plain_numbers(values: Sequence[float]) -> list[str]:
    """Write numbers with as many decimals as tell neighbours apart."""
    step = min((b - a for a, b in pairwise(values)), default=max(map(abs, values), default=1.0))
    decimals = max(0, -floor(log10(step) + 1e-9)) if step > 0 else 0
    if step > 0 and round(step * 10**decimals, 6) != round(step * 10**decimals):
        decimals += 1
    return [signed.printed(f"{v:.{decimals}f}") if round(v, decimals) else "0" for v in values]


def log_labels(low: float, high: float) -> list[str]:
    """List labels as wide as any on a logarithmic axis."""
    return [units.tick(m * 10.0**n) for n in range(floor(log10(low)), floor(log10(high)) + 1) for m in (1, 2)]


def logarithmic(axis: Axis, room: float, upright: bool = False) -> None:
    """Set ticks of a logarithmic axis: decades or, where there are fewer than two, some between.

    room: of the axis [in]; upright: it is the vertical one, on which labels need height and no width.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = [float(10.0**n) for n in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
    if len(decades) < 2:
        first = floor(log10(low))
        fine = [m * 10.0**n for n in range(first, ceil(log10(high)) + 1) for m in (1, 2, 5)]
        decades = [v for v in fine if low <= v <= high]
    decades = [v for v in decades if _has_room(log10(v / low) / log10(high / low) * room, units.tick(v), room, upright)]
    for stride in range(1, len(decades) + 1):
        at = decades[::stride]
        needs = _measure.line(_measure.SMALL) if upright else _measure.widest([units.tick(v) for v in at]) + 0.08
        if len(at) < 2 or needs <= room * log10(at[1] / at[0]) / log10(high / low):
            break
    axis.set_major_locator(FixedLocator(at if decades else []))
    axis.set_major_formatter(FuncFormatter(lambda value, _: units.tick(value)))
    # Two ticks between decades show that they are logarithmic; eight are most of what a figure weighs.
    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_minor_formatter(NullFormatter())


def _has_room(at: float, text: str, room: float, upright: bool) -> bool:
    """Return whether the label of a tick stays near enough to its axis to meet none of the panels beside it."""
    if upright:  # above the axis a heading may begin
        return at <= room - 0.02
    half = _measure.width(text) / 2
    return at - half >= -_BEYOND_LOG and at + half <= room + _BEYOND_LOG
