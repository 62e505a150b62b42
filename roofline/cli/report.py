"""Write one or more profiles, or a sweep, into one HTML file: `roofline report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.options import completion
from roofline.cli.options.browser import open_page, temporary_page
from roofline.cli.options.paths import check_once, check_output, load
from roofline.cli.options.words import if_long
from roofline.errors import InputError
from roofline.units import printable

#: Suffixes of a page.
SUFFIXES = (".html", ".htm")


def command(
    profiles: Annotated[
        list[Path],
        typer.Argument(
            metavar="PROFILE...",
            autocompletion=completion.profiles,
            help="Saved profiles or names of shipped ones; the first is A; - reads one from standard input. Or the "
            "folder of a sweep.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="REPORT",
            help="The page to write (.html). Default with --open: a temporary file, which stays.",
        ),
    ] = None,
    allow: Annotated[
        bool, typer.Option("--allow", help="Continue if the runs are not comparable, and mark the comparison.")
    ] = False,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Write an HTML page about one or more profiles.

    Write one file that needs no network: open it in a browser, send it, attach it or print it. Each profile has its
    own tables; two are compared as A - B, more with the fastest. A sweep has its map, where the answer changes, and all
    points.

    Example: roofline report a.json b.json -o why.html
    """
    if output is None and not show:
        raise InputError("No output is given: add -o REPORT.html, or --open to only look at it.")
    if output is not None:
        check_output(output, force, SUFFIXES, profiles)
    check_once(profiles)
    from roofline.core.files import write_atomically
    from roofline.renderers import report as pages
    from roofline.sweeping import folder, grid

    if len(profiles) == 1 and folder.is_folder(profiles[0]):
        with if_long(f"reading {printable(profiles[0])}"):
            page = pages.report_sweep(grid.read(profiles[0]))
    else:
        _check_files(profiles)
        with if_long(f"reading {len(profiles)} profiles"):
            loaded = [load(path) for path in profiles]
        with if_long("writing the report"):
            page = pages.report(loaded, allow=allow)
    file = output or temporary_page()
    write_atomically(file, page.encode(), replace=force or output is None)
    typer.echo(f"Wrote {printable(file)}")
    if show:
        open_page(file)


def _check_files(profiles: list[Path]) -> None:
    """Refuse folders: a sweep stands alone, and of others the profiles in them are named."""
    for path in profiles:
        if path.is_dir():
            raise InputError(
                f"{printable(path)} is a folder: name the profiles in it, as in {printable(path / '*.json')}."
            )
