"""Draw the memory of the step: what is in use during each op, what for, and where most of it is."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.memory import timeline as memory_timeline
from roofline.memory.timeline import Timeline
from roofline.memory.use import WORDS, memory_use
from roofline.renderers._facts import memory as facts
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.grids import cell, head, table
from roofline.renderers.report.parts.html import Html, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: Steps of an outline. By choice: about a pixel of a page each.
_POINTS = 1000
#: Height of the picture, and of the room for its scale [px]; units of the picture along both axes.
_HIGH, _SCALE, _UNITS = 140, 20, 10_000


def memory(runs: Sequence[Run]) -> Html:
    """Write the section."""
    return section("memory", "Memory of one step", for_each_run(runs, _run))


def _run(run: Run) -> Html:
    profile = run.analysis.profile
    step = memory_timeline.timeline(profile)
    peak = next((words for name, words in facts.facts(profile) if name == facts.PEAK), "The peak is not known")
    about = tag("p", tag("b", f"{peak}."))
    if step is None:
        return tag("div", about, tag("p", "What is in use during each op is not known.", class_="note"))
    note = tag(
        "p",
        "Bytes in use during each op, in the order of dispatch. An op stands for the moment in which most is in use.",
        class_="note",
    )
    return tag("div", about, _picture(step), _table(run, step), note)


def _picture(step: Timeline) -> Html:
    """Stack the kinds from below, over the ops from left to right."""
    rows = step.outline(_POINTS)
    highest = max(float(step.total.max()), step.assigned or 0.0) or 1.0
    across, up = _UNITS / len(step.total), _UNITS / highest
    edges = [0, *(round(row * across) for row in rows[1:].tolist()), _UNITS]
    below = [0.0] * len(rows)
    areas = []
    for number, kind in enumerate(STORAGE_KINDS):
        held = step.live[number, rows].tolist()
        above = [low + size for low, size in zip(below, held, strict=True)]
        if any(held):
            areas.append(tag("path", d=_area(edges, below, above, up), class_=f"part storage-{kind}"))
        below = above
    place = {"y": str(_SCALE), "width": "100%", "height": str(_HIGH), "viewBox": f"0 0 {_UNITS} {_UNITS}"}
    peak = f"{units.byte(float(step.total.max()))} in use at most"
    return tag(
        "svg",
        tag("title", peak),
        svg.text(0, 14, f"{units.byte(highest)} at the top", "small"),
        tag("svg", areas, preserveAspectRatio="none", **place),
        class_="bars",
        height=_HIGH + _SCALE,
        role="img",
        aria_label=f"Memory of the step: {peak}; the table below has the numbers",
    )


def _area(edges: Sequence[int], below: Sequence[float], above: Sequence[float], up: float) -> str:
    """Write the outline of a kind: its upper edge from left to right, its lower one back."""
    upper = [f"V{_UNITS - round(size * up)}H{end}" for size, end in zip(above, edges[1:], strict=True)]
    lower = [f"V{_UNITS - round(size * up)}H{begin}" for size, begin in zip(below, edges[:-1], strict=True)]
    return f"M{edges[0]} {_UNITS - round(below[0] * up)}{''.join(upper)}{''.join(reversed(lower))}z"


def _table(run: Run, step: Timeline) -> Html:
    """List what is in use at the peak."""
    use = memory_use(run.analysis.profile)
    rows = []
    for kind in STORAGE_KINDS:
        size = use.parts[kind]
        largest = float(step.live[STORAGE_KINDS.index(kind)].max())
        if size is None and not largest:
            continue
        name = tag("th", svg.swatch(f"storage-{kind}"), WORDS[kind], scope="row")
        rows.append(tag("tr", name, cell(units.byte(size)), cell(units.byte(largest))))
    heads = [head("for", number=False), head("at the peak"), head("at most")]
    where = "" if use.op is None else f" {facts.place(run.analysis.profile, use.op)}"
    return table(f"Memory in use{where}", heads, rows, "Memory by what it is for")
