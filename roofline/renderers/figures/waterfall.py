"""Draw the way from one step's time to another's: the seconds that each row of their account adds or saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roofline.analysis.analysis import Analysis
from roofline.analysis.run_names import called
from roofline.comparison.account.account import account
from roofline.comparison.ranking import RankedPair
from roofline.comparison.terms import compare
from roofline.content import signed, titles, wording
from roofline.content.comparison import account_rows, broken_down, comparing, parity_words, waterfall
from roofline.content.comparison.against import source
from roofline.content.comparison.waterfall import Part, Waterfall
from roofline.errors import InputError
from roofline.renderers.figures import _frame, _measure, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A row and its bar [in].
_ROW, _BAR = 0.175, 0.115


def figure(items: Sequence[Analysis], width: float) -> tuple[Figure, Caption]:
    """Draw horizontal bars from the wall of one run, above, to that of the other, below, with 95 % intervals."""
    if len(items) != 2:
        raise InputError(f"A waterfall needs two profiles, and {len(items)} are given: give two.")
    first, second = called(item.profile for item in items)
    comparison = compare(items[0].profile, items[1].profile, (first, second))
    names = wording.plain(first, 60), wording.plain(second, 60)
    pair = RankedPair((first, second), comparison, account(comparison, names))
    heading = _frame.heading((comparison.a, comparison.b), names, width, *_sentence(pair))
    chart = waterfall.waterfall(pair)
    return _drawn(pair, chart, heading, width), _caption(pair, chart, heading.title)


def _sentence(pair: RankedPair) -> tuple[str, str]:
    """Say who takes longer, as the headline does, and what its times are of; of other work only the times."""
    runs = pair.comparison.a, pair.comparison.b
    if pair.comparison.parity.is_other_work:
        return titles.times(runs, pair.names), ""
    of = source(*runs, pair.headline)
    return pair.headline.opening, f"bars are of the profiled process, the sentence above of {of}" if of else ""


def _drawn(pair: RankedPair, chart: Waterfall, heading: _frame.Heading, width: float) -> Figure:
    parts, low = chart.parts, chart.low
    refused = pair.comparison.parity.verdict == "not comparable"
    refusals = ", ".join(wording.plain(difference.what, 60) for difference in pair.comparison.parity.of("refused"))
    warning = _measure.wrap(f"NOT COMPARABLE: {refusals}", width - 0.4, _measure.SMALL, 3) if refused else []
    name_room = 0.42 * width
    first, last = (heading.rows[side] for side in chart.sides)
    named = [first, *(_shortened(part.label, name_room) for part in parts[1:-1]), last]
    names = _measure.fit_apart(named, name_room)
    left_edge, right = _measure.widest(names) + 0.09, 0.1
    room = width - left_edge - right
    unit = _frame.unit(max(part.reach[1] for part in parts))
    keys = _frame.keys(_keys(parts), width)
    begins = _frame.EDGE + _measure.line(_measure.SMALL) * len(warning)
    top = begins + heading.height + 0.02
    high = _ROW * len(parts)
    fig = _frame.blank(width, top + high + _frame.TICKS + _frame.LABEL + 0.02 + keys.height)
    _frame.write(fig, _frame.EDGE, _frame.EDGE, warning, _measure.SMALL, weight="bold")
    heading.draw(fig, begins)
    axes = _frame.bars(fig, left_edge, top, room, high)
    end = _frame.reach(low, [part.reach[1] for part in parts], [signed.printed(part.text) for part in parts], room)
    for number, part in enumerate(parts):
        _draw(axes, part, (number + 0.5) * _ROW, max(low, part.begin), unit.seconds)
        if number + 1 < len(parts):  # from the end of each bar to the beginning of the next
            joined = [(number + 0.5) * _ROW - _BAR / 2, (number + 1.5) * _ROW + _BAR / 2]
            axes.plot([part.end / unit.seconds] * 2, joined, color="#404040", linewidth=0.5, zorder=3)
    axes.set_yticks([(number + 0.5) * _ROW for number in range(len(parts))], names, size=_measure.SMALL)
    axes.set_xlim(low / unit.seconds, end / unit.seconds)
    _frame.linear(axes.xaxis, room)
    if chart.is_broken:
        for middle in (0.5 * _ROW, (len(parts) - 0.5) * _ROW):
            _break(fig, left_edge, top + middle, _BAR)
        _break(fig, left_edge, top + high, 0.06)
    below = top + high + _frame.TICKS
    axis_name = f"time of one step [{unit.name}]{', not from 0' if chart.is_broken else ''}"
    _frame.name_below(fig, left_edge + room / 2, axis_name, below)
    _frame.draw_keys(fig, keys, below + _frame.LABEL + 0.02)
    return fig


def _shortened(name: str, inches: float) -> str:
    """Shorten the name of a row: it loses of its block, not of its phase."""
    block, comma, phase = name.rpartition(", ")
    if not comma or _measure.width(name) <= inches:
        return name
    return _measure.fit(block, max(0.3, inches - _measure.width(comma + phase)), _measure.SMALL) + comma + phase


def _look(part: Part) -> dict[str, Any]:
    """Fill what is added with a hatch too, so that a grey print tells it apart. What both spend has no width."""
    if part.is_gap:
        return _style.GAP
    hatch = {"edgecolor": "white", "hatch": "/////"} if part.look == "adds" else {}
    return {"facecolor": _style.SIDE.get(part.look, "none"), "linewidth": 0.0, **hatch}


def _keys(parts: Sequence[Part]) -> list[_frame.Key]:
    looks = {("gap" if part.is_gap else part.look): _look(part) for part in parts}
    first, last = parts[0].label, parts[-1].label
    names = {"saves": f"{first} spends more", "adds": f"{last} spends more", "gap": "no op runs"}
    entries = [_frame.Key(name, looks[look]) for look, name in names.items() if look in looks]
    with_interval = any(part.ci95 is not None for part in parts)
    return entries + [_frame.Key("95 % interval", _style.WHISKER, "line")] * with_interval


def _draw(axes: Axes, part: Part, middle: float, begin: float, unit: float) -> None:
    """Draw one bar with its whisker and the text behind it."""
    axes.barh(middle, (part.end - begin) / unit, left=begin / unit, height=_BAR, **_look(part))
    if part.ci95 is not None:
        ends = [end / unit for end in part.ci95]
        look = {**_style.WHISKER, "zorder": 4}
        axes.plot(ends, [middle] * 2, **look)
        for end in ends:
            axes.plot([end] * 2, [middle - 0.025, middle + 0.025], **look)
    text_style: dict[str, Any] = {"textcoords": "offset points", "ha": "left", "va": "center", "size": _measure.SMALL}
    axes.annotate(signed.printed(part.text), (part.reach[1] / unit, middle), (3, 0), **text_style)


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


def _caption(pair: RankedPair, chart: Waterfall, title: Sequence[str]) -> Caption:
    compared = pair.comparison
    warning, names = comparing.warning(pair), [comparing.name(pair, side) for side in (0, 1)]
    first, last = (names[side] for side in chart.sides)
    explanation = (
        f"From the step of {first} to that of {last}. Bars are the rows of their account, which add up: "
        f"+ is time that {last} takes more, − time that it takes less; whiskers are 95 % intervals."
    )
    short = [part for part in (warning, explanation, comparing.verdict(pair)) if part]
    long = [
        *short,
        *(
            f"{number}: {account_rows.said(row)}"
            for number, row in enumerate(account_rows.rows(pair)[: account_rows.MANY], 1)
        ),
    ]
    long += [words for words in (broken_down.hardware(pair), comparing.communication(pair)) if words]
    long.append(f"Parity: {parity_words.judged(compared.parity)}.")
    long += [wording.plain(difference.text, 300) for difference in compared.parity.of("named")]
    for side, run in enumerate((compared.a, compared.b)):
        long.append(f"{names[side]}: {wording.subject(run)}; {wording.provenance(run)}")
    short.append(f"{comparing.subject((compared.a, compared.b))}.")
    return Caption(" ".join(title), " ".join(short), " ".join(long))
