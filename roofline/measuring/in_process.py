"""Measure in the user's own process, with its threads and switches as they are (flag `in_process`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

import msgspec

from roofline.core.device import Device
from roofline.core.numerals import whole
from roofline.core.schema import Profile
from roofline.core.step import MODES, Mode, Step, Workload
from roofline.errors import InputError, MissingError
from roofline.measuring import ceilings
from roofline.measuring.session import require, under_ceilings, under_given
from roofline.recording.backend import Backend, load
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.request import Request
from roofline.standard_error import tell


def profile(
    step: Step | Callable[[], object],
    *,
    backend: str = "torch",
    mode: Mode = "infer",
    device: str = "auto",
    steps: int | None = None,
    name: str | None = None,
    ceilings: str | os.PathLike[str] | None = None,
    quiet: bool = True,
) -> Profile:
    """Profile a step in this process, with its threads and switches as they are (flag `in_process`).

    step: a roofline.Step, or a callable that runs one step. backend: the framework of the step. device: "auto", "cpu"
    or "cuda". steps: number of timed plain steps; by default 100 on a GPU, on a CPU up to 20 within 60 s. name: of the
    model in the profile. ceilings: the path of a calibration, a device file or a profile, or the name of a device, to
    use instead of this machine's, which are then not measured; None: this machine's.

    Returns a Profile: it prints as a verdict and a table, `roofline.analyze` gives its numbers (seconds, FLOP, byte),
    and `roofline.save` saves it. Raises InputError for an invalid step or a file without ceilings, MissingError without
    the framework or the device, MeasurementError for a step without any op. Exceptions of the step pass through.

    The float32 switches and the random state are restored. The step runs some dozen times: a training step trains, so
    weights and optimizer state change.

    >>> print(roofline.profile(lambda: model(x), name="mine"))
    """
    ceilings_name = None if ceilings is None else os.fspath(ceilings)
    return measured(
        as_step(step, mode), backend, device, steps, name, quiet, state_kept=True, ceilings_name=ceilings_name
    )


def as_step(step: Step | Callable[[], object], mode: Mode) -> Step:
    """Make a step of a callable; a Step stays as it is. Raises InputError for other objects and unknown modes."""
    if isinstance(step, Step):
        return step
    if not callable(step):
        raise InputError(f"A step must be callable or a roofline.Step, not {type(step).__name__}.")
    if mode not in MODES:
        raise InputError(f"There is no mode {mode!r}; there are: {', '.join(MODES)}.")
    return Step(run=step, mode=mode)


def measured(
    step: Step,
    backend: str,
    device: str,
    steps: int | None,
    name: str | None,
    quiet: bool,
    *,
    state_kept: bool,
    ceilings_name: str | None = None,
) -> Profile:
    """Profile a step; see `profile`. state_kept: restore the user's state, but not in the middle of a run that goes on.

    ceilings_name: path or name of the ceilings to use, None for this machine's.
    """

    def say(text: str) -> None:
        if not quiet:
            tell(text)

    described = load(backend)
    require(backend, described)
    if steps is not None and steps < 1:
        raise InputError(f"{steps} steps are not possible: give at least 1.")
    kind = _device(backend, described, device)
    chosen = None if ceilings_name is None else ceilings.read(ceilings_name, kind)  # refused before a step is run
    plan = Plan(device=kind, threads=_threads_here(), steps=steps, in_process=True)
    with _restored_state(described) if state_kept else nullcontext():
        recording = described.recorder.record(step, plan, say)
    model = name or str(getattr(step.run, "__name__", "step"))
    return as_profile(recording, backend, kind, model, "roofline.profile(...)", say, chosen)


def load_recorder(framework: str) -> None:
    """Import what records steps of a framework, before the program that has imported it runs its first one.

    Behind a measurement with the imports in it, small objects of steps lay on twice as many pages of the heap, and
    steps took about 1 % longer.
    """
    load(framework).recorder.load()


def record_loop(
    step: Step, backend: str, steps: int | None, profiled_steps: int | None, say: Say
) -> tuple[Recording, str]:
    """Record a step that a program runs in a loop of its own, which goes on; return the kind of its device, too.

    steps, profiled_steps: see `Plan`.
    """
    described = load(backend)
    require(backend, described)
    kind = _device(backend, described, "auto")
    plan = Plan(
        device=kind,
        threads=_threads_here(),
        steps=steps,
        profiled_steps=profiled_steps,
        in_process=True,
        others_profile=True,
    )
    recording = described.recorder.record(step, plan, say)
    # What was built and compiled in the program's first step is not known: others had run before.
    return msgspec.structs.replace(recording, wall=msgspec.structs.replace(recording.wall, first=None)), kind


def as_profile(
    recording: Recording, backend: str, device: str, model: str, command: str, say: Say, chosen: Device | None = None
) -> Profile:
    """Make the profile of a recording of this process, under this machine's ceilings or chosen ones.

    device: "cpu" or "cuda". model: its name in the profile.
    """
    from roofline.devices import cpu

    # A step with more threads than cores gets the ceilings of as many threads as cores.
    threads = min(int(recording.environment["threads"]), len(cpu.affinity()))
    workload = Workload(model=model, device=device, size="-")
    request = Request(backend=backend, workload=workload)
    if chosen is not None:
        return under_given(recording, request, ceilings.adopt(chosen, threads, say), command)
    return under_ceilings(recording, request, ceilings.measured(device, threads, say), command)


def _restored_state(described: Backend) -> AbstractContextManager[None]:
    # The framework's half of the models knows which of its switches a step can move.
    restored: AbstractContextManager[None] = import_module(f"{described.models}._step").user_state_kept()
    return restored


def _device(backend: str, described: Backend, asked: str) -> str:
    available = described.recorder.devices()
    kind = ("cuda" if "cuda" in available else "cpu") if asked == "auto" else asked
    if kind not in ("cpu", "cuda"):
        raise InputError(f"There is no device {kind!r}; there are: auto, cpu, cuda.")
    if kind not in available:
        raise MissingError(f"{backend} finds no {kind.upper()} device here; it finds {', '.join(available)}.")
    return kind


def _threads_here() -> int:
    """Count the CPU threads of this process by the rules of XLA and TensorFlow, for frameworks that do not tell."""
    from roofline.devices import cpu

    for name in ("NPROC", "TF_NUM_INTRAOP_THREADS"):
        if count := whole(os.environ.get(name, "")):
            return count
    return cpu.detect().cores
