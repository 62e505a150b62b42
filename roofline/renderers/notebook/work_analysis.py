"""Show an `Analysis`, or the `WorkAnalysis` of a step which was counted and not timed."""

from __future__ import annotations

from typing import Any

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import json_document, ops, tables, wording
from roofline.content.facts import host, notes
from roofline.renderers import text as text_format
from roofline.renderers.notebook import _html


def text(analysis: WorkAnalysis) -> str:
    """Write the first screen, as `roofline show`."""
    return text_format.render(analysis, None)


def html(analysis: WorkAnalysis) -> str:
    """Write the verdict and the table of groups, and draw where the time went."""
    if not isinstance(analysis, Analysis):
        return _html.page(_html.preformatted(text(analysis)), _html.figure("breakdown", [analysis]))
    groups = tables.grid(analysis, "group")
    numbers = range(len(groups.heads))
    return _html.page(
        _html.paragraph(wording.verdict(analysis, host.most(analysis))),
        _html.table(
            ["group", *map(groups.head, numbers)],
            ([label, *cells] for label, cells in zip(groups.labels, groups.cells, strict=True)),
            [False, *(number not in groups.words for number in numbers)],
        ),
        _html.figure("bound", [analysis]),
        _html.caption(notes.caption(analysis)),
    )


def document(analysis: WorkAnalysis) -> dict[str, Any]:
    """Return the document of `roofline show --format json`."""
    return json_document.document(analysis)


def columns(analysis: WorkAnalysis) -> dict[str, Any]:
    """Return the table of ops."""
    return ops.columns(analysis)
