"""From one step's time to another's: what each part of the model adds or saves, then the gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.comparison.breakdown.breakdown import breakdown
from roofline.comparison.labels import called
from roofline.comparison.ranking import RankedPair, check_timed
from roofline.comparison.terms import Comparison, compare
from roofline.errors import InputError
from roofline.renderers import _words
from roofline.renderers._signed import rounding, snapped
from roofline.renderers.comparison import _broken_down, _comparing, _term_table
from roofline.renderers.comparison._term_table import Row
from roofline.renderers.figures import _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Where the steps between the two walls take less than this share of them, the axis does not begin at 0.
_CUT = 0.35

#: Rows of places: the axis holds no more that could be seen.
_MOST = 9

_WALL: dict[str, Any] = {"facecolor": "#404040", "linewidth": 0.0}
#: A spends more: B is faster by it. B spends more: hatched, so that a grey print tells them apart.
_LESS: dict[str, Any] = {"facecolor": _style.BLUE, "linewidth": 0.0}
_MORE: dict[str, Any] = {"facecolor": _style.ORANGE, "edgecolor": "white", "hatch": "/////", "linewidth": 0.0}


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, str]:
    """Horizontal bars from the wall of A, above, to the wall of B, below, with 95 % intervals."""
    from matplotlib.patches import Patch

    if len(items) != 2:
        raise InputError(f"A waterfall leads from one profile to another: give two, not {len(items)}.")
    for number, item in enumerate(items, 1):
        check_timed(item.profile, f"Profile {number}, {_words.plain(item.profile.backend, 60)},")
    first, second = called(item.profile for item in items)
    found = compare(items[0].profile, items[1].profile, (first, second))
    shown = breakdown(found)
    pair = RankedPair((first, second), found, findings=(), breakdown=shown)
    table = _term_table.table(found, _MOST) if shown is None else _broken_down.table(pair, shown, _MOST)
    narrow = width < 5
    lines = 2 + len(table.rows)
    refused = found.parity.verdict == "not comparable"
    fig = _style.canvas(width, (0.95 if narrow else 0.8) + 0.19 * (lines + refused))
    axes = fig.subplots()
    if refused:
        what = ", ".join(_words.plain(one.what, 60) for one in found.parity.of("refused"))
        told = f"NOT COMPARABLE: {what}"
        fig.suptitle(_style.fit(told, width - 0.2, _style.SMALL), x=0.01, ha="left", size=_style.SMALL, weight="bold")
    walls = [found.a.wall, *(found.a.wall - sum(row.seconds for row in table.rows[:n]) for n in range(1, lines - 1))]
    low, high = _limits(found, table.rows, walls)
    for place, wall in ((0, found.a.wall), (lines - 1, found.b.wall)):
        axes.barh(place, (wall - low) * 1e3, left=low * 1e3, height=0.66, **_WALL)
        _write(axes, units.seconds(wall), wall, place)
    for place, row in enumerate(table.rows, 1):
        _step(axes, row, walls[place - 1], place, gap=place > len(table.places))
    for place in range(lines - 1):  # from the end of each bar to the beginning of the next
        at = walls[place] * 1e3
        axes.plot([at, at], [place - 0.33, place + 1.33], color="#404040", linewidth=0.5, zorder=3)
    room = (1.5 if narrow else 2.4, 0.5)
    labels = [_comparing.name(pair, 0), *(row.label for row in table.rows), _comparing.name(pair, 1)]
    axes.set_yticks(range(lines), [_style.fit(label, room[0], _style.SMALL) for label in labels], size=_style.SMALL)
    axes.tick_params(axis="y", length=0)
    span = high - low
    beside = span * room[1] / max(0.5, width - sum(room))
    cut = "" if low == 0 else " (the axis does not begin at 0)"
    axes.set(xlim=(low * 1e3, (high + beside) * 1e3), ylim=(lines - 0.4, -0.6), xlabel=f"time of one step [ms]{cut}")
    keys = [(f"{first} spends more", Patch(**_LESS)), (f"{second} spends more", Patch(**_MORE))]
    keys.append((_term_table.gap_name(found), Patch(**_style.GAP)))
    _style.keys(fig, [patch for _, patch in keys], [label for label, _ in keys], 1 if narrow else 3)
    return fig, _caption(pair, table)


def _limits(found: Comparison, rows: Sequence[Row], walls: Sequence[float]) -> tuple[float, float]:
    """The ends of the axis [s]: from 0, or nearer where the steps would be too small to be seen."""
    ends = [*walls, found.a.wall, found.b.wall]
    for row, wall in zip(rows, walls, strict=False):
        if row.ci95 is not None:
            ends += [wall - row.ci95[0], wall - row.ci95[1]]
    low, high = min(ends), max(ends)
    if high - low >= _CUT * high or high - low < 1e-6 * high:
        return min(0.0, low), high
    return max(0.0, low - 0.25 * (high - low)) if low > 0 else low, high


def _step(axes: Axes, row: Row, wall: float, place: int, gap: bool) -> None:
    """One bar from `wall` on: to the left what B saves, to the right what it adds; its interval is a whisker."""
    end = wall - row.seconds
    look = dict(_style.GAP) if gap else dict(_LESS if row.seconds >= 0 else _MORE)
    axes.barh(place, -row.seconds * 1e3, left=wall * 1e3, height=0.66, **look)
    right = max(wall, end)
    if row.ci95 is not None:
        ends = sorted((wall - row.ci95[0], wall - row.ci95[1]))
        whisker: _style.Look = {"color": "black", "linewidth": 0.7, "zorder": 4}
        axes.plot([each * 1e3 for each in ends], [place, place], **whisker)
        for each in ends:
            axes.plot([each * 1e3] * 2, [place - 0.14, place + 0.14], **whisker)
        right = max(right, *ends)
    seconds = snapped(row.seconds)
    change = units.seconds(abs(seconds))
    _write(axes, f"{'−' if seconds > 0 else '+' if seconds < 0 else ''}{change}", right, place)


def _write(axes: Axes, text: str, at: float, place: int) -> None:
    axes.annotate(
        text, (at * 1e3, place), (3, 0), textcoords="offset points", ha="left", va="center", size=_style.SMALL
    )


def _rows(pair: RankedPair) -> str:
    """What the bars are."""
    divided = "adds (+) or saves (−), the time of fused kernels divided over what was fused,"
    if pair.breakdown is None:
        return f"what each part of the model {divided} (fwd, bwd, opt: forward, backward, optimizer)"
    return f"what each {pair.breakdown.by} of ops {divided}"


def _caption(pair: RankedPair, table: _term_table.Table) -> str:
    found = pair.comparison
    warning, names = _comparing.warning(pair), [_comparing.name(pair, side) for side in (0, 1)]
    told = [warning] if warning else []
    told.append(
        f"From the step of {names[0]} to that of {names[1]}: {_rows(pair)} and the gap. "
        f"Whiskers: 95 % intervals. Residual {rounding(table.residual)}."
    )
    told.append(_comparing.verdict(pair))
    if pair.breakdown is not None:
        told.append(f"{pair.breakdown.why}.")
    told += [words for words in (_broken_down.hardware(pair), _comparing.communication(pair)) if words]
    told.append(f"Parity: {_comparing.judged(found.parity)}.")
    told += [_words.plain(one.text, 300) for one in found.parity.of("named")]
    for side, run in enumerate((found.a, found.b)):
        told.append(f"{names[side]}: {_words.subject(run)}; {_words.provenance(run)}")
    return " ".join(told)
