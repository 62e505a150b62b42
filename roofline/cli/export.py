"""Write a profile for other programs: `roofline export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline import plugins
from roofline.cli.options.completion import profiles
from roofline.cli.options.paths import check_output, load
from roofline.cli.options.words import if_long
from roofline.errors import InputError
from roofline.units import printable

_FORMATS = "roofline.renderers.export"


def _suffixes() -> dict[str, str]:
    """Map suffixes to formats, the longest suffix first; read from the formats' files, without importing them."""
    formats = {str(plugins.constants(_FORMATS, name)["SUFFIX"]): name for name in plugins.names(_FORMATS)}
    return dict(sorted(formats.items(), key=lambda item: (-len(item[0]), item[0])))


_SUFFIXES = _suffixes()


def command(
    profile: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE",
            autocompletion=profiles,
            help="A profile saved by `roofline profile` or `roofline import`, or the name of a shipped one; - reads "
            "it from standard input.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help=f"Ends in {', '.join(sorted(_SUFFIXES))}.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Write a profile in the format of another program.

    .csv and .parquet hold the table of ops: one row per op of the step, with its work, time, minimum time and bound
    (seconds, FLOP, bytes; unknown is empty). .perfetto.json holds the representative step for ui.perfetto.dev,
    .speedscope.json a flame graph for speedscope.app.

    Example: roofline export bert.json -o ops.parquet
    """
    from roofline.analysis.analysis import analyze
    from roofline.core.files import write_atomically

    name = next((name for suffix, name in _SUFFIXES.items() if output.name.endswith(suffix)), None)
    if name is None:
        raise InputError(f"Cannot write {output}: the name must end in {' or '.join(sorted(_SUFFIXES))}.")
    check_output(output, force, (), (profile,))
    with if_long(f"writing {printable(output)}"):
        written = plugins.load(_FORMATS, name, "format").written(analyze(load(profile)))
    write_atomically(output, written, replace=force)
    typer.echo(f"Wrote {printable(output)}")
