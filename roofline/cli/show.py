"""`roofline show`: what a saved profile says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline import plugins
from roofline.errors import InputError

_FORMATS = "|".join(plugins.names("roofline.renderers"))


def command(
    profile: Annotated[
        Path, typer.Argument(metavar="PROFILE", help="A profile saved by `roofline profile` or `roofline import`.")
    ],
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Show one table, by class|group|op|scope|block|phase|kernel|source. "
            "By default, the whole summary with the table by group.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --by scope: N levels of the tree, repeated layers folded (layer.*)."),
    ] = None,
    format: Annotated[str, typer.Option(metavar="FORMAT", help=f"The format: {_FORMATS}.")] = "text",
) -> None:
    """Show where the time of a step went.

    Prints the verdict, the table of groups and the evidence behind them. The analysis is computed anew from the
    profile, so an old profile gains from new rules. Use --format json for programs; its fields are stable.
    """
    renderer = plugins.load("roofline.renderers", format, "format")
    from roofline.analysis.analysis import KEYS, analyze
    from roofline.analysis.scope_tree import to_depth
    from roofline.cli.options.words import if_long, printable
    from roofline.core.schema import load
    from roofline.renderers._words import counted

    if by is not None and by not in KEYS:
        raise InputError(f"There is no table by {by!r}; there are: {', '.join(KEYS)}.")
    if depth is not None and (by != "scope" or depth < 1):
        raise InputError("--depth is for --by scope, and at least 1.")
    with if_long(f"reading {printable(profile)}"):
        loaded = load(profile)
    with if_long(f"adding up {counted(len(loaded.ops), 'op')}"):
        if depth is not None:
            loaded = to_depth(loaded, depth)
        told = renderer.render(analyze(loaded), by)
    typer.echo(told, nl=False)
