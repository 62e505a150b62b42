"""Write the folding tree of modules: the time and work of each layer and of all below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import tables
from roofline.content.sums import Sums, per_op, summed
from roofline.renderers.report.parts import svg
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: Modules that are shown: a tree of more is cut where the least time is.
MOST = 3000
#: Levels that are unfolded at first.
_OPEN = 2
#: Levels of the tree, of which each is an element in an element; the rest of a path is one name. By choice: models have
#: some twenty.
_DEEPEST = 100
#: Headings of the tree, and of that of a step that was counted and not timed.
HEADS, _WORK_HEADS = ("module", "", "time", "time %", "FLOP", "of roof %"), ("module", "FLOP")
#: What ops outside of all modules are called.
OUTSIDE = "(outside of all modules)"


@dataclass(slots=True)
class Module:
    """A part of the model. row: its place among the sums; below: its parts in the order of their first op."""

    name: str
    row: int
    below: dict[str, Module] = field(default_factory=dict)


def modules(runs: Sequence[Run]) -> Html | None:
    """Write the section; None where no run has a module."""
    if not any(any(run.analysis.profile.scopes) for run in runs):
        return None
    return section("modules", "By module", for_each_run(runs, _run))


def _run(run: Run) -> Html:
    analysis = run.analysis
    if not len(analysis.profile.ops) or not any(analysis.profile.scopes):
        return tag("p", "Its ops do not say to which module they belong.", class_="note")
    top, sums = tree(analysis)
    heads = HEADS if isinstance(analysis, Analysis) else _WORK_HEADS
    head = tag("div", [tag("span", words) for words in heads], class_=_look("row head", analysis), aria_hidden="true")
    unfold = tag(
        "p",
        tag("button", "unfold all", type="button", data_fold="open"),
        tag("button", "fold all", type="button", data_fold=""),
        class_="screen buttons",
    )
    shown = _shown(sums, analysis)
    parts = [_module(module, analysis, sums, shown, 0) for module in top.below.values() if module.row in shown]
    note = (
        "Time and FLOP (matrix and vector, as executed) of a module include all modules below it; ≥ marks a sum "
        "without the ops whose FLOP are unknown. A fused kernel counts in one of the modules that its ops are of."
    )
    return tag("div", unfold, tag("div", head, parts, class_="scroll tree"), tag("p", note, class_="note"))


def tree(analysis: WorkAnalysis) -> tuple[Module, Sums]:
    """Build the modules below an unnamed one, and the sums of each with all modules below it."""
    profile = analysis.profile
    scope = analysis.table.columns.scope
    top = Module("", 0)
    parents = [0]
    row_of_scope = np.zeros(len(profile.scopes), np.int64)
    _, first = np.unique(scope, return_index=True)
    for op in np.sort(first).tolist():
        number = int(scope[op])
        at = top
        for part in profile.scopes[number].split("/", _DEEPEST - 1) if profile.scopes[number] else [OUTSIDE]:
            if part not in at.below:
                at.below[part] = Module(part, len(parents))
                parents.append(at.row)
            at = at.below[part]
        row_of_scope[number] = at.row
    sums = summed(per_op(analysis), row_of_scope[scope], len(parents))
    for row in range(len(parents) - 1, 0, -1):  # what is below was made later
        for column in (getattr(sums, slot) for slot in sums.__slots__):
            column[parents[row]] += column[row]
    return top, sums


def _shown(sums: Sums, analysis: WorkAnalysis) -> frozenset[int]:
    """Choose the modules of most time, or of a step that was only counted of most work."""
    weight = sums.seconds if isinstance(analysis, Analysis) else sums.work
    return frozenset(np.argsort(-weight, kind="stable")[: MOST + 1].tolist())


def _look(words: str, analysis: WorkAnalysis) -> str:
    return words if isinstance(analysis, Analysis) else f"{words} counted"


def _module(module: Module, analysis: WorkAnalysis, sums: Sums, shown: frozenset[int], depth: int) -> Html:
    line = _line(module, analysis, sums)
    below = [part for part in module.below.values() if part.row in shown]
    if not below:
        return tag("div", line, class_=_look("row leaf", analysis))
    parts = [_module(part, analysis, sums, shown, depth + 1) for part in below]
    hidden = len(module.below) - len(below)
    if hidden:
        parts.append(tag("div", tag("span", f"{hidden} more, shorter"), class_="row leaf"))
    summary = tag("summary", line, class_=_look("row", analysis))
    return tag("details", summary, tag("div", parts, class_="below"), open=depth < _OPEN)


def _line(module: Module, analysis: WorkAnalysis, sums: Sums) -> list[Html]:
    row = module.row
    work = sums.flops(row)
    work_text = units.flop(work)
    if work is not None and sums.unknown[row] > 0:
        work_text = f"≥ {work_text}"
    if not isinstance(analysis, Analysis):
        return [name(module.name, 60), tag("span", work_text)]
    share = float(sums.seconds[row]) / analysis.wall
    length = tag("svg", svg.bar(0.0, min(1.0, share), 3, 6, "part share"), height=12, aria_hidden="true")
    cells = [
        units.seconds(float(sums.seconds[row])),
        tables.percent(share),
        work_text,
        tables.between(*sums.attained(row)),
    ]
    return [name(module.name, 60), length, *(tag("span", words) for words in cells)]
