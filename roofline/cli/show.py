"""Show a saved profile: `roofline show`."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import Annotated, Any

import typer

from roofline import plugins
from roofline.cli.options import tables
from roofline.cli.options.completion import formats, keys
from roofline.cli.options.completion import profiles as short_names
from roofline.cli.options.paths import check_once, load, path_name
from roofline.cli.options.terminal import Width
from roofline.errors import InputError

#: What a folder of a sweep, and of ranks, has in it (`sweeping.folder`, `ranks.folder`).
_LISTED = ("plan.jsonl", "ranks.json")
_RANKS, _SWEEP = "roofline.renderers.ranks", "roofline.renderers.sweep"
_LISTS = "roofline.renderers.shipped"
_WALL = "roofline.renderers.wall"
_FORMATS = "|".join(plugins.names("roofline.renderers"))


def command(
    profiles: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PROFILE",
            autocompletion=short_names,
            help="A profile saved by `roofline profile` or `roofline import`, or the name of a shipped one; - reads "
            "it from standard input. --wall takes several. Without one, lists the shipped profiles.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            autocompletion=keys,
            help="Show one table, by class|group|op|scope|block|phase|kernel|source.",
        ),
    ] = None,
    wall: Annotated[
        bool,
        typer.Option(
            "--wall",
            help="Show the shares of matmul, normalisation and pointwise ops in FLOPs, bytes and busy time of each "
            "run, and the published shares if the step is the published one.",
        ),
    ] = False,
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --by scope: show N levels, repeated layers as one (layer.*)."),
    ] = None,
    top: tables.Top = None,
    every: tables.Every = False,
    details: tables.Details = False,
    sort: tables.Sort = None,
    contains: tables.Filter = None,
    limit: tables.Limit = None,
    width: Width = None,
    columns: tables.Columns = None,
    caption: tables.Caption = None,
    format: Annotated[
        str,
        typer.Option(metavar="FORMAT", autocompletion=formats("roofline.renderers"), help=f"The format: {_FORMATS}."),
    ] = "text",
) -> None:
    """Show where the time of a step went.

    Print how long a step takes, what limits it, how far it is from the limit, which ops take the time, what to try,
    and reasons to doubt the numbers. Compute the analysis from the profile each time, so old profiles get new rules.
    For programs use --format json; its fields are stable. Names of kernels are shortened in text and stay distinct;
    csv and json have the full names.

    Example: roofline show h100/bert-torch-infer-b32-tf32
    """
    if not profiles:
        _list(wall, by, depth, top, every, details, sort, contains, columns, caption, limit, width=width, format=format)
        return
    if len(profiles) == 1 and any(os.path.isfile(os.path.join(profiles[0], name)) for name in _LISTED):
        _folder(
            profiles[0], format, width, every, by, wall, depth, top, details, sort, contains, columns, caption, limit
        )
        return
    if wall:
        if details or limit is not None:
            option = "--details" if details else "--limit"
            raise InputError(f"{option} and --wall exclude each other: leave one out.")
        _wall(profiles, by, depth, tables.choice(top, every, sort, contains), width, columns, caption, format)
        return
    if len(profiles) > 1:
        raise InputError(
            f"`roofline show` takes one profile, and {len(profiles)} are given: leave the others out, add --wall, or "
            "use `roofline compare`."
        )
    profile = profiles[0]
    renderer = plugins.load("roofline.renderers", format, "format")
    from roofline.analysis.analysis import KEYS, analyze
    from roofline.analysis.scope_tree import to_depth
    from roofline.cli.options.words import if_long
    from roofline.content.wording import counted

    if by is not None and by not in KEYS:
        raise InputError(f"There is no table by {by!r}; there are: {', '.join(KEYS)}.")
    if details and by is not None:
        raise InputError("--details and --by exclude each other: leave one out.")
    if depth is not None and (by != "scope" or depth < 1):
        raise InputError("--depth needs --by scope and a number of at least 1.")
    extra = tables.arguments(
        renderer,
        format,
        rows=tables.choice(top, every, sort, contains),
        width=width,
        columns=columns,
        caption=caption,
        details=details or None,
        limit=limit,
    )
    with if_long(f"reading {path_name(profile)}"):
        loaded = load(profile)
    with if_long(f"adding up {counted(len(loaded.ops), 'op')}"):
        if depth is not None:
            loaded = to_depth(loaded, depth)
        text = renderer.render(analyze(loaded), by, **extra)
    tables.write(text, extra)


def _folder(path: Path, format: str, width: int | None, every: bool, *others: object) -> None:
    """Print what a sweep, or the ranks of a job, tell. path: the folder; others: options of a profile."""
    if any(option not in (None, False) for option in others):
        raise InputError("A folder takes only --format, --width and, of ranks, --all.")
    from roofline import ranks
    from roofline.cli.options.words import if_long
    from roofline.ranks import folder as folder_of_ranks
    from roofline.sweeping import folder as folder_of_sweep
    from roofline.sweeping import grid

    path = Path(path)
    is_sweep = folder_of_sweep.is_folder(path)
    renderer = plugins.load(_SWEEP if is_sweep else _RANKS, format, "format of a folder")
    extra = tables.arguments(renderer, format, width=width)
    if every and format == "text" and not is_sweep:
        extra["every"] = True
    with if_long(f"reading {path_name(path)}"):
        shown = grid.read(path) if is_sweep else ranks.describe(folder_of_ranks.read(path))
    tables.write(renderer.render(shown, **extra), extra)


def _list(*of_a_profile: object, width: int | None, format: str) -> None:
    """List the profiles that ship; of_a_profile: the options that have no meaning for a list."""
    if any(option not in (None, False) for option in of_a_profile):
        raise InputError("Give a PROFILE: the list of shipped profiles takes only --format and --width.")
    renderer = plugins.load(_LISTS, format, "format of the list")
    extra = tables.arguments(renderer, format, width=width)
    from roofline.core import schema, shipped

    tables.write(renderer.render({name: schema.load(path) for name, path in shipped.paths().items()}, **extra), extra)


def _wall(
    profiles: list[Path],
    by: str | None,
    depth: int | None,
    rows: Any,
    width: int | None,
    columns: int | None,
    caption: str | None,
    format: str,
) -> None:
    """Print the wall chart as a table."""
    if by not in (None, "group") or depth is not None:
        raise InputError("--wall always shows a table by group: leave --by and --depth out.")
    renderer = plugins.load(_WALL, format, "format of the wall chart")
    extra = tables.arguments(renderer, format, rows=rows, width=width, columns=columns, caption=caption)
    check_once(profiles)
    from roofline.analysis.analysis import analyze
    from roofline.cli.options.words import if_long
    from roofline.content.facts.wall import chart

    with if_long(f"reading {len(profiles)} profiles"):
        loaded = [load(path) for path in profiles]
    tables.write(renderer.render(chart([analyze(profile) for profile in loaded]), **extra), extra)
