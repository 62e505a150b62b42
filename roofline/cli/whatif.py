"""Project a step to another device: `roofline whatif`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline import plugins
from roofline.cli.options import tables
from roofline.cli.options.completion import devices as device_names
from roofline.cli.options.completion import formats, profiles
from roofline.cli.options.paths import load, path_name
from roofline.cli.options.terminal import Width
from roofline.errors import InputError

_RENDERERS = "roofline.renderers.whatif"
_FORMATS = "|".join(plugins.names(_RENDERERS))


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
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=device_names,
            help="The other device: a name of `roofline devices`, or a TOML or JSON file.",
        ),
    ],
    width: Width = None,
    format: Annotated[
        str, typer.Option(metavar="FORMAT", autocompletion=formats(_RENDERERS), help=f"The format: {_FORMATS}.")
    ] = "text",
) -> None:
    """Project a step to another device.

    Assume that each op reaches the same fraction of the other device's limits (ceilings and launch latency), and a
    library's matmuls and attention partly what is typical there, and print a range. Next to it, print the time at the
    ceilings alone, with all traffic from main memory. Run nothing: other kernels may do better or worse. List the ops
    that cannot be projected. For a profile that was only counted, print the least time on the other device.

    Example: roofline whatif p.json --device h100-sxm
    """
    renderer = plugins.load(_RENDERERS, format, "format")
    extra = tables.arguments(renderer, format, width=width)
    from roofline import devices
    from roofline.api.whatif import whatif
    from roofline.cli.options.words import if_long
    from roofline.content.wording import counted
    from roofline.projection.least import Least
    from roofline.units import printable

    target = devices.load(device)
    with if_long(f"reading {path_name(profile)}"):
        loaded = load(profile)
    with if_long(f"projecting {counted(len(loaded.ops), 'op')} to {printable(target.name)}"):
        projection = whatif(loaded, target)
        if isinstance(projection, Least) and format != "text":
            raise InputError(
                f"A profile made with --count-only can be shown as text only: leave --format {format} out."
            )
        text = renderer.render(projection, **extra)
    tables.write(text, extra)
