"""What `roofline compare` prints: one file per format, found by its name.

Modules with an underscore in the folder above are shared by the formats and are none themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from roofline.comparison.ranking import Ranking


class ComparisonRenderer(Protocol):
    """A module that turns compared runs into text. Names in a profile come from anywhere: each format escapes them."""

    @property
    def SUFFIX(self) -> str:
        """What its files are called, dot included."""
        ...

    def render(self, ranking: Ranking) -> str:
        """The document, newline at the end."""
        ...
