"""Write the tables of a run by each key: group, class, phase, block, scope, op, kernel, source."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.analysis.analysis import KEYS
from roofline.content import tables
from roofline.content.facts import notes
from roofline.renderers.report.parts.grids import table_of
from roofline.renderers.report.parts.html import Html, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: Where a reader looks first stands first; the rest in the order of `analysis.KEYS`.
_FIRST = ("group", "class", "phase", "block")


def groups(runs: Sequence[Run]) -> Html:
    """Write the section: the tables of `roofline show --by KEY`, one at a time on a screen."""
    return section("tables", "By group, class, layer and kernel", for_each_run(runs, _run))


def _run(run: Run) -> Html:
    others = [key for key in KEYS if key not in _FIRST and (key != "source" or run.analysis.profile.lines)]
    keys = [*_FIRST, *others]
    choices = [
        tag(
            "label",
            tag("input", type="radio", name=f"{run.key}-by", value=key, checked=key == keys[0]),
            tag("span", key),
        )
        for key in keys
    ]
    choice = tag("fieldset", tag("legend", "by"), choices, class_="choice screen", data_panels=f"{run.key}-by")
    panels = [
        tag(
            "div",
            table_of(tables.grid(run.analysis, key, numbered=True), f"By {key}", f"Table by {key}"),
            class_="panel" if key == keys[0] else "panel later",
            data_panel=key,
        )
        for key in keys
    ]
    note = tag("p", notes.caption(run.analysis), class_="note")
    return tag("div", choice, tag("div", panels, data_of=f"{run.key}-by"), note)
