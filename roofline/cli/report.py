"""Write one or more profiles into one HTML file: `roofline report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.options import completion
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
            help="Saved profiles or short names of those that ship, the first is A; one may be - for standard input.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REPORT", help="REPORT.html.")],
    allow: Annotated[
        bool, typer.Option("--allow", help="Explain the difference of runs that are not comparable, with a warning.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a page about one or more profiles.

    One file that needs no network, to be opened in a browser, sent, attached or printed. Of several profiles each has
    its own tables; two are compared as A - B, more with the fastest. Example: roofline report a.json b.json -o why.html
    """
    check_output(output, force, SUFFIXES, profiles)
    check_once(profiles)
    for path in profiles:
        if path.is_dir():
            raise InputError(
                f"{printable(path)} is a folder: name the profiles in it, as in {printable(path / '*.json')}."
            )
    from roofline.core.files import write_atomically
    from roofline.renderers.report import report

    with if_long(f"reading {len(profiles)} profiles"):
        loaded = [load(path) for path in profiles]
    with if_long("writing the report"):
        page = report(loaded, allow=allow)
    write_atomically(output, page.encode())
    typer.echo(f"Wrote {printable(output)}")
