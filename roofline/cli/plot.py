"""Draw figures for a paper: `roofline plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofline import plugins
from roofline.cli.options import completion
from roofline.cli.options.paths import check_once, check_output, load
from roofline.cli.options.width import COLUMN, HELP, read_inches
from roofline.cli.options.words import if_long
from roofline.errors import InputError
from roofline.units import printable

if TYPE_CHECKING:
    from roofline.renderers.figures import Item

_FIGURES = "roofline.renderers.figures"
_KINDS = "|".join(plugins.names(_FIGURES))
_CAPTIONS = ("short", "long")


def command(
    profiles: Annotated[
        list[str],
        typer.Argument(
            metavar="PROFILE",
            autocompletion=completion.profiles,
            help="Saved profiles or names of shipped ones; - reads one from standard input. With --kind devices, also "
            "names of devices; with --kind sweep the folder of a sweep.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FIG",
            help="FIG.svg, FIG.pdf or FIG.png. Default: the first profile and the kind, in this folder "
            "(bert-bound.svg).",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option(metavar="KIND", autocompletion=completion.formats(_FIGURES), help=f"What to draw: {_KINDS}.")
    ] = "bound",
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="KEY",
            autocompletion=completion.keys,
            help="What the rows of --kind breakdown are: group, class, op, scope, block, phase, kernel or source. "
            "Default: group, and next to it block where there is room. What the colours of --kind sweep are: fastest "
            "(the backend) or limit (of each backend).",
        ),
    ] = None,
    width: Annotated[
        str,
        typer.Option(metavar="WIDTH", help=HELP),
    ] = COLUMN,
    caption: Annotated[
        str,
        typer.Option(metavar="short|long", help="Length of the caption: long adds versions, steps and their spread."),
    ] = "short",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Draw a figure of one or more profiles.

    Print the caption and store it in the file (<title> and <desc> of an SVG, title and subject of a PDF). No text is
    smaller than 6 pt. The same profiles give the same bytes.
    """
    if caption not in _CAPTIONS:
        raise InputError(f"There is no caption called {caption!r}; there are: {', '.join(_CAPTIONS)}.")
    plugins.require(_FIGURES, kind, "kind of figure")
    inches = read_inches(width)
    from roofline.renderers import figures

    if output is None:
        output = Path(f"{'profile' if profiles[0] == '-' else Path(profiles[0]).stem}-{kind}.svg")
    check_output(output, force, figures.SUFFIXES, profiles)
    check_once([Path(name) for name in profiles])
    with if_long(f"drawing {printable(output)}"):
        items = [_item(name, kind) for name in profiles]
        caption_text = figures.draw(kind, items, output, inches, caption == "long", by, replace=force)
    typer.echo(f"Wrote {printable(output)}")
    typer.echo(caption_text)


def _item(name: str, kind: str) -> Item:
    from roofline import devices
    from roofline.analysis.analysis import analyze
    from roofline.core import shipped
    from roofline.sweeping import folder, grid

    if folder.is_folder(Path(name)):
        return grid.read(Path(name))
    if kind == "devices" and name != "-" and not name.endswith(".json") and name not in shipped.paths():
        return devices.load(name)
    return analyze(load(name))
