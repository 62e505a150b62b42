"""Judge profiles by a baseline in continuous integration, on causes as well as time: `roofline check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roofline import plugins
from roofline.cli.options import tables
from roofline.cli.options.completion import formats, profiles
from roofline.cli.options.paths import check_once, load
from roofline.cli.options.terminal import Width
from roofline.cli.options.words import if_long
from roofline.units import printable

_RENDERERS = "roofline.renderers.check"
_FORMATS = "|".join(plugins.names(_RENDERERS))


def command(
    baseline: Annotated[
        Path,
        typer.Argument(
            metavar="BASELINE",
            autocompletion=profiles,
            help="The profile to compare with, or the name of a shipped one; - reads it from standard input.",
        ),
    ],
    current: Annotated[
        list[Path],
        typer.Argument(
            metavar="CURRENT...",
            autocompletion=profiles,
            help="The profiles to check, each against BASELINE; - reads one from standard input.",
        ),
    ],
    counts_only: Annotated[
        bool,
        typer.Option(
            "--counts-only", help="Check only FLOPs, bytes, kernels, graph breaks and opaque regions; no times."
        ),
    ] = False,
    allow_name: Annotated[
        bool,
        typer.Option("--allow-name", help="Allow another model name: an imported trace is named after its file."),
    ] = False,
    max_time: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Allowed growth of the median step. Default: 5%.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Allowed growth of the bytes moved. Default: 1%.")
    ] = None,
    max_kernels: Annotated[
        str | None,
        typer.Option(metavar="N", help="Allowed growth of launches: a number, or a share like 5%. Default: 0."),
    ] = None,
    max_gap: Annotated[
        str | None,
        typer.Option(
            metavar="POINTS",
            help="Allowed growth of the share of GPU idle or host time in the step, in percentage points. Default: 3%.",
        ),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Allowed growth of the peak memory. Default: 2%.")
    ] = None,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help='A file of limits with lines like time = "5%"; the options above override it.'
        ),
    ] = None,
    width: Width = None,
    format: Annotated[
        str, typer.Option(metavar="FORMAT", autocompletion=formats(_RENDERERS), help=f"The format: {_FORMATS}.")
    ] = "text",
) -> None:
    """Fail if a step got worse than a baseline, and say where.

    Exit with 1 if a gate failed, and with 4 if a profile was measured on a busy machine, so that its times cannot be
    judged. For several profiles the exit code is the first of 1, 2, 4 that occurred. A time fails only if its 95 %
    interval is beyond the limit, too. FLOPs must not grow at all. --counts-only gives the same verdict on every
    machine, and accepts profiles made with --count-only.
    """
    renderer = plugins.load(_RENDERERS, format, "format")
    extra = tables.arguments(renderer, format, width=width)
    from roofline.regression import limits_file
    from roofline.regression.batch import judge, worst
    from roofline.regression.check import Baseline, check
    from roofline.regression.limits import Limits, parse_limits

    options = {"time": max_time, "bytes": max_bytes, "kernels": max_kernels, "gap": max_gap, "memory": max_memory}
    texts = {name: text for name, text in options.items() if text is not None}
    allowed = parse_limits(texts, Limits() if limits is None else limits_file.read(limits), "--max-")
    check_once([baseline, *current])
    with if_long(f"checking {', '.join(map(printable, current))}"):
        before = Baseline(load(baseline))
        judged = judge(
            [str(path) for path in current], load, lambda after: check(before, after, allowed, counts_only, allow_name)
        )
    tables.write(renderer.render(judged, **extra), extra)
    error = worst(judged, str(baseline))
    if error is not None:
        raise error
