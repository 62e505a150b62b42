"""Figures of `roofline plot`: one file per kind, drawn for one (3.3 in) or two (7 in) columns of a paper.

A kind is a module with `figure(items, width) -> (Figure, caption)`; the command line finds it by its name. matplotlib
is imported when something is drawn, so that help stays light.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from roofline import plugins
from roofline.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.analysis.analysis import Analysis
    from roofline.core.device import Device

#: One column of a two-column paper [in].
WIDTH = 3.3

#: What must not be in a file for it to be the same when drawn again: dates, and the versions of what drew it.
_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
SUFFIXES = tuple(_METADATA)


def draw(kind: str, items: Sequence[Analysis | Device], path: Path, width: float = WIDTH) -> tuple[Path, Path]:
    """Draw a figure of `width` [in] and, beside it, its caption as text. Returns the two files.

    Analyses are drawn in the order given; `devices` takes bare devices too. Raises InputError for an unknown kind or
    suffix, and where the kind has nothing to draw.
    """
    if path.suffix not in _METADATA:
        raise InputError(f"Cannot draw {path.name}: a figure's name ends in {', '.join(SUFFIXES)}.")
    from roofline.core.files import write_together

    drawing, caption = render(kind, items, path.suffix, width)
    text = path.with_suffix(".txt")
    told = "\n".join(textwrap.wrap(caption, 100)) + "\n"
    write_together({path: drawing, text: told.encode()})
    return path, text


def render(kind: str, items: Sequence[Analysis | Device], suffix: str, width: float = WIDTH) -> tuple[bytes, str]:
    """The bytes of a figure of `width` [in] in the format of a suffix (`SUFFIXES`), and its caption."""
    from roofline.renderers.figures import _style

    with _style.applied(), warnings.catch_warnings():
        # A name from a trace may hold letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # Bars that lie outside of a step, of a profile that is flagged for it, leave no room for others.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        figure, caption = build(kind, items, width)
        stream = io.BytesIO()
        figure.savefig(stream, format=suffix[1:], metadata=_METADATA[suffix])
    return stream.getvalue(), caption


def build(kind: str, items: Sequence[Analysis | Device], width: float = WIDTH) -> tuple[Figure, str]:
    """The figure and its caption. Call it, and save the figure, under `_style.applied()`."""
    if not items:
        raise InputError("There is nothing to draw: give at least one profile.")
    figure, caption = plugins.load(__name__, kind, "kind of figure").figure(items, width)
    return figure, caption
