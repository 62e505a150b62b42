"""Figures of `roofline plot`: one file per kind, drawn for one (3.3 in) or two (7 in) columns of a paper.

A kind is a module with `figure(items, width) -> (Figure, Caption)`; the command line finds it by its name. matplotlib
is imported when something is drawn, so that help stays light.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roofline import plugins
from roofline.errors import InputError
from roofline.renderers.figures._written import SUFFIXES as SUFFIXES
from roofline.renderers.figures._written import Caption, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.analysis.analysis import Analysis
    from roofline.core.device import Device

#: One column of a two-column paper [in].
WIDTH = 3.3


def draw(
    kind: str, items: Sequence[Analysis | Device], path: Path, width: float = WIDTH, long_caption: bool = False
) -> str:
    """Draw a figure of `width` [in]. Returns its caption, which is in the file too.

    Analyses are drawn in the order given; `devices` takes bare devices too. long_caption: with versions, number of
    steps and spread of every run. Raises InputError for an unknown kind or suffix, and where the kind has nothing to
    draw.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"Cannot draw {path.name}: a figure's name ends in {', '.join(SUFFIXES)}.")
    from roofline.core.files import write_atomically

    data, told = render(kind, items, path.suffix, width, long_caption)
    write_atomically(path, data)
    return told


def render(
    kind: str, items: Sequence[Analysis | Device], suffix: str, width: float = WIDTH, long_caption: bool = False
) -> tuple[bytes, str]:
    """The bytes of a figure of `width` [in] in the format of a suffix (`SUFFIXES`), and its caption; see `draw`."""
    from roofline.renderers.figures import _style

    with _style.applied():
        figure, caption = build(kind, items, width)
        told = caption.told(long_caption)
        return write(figure, suffix, caption.title, told), told


def build(kind: str, items: Sequence[Analysis | Device], width: float = WIDTH) -> tuple[Figure, Caption]:
    """The figure and its caption. Call it, and save the figure, under `_style.applied()`."""
    if not items:
        raise InputError("There is nothing to draw: give at least one profile.")
    figure, caption = plugins.load(__name__, kind, "kind of figure").figure(items, width)
    return figure, caption
