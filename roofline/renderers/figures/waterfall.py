"""Draw the way from one step's time to another's: the seconds that each row of their account adds or saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.comparison.account.account import account
from roofline.comparison.account.row import Row
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import compare
from roofline.errors import InputError
from roofline.renderers import _words
from roofline.renderers._signed import snapped
from roofline.renderers.comparison import _account, _broken_down, _comparing, _parity
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Where the steps between the two walls take less than this share of them, the axis does not begin at 0.
_CUT = 0.35
#: Rows below this share of the axis share one.
_SMALL = 0.01
#: A row and its bar [in].
_ROW, _BAR = 0.175, 0.115

_WALL: dict[str, Any] = {"facecolor": "#404040", "linewidth": 0.0}
#: A spends more: B is faster by it. B spends more: hatched, so that a grey print tells them apart. What both spend has
#: no width.
_SAME: dict[str, Any] = {"linewidth": 0.0}
_LESS: dict[str, Any] = {"facecolor": _style.BLUE, "linewidth": 0.0}
_MORE: dict[str, Any] = {"facecolor": _style.ORANGE, "edgecolor": "white", "hatch": "/////", "linewidth": 0.0}


class _Step(NamedTuple):
    """A row of the figure [s]: its name, beginning and end of its bar, its look, its whisker, the text behind it."""

    name: str
    begin: float
    end: float
    look: dict[str, Any]
    whisker: tuple[float, float] | None
    text: str

    @property
    def right(self) -> float:
        return max(self.begin, self.end, *(self.whisker or ()))

    @property
    def left(self) -> float:
        return min(self.begin, self.end, *(self.whisker or ()))


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Draw horizontal bars from the wall of A, above, to the wall of B, below, with 95 % intervals."""
    if len(items) != 2:
        raise InputError(f"A waterfall needs two profiles, and {len(items)} are given: give two.")
    first, second = called(item.profile for item in items)
    comparison = compare(items[0].profile, items[1].profile, (first, second))
    names = _words.plain(first, 60), _words.plain(second, 60)
    pair = RankedPair((first, second), comparison, account(comparison, names))
    rows = _account.rows(pair)
    low, high = _limits(pair, rows)
    steps = _steps(pair, [row for row in rows[: _account.MANY] if abs(_account.seconds(row)) >= _SMALL * (high - low)])
    return _drawn(pair, steps, low, width), _caption(pair)


def _limits(pair: RankedPair, rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of the axis [s]: from 0, or nearer where the steps would be too small to be seen."""
    wall, ends = pair.comparison.a.wall, [pair.comparison.a.wall, pair.comparison.b.wall]
    for row in rows:
        ends += [wall - seconds for seconds in (_account.seconds(row), *(row.ci95 or ()))]
        wall -= _account.seconds(row)
    low, high = min(ends), max(ends)
    if high - low >= _CUT * high or high - low < 1e-6 * high:
        return min(0.0, low), high
    return max(0.0, low - 0.25 * (high - low)) if low > 0 else low, high


def _steps(pair: RankedPair, rows: Sequence[Row]) -> list[_Step]:
    """Return the wall of A, each row from where the one before it ended, the others in one, and the wall of B."""
    walls = pair.comparison.a.wall, pair.comparison.b.wall
    steps, wall = [_Step(_comparing.name(pair, 0), 0.0, walls[0], _WALL, None, units.seconds(walls[0]))], walls[0]
    for row, name in zip(rows, _account.labels(rows), strict=True):
        steps.append(_step(name, wall, _account.seconds(row), row.ci95, is_gap=row.kind == "gap"))
        wall -= _account.seconds(row)
    if smaller := _account.smaller(pair, rows):
        steps.append(_step(smaller, wall, _account.rest(pair, rows), None, is_gap=False))
    if len(steps) == 1:
        steps.append(_step("no row differs", wall, 0.0, None, is_gap=False))
    return [*steps, _Step(_comparing.name(pair, 1), 0.0, walls[1], _WALL, None, units.seconds(walls[1]))]


def _step(name: str, wall: float, seconds: float, ci95: tuple[float, float] | None, *, is_gap: bool) -> _Step:
    """Return the bar of some seconds that a step which ends at `wall` has more [s]."""
    seconds = snapped(seconds)
    look = _style.GAP if is_gap else _LESS if seconds > 0 else _MORE if seconds < 0 else _SAME
    ends = None if ci95 is None else (wall - ci95[1], wall - ci95[0])
    sign = "−" if seconds > 0 else "+" if seconds < 0 else ""
    return _Step(name, wall, wall - seconds, look, ends, f"{sign}{units.seconds(abs(seconds))}")


def _drawn(pair: RankedPair, steps: Sequence[_Step], low: float, width: float) -> Figure:
    refused = pair.comparison.parity.verdict == "not comparable"
    refusals = ", ".join(_words.plain(difference.what, 60) for difference in pair.comparison.parity.of("refused"))
    warning = _measure.wrap(f"NOT COMPARABLE: {refusals}", width - 0.4, _measure.SMALL, 3) if refused else []
    heading = _frame.heading((pair.comparison.a, pair.comparison.b), pair.names, width)
    name_room = 0.42 * width
    named = [heading.rows[0], *(_shortened(step.name, name_room) for step in steps[1:-1]), heading.rows[1]]
    names = _measure.fit_apart(named, name_room)
    left_edge, right = _measure.widest(names) + 0.09, 0.1
    room = width - left_edge - right
    longest = max(step.right for step in steps)
    unit = _frame.unit(longest)
    first, second = (_comparing.name(pair, side) for side in (0, 1))
    keys = _frame.keys(_keys(first, second, steps), width)
    begins = _frame.EDGE + _measure.line(_measure.SMALL) * len(warning)
    top = begins + _measure.line(_measure.TEXT) * len(heading.lines) + 0.02
    high = _ROW * len(steps)
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + keys.height)
    _frame.write(fig, _frame.EDGE, _frame.EDGE, warning, _measure.SMALL, weight="bold")
    _frame.write(fig, _frame.EDGE, begins, heading.lines, _measure.TEXT)
    axes = _frame.bars(fig, left_edge, top, room, high)
    end = _frame.reach(low, [step.right for step in steps], [step.text for step in steps], room)
    for number, step in enumerate(steps):
        _draw(axes, step, (number + 0.5) * _ROW, max(low, step.begin), unit.seconds)
        if number + 1 < len(steps):  # from the end of each bar to the beginning of the next
            joined = [(number + 0.5) * _ROW - _BAR / 2, (number + 1.5) * _ROW + _BAR / 2]
            axes.plot([step.end / unit.seconds] * 2, joined, color="#404040", linewidth=0.5, zorder=3)
    axes.set_yticks([(number + 0.5) * _ROW for number in range(len(steps))], names, size=_measure.SMALL)
    axes.set_xlim(low / unit.seconds, end / unit.seconds)
    _frame.linear(axes.xaxis, room)
    if low > 0:
        for middle in (0.5 * _ROW, (len(steps) - 0.5) * _ROW):
            _break(fig, left_edge, top + middle, _BAR)
        _break(fig, left_edge, top + high, 0.06)
    below = top + high + _frame.TICKS
    _frame.name_below(
        fig, left_edge + room / 2, f"time of one step [{unit.name}]{'' if low <= 0 else ', not from 0'}", below
    )
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.02)
    return fig


def _shortened(name: str, inches: float) -> str:
    """Shorten the name of a row: it loses of its block, not of its phase."""
    block, comma, phase = name.rpartition(", ")
    if not comma or _measure.width(name) <= inches:
        return name
    return _measure.fit(block, max(0.3, inches - _measure.width(comma + phase)), _measure.SMALL) + comma + phase


def _keys(first: str, second: str, steps: Sequence[_Step]) -> list[_frame.Key]:
    looks = {f"{first} spends more": _LESS, f"{second} spends more": _MORE, "no op runs": _style.GAP}
    return [_frame.Key(label, look) for label, look in looks.items() if any(step.look == look for step in steps)]


def _draw(axes: Axes, step: _Step, middle: float, begin: float, unit: float) -> None:
    """Draw one bar with its whisker and the text behind it."""
    axes.barh(middle, (step.end - begin) / unit, left=begin / unit, height=_BAR, **step.look)
    if step.whisker is not None:
        ends = [end / unit for end in step.whisker]
        look: dict[str, Any] = {"color": "black", "linewidth": 0.7, "zorder": 4}
        axes.plot(ends, [middle] * 2, **look)
        for end in ends:
            axes.plot([end] * 2, [middle - 0.025, middle + 0.025], **look)
    text_style: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "va": "center", "size": _measure.SMALL}
    axes.annotate(step.text, (step.right / unit, middle), (3, 0), **text_style)


def _break(figure: Figure, left_edge: float, middle: float, height: float) -> None:
    """Mark an axis that does not begin at 0: a white gap between two strokes through a bar or the axis [in]."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Polygon

    y, half = figure.get_figheight() - middle, height / 2 + 0.015
    x, lean, gap = left_edge + 0.05, 0.02, 0.025
    corners = [(x - lean, y - half), (x + lean, y + half), (x + lean + gap, y + half), (x - lean + gap, y - half)]
    inches: dict[str, Any] = {"transform": figure.dpi_scale_trans}
    figure.add_artist(Polygon(corners, facecolor="white", linewidth=0, zorder=5, **inches))
    for start, end in ((corners[0], corners[1]), (corners[3], corners[2])):
        xs, ys = zip(start, end, strict=True)
        figure.add_artist(Line2D(xs, ys, color="black", linewidth=0.6, zorder=6, **inches))


def _caption(pair: RankedPair) -> Caption:
    compared = pair.comparison
    warning, names = _comparing.warning(pair), [_comparing.name(pair, side) for side in (0, 1)]
    title = f"From the step of {names[0]} to that of {names[1]}"
    explanation = (
        f"Bars are the rows of the account as B − A, which add up: − is time that {names[1]} takes less, + time that "
        "it takes more; whiskers are 95 % intervals."
    )
    short = [part for part in (warning, explanation, _comparing.verdict(pair)) if part]
    long = [
        *short,
        *(f"{number}: {_account.said(row)}" for number, row in enumerate(_account.rows(pair)[: _account.MANY], 1)),
    ]
    long += [words for words in (_broken_down.hardware(pair), _comparing.communication(pair)) if words]
    long.append(f"Parity: {_parity.judged(compared.parity)}.")
    long += [_words.plain(difference.text, 300) for difference in compared.parity.of("named")]
    for side, run in enumerate((compared.a, compared.b)):
        long.append(f"{names[side]}: {_words.subject(run)}; {_words.provenance(run)}")
    short.append(f"{_comparing.subject((compared.a, compared.b))}.")
    return Caption(title, " ".join(short), " ".join(long))
