"""Write the table of a write-up as LaTeX (booktabs), in a float as wide as a column, with caption and label."""

from __future__ import annotations

from roofline.analysis.analysis import WorkAnalysis
from roofline.content import captions, tables, wording
from roofline.content.choice import USUAL, Choice
from roofline.content.facts import notes
from roofline.renderers._latex.table import PACKAGES, floated, label, of_grid


def render(
    analysis: WorkAnalysis, by: str | None, rows: Choice = USUAL, columns: int = 1, caption: str = "short"
) -> str:
    """Write the table by `by` (default: group). Needs the packages booktabs, graphicx and (before 2020) textcomp.

    columns: of a two-column page, the width of the table. caption: "short" says what was measured and what the columns
    are; "long" also all versions, the spread and remarks, which otherwise stand in a comment.
    """
    key = by or "group"
    grid = tables.grid(analysis, key, rows, paper=True)
    long, profile = caption == "long", analysis.profile
    remarks = f"{notes.further(analysis)}{wording.provenance(analysis)}"
    # There is hardly room for the ops that were fused into those of a row.
    named = zip(grid.names(None, wording.plain), grid.parts, strict=True)
    fused = [wording.plain(f"{name} {parts}", 400) for name, parts in named if parts]
    lines = floated(
        of_grid(grid),
        columns,
        captions.measured(analysis, key),
        label(profile.model, profile.backend, profile.mode, key),
        [wording.verdict(analysis), *([] if long else [remarks]), *fused],
        remarks if long else "",
    )
    return "\n".join([PACKAGES, *lines, ""])
