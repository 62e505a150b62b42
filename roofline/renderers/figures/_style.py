"""Define the look of all figures: one font, sizes of at least 6 pt, and marks that do not rest on colour alone.

Bounds and groups have the colours of all pictures, devices those of Okabe and Ito; bounds differ in hatch, groups in
marker and hatch, devices in line style and marker too, so that a grey print says the same.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roofline.content import palette
from roofline.core.vocabulary import Bound, Group
from roofline.errors import InputError
from roofline.renderers.figures import _measure

#: What an artist is drawn with: matplotlib's names of properties and their values.
Look = dict[str, Any]

RED, BLACK, GREY = (palette.SERIES[number][0] for number in (1, 4, 9))

BOUND: dict[Bound, str] = {bound: paper for bound, (paper, _) in palette.BOUNDS.items()}
HATCH: dict[Bound, str] = {"compute": "", "memory": "/////", "overhead": "-----", "unknown": "xxxxx"}
#: Colour, marker, and hatch in bars of a group.
GROUP: dict[Group, tuple[str, str, str]] = {
    group: (colours[0], marker, hatch)
    for (group, colours), marker, hatch in zip(
        palette.GROUPS.items(), "os^DvXP", ("", "/////", "-----", "|||||", "xxxxx", ".....", ""), strict=True
    )
}
SIDE: dict[str, str] = {side: paper for side, (paper, _) in palette.SIDES.items()}
#: (colour, line style, marker) of the n-th of several things compared.
SERIES: tuple[tuple[str, Any, str], ...] = tuple(
    (paper, line, marker)
    for (paper, _), line, marker in zip(
        palette.SERIES,
        (
            "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 1)), (0, (3, 1, 1, 1)), (0, (2, 2)),
            (0, (8, 2, 2, 2)),
        ),
        "os^DvPX<>p",
        strict=True,
    )
)  # fmt: skip

_SETTINGS: dict[Any, Any] = {
    "font.family": _measure.FONT,
    "font.size": _measure.TEXT,
    "axes.titlesize": _measure.TEXT,
    "axes.labelsize": _measure.TEXT,
    "xtick.labelsize": _measure.SMALL,
    "ytick.labelsize": _measure.SMALL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
    # Measured as it is saved, and set as wide in every format.
    "figure.dpi": 300,
    "savefig.dpi": 300,
    "text.hinting": "none",
    # A "$" in a name is a dollar, and the same figure must have the same bytes.
    "text.parse_math": False,
    "text.usetex": False,
    "svg.hashsalt": "roofline",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@contextmanager
def applied() -> Iterator[None]:
    """Apply the settings above and nothing of the user's; restore the previous ones afterwards."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)  # else it tells where it keeps its cache in a home that cannot be written to
    try:
        import matplotlib
    except ValueError as error:  # of its variable MPLBACKEND, which no figure needs
        raise InputError(f"matplotlib does not start ({error}): unset MPLBACKEND.") from None
    finally:
        log.setLevel(level)

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name from a trace may hold letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def pale(colour: str, share: float = 0.3) -> tuple[float, float, float]:
    """Mix a colour with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def ink(colour: str) -> tuple[float, float, float]:
    """Darken a colour so that text in it can be read."""
    from matplotlib.colors import to_rgb

    red, green, blue = (0.72 * part for part in to_rgb(colour))
    return red, green, blue


def lighten(bound: Bound) -> Look:
    """Fill the loss under a bound: pale, hatched in the bound's colour."""
    return {
        "facecolor": pale(BOUND[bound]),
        "edgecolor": BOUND[bound],
        "hatch": HATCH[bound],
        "linewidth": 0.5,
    }


def half(bound: Bound) -> Look:
    """Fill a stretch that is floor or loss: between the two."""
    return {**lighten(bound), "facecolor": pale(BOUND[bound], 0.65)}


def solid(bound: Bound) -> Look:
    """Fill the floor under a bound: full, with the bound's hatch in white."""
    return {"facecolor": BOUND[bound], "edgecolor": "white", "hatch": HATCH[bound], "linewidth": 0.0}


def filled(group: Group) -> tuple[Look, str]:
    """Return the fill of a bar of a group, and the colour of the text on it."""
    colour, _, hatch = GROUP[group]
    return {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "linewidth": 0.0}, palette.on(colour)


GAP: Look = {"facecolor": "white", "edgecolor": "#404040", "hatch": "\\\\\\\\", "linewidth": 0.5}
#: A 95 % interval across a bar.
WHISKER: Look = {"color": "black", "linewidth": 0.7}
