"""Make a profile from a trace that was recorded elsewhere: `roofline import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roofline import plugins
from roofline.cli.options import tables
from roofline.cli.options.completion import devices as device_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roofline.core.schema import Profile

    #: The files that the command reads.
    Inputs = Sequence[str | Path | None]

_FORMATS = "roofline.importing"


def _others() -> str:
    """Describe the formats besides torch.profiler's in the words of each: "an XPlane trace (.pb, .pb.gz)"."""
    formats = []
    for name in plugins.names(_FORMATS):
        says = plugins.constants(_FORMATS, name) if name.startswith("from-") else {}
        if says.get("SUFFIXES"):
            words = says["WORDS"]
            formats.append(f"{words[0].lower()}{words[1:]} ({', '.join(says['SUFFIXES'])})")
    return ", or ".join(formats)


#: Once: typer evaluates the annotations of a command four times.
_WHICH = f"Traces of torch.profiler or rocprofv3 (.json, .json.gz, .zip), or a folder of them, or {_others()}."


def command(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help=_WHICH)],
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            autocompletion=device_names,
            help="The device whose ceilings to use. Default: the one named in the trace.",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TRACE|DIR",
            help="A trace of the graphs' capture, which names the ops of replayed kernels, or a folder of them.",
        ),
    ] = None,
    inductor_cache: Annotated[
        str | None,
        typer.Option(
            "--inductor-cache",
            metavar="DIR",
            help="The cache folder of torch's compiler: the source of each Triton kernel there says what it moves.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the model. Default: the name of the trace file.")
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps",
            "--step",
            metavar="N:N",
            help="The steps to use, from the first to the last (3:8, 3:, :8 or 3), as the trace numbers them.",
        ),
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            help="A step goes from one MARK to the next: an annotation or an op, by name or by how its name begins.",
        ),
    ] = None,
    trim: Annotated[
        str | None,
        typer.Option(
            metavar="MS:MS", help="Use only this part of the trace, in ms after it begins: 10:50, 10: or :50."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE.json|DIR", help="The profile to write; of several ranks a folder."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Processes that read several traces. Default: one per usable core, as far as memory allows.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    details: tables.Details = False,
) -> None:
    """Make a profile from a recorded trace.

    Read ops, work, bounds and idle time from the trace and the ceilings from its device; run nothing. Read several
    traces, or a folder of them, as the ranks of one job: write a profile per rank into a folder, and say which rank
    the others wait for.

    Example: roofline import trace.json.gz -o trace-profile.json
    """
    from pathlib import Path

    from roofline import importing
    from roofline.cli.options import words
    from roofline.cli.options.paths import check_output, check_writable
    from roofline.importing.selection import selected
    from roofline.units import printable

    selection = selected(steps, between, trim)
    paths = importing.traces_in(traces)
    inputs = (*paths, *importing.traces_in(capture or ()), device)
    if output is not None and len(paths) == 1:
        check_output(Path(output), force, (".json",), inputs)
    elif output is not None:
        _check_ranks(Path(output), importing.ranks(paths), force, inputs)  # most traces name theirs before their events
    check_writable(Path.cwd() if output is None else Path(output).parent)
    with words.if_long(f"reading {printable(paths[0])}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''}"):
        profiles = importing.read(
            paths,
            device=device,
            capture=capture,
            inductor_cache=inductor_cache,
            name=name,
            command=words.command_line(),
            selection=selection,
            say=words.say,
            workers=workers,
        )
    if len(profiles) > 1:
        _write_ranks(profiles, None if output is None else Path(output), force, inputs)
    else:
        _write(profiles[0], None if output is None else Path(output), force, details)


def _write(profile: Profile, output: Path | None, force: bool, details: bool) -> None:
    """Save a profile and print its first screen, or with `details` all of it."""
    from roofline.analysis.analysis import analyze
    from roofline.cli.options import terminal, words
    from roofline.cli.options.paths import save_measured
    from roofline.renderers import text
    from roofline.units import printable

    with words.if_long("writing the profile"):
        path = save_measured(profile, output, force)
    print(text.render(analyze(profile), None, page=terminal.page(), details=details), end="")
    print(f"Wrote {printable(path)}")
    print(f"Next: roofline show {words.quoted(path)} {'--by op' if details else '--details'}")


def _write_ranks(profiles: list[Profile], output: Path | None, force: bool, inputs: Inputs) -> None:
    """Save the profiles of ranks, in a folder where `output` is no file, and print what they tell together."""
    from pathlib import Path

    from roofline import ranks
    from roofline.cli.options import terminal, words
    from roofline.measuring.session import default_name
    from roofline.ranks import folder
    from roofline.renderers.ranks import text
    from roofline.units import printable

    numbers = [profile.imported.rank if profile.imported else None for profile in profiles]
    with words.if_long(f"writing {len(profiles)} profiles"):
        if output is not None and output.suffix == ".json":
            _check_ranks(output, numbers, force, inputs)
            paths = [_of_rank(output, number) for number in numbers]
            folder.save_all(profiles, paths, replace=force)
        else:
            into = default_name(profiles[0], Path.cwd()).with_suffix("") if output is None else output
            _check_ranks(into, numbers, force, inputs)
            paths = folder.write(into, profiles)
    job = ranks.describe(profiles)
    print(text.render(job, page=terminal.page()), end="")
    print(f"Wrote {printable(paths[0])} {'and' if len(paths) == 2 else 'to'} {printable(paths[-1])}")
    chosen = paths[0] if job.straggler is None else paths[numbers.index(job.straggler.rank)]
    print(f"Next: roofline show {words.quoted(chosen)}")


def _check_ranks(output: Path, numbers: Sequence[int | None], force: bool, inputs: Inputs) -> None:
    """Check that the profiles of ranks can be written: into a folder, or beside a file. None: not known yet."""
    from roofline.cli.options.paths import check_output
    from roofline.errors import InputError
    from roofline.ranks import folder

    if output.suffix != ".json":
        if output.exists() and not output.is_dir():
            raise InputError(f"Cannot write {output}: it is a file; give a folder for several ranks, or FILE.json.")
        if not output.parent.is_dir():
            raise InputError(f"Cannot write {output}: there is no folder {output.parent}; make it.")
    of_ranks = [number for number in numbers if number is not None]
    paths = [output / name for name in (folder.MANIFEST, *map(folder.name_of, of_ranks))]
    if output.suffix == ".json":
        paths = [_of_rank(output, number) for number in of_ranks]
    for path in paths:
        if path.parent.is_dir():
            check_output(path, force, (".json",), inputs)


def _of_rank(path: Path, rank: int | None) -> Path:
    """Add a rank to a path: FILE.json -> FILE-rank3.json."""
    return path.with_name(f"{path.stem}-rank{rank}.json")
