"""Make a profile from a trace that was recorded elsewhere: `roofline import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roofline import plugins
from roofline.cli.options import tables
from roofline.cli.options.completion import devices as device_names

if TYPE_CHECKING:
    from pathlib import Path

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
_WHICH = f"Traces of torch.profiler (.json, .json.gz, .zip), or {_others()}."


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
        str | None,
        typer.Option(
            metavar="TRACE", help="The trace of the CUDA graphs' capture, which names the ops of replayed kernels."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the model. Default: the name of the trace file.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE.json", help="The profile to write.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    details: tables.Details = False,
) -> None:
    """Make a profile from a recorded trace.

    Read ops, work, bounds and idle time from the trace and the ceilings from its device; run nothing. Read several
    traces as the ranks of one job, one profile per rank.

    Example: roofline import trace.json.gz -o trace-profile.json
    """
    from pathlib import Path

    from roofline import importing
    from roofline.analysis.analysis import analyze
    from roofline.cli.options import terminal, words
    from roofline.cli.options.paths import check_output, check_writable
    from roofline.core.schema import save
    from roofline.measuring.session import default_name
    from roofline.renderers import text
    from roofline.units import printable

    inputs = (*traces, capture, device)
    if output is not None:
        check_output(Path(output), force or len(traces) > 1, (".json",), () if len(traces) > 1 else inputs)
        if len(traces) > 1:  # most traces name their rank before their events
            for rank in importing.ranks(traces):
                if rank is not None:
                    check_output(_of_rank(Path(output), rank), force, (".json",), inputs)
    check_writable(Path.cwd() if output is None else Path(output).parent)
    with words.if_long(f"reading {', '.join(map(printable, traces))}"):
        profiles = importing.read(
            traces, device=device, capture=capture, name=name, command=words.command_line(), say=words.say
        )
    if output is None:
        paths = [default_name(profile, Path.cwd()) for profile in profiles]
    elif len(profiles) == 1:
        paths = [Path(output)]
    else:
        paths = [_of_rank(Path(output), profile.imported.rank if profile.imported else None) for profile in profiles]
        for path in paths:
            check_output(path, force, (".json",), inputs)
    with words.if_long(f"writing {', '.join(map(printable, paths))}"):
        for profile, path in zip(profiles, paths, strict=True):
            save(profile, path)
    slowest = max(range(len(profiles)), key=lambda number: sum(profiles[number].wall.steps))
    print(text.render(analyze(profiles[slowest]), None, page=terminal.page(), details=details), end="")
    for path in paths:
        print(f"Wrote {printable(path)}")
    print(f"Next: roofline show {words.quoted(paths[slowest])} {'--by op' if details else '--details'}")


def _of_rank(path: Path, rank: int | None) -> Path:
    """Add a rank to a path: FILE.json -> FILE-rank3.json."""
    return path.with_name(f"{path.stem}-rank{rank}.json")
