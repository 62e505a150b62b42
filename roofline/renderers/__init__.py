"""What people and programs read of an analysis: one file per format of `roofline show`, figures in `figures/`.

A new format is one new file here that fits `Renderer`; the command line finds it by its name. Modules with an
underscore are shared by the formats and are none themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from roofline.analysis.analysis import Analysis


class Renderer(Protocol):
    """A module that turns an analysis into text. Names in a profile come from anywhere: each format escapes them."""

    @property
    def SUFFIX(self) -> str:
        """What its files are called, dot included."""
        ...

    def render(self, analysis: Analysis, by: str | None) -> str:
        """The document, newline at the end. `by` is one of `analysis.KEYS`; None leaves the choice to the format."""
        ...
