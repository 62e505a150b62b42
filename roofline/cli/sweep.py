"""Measure a step at many points: `roofline sweep`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.options import completion
from roofline.cli.options.request import DEFAULTS
from roofline.core.step import PRECISIONS
from roofline.errors import InputError
from roofline.units import printable

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from pathlib import Path

    from roofline.sweeping.plan import Point


def command(
    models: Annotated[
        str | None,
        typer.Argument(metavar="MODEL,...", help="Models (see `roofline models`). None: go on with the plan in DIR."),
    ] = None,
    backends: Annotated[
        str | None,
        typer.Option(metavar="A,B", autocompletion=completion.backends_listed, help="Backends, one after the other."),
    ] = None,
    batch: Annotated[str, typer.Option(metavar="N,...", help="Batches; 1..64 doubles: 1,2,4,8,16,32,64.")] = "",
    seq: Annotated[str, typer.Option(metavar="N,...", help="Tokens per sample; 8..1024 doubles.")] = "",
    mode: Annotated[str, typer.Option(metavar="MODE,...", help="infer, train or generate.")] = DEFAULTS.mode,
    precision: Annotated[str, typer.Option(metavar="NAME,...", help=f"{', '.join(PRECISIONS)}.")] = DEFAULTS.precision,
    new_tokens: Annotated[
        int | None, typer.Option("--new-tokens", help="With --mode generate: tokens to generate per sample.")
    ] = None,
    size: Annotated[str, typer.Option(help="tiny, base, ... Default: base, the published size.")] = DEFAULTS.size,
    layers: Annotated[int | None, typer.Option(help="Number of layers. Default: that of the size.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="CPU threads. Default: one per physical core.")] = None,
    steps: Annotated[int | None, typer.Option(help="Plain steps per process.")] = None,
    rounds: Annotated[int, typer.Option(help="Fresh processes that time plain steps, of each point.")] = 1,
    input: Annotated[str, typer.Option(help="Where the inputs of each step are: device or host.")] = DEFAULTS.input,
    no_optimizer: Annotated[bool, typer.Option("--no-optimizer", help="Leave the optimizer out of training.")] = False,
    budget: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Begin nothing after so long: corners, then where the answer changes."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Measure the I-th of N parts of the plan, as in a job array.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Measure on the nodes of a Ray cluster: auto, HOST:PORT or local."),
    ] = None,
    ray_gpus: Annotated[
        int | None, typer.Option("--ray-gpus", help="GPUs of a point. Default: 1 with --device cuda, else 0.")
    ] = None,
    ray_accelerator: Annotated[
        str | None, typer.Option("--ray-accelerator", metavar="TYPE", help="Ray's name of the GPU, as H100.")
    ] = None,
    ray_resources: Annotated[
        str, typer.Option("--ray-resources", metavar="NAME=N,...", help="What a node must have free, as Ray names it.")
    ] = "",
    retry: Annotated[bool, typer.Option("--retry", help="Measure points again that failed.")] = False,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Write the plan and measure nothing.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="DIR", help="The folder of the sweep, new or begun.")
    ] = None,
) -> None:
    """Measure a step at many batches, lengths and backends.

    Each point is measured in a process of its own, and saved: a sweep that was stopped goes on where it was. What
    fails is recorded, and the rest go on. `roofline show DIR` tells who is fastest where, and what limits whom.

    Example: roofline sweep distilbert --backends torch,jax --batch 1..8 --seq 32..512 -o grid
    """
    from functools import partial
    from pathlib import Path

    from roofline.cli.options import terminal, words
    from roofline.cli.options.paths import check_writable
    from roofline.cli.options.points import measure as measure_point
    from roofline.cli.options.points import settle
    from roofline.content.wording import counted
    from roofline.recording.prepared import PreparedProcesses
    from roofline.renderers.sweep import text
    from roofline.sweeping import folder, grid, plan
    from roofline.sweeping.budget import spend
    from roofline.sweeping.run import run

    if output is None:
        raise InputError("A sweep needs a folder: add -o DIR.")
    into = Path(output)
    if rounds < 1:
        raise InputError(f"--rounds {rounds} is not possible: give at least 1.")
    if ray is None and (ray_gpus, ray_accelerator, ray_resources) != (None, None, ""):
        raise InputError("--ray-gpus, --ray-accelerator and --ray-resources are for a Ray cluster: add --ray auto.")
    if ray is not None and budget is not None:
        raise InputError("--budget measures on this machine: leave it or --ray out.")
    alike = {
        "new_tokens": new_tokens, "size": size, "layers": layers, "device": device, "threads": threads,
        "steps": steps, "rounds": rounds, "input": input, "optimizer": not no_optimizer,
    }  # fmt: skip
    if models is None:
        if not folder.is_folder(into):
            raise InputError(f"{into} holds no plan: name a model and --backends.")
        points: Sequence[Point] = folder.read_plan(into)
    else:
        if backends is None:
            raise InputError("Give --backends, as in --backends torch,jax.")
        asked = plan.points(
            _listed(models), _listed_backends(backends), _listed(mode), _listed(precision),
            plan.numbers(batch, "batch"), plan.numbers(seq, "seq"), **alike,
        )  # fmt: skip
        _check(asked)
        check_writable(into if into.is_dir() else into.parent)
        points = folder.write_plan(into, asked)
    _check_files(points, _listed(models or ""))
    words.KEPT.append(f"{words.quoted(into)} has the plan and all points that were done: call it again to go on")
    chosen = plan.shard(points, shard) if shard else list(points)
    if not plan_only:
        if ray is not None:
            ended = _run_on_ray(into, chosen, ray, ray_gpus, ray_accelerator, ray_resources, retry)
        else:
            with PreparedProcesses() as prepared:
                measure = partial(measure_point, prepared=prepared)
                ended = (
                    run(into, chosen, measure, words.say, retry=retry)
                    if budget is None
                    else spend(into, chosen, measure, settle, words.say, budget=60 * budget, retry=retry)
                )
        ends = ", ".join(f"{number} {kind}" for kind, number in ended.items()) or "nothing to measure"
        words.say(f"{counted(len(chosen), 'point')}: {ends}.")
    print(text.render(grid.read(into), page=terminal.page()), end="")
    print(f"Next: roofline show {words.quoted(into)} --format json")


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def _listed_backends(text: str) -> list[str]:
    """Split names of backends; options of one, "torch-compile:mode=default,dynamic=on", stay with it."""
    names: list[str] = []
    for part in _listed(text):
        if "=" in part and ":" not in part and names:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def _check(points: Sequence[Point]) -> None:
    """Refuse what no point can be asked for: each model, backend, mode and precision by itself, before anything runs.

    What some points refuse, as a length beyond a model's positions, is recorded with them.
    """
    from roofline.cli.options.request import check_choice, parse_backend
    from roofline.core.step import MODES

    for backend in dict.fromkeys(point.backend for point in points):
        parse_backend(backend)
    for name, choices in (("mode", MODES), ("precision", PRECISIONS)):
        for value in dict.fromkeys(getattr(point, name) for point in points):
            check_choice(name, value, choices)


def _check_files(points: Sequence[Point], named: Sequence[str]) -> None:
    """Refuse to run files that only a plan names: it may come from anywhere. named: the models of this call."""
    files = dict.fromkeys(point.model for point in points if ":" in point.model and point.model not in named)
    if files:
        raise InputError(f"The plan runs {', '.join(map(printable, files))}: name that on the command line, too.")


def _run_on_ray(
    folder: Path,
    points: Sequence[Point],
    address: str,
    gpus: int | None,
    accelerator: str | None,
    resources: str,
    retry: bool,
) -> Counter[str]:
    """Measure points on a Ray cluster; the arguments are those of the command. Another call waits until this one ends.

    Raises MissingError without Ray, InputError for what the cluster does not have.
    """
    from roofline.cli.options import words
    from roofline.cli.options.request import parse_backend
    from roofline.sweeping import nodes, ray_nodes
    from roofline.sweeping.lock import locked

    devices = {point.device for point in points}
    if gpus is None:
        gpus = int("cuda" in devices or accelerator is not None)
    if gpus < 0:
        raise InputError(f"--ray-gpus {gpus} is not possible: give at least 0.")
    if (excluded := "cpu" if gpus else "cuda") in devices:
        raise InputError(f"--ray-gpus {gpus} is not possible for points with --device {excluded}.")
    asked = ray_nodes.Asked(gpus, accelerator, _resources(resources))
    backends = list(dict.fromkeys(parse_backend(point.backend)[0] for point in points))
    waiting = f"Another command measures the points of {folder}: waiting for it."
    with (
        locked(folder / ".ray.lock", lambda: words.say(waiting)),
        ray_nodes.connect(address, asked, backends, words.say) as cluster,
    ):
        return nodes.run(folder, points, cluster, words.say, retry=retry)


def _resources(text: str) -> dict[str, float]:
    """Read NAME=N,... Raises InputError for other text."""
    resources: dict[str, float] = {}
    for part in _listed(text):
        name, equals, number = part.rpartition("=")
        try:
            resources[name] = float(number)
        except ValueError:
            equals = ""
        if not (name and equals and 0 < resources[name] < math.inf):
            raise InputError(f"--ray-resources {part!r} is not possible: give NAME=N, as in bench=1.")
    return resources
