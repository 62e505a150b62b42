"""Measure the ceilings of this machine: `roofline calibrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.errors import InputError


def command(
    device: Annotated[str, typer.Option(help="auto, cpu or cuda. auto takes the GPU if there is one.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads. Default: one per physical core.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Measure for a minute instead of about twelve seconds (twenty on a GPU).")
    ] = False,
    remeasure: Annotated[
        bool, typer.Option("--again", "--force", help="Measure again even if a calibration is saved.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(help="Measure only these ceilings: names or patterns, separated by commas (matrix.*,dram.copy)."),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """Measure the ceilings of this machine.

    Save the result per device, threads, libraries and driver. Every profile on this machine uses it until the machine
    is rebooted (until the next day, if the time of the boot is not known). A ceiling is the best that the machine can
    do, and other load hides it: close other programs first. With --again, measure once more and keep the better one.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"There is no device called {device!r} to calibrate; there are: auto, cpu, cuda.")
    if format not in ("text", "json"):
        raise InputError(f"There is no format called {format!r}; there are: text, json.")
    from roofline.cli.devices import as_json, as_text
    from roofline.devices import calibration, cpu

    names = tuple(name.strip() for name in (only or "").split(",") if name.strip())
    measured = calibration.calibrate(device, threads, short=not full, progress=_tell, remeasure=remeasure, only=names)
    typer.echo(as_json(measured) if format == "json" else as_text(measured))
    kind = calibration.resolve(device)
    path = calibration.location(calibration.key(kind, threads or cpu.detect().cores, names))
    if path.is_file():
        typer.echo(f"\nSaved in {path}", err=format == "json")
    if measured.contended:
        typer.echo(
            f"The {'processor' if kind == 'cpu' else 'GPU'} was busy with other programs while some ceilings were "
            "measured (marked !), so these may be far too low. The next command that needs them measures them again if "
            "it is idle; so does --again.",
            err=True,
        )


def _tell(text: str, finished: int, of: int) -> None:
    """Print a line per probe; a sentence (`of` is 0) is printed as it is."""
    typer.echo(text if not of else f"[{finished}/{of}] {text}", err=True)
