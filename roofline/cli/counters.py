"""Add bytes counted by hardware to the ops of a profile: `roofline counters`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.options.completion import profiles as short_names
from roofline.cli.options.paths import STDIN, check_output, load, path_name
from roofline.cli.options.words import if_long, quoted
from roofline.errors import InputError
from roofline.units import printable

if TYPE_CHECKING:
    from roofline.core.schema import Profile


def command(
    profile: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE",
            autocompletion=short_names,
            help="A profile of a GPU, or the name of a shipped one; - reads it from standard input.",
        ),
    ],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[NCU.csv]", help="The table that Nsight Compute wrote for one step."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="COUNTED.json", help="The profile with counters to write."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Add bytes counted by hardware to the ops of a profile.

    Without a table, print the command of Nsight Compute (ncu) that counts one step of the profile. With a table,
    write a copy of the profile with the main-memory bytes that were counted for each op; they then decide its minimum
    time and bound. Match kernels to ops by order and name; if less than 95 % of their time matches, exit with code 4.

    Example: roofline counters p.json ncu.csv -o counted.json
    """
    if table is None:
        if output is not None:
            raise InputError("-o needs a table of ncu: give it after the profile.")
        _print_command(_with_times(profile), profile)
        return
    if output is None:
        raise InputError("No output is given: add -o COUNTED.json.")
    check_output(output, force, (".json",), (profile, table))
    from roofline.analysis.analysis import analyze_timed
    from roofline.content.facts import counters
    from roofline.core.schema import save
    from roofline.counters import joining, nsight_compute

    with if_long(f"reading {printable(table)}"):
        kernels = nsight_compute.read(table)
    loaded = _with_times(profile)
    with if_long(f"joining {len(kernels)} kernels to {path_name(profile)}"):
        joined = joining.join(loaded, kernels)
        counted = joining.count(loaded, joined, table.name)
    sentence = _sentence(counters.compare_counters(analyze_timed(counted)))
    save(counted, output, replace=force)
    typer.echo(sentence)
    if joined.without:
        typer.echo(f"Kernels without an op: {joining.most_frequent(joined.without)}.")
    typer.echo(f"Wrote {printable(output)}")
    typer.echo(f"Next: roofline show {quoted(output)} --by class")


def _with_times(path: Path) -> Profile:
    """Load a profile whose ops have times. Raises InputError for others: how much is joined is a share of time."""
    profile = load(path)
    if not profile.has_times:
        from roofline.analysis.analysis import why_untimed

        raise InputError(f"The profile {why_untimed(profile)}.")
    return profile


def _print_command(profile: Profile, path: Path) -> None:
    """Print the command that counts one step of a profile, or of the user's program if the profile cannot run it."""
    import shlex
    import sys

    from roofline.core.schema import slug
    from roofline.counters import nsight_compute

    if profile.device.kind != "cuda":
        raise InputError("Nsight Compute counts kernels of NVIDIA GPUs only: this profile was made on another device.")
    file = "PROFILE" if path == STDIN else quoted(path)
    foreign = profile.imported is not None or "in-process" in map(slug, profile.flags)
    program = [] if foreign else [sys.executable, "-P", "-m", "roofline.measuring.one_step"]
    words = f"{shlex.join(nsight_compute.command(program, 'ncu.csv'))} {'PROGRAM' if foreign else file}"
    if foreign:
        typer.echo(
            "The step of this profile cannot be run again from here. PROGRAM is your program: after a few other steps,"
        )
        typer.echo("let it run one step between torch.cuda.profiler.start() and stop() (cudaProfilerStart and -Stop).")
    else:
        typer.echo("This counts one step of the profile; run it on the machine that the profile was made on:")
    typer.echo(f"  {words}")
    typer.echo(f"Then: roofline counters {file} ncu.csv -o counted.json")
    if path == STDIN:
        typer.echo("PROFILE is the file of this profile, which came from standard input.")


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
