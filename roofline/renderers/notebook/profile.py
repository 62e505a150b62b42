"""Show a `Profile` by its analysis."""

from __future__ import annotations

from typing import Any

from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.renderers.notebook import work_analysis


def text(profile: Profile) -> str:
    """Write the first screen, as `roofline show`."""
    return work_analysis.text(analyze(profile))


def html(profile: Profile) -> str:
    """Write the verdict and the table of groups, and draw where the time went."""
    return work_analysis.html(analyze(profile))


def document(profile: Profile) -> dict[str, Any]:
    """Return the document of `roofline show --format json`."""
    return work_analysis.document(analyze(profile))


def columns(profile: Profile) -> dict[str, Any]:
    """Return the table of ops."""
    return work_analysis.columns(analyze(profile))
