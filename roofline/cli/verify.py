"""Check counted FLOPs against independent references: `roofline verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.cli.options import completion
from roofline.cli.options.request import DEFAULTS, chosen_backend, make_request
from roofline.cli.options.words import result
from roofline.errors import GateError


def command(
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
            help="A backend (see `roofline backends`). Default: that of the framework, if only one is installed, or a "
            "file of yours imports only one.",
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="infer, train or generate.")] = DEFAULTS.mode,
    batch: Annotated[int | None, typer.Option(help="Samples per step.")] = None,
    seq: Annotated[int | None, typer.Option(help="Tokens per sample.")] = None,
    new_tokens: Annotated[
        int | None, typer.Option("--new-tokens", help="With --mode generate: tokens to generate per sample.")
    ] = None,
    size: Annotated[str, typer.Option(help="tiny, base, ... Default: base, the published size.")] = DEFAULTS.size,
    layers: Annotated[int | None, typer.Option(help="Number of layers. Default: that of the size.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    python: Annotated[
        str | None, typer.Option(help="Another Python interpreter to count in, with roofline installed.")
    ] = None,
) -> None:
    """Check counted FLOPs against independent references.

    List checks that could not run as "not checked". Exit with 1 if a count differs from its reference.
    """
    from roofline.content.terminal import columns
    from roofline.measuring import session
    from roofline.units import flop

    backend, by_import = chosen_backend(model, backend, python)
    request = make_request(
        model,
        backend,
        mode=mode,
        batch=batch,
        seq=seq,
        new_tokens=new_tokens,
        size=size,
        layers=layers,
        device=device,
        python=python,
        framework_by_import=by_import,
    )
    checks = session.verify(request)
    rows = [("reference", "what", "ours", "reference", "", "verdict")]
    rows += [
        (check.reference_name, check.what, flop(check.ours), flop(check.reference), "", check.verdict)
        for check in checks
    ]
    head, *lines = columns(rows, left_aligned=(0, 1, 5), separator=" ", least=(16, 44, 12, 12, 0, 0))
    page = [head]
    for check, line in zip(checks, lines, strict=True):
        page += [line, f"{'':16s} {check.note}"] if check.note else [line]
    unchecked = sum(check.verdict == "not checked" for check in checks)
    wrong = [check.what for check in checks if check.verdict == "differs"]
    agreeing = len(checks) - unchecked - len(wrong)
    result("\n".join([*page, f"{agreeing} agree, {len(wrong)} differ, {unchecked} could not be checked.", ""]))
    if wrong:
        raise GateError(f"Counts differ from their reference: {', '.join(wrong)}.")
