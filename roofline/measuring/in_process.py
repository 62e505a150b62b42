"""Measuring in the user's own process, with its threads and switches as they are (flag `in_process`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from roofline.core.schema import Profile
from roofline.core.step import MODES, Mode, Step, Workload
from roofline.errors import InputError, MissingError
from roofline.measuring import ceilings
from roofline.measuring.session import require, under_ceilings, under_given
from roofline.recording.backend import Backend, load
from roofline.recording.recording import Plan
from roofline.recording.request import Request


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

    step: a roofline.Step, or a callable that runs one step. backend: in what it is written. device: "auto", "cpu" or
    "cuda". steps: plain steps that are timed; by default 100 on a GPU, on a CPU up to 20 within 60 s. name: what the
    profile calls the model. ceilings: of a calibration, a device file or a profile (its path), or the name of a device,
    to be used instead of this machine's, of which then none is measured; None: this machine's.

    Returns a Profile: it prints as a verdict and a table, `roofline.analyze` gives its numbers (seconds, FLOP, byte),
    and `roofline.save` keeps it. Raises InputError for what is no step or holds no ceilings, MissingError without the
    framework or the device, MeasurementError for a step without any op. What the step itself raises passes through.

    The float32 switches and the random state are as before afterwards. The step is run some dozen times: a training
    step trains, so that weights and optimizer state have moved.

    >>> print(roofline.profile(lambda: model(x), name="mine"))
    """
    given = None if ceilings is None else os.fspath(ceilings)
    return measured(as_step(step, mode), backend, device, steps, name, quiet, state_kept=True, given=given)


def as_step(step: Step | Callable[[], object], mode: Mode) -> Step:
    """A step, or a callable as one. Raises InputError for anything else, and for a mode that there is not."""
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
    given: str | None = None,
) -> Profile:
    """See `profile`. state_kept: restore what the steps changed; not where they are steps of a run that goes on.

    given: whose ceilings are used, None for this machine's.
    """
    from roofline.devices import cpu

    described = load(backend)
    require(backend, described)
    if steps is not None and steps < 1:
        raise InputError(f"{steps} steps are not possible: give at least 1.")
    kind = _device(backend, described, device)
    own = None if given is None else ceilings.read(given, kind)  # refused before a step is run

    def say(text: str) -> None:
        if not quiet:
            print(text, file=sys.stderr)

    with _kept(described) if state_kept else nullcontext():
        plan = Plan(device=kind, threads=_threads_here(), steps=steps, in_process=True)
        recording = described.recorder.record(step, plan, say)
    # Ceilings are of as many threads as there are cores, where the step has more.
    threads = min(int(recording.environment["threads"]), len(cpu.affinity()))
    model = name or str(getattr(step.run, "__name__", "step"))
    workload = Workload(model=model, device=kind, mode=step.mode, size="-")
    request, command = Request(backend=backend, workload=workload), "roofline.profile(...)"
    if own is not None:
        return under_given(recording, request, ceilings.adopt(own, threads, say), command)
    return under_ceilings(recording, request, ceilings.measured(kind, threads, say), command)


def _kept(described: Backend) -> AbstractContextManager[None]:
    # The framework's half of the models knows which of its switches a step can move.
    kept: AbstractContextManager[None] = import_module(f"{described.models}._step").user_state_kept()
    return kept


def _device(backend: str, described: Backend, asked: str) -> str:
    there = described.recorder.devices()
    kind = ("cuda" if "cuda" in there else "cpu") if asked == "auto" else asked
    if kind not in ("cpu", "cuda"):
        raise InputError(f"There is no device {kind!r}; there are: auto, cpu, cuda.")
    if kind not in there:
        raise MissingError(f"{backend} finds no {kind.upper()} device here; it finds {', '.join(there)}.")
    return kind


def _threads_here() -> int:
    """The CPU threads of this process, for frameworks that do not tell: XLA's rule, and TensorFlow's."""
    from roofline.devices import cpu

    for name in ("NPROC", "TF_NUM_INTRAOP_THREADS"):
        given = os.environ.get(name, "")
        if given.isdecimal() and int(given) > 0:
            return int(given)
    return cpu.detect().cores
