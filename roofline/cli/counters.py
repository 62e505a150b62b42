"""`roofline counters`: bytes by hardware counters, joined to the ops of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.options.paths import STDIN, check_output, load, reading
from roofline.cli.options.words import if_long, printable, quoted
from roofline.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roofline.core.schema import Profile
    from roofline.counters.nsight_compute import Kernel

#: Names of kernels without an op that are printed, by choice.
_NAMES = 5


def command(
    profile: Annotated[
        Path, typer.Argument(metavar="PROFILE", help="A profile of a GPU; - reads it from standard input.")
    ],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[NCU.csv]", help="What Nsight Compute counted of one step; without it, how to count."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="COUNTED.json", help="Where the profile with its counters is written."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Join bytes that hardware counted to the ops of a profile.

    Without a table it prints the command of Nsight Compute (ncu) that counts one step of the profile. With one it
    writes the profile anew, with the bytes of main memory that were counted of each op: they then decide its floor and
    its bound, and stand beside the compulsory ones. Kernels are joined by their order and names; where less than 95 %
    of their time can be joined, the command refuses with exit code 4.
    Example: roofline counters p.json ncu.csv -o counted.json
    """
    if table is None:
        if output is not None:
            raise InputError("There is nothing to write without a table of ncu: name it behind the profile.")
        _print_command(load(profile), profile)
        return
    if output is None:
        raise InputError("Say where the profile with its counters goes: add -o COUNTED.json.")
    check_output(output, force, (".json",), (profile, table))
    from roofline.analysis.analysis import analyze_timed
    from roofline.core.schema import save
    from roofline.counters import joining, nsight_compute
    from roofline.renderers._facts import counters

    with if_long(f"reading {printable(table)}"):
        kernels = nsight_compute.read(table)
    loaded = load(profile)
    with if_long(f"joining {len(kernels)} kernels to {reading(profile)}"):
        joined = joining.join(loaded, kernels)
        counted = joining.count(loaded, joined, table.name)
    save(counted, output)
    typer.echo(f"{_sentence(counters.told(analyze_timed(counted)))}")
    if joined.without:
        typer.echo(f"Without an op: {_names(joined.without)}.")
    typer.echo(f"Wrote {printable(output)}")
    typer.echo(f"Next: roofline show {quoted(output)} --by class")


def _print_command(profile: Profile, path: Path) -> None:
    """The command that counts one step of a profile, or of the user's program where the profile cannot run its step."""
    import shlex
    import sys

    from roofline.core.schema import slug
    from roofline.counters import nsight_compute

    if profile.device.kind != "cuda":
        raise InputError("Nsight Compute counts kernels of NVIDIA GPUs, and this profile is of another device.")
    foreign = profile.imported is not None or "in-process" in map(slug, profile.flags) or path == STDIN
    program = [] if foreign else [sys.executable, "-P", "-m", "roofline.measuring.one_step"]
    words = f"{shlex.join(nsight_compute.command(program, 'ncu.csv'))} {'PROGRAM' if foreign else quoted(path)}"
    if foreign:
        typer.echo(
            "The profile holds no step that can be run again: PROGRAM is what ran it. Let it run one step, after"
        )
        typer.echo("a few others, between torch.cuda.profiler.start() and stop(), or cudaProfilerStart and -Stop.")
    else:
        typer.echo("This counts one step of the profile; run it on the machine that the profile was made on:")
    typer.echo(f"  {words}")
    typer.echo(f"Then: roofline counters {quoted(path)} ncu.csv -o counted.json")


def _names(kernels: Sequence[Kernel]) -> str:
    """The names of kernels, those of most launches first, and how many launches each has."""
    from collections import Counter

    from roofline.counters.joining import function

    launches = Counter(function(kernel.name) for kernel in kernels).most_common()
    told = [f"{printable(name)[:60] or '(no name)'} x {number}" for name, number in launches[:_NAMES]]
    more = len(launches) - len(told)
    return ", ".join([*told, *([f"{more} more names"] if more else [])])


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
