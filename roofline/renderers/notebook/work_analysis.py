"""Show a `WorkAnalysis`, that of a step which was counted and not timed: its work."""

from __future__ import annotations

from roofline.renderers.notebook.analysis import columns as columns
from roofline.renderers.notebook.analysis import document as document
from roofline.renderers.notebook.analysis import html as html
from roofline.renderers.notebook.analysis import text as text
