"""Draw the interactive roofline: every op under the roofs of the device; the page's script selects and highlights.

Ops without times are ticks at their intensity, which no script turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.content import wording
from roofline.content.facts import notes
from roofline.content.points import ALL, COLD, COLD_HIGH, COUNTED, MOST, Point, Points, points
from roofline.content.roofs import Peak, Roofs, Slope, roofs
from roofline.core.vocabulary import GROUPS, Group
from roofline.renderers.report.parts import labels, svg
from roofline.renderers.report.parts.html import Html, join, name, tag
from roofline.renderers.report.parts.run import Run, TimedRun, for_each_run, section
from roofline.renderers.report.points import columns_of, facts
from roofline.renderers.report.roofs import Axis, Plane, plane

#: Radius of the largest and of the smallest mark [px].
_LARGEST, _SMALLEST = 17.0, 2.5
#: Size of the plane that names are laid out for [px]; a telephone has less room and shows fewer.
_WIDTH, _HEIGHT = 860, 480
#: Of ticks: widths of those of most and of least work, radius of the mark at their foot [px]; where they begin and end,
#: as shares of the height from above, under ceilings and without any.
_THICKEST, _THINNEST, _FOOT = 5.0, 1.0, 4.0
_TICKS, _TICKS_ALONE = (0.82, 0.93), (0.15, 0.78)
_LEVELS = {
    ALL: "main memory: every byte once",
    COLD: "main memory: bytes that no cache held",
    COLD_HIGH: "main memory: most bytes that no cache held",
    COUNTED: "main memory: bytes that hardware counted",
}


def roofline(runs: Sequence[Run]) -> tuple[Html | None, list[dict[str, Any]]]:
    """Write the section and, for the script, the points of each run; none where no run has any op of known work."""
    points_of_runs = [points(run.analysis) for run in runs]
    script_data = [columns_of(run.analysis, plotted) for run, plotted in zip(runs, points_of_runs, strict=True)]
    if not any(plotted.all or plotted.ticks for plotted in points_of_runs):
        return None, script_data
    lines = [roofs(run.analysis.device, plotted.used) for run, plotted in zip(runs, points_of_runs, strict=True)]
    axes = plane(lines, points_of_runs)

    def build(run: Run) -> Html:
        return _run(run, points_of_runs[run.number], lines[run.number], axes)

    return section("roofline", "Roofline", for_each_run(runs, build)), script_data


def _run(run: Run, plotted: Points, lines: Roofs, axes: Plane) -> Html:
    if not isinstance(run, TimedRun):
        return _untimed(run, plotted, lines, axes)
    if not plotted.all:
        return tag("p", "There is no roofline: the work of no op is known.", class_="note")
    drawn = tag(
        "div",
        _plane(run, plotted, lines, axes),
        _strip(plotted, lines, axes) if plotted.flopless else None,
        class_="plot",
    )
    detail = tag("div", _first(run.analysis, plotted), class_="readout", aria_live="polite", id=f"{run.key}-point")
    parts = [
        _controls(run, plotted, lines),
        tag("div", drawn, detail, class_="plot-and-readout"),
        _explanation(run, plotted),
    ]
    return tag("div", parts, class_="roofline", data_roofline=run.number, **_scale(axes.x))


def _scale(axis: Axis) -> dict[str, str]:
    """Give the script the numbers to move points along the axis."""
    return {
        "data_low": repr(axis.low),
        "data_high": repr(axis.high),
        "data_near": repr(axis.near),
        "data_far": repr(axis.far),
    }


# ------------------------------------------------------------------------------------------------------- pictures


def _plane(run: Run, plotted: Points, lines: Roofs, axes: Plane) -> Html:
    longest = max(point.seconds for point in plotted.all)
    marks = [
        mark(point, axes.x.share(point.intensity[ALL] or axes.x.low), 1 - axes.y.share(point.rate), longest)
        for point in plotted.placed
    ]
    title = f"Roofline of {wording.subject(run.analysis)} on {wording.device(run.analysis)}"
    number = wording.counted(len(plotted.placed), "point")
    about = f"{number}; arrow keys go from op to op, the longest first; Enter finds it."
    grid, decades = _grid(axes)
    return tag(
        "svg",
        tag("title", title),
        grid,
        _ceilings(lines, axes),
        decades,
        tag("g", marks, class_="points"),
        tag("circle", class_="ring", r=12, cx="-10%", cy="-10%"),
        class_="plane",
        tabindex=0,
        role="application",
        aria_label=f"{title}. {about}",
    )


def _untimed(run: Run, plotted: Points, lines: Roofs, axes: Plane) -> Html:
    """Draw a tick at the intensity of each op, the thicker the more work, under the ceilings where they are known."""
    if not plotted.ticks:
        return tag("p", "There is no roofline: no op is known to do any FLOP.", class_="note")
    rated = bool(lines.slopes or lines.peaks)
    title = f"Intensity of the ops of {wording.subject(run.analysis)}, which have no times"
    grid, decades = _grid(axes, rated)
    picture = tag(
        "svg",
        tag("title", title),
        grid,
        _ceilings(lines, axes),
        decades,
        _ticks(plotted, axes, _TICKS if rated else _TICKS_ALONE),
        class_="plane" if rated else "plane flat",
        role="img",
        aria_label=title,
    )
    present = {tick.group for tick in plotted.ticks}
    legend = [tag("li", _sample(group), group) for group in GROUPS if group in present]
    sentences = [
        "Each tick stands at the FLOP (matrix and vector) per byte of compulsory traffic of all ops with one "
        "signature; the thicker it is, the more FLOP they do. They have no times, so how fast they run is not known. "
        "Ops without FLOP or of unknown work have no tick."
    ]
    if rated:
        sentences.append("Lines are the ceilings of the device.")
    elif device_name := wording.device(run.analysis):
        sentences.append(f"The ceilings of {device_name} are not known, so there are no lines.")
    if len(plotted.ticks) == MOST:
        sentences.append(f"Shown are the {units.count(MOST)} with the most FLOP.")
    note = tag("p", " ".join(sentences), class_="note")
    return tag("div", tag("ul", legend, class_="legend"), picture, note, class_="roofline")


def _ticks(plotted: Points, axes: Plane, ends: tuple[float, float]) -> Html:
    """Draw the ticks, the one of most work on top. ends: of each, as shares of the height from above."""
    top, foot = map(svg.percent, ends)
    most_work = max(tick.work for tick in plotted.ticks)
    drawn = []
    for tick in reversed(plotted.ticks):
        x = svg.percent(axes.x.share(tick.intensity))
        about = f"{wording.plain(tick.name, 200)}: {units.intensity(tick.intensity)}, {units.flop(tick.work)}"
        line = tag(
            "line",
            x1=x,
            x2=x,
            y1=top,
            y2=foot,
            stroke_width=round(max(_THINNEST, _THICKEST * tick.work / most_work), 2),
        )
        shape = tag("svg", tag("path", d=outline(tick.group, _FOOT)), x=x, y=foot, overflow="visible")
        drawn.append(tag("g", tag("title", about), line, shape, class_=f"point group-{tick.group}"))
    return tag("g", drawn, class_="ticks")


def _grid(axes: Plane, rated: bool = True) -> tuple[Html, Html]:
    """Draw decades, and name them inside the plane, so that no margin is lost. rated: whether its height is a rate."""
    lines, words = [], []
    for value in svg.decades(axes.x.value(0.0), axes.x.value(1.0)):
        at = axes.x.share(value)
        lines.append(tag("line", x1=svg.percent(at), x2=svg.percent(at), y1="0", y2="100%"))
        if 0.03 < at < 0.9:
            look = "small" if at < 0.7 else "small wide"
            words.append(tag("text", units.tick(value), x=svg.percent(at), y="100%", dy=-5, dx=3, class_=look))
    for value in svg.decades(axes.y.value(0.0), axes.y.value(1.0)) if rated else ():
        at = 1 - axes.y.share(value)
        lines.append(tag("line", x1="0", x2="100%", y1=svg.percent(at), y2=svg.percent(at)))
        if 0.06 < at < 0.94:
            rate = units.tick(value, "FLOP/s")
            words.append(tag("text", rate, x="0", y=svg.percent(at), dy=-3, dx=3, class_="small"))
    words.append(tag("text", "FLOP/byte", x="100%", y="100%", dy=-5, dx=-4, class_="small", text_anchor="end"))
    return tag("g", lines, class_="grid"), tag("g", words)


def _ceilings(lines: Roofs, axes: Plane) -> Html:
    """Draw the roofs: the name of a bandwidth where it touches no other, that of a peak below its line, if it would."""
    drawn, names_placed, last = [], labels.Taken(), -math.inf
    steepest = max((slope.rate for slope in lines.slopes), default=None)
    for line in lines.within(axes.x.value(0.0), axes.x.value(1.0), axes.y.value(0.0), axes.y.value(1.0)):
        (x1, y1), (x2, y2) = ((axes.x.share(x), 1 - axes.y.share(y)) for x, y in (line.start, line.end))
        place = {"x1": svg.percent(x1), "y1": svg.percent(y1), "x2": svg.percent(x2), "y2": svg.percent(y2)}
        stroke, words = tag("line", **place), line.text
        if isinstance(line.roof, Peak):
            base = y1 * _HEIGHT - 4
            if base - last < 14:
                base = max(y1 * _HEIGHT + 13, last + 14)
            last = base
            names_placed.first(words, [(_WIDTH - 4, base)])
            below = round(base - y1 * _HEIGHT)
            label = tag("text", words, text_anchor="end", x="100%", y=svg.percent(y1), dx=-4, dy=below)
            drawn.append(tag("g", stroke, label, class_="roof peak", data_precisions=" ".join(line.roof.precisions)))
            continue
        # No line crosses what is above the steepest one, nor what is above the highest peak.
        beside = [
            (_WIDTH * (x1 + part * (x2 - x1)) - 5, _HEIGHT * (y1 + part * (y2 - y1)) - 5)
            for part in (0.85, 0.7, 0.55, 0.4, 0.25)
        ]
        on_top = [(_WIDTH * x2 + aside, _HEIGHT * y2 - 4) for aside in (-4, 4 + labels.width(words))]
        at = names_placed.first(words, beside if line.roof.rate == steepest else [*on_top, *beside])
        written = None
        if at is not None:
            named = [line.roof.name, tag("tspan", words.removeprefix(line.roof.name), class_="wide")]
            x, y = svg.percent(at[0] / _WIDTH), svg.percent(at[1] / _HEIGHT)
            written = tag("text", named, x=x, y=y, text_anchor="end")
        levels = " ".join(line.roof.levels)
        drawn.append(tag("g", tag("title", words), stroke, written, class_=_look(line.roof), data_levels=levels))
    return join(drawn)


def _look(slope: Slope) -> str:
    """Style a bandwidth: main memory is chosen first."""
    return "roof slope" if ALL in slope.levels else "roof slope faint"


def mark(point: Point, x: float, y: float, longest: float) -> Html:
    """Draw a point: its shape and colour are its group's, its area is its time."""
    radius = max(_SMALLEST, _LARGEST * math.sqrt(point.seconds / longest)) if longest > 0 else _SMALLEST
    shape = tag("path", d=outline(point.group, radius))
    return tag(
        "svg", shape, x=svg.percent(x), y=svg.percent(y), class_=f"point group-{point.group}", overflow="visible"
    )


def outline(group: Group, r: float) -> str:
    """Trace a shape around 0, 0 with about the area of a circle: groups differ without their colours."""
    a = round(r, 1)
    if group == "matmul":
        return f"M{-a} 0a{a} {a} 0 1 0 {2 * a:.1f} 0a{a} {a} 0 1 0 {-2 * a:.1f} 0z"
    s = round(r * 0.886, 1)  # half the side of a square of that area
    if group == "normalisation":
        return f"M{-s} {-s}h{2 * s:.1f}v{2 * s:.1f}h{-2 * s:.1f}z"
    t = round(r * 1.35, 1)
    if group == "pointwise":
        return f"M0 {-t * 0.95:.1f}L{t} {t * 0.75:.1f}H{-t}z"
    d = round(r * 1.25, 1)
    if group == "optimizer":
        return f"M0 {-d}L{d} 0L0 {d}L{-d} 0z"
    if group == "communication":
        return f"M0 {t * 0.95:.1f}L{t} {-t * 0.75:.1f}H{-t}z"
    if group == "transfer":
        return f"M{t * 0.95:.1f} 0L{-t * 0.75:.1f} {t}V{-t}z"
    c = round(r * 0.4, 1)
    e = round(r * 1.2, 1)
    return f"M{-c} {-e}H{c}V{-c}H{e}V{c}H{c}V{e}H{-c}V{c}H{-e}V{-c}H{-c}z"


def _strip(plotted: Points, lines: Roofs, axes: Plane) -> Html:
    """Draw ops without FLOP, which have no place in the plane, by their bandwidth."""
    longest = max(point.seconds for point in plotted.all)
    drawn_roofs, names_placed = [], labels.Taken()
    for slope in lines.slopes:
        share = axes.bandwidth.share(slope.rate)
        at = names_placed.first(slope.name, ((_WIDTH * share - 4, top) for top in (12, 26)))
        words = tag("text", slope.name, x=svg.percent(share), y=at[1], dx=-4, text_anchor="end") if at else None
        line = tag("line", x1=svg.percent(share), x2=svg.percent(share), y1="0", y2="100%")
        about = tag("title", f"{slope.name} {units.byte_rate(slope.rate)}")
        drawn_roofs.append(tag("g", about, line, words, class_=_look(slope), data_levels=" ".join(slope.levels)))
    marks = [
        mark(point, axes.bandwidth.share(max(point.traffic, axes.bandwidth.low)), 0.5, longest)
        for point in plotted.flopless
    ]
    grid = []
    for number, value in enumerate(svg.decades(axes.bandwidth.value(0.0), axes.bandwidth.value(1.0))):
        share = axes.bandwidth.share(value)
        where = svg.percent(share)
        grid.append(tag("line", x1=where, x2=where, y1="0", y2="100%", class_="grid"))
        if share < 0.9:
            look = "small wide" if number % 3 else "small"
            grid.append(tag("text", units.tick(value, "B/s"), x=where, y="100%", dy=-4, dx=3, class_=look))
    title = "Ops that do no FLOP, by bandwidth"
    picture = tag(
        "svg", tag("title", title), grid, drawn_roofs, tag("g", marks, class_="points"),
        tag("circle", class_="ring", r=12, cx="-10%", cy="-10%"),
        class_="strip", height=74, role="img", aria_label=title,
    )  # fmt: skip
    return tag("div", tag("p", title, class_="note"), picture)


# ------------------------------------------------------------------------------------------------------- controls


def _controls(run: Run, plotted: Points, lines: Roofs) -> Html:
    """Write the controls that choose points and leave them out; a script shows them, since only it can answer."""
    analysis, all_points = run.analysis, plotted.all
    levels_known = dict.fromkeys(level for point in all_points for level in point.intensity)
    named = _LEVELS | ({COLD: "main memory: least bytes that no cache held"} if COLD_HIGH in levels_known else {})
    levels = [(level, named[level]) for level in levels_known]
    levels += [(level, slope.name) for slope in lines.slopes for level in slope.levels if level not in _LEVELS]
    phases = [
        (str(number), analysis.profile.phases[number]) for number in dict.fromkeys(point.phase for point in all_points)
    ]
    present = [group for group in GROUPS if any(point.group == group for point in all_points)]
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", value=group, checked=True),
            _sample(group),
            tag("span", group),
        )
        for group in present
    ]
    controls = [
        _select("bytes from", "level", levels),
        _select(
            "precision",
            "precision",
            [("", "all"), *((name, name) for name in dict.fromkeys(precision for _, precision in plotted.used))],
        ),
        _select("phase", "phase", [("", "all"), *phases]),
        tag(
            "label",
            tag("span", "ops of the first ", tag("output", "100 %"), " of the time"),
            tag("input", type="range", min=1, max=100, value=100, data_slider=True),
        ),
        tag(
            "span",
            tag("button", "Save SVG", type="button", data_save="svg"),
            tag("button", "Save PNG", type="button", data_save="png"),
            class_="buttons",
        ),
    ]
    legend = tag("fieldset", tag("legend", "groups"), boxes, class_="choice groups")
    return tag("div", legend, tag("div", controls, class_="controls screen"))


def _select(words: str, control: str, options: Iterable[tuple[str, str]]) -> Html:
    choices = [tag("option", name_of(label), value=value) for value, label in options]
    return tag("label", tag("span", words), tag("select", choices, data_choose=control))


def name_of(text: str) -> str:
    """Write a name as text for an option, which holds no markup."""
    return wording.plain(text, 60)


def _sample(group: Group) -> Html:
    shape = tag("path", d=outline(group, 5.0), transform="translate(8 8)")
    return tag("svg", shape, class_=f"swatch point group-{group}", width=16, height=16, aria_hidden="true")


def _first(analysis: Analysis, plotted: Points) -> Html:
    """Describe the longest op, until another one is chosen."""
    point = max(plotted.all, key=lambda point: point.seconds)
    listed = [[tag("dt", fact), tag("dd", words)] for fact, words in facts(analysis, point)]
    return join([tag("h4", name(point.name, 80)), tag("dl", listed)])


def _explanation(run: TimedRun, plotted: Points) -> Html:
    analysis = run.analysis
    sentences = [
        "Each mark is all ops with one signature in one phase: FLOP (matrix and vector) per byte, and FLOP/s in their "
        "own time; its area is their time. Lines are the ceilings of the device."
    ]
    if not analysis.device.ceilings:
        sentences.append(f"No ceilings are known of {wording.plain(analysis.device.name, 80)}, so there are none.")
    if analysis.busy > 0 and plotted.unknown > 0:
        sentences.append(
            f"{units.percent(plotted.unknown / analysis.busy)} of busy time is in ops of unknown work: not shown."
        )
    if plotted.crowded > 0:
        sentences.append(f"{units.seconds(plotted.crowded)} is in ops too short to be shown.")
    if words := notes.above(analysis):
        sentences.append(f"{words[0].upper()}{words[1:]}.")
    return tag("p", " ".join(sentences), class_="note")
