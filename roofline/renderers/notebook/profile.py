"""What a `Profile` shows of itself: what its analysis does."""

from __future__ import annotations

from typing import Any

from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.renderers.notebook import analysis


def text(profile: Profile) -> str:
    """The verdict, the facts, the table of groups and the evidence, as `roofline show`."""
    return analysis.text(analyze(profile))


def html(profile: Profile) -> str:
    """The verdict, the table of groups, and where the time went as a figure."""
    return analysis.html(analyze(profile))


def document(profile: Profile) -> dict[str, Any]:
    """The document of `roofline show --format json`."""
    return analysis.document(analyze(profile))


def columns(profile: Profile) -> dict[str, Any]:
    """The table of ops."""
    return analysis.columns(analyze(profile))
