"""Measure one step: `roofline profile`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from roofline.cli.options import completion, presets, tables
from roofline.cli.options.ceilings import CEILINGS, given_ceilings
from roofline.cli.options.request import DEFAULTS, chosen_backend, make_request
from roofline.core.step import PRECISIONS
from roofline.errors import InputError


def command(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.models, help="A model (see `roofline models`), or path/to/file.py:function."
        ),
    ],
    backend: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.backends,
            help="A backend (see `roofline backends`), as NAME or NAME:opt=val,... Default: that of the framework, if "
            "only one is installed, or a file of yours imports only one.",
        ),
    ] = None,
    shapes: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE:TYPE,...",
            help="Call a module or a function of your file with such inputs: 8x128:int64,8x3. Default type: float32.",
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="infer, train or generate.")] = DEFAULTS.mode,
    batch: Annotated[int | None, typer.Option(help="Samples per step. Default: 1 on a CPU, 32 on a GPU.")] = None,
    seq: Annotated[
        int | None, typer.Option(help="Tokens per sample; with --mode generate, of its prompt. Default: 128.")
    ] = None,
    new_tokens: Annotated[
        int | None, typer.Option("--new-tokens", help="With --mode generate: tokens to generate per sample.")
    ] = None,
    size: Annotated[str, typer.Option(help="tiny, base, ... Default: base, the published size.")] = DEFAULTS.size,
    layers: Annotated[int | None, typer.Option(help="Number of layers. Default: that of the size.")] = None,
    precision: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(PRECISIONS)}. The default changes no setting of the framework and records them."
        ),
    ] = DEFAULTS.precision,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda. auto takes the GPU if there is one.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads. Default: one per physical core.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Plain steps. Default: 100 on a GPU; up to 20 within 60 s on a CPU.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of fresh processes that time plain steps.")] = 1,
    input: Annotated[str, typer.Option(help="Where the inputs of each step are: device or host.")] = DEFAULTS.input,
    no_optimizer: Annotated[bool, typer.Option("--no-optimizer", help="Leave the optimizer out of training.")] = False,
    count_only: Annotated[bool, typer.Option("--count-only", help="Count the work of one step; time nothing.")] = False,
    preset: Annotated[str | None, typer.Option(metavar="NAME", help=presets.HELP)] = None,
    core: Annotated[bool, typer.Option("--core", help=presets.CORE)] = False,
    ceilings: Annotated[str | None, typer.Option(metavar="FILE", help=CEILINGS)] = None,
    python: Annotated[
        str | None, typer.Option(help="Another Python interpreter to measure in, with roofline installed.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End a measuring process after that time, with an error. Default: never."),
    ] = None,
    output: Annotated[str | None, typer.Option("-o", "--output", help="The profile to write (.json).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    details: tables.Details = False,
    show: Annotated[bool, typer.Option("--open", help="Also write the report, and open it in a browser.")] = False,
) -> None:
    """Measure one step, split it into ops, and say what limits it.

    In a fresh process, time plain steps, profile a few and count the work of one. In the first run on a machine, also
    measure the ceilings of the device (about twelve seconds) and save them.

    Example: roofline profile bert --backend torch
    """
    from pathlib import Path

    from roofline.analysis.analysis import analyze
    from roofline.cli.options import terminal, words
    from roofline.cli.options.browser import open_page, temporary_page
    from roofline.cli.options.paths import check_output, check_writable, save_measured
    from roofline.core.files import write_atomically
    from roofline.measuring import session
    from roofline.units import printable

    backend, by_import = chosen_backend(model, backend, python)
    if rounds < 1:
        raise InputError(f"--rounds {rounds} is not possible: give at least 1.")
    if output is not None:
        check_output(Path(output), force, (".json",), (model.rpartition(":")[0] or None, python))
    check_writable(Path.cwd() if output is None else Path(output).parent)
    asked: dict[str, Any] = {
        "mode": mode,
        "batch": batch,
        "seq": seq,
        "new_tokens": new_tokens,
        "size": size,
        "layers": layers,
        "precision": precision,
        "device": device,
        "threads": threads,
        "steps": steps,
        "input": input,
        "optimizer": not no_optimizer,
    }
    presets.check_core(core, preset)
    if preset is not None:
        bare = core or count_only
        backend, asked, lines = presets.fill(
            preset, model, backend, asked, presets.explicit_options(context, asked), bare
        )
        for line in lines:
            words.say(line)
    request = make_request(
        model,
        backend,
        **asked,
        count_only=count_only,
        python=python,
        preset=preset,
        shapes=shapes,
        framework_by_import=by_import,
        timeout=timeout,
    )
    given_device = given_ceilings(ceilings, request)

    profile = session.measure(
        request,
        command=words.command_line(),
        rounds=rounds,
        say=words.say,
        progress=words.calibrating,
        given_device=given_device,
    )
    path = save_measured(profile, None if output is None else Path(output), force)
    from roofline.renderers import text

    print(text.render(analyze(profile), None, page=terminal.page(), details=details), end="")
    print(f"Wrote {printable(path)}")
    if show:
        from roofline.renderers import report

        page = temporary_page()
        write_atomically(page, report.report([profile]).encode())
        print(f"Wrote {printable(page)}")
        open_page(page)
    if details or count_only:
        kind = " --kind breakdown" if count_only else ""
        print(f"Next: roofline plot {words.quoted(path)}{kind} -o {words.quoted(path.with_suffix('.svg'))}")
    else:
        print(f"Next: roofline show {words.quoted(path)} --details")
