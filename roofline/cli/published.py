"""Show what the numbers of published benchmarks imply: `roofline published`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline import plugins
from roofline.cli.options import completion
from roofline.cli.options.paths import check_output
from roofline.cli.options.width import COLUMN, HELP, read_inches
from roofline.errors import InputError
from roofline.units import printable

_RENDERERS = "roofline.renderers.published"
_FORMATS = "|".join(plugins.names(_RENDERERS))
_NAMES = "|".join(plugins.names("roofline.published", ".toml"))


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=completion.publications,
            help=f"The publication: {_NAMES}. Without one, lists them with their titles.",
        ),
    ] = None,
    format: Annotated[
        str,
        typer.Option(metavar="FORMAT", autocompletion=completion.formats(_RENDERERS), help=f"The format: {_FORMATS}."),
    ] = "text",
    all: Annotated[bool, typer.Option("--all", help="Show every published version of the table.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FIG",
            help="Draw the table instead, to FIG.svg, FIG.pdf or FIG.png: how many times as fast as one of its columns "
            "the others are, row by row.",
        ),
    ] = None,
    width: Annotated[str, typer.Option(metavar="WIDTH", help=f"With --output: {HELP[0].lower()}{HELP[1:]}")] = COLUMN,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Show what the numbers of published benchmarks imply.

    Show for each time the rate that it implies (where the work of the step follows from its shapes), the share of the
    published device's roof, and the arithmetic that the rate excludes. Mark numbers that are not possible as stated,
    with the reason. Run nothing.

    Example: roofline published keras-benchmark
    """
    renderer = plugins.load(_RENDERERS, format, "format")
    from roofline import published
    from roofline.published.implied import cells_implied

    if name is None:
        if format != "text" or all or output is not None:
            raise InputError("--format, --all and --output need the NAME of a publication: give one.")
        typer.echo("\n".join(f"{key:16}  {published.load(key).title}" for key in published.names()))
        return

    if output is not None:
        if format != "text" or all:
            raise InputError("--output draws the table's first version: leave out --format and --all.")
        from roofline.renderers import figures

        inches = read_inches(width)
        check_output(output, force, figures.SUFFIXES)
        caption = figures.draw_published(published.load(name), output, inches, replace=force)
        typer.echo(f"Wrote {printable(output)}\n{caption}")
        return
    publication = published.load(name)
    typer.echo(renderer.render(publication, cells_implied(publication, everything=all)), nl=False)
