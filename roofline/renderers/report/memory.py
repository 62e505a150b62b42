"""Draw the memory of the step: what is in use during each op, what for, and where most of it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roofline import units
from roofline.content.facts import memory as facts
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.memory import timeline as memory_timeline
from roofline.memory.timeline import Timeline
from roofline.memory.use import WORDS, MemoryUse, memory_use
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
    peak = next((words for name, words in facts.facts(profile) if name == facts.PEAK), "memory that is not known")
    about = tag("p", tag("b", f"A step holds {peak}."))
    if step is None:
        return tag("div", about, tag("p", "What is in use during each op is not known.", class_="note"))
    note = tag(
        "p",
        "Bytes in use during each op, in the order of dispatch. An op stands for the moment in which most is in use.",
        class_="note",
    )
    use = memory_use(profile)
    return tag("div", about, _picture(step, use), _table(run, step, use), note)


def _picture(step: Timeline, use: MemoryUse) -> Html:
    """Stack the kinds from below, over the ops from left to right, below the peak."""
    rows = step.outline(_POINTS)
    highest = max(float(step.total.max()), use.peak or 0.0) or 1.0
    across, up = _UNITS / len(step.total), _UNITS / highest
    edges = [0, *(round(row * across) for row in rows[1:].tolist()), _UNITS]
    heights = np.rint(step.live[:, rows].cumsum(axis=0) * up).astype(np.int64).tolist()
    areas = [  # the lowest in front of those above it
        tag("path", d=_area(edges, heights[number]), class_=f"part storage-{kind}")
        for number, kind in reversed(list(enumerate(STORAGE_KINDS)))
        if step.live[number].any()
    ]
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


def _area(edges: Sequence[int], heights: Sequence[int]) -> str:
    """Write the outline of an area below steps: its upper edge, where its height changes."""
    drawn, height = f"M0 {_UNITS}", -1
    for begin, upper in zip(edges, heights, strict=False):
        if upper != height:
            drawn += f"{f'H{begin}' if begin else ''}V{_UNITS - upper}"
            height = upper
    return f"{drawn}H{_UNITS}V{_UNITS}z"


def _table(run: Run, step: Timeline, use: MemoryUse) -> Html:
    """List what is in use at the peak."""
    rows = []
    for kind in STORAGE_KINDS:
        size = use.parts[kind]
        largest = float(step.live[STORAGE_KINDS.index(kind)].max())
        if not largest:
            continue
        name = tag("th", svg.swatch(f"storage-{kind}"), WORDS[kind], scope="row")
        rows.append(tag("tr", name, cell(units.byte(size)), cell(units.byte(largest))))
    heads = [head("for", number=False), head("at the peak"), head("at most")]
    where = "" if use.op is None else f" {facts.place(run.analysis.profile, use.op)}"
    return table(f"Memory in use{where}", heads, rows, "Memory by what it is for")
