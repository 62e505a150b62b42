"""Show what the numbers of published benchmarks imply: `roofline published`."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline import plugins
from roofline.cli.options import completion
from roofline.errors import InputError

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
) -> None:
    """Show what the numbers of published benchmarks imply.

    Show for each time the rate that it implies (where the work of the step follows from its shapes), the share of the
    published device's roof, and the arithmetic that the rate excludes. Mark numbers that are not possible as stated,
    with the reason. Run nothing.

    Example: roofline published keras-benchmark
    """
    renderer = plugins.load(_RENDERERS, format, "format")
    from roofline import published
    from roofline.published.table import table

    if name is None:
        if format != "text" or all:
            raise InputError("--format and --all need the NAME of a publication: give one.")
        typer.echo("\n".join(f"{key:16}  {published.load(key).title}" for key in published.names()))
        return

    typer.echo(renderer.render(table(published.load(name), everything=all)), nl=False)
