"""Write the representative step as a trace for ui.perfetto.dev, with work, bound and floor of every op."""

from __future__ import annotations

from roofline.analysis.analysis import WorkAnalysis
from roofline.renderers import perfetto

SUFFIX = ".perfetto.json"
WORDS = "the representative step as a trace (ui.perfetto.dev)"


def written(analysis: WorkAnalysis) -> bytes:
    """Write the document of `show --format perfetto`."""
    return perfetto.render(analysis, None).encode()
