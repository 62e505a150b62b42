"""`roofline profile`."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.errors import InputError

MODES = ("infer", "train", "generate")
PRECISIONS = ("default", "fp32", "tf32", "bf16", "fp16", "mixed-bf16", "mixed-fp16")


def command(
    model: Annotated[str, typer.Argument(help="A model (see `roofline models`), or path/to/file.py:function.")],
    backend: Annotated[str, typer.Option(help="A backend (see `roofline backends`), as NAME or NAME:opt=val,...")],
    mode: Annotated[str, typer.Option(help="What a step is: infer, train or generate.")] = "infer",
    batch: Annotated[int | None, typer.Option(help="Samples per step. By default 1 on a CPU and 32 on a GPU.")] = None,
    seq: Annotated[int | None, typer.Option(help="Tokens per sample. By default 128.")] = None,
    size: Annotated[str, typer.Option(help="tiny, base, ... By default the published size, base.")] = "base",
    layers: Annotated[int | None, typer.Option(help="Layers, if not those of the size.")] = None,
    precision: Annotated[
        str, typer.Option(help=f"{', '.join(PRECISIONS)}. The default touches no switch and records them.")
    ] = "default",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda. auto takes a GPU where there is one.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads. By default one per physical core.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Plain steps. By default 100 on a GPU, on a CPU up to 20 within 60 s.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Fresh processes that time plain steps.")] = 1,
    input: Annotated[str, typer.Option(help="Where the inputs of each step lie: device or host.")] = "device",
    no_optimizer: Annotated[bool, typer.Option("--no-optimizer", help="Leave the optimizer out of training.")] = False,
    count_only: Annotated[bool, typer.Option("--count-only", help="Count work in one step and time nothing.")] = False,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Where the profile is written (.json).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Measure one step of MODEL, split it into ops, and say what bounds it.

    Times plain steps, profiles a few and counts one, in a fresh process; the first run on a machine also measures
    the device's ceilings, which takes about ten seconds. Example: roofline profile bert --backend torch
    """
    import sys
    from pathlib import Path

    from roofline import session
    from roofline.backends._request import Request
    from roofline.cli._paths import check_output
    from roofline.core.analysis import analyze
    from roofline.core.profile import save

    name, options = parse_backend(backend)
    _check_choice("mode", mode, MODES)
    _check_choice("precision", precision, PRECISIONS)
    _check_choice("input", input, ("device", "host"))
    _check_choice("device", device, ("auto", "cpu", "cuda"))
    for option, value in {"batch": batch, "seq": seq, "layers": layers, "threads": threads, "steps": steps}.items():
        if value is not None and value < 1:
            raise InputError(f"--{option} {value} is not possible: give at least 1.")
    if rounds < 1:
        raise InputError(f"--rounds {rounds} is not possible: give at least 1.")
    if output is not None:
        check_output(Path(output), force, (".json",))
    file, function, model = _model(model, name)
    from roofline.devices import calibration, cpu

    kind = calibration.resolve(device)
    request = Request(
        backend=name,
        options=options,
        model=model,
        file=file,
        function=function,
        mode=mode,  # type: ignore[arg-type]
        batch=batch,
        seq=seq,
        size=size,
        layers=layers,
        precision=precision,
        device=kind,
        threads=threads if threads is not None else cpu.detect().cores,
        steps=steps,
        input=input,  # type: ignore[arg-type]
        optimizer=not no_optimizer,
        count_only=count_only,
    )
    if file is None:
        _check_dimensions(request)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def progress(text: str, done: int, of: int) -> None:
        say(f"calibrating ({done + 1}/{of}): {text}" if done < of else "calibrated")

    profile = session.measure(request, command=_command_line(), rounds=rounds, say=say, progress=progress)
    path = Path(output) if output is not None else session.default_name(profile, Path.cwd())
    save(profile, path)
    from roofline.renderers import text

    print(text.render(analyze(profile), None))
    print(f"Wrote {path}")
    print(f"Next: roofline plot {path} -o {path.with_suffix('.svg')}")


def parse_backend(text: str) -> tuple[str, dict[str, str]]:
    """ "tensorflow-xla:mode=compile" is ("tensorflow-xla", {"mode": "compile"}), checked against the backend."""
    from roofline import plugins

    name, _, rest = text.partition(":")
    module = plugins.load("roofline.backends", name, "backend")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if option not in module.OPTIONS:
            known = ", ".join(module.OPTIONS) or "none"
            raise InputError(f"The {name} backend has no option {option!r}; there are: {known}.")
        if not equals or value not in module.OPTIONS[option]:
            raise InputError(f"{name}:{option} takes {' or '.join(module.OPTIONS[option])}, not {value!r}.")
        options[option] = value
    return name, options


def _model(model: str, backend: str) -> tuple[str | None, str | None, str]:
    """(file, function, name) of what the user wants to run."""
    from pathlib import Path

    from roofline import plugins

    file, colon, function = model.rpartition(":")
    if colon or model.endswith(".py") or "/" in model:
        if not colon or not file.endswith(".py") or not function.isidentifier():
            raise InputError(f"{model!r} is no model; a step of your own is given as path/to/file.py:function.")
        if not Path(file).is_file():
            raise InputError(f"There is no file {file}.")
        return file, function, f"{Path(file).stem}:{function}"
    module = plugins.load("roofline.backends", backend, "backend")
    plugins.require(module.MODELS, model, "model")
    return None, None, model


def _check_dimensions(request: object) -> None:
    """Refuse what the model cannot be before a framework is loaded or a ceiling is measured."""
    import msgspec

    from roofline.core.step import Workload
    from roofline.models import dimensions

    known = {name: value for name, value in msgspec.structs.asdict(request).items() if name in Workload.__slots__}  # type: ignore[type-var]
    dimensions(Workload(**known))


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"There is no {option} {value!r}; there are: {', '.join(choices)}.")


def _command_line() -> str:
    """What the user typed, without the path of the program."""
    import shlex
    import sys

    return shlex.join(["roofline", *(word for word in sys.argv[1:] if word != "--debug")])
