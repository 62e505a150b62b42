"""How all figures look: one font, sizes of at least 6 pt, and marks that do not rest on colour alone.

Colours are Okabe and Ito's, told apart by colour-blind readers; bounds differ in hatch and groups in marker too, so
that a grey print says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roofline.core.vocabulary import Bound, Group
from roofline.renderers._words import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What an artist is drawn with: matplotlib's names of properties and their values.
Look = dict[str, Any]

TEXT = 7.0
SMALL = 6.0

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, BLACK, GREY = "#CC79A7", "#000000", "#808080"

BOUND: dict[Bound, str] = {"compute": BLUE, "memory": ORANGE, "overhead": GREEN, "unknown": GREY}
HATCH: dict[Bound, str] = {"compute": "", "memory": "/////", "overhead": ".....", "unknown": "xxxxx"}
GROUP: dict[Group, tuple[str, str]] = {
    "matmul": (BLUE, "o"),
    "normalisation": (ORANGE, "s"),
    "pointwise": (GREEN, "^"),
    "optimizer": (RED, "D"),
    "communication": (PURPLE, "v"),
    "other": (GREY, "P"),
}
#: (colour, line style) of the n-th of several things compared.
SERIES: tuple[tuple[str, Any], ...] = (
    (BLUE, "-"),
    (RED, "--"),
    (GREEN, "-."),
    (PURPLE, ":"),
    (BLACK, (0, (5, 1, 1, 1, 1, 1))),
    (ORANGE, (0, (1, 1))),
)

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
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
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    # A "$" in a name is a dollar, and the same figure must have the same bytes.
    "text.parse_math": False,
    "text.usetex": False,
    "svg.hashsalt": "roofline",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@contextmanager
def applied() -> Iterator[None]:
    """The settings above and nothing of the user's; what was set before comes back."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def canvas(width: float, height: float) -> Figure:
    """An empty figure [in] that fits its contents inside its size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def fit(text: str, inches: float, size: float = TEXT) -> str:
    """`text` without control characters, cut to about `inches`: a letter is about 0.62 of its size wide."""
    return plain(text, max(4, int(inches * 72 / (0.62 * size))))


def pale(colour: str, share: float = 0.3) -> tuple[float, float, float]:
    """A colour mixed with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue


def lighten(bound: Bound) -> Look:
    """How the loss under a bound is filled: pale, hatched in the bound's colour."""
    return {
        "facecolor": pale(BOUND[bound]),
        "edgecolor": BOUND[bound],
        "hatch": HATCH[bound],
        "linewidth": 0.5,
    }


def half(bound: Bound) -> Look:
    """How what may be floor or loss is filled: between the two."""
    return {**lighten(bound), "facecolor": pale(BOUND[bound], 0.65)}


def solid(bound: Bound) -> Look:
    """How the floor under a bound is filled: full, with the bound's hatch in white."""
    return {"facecolor": BOUND[bound], "edgecolor": "white", "hatch": HATCH[bound], "linewidth": 0.0}


GAP: Look = {"facecolor": "white", "edgecolor": "#404040", "hatch": "\\\\\\\\", "linewidth": 0.5}


def keys(
    figure: Figure, handles: Sequence[Artist], labels: Sequence[str], columns: int, title: str | None = None
) -> None:
    """The legend, below everything, filled row by row."""
    rows = -(-len(handles) // columns)
    order = [row * columns + column for column in range(columns) for row in range(rows)]
    order = [number for number in order if number < len(handles)]
    figure.legend(
        [handles[n] for n in order],
        [fit(labels[n], figure.get_figwidth() / columns - 0.4, SMALL) for n in order],
        loc="outside lower center",
        ncols=columns,
        title=title,
    )


def si(value: float, _position: object = None) -> str:
    """A tick of a logarithmic axis without exponents, whose digits would be too small to read: 100 G."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {prefix}"
    return f"{value:g}"


def log_ticks(axes: Axes) -> None:
    """Decades on both axes, written out; no minor labels."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10, numticks=7))
        axis.set_major_formatter(FuncFormatter(si))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", length=1.5, width=0.4)
