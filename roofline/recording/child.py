"""Build and record a step in the child process: `python -m roofline.recording.child FD FOLDER... REQUEST RESULT`.

Frameworks read thread counts and switches when they are imported, so every profile gets a fresh process with its
environment set. Progress goes to standard error, the result to a file: {"recording"}, {"checks"} or {"error", "code"}.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import msgspec

from roofline import plugins
from roofline.core.step import Step
from roofline.core.switch import FLOAT32
from roofline.errors import (
    DefectError,
    InputError,
    MeasurementError,
    MissingError,
    RooflineError,
    defect,
    reason,
    text_of,
)
from roofline.plugins import importing
from roofline.recording.backend import Backend, NeedsData, load
from roofline.recording.leaving import adopt_orphans, end_descendants, leave
from roofline.recording.overdue import PATIENCE, Overdue
from roofline.recording.recording import Plan, Recording
from roofline.recording.request import Request
from roofline.standard_error import tell

#: Texts of the errors of torch and others when memory runs out, whatever their class.
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "Out of memory",
    "OutOfMemoryError",
    "DefaultCPUAllocator",
    "Unable to allocate",
    "Storage size calculation overflowed",
    "integer multiplication overflow",
    # XLA's and TensorFlow's allocators, cuDNN's and cuBLAS's workspaces; JAX's host arrays are numpy's.
    "RESOURCE_EXHAUSTED",
    "ResourceExhaustedError",
    "OOM when allocating",
    "std::bad_alloc",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


class UserError(Exception):
    """Wrap an exception of the user's own step, which keeps its traceback."""


def main(arguments: list[str]) -> int:
    """Run the request; return 0 if a result was written, even if it is an error."""
    request = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Request)
    result: dict[str, Any]
    try:
        patience = PATIENCE if request.timeout is None else min(PATIENCE, request.timeout / 2)
        with Overdue(tell, patience) as overdue:
            result = _run(request, overdue.expect)
    except RooflineError as error:
        result = {"error": str(error), "code": error.exit_code}
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        traceback.print_exception(_cut_traceback(error.__cause__, request.file))
        result = {"error": f"The step raised {type(error.__cause__).__name__} (see above).", "code": 4}
    except Exception as error:
        traceback.print_exception(error)
        result = {"error": str(defect(error, is_printed=True)), "code": DefectError.exit_code}
    try:
        Path(arguments[1]).write_bytes(msgspec.json.encode(result))
    except OSError as error:  # a full disk; the parent reports the damaged result
        tell(f"The result could not be written: {error.strerror}")
        return 1
    return 0


def _cut_traceback(error: BaseException | None, file: str | None) -> BaseException | None:
    """Cut the traceback of an exception to begin in the user's file, if there is one."""
    if error is None or file is None:
        return error
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename).resolve() != Path(file).resolve():
        frame = frame.tb_next
    return error if frame is None else error.with_traceback(frame)


def _run(request: Request, expect: Callable[[str, float], None] = lambda subject, seconds: None) -> dict[str, Any]:
    """Record or verify. expect: is told what is run next, and how long it is to take (`Overdue.expect`)."""
    device = request.workload.device
    _limit_memory(device)
    backend = load(request.backend)
    with importing():
        for name in backend.requires:
            _import(name, request.backend, backend)
    if device not in backend.recorder.devices():
        raise MissingError(
            f"{request.backend} finds no {device.upper()} device here: use --device cpu, or install its driver."
        )
    expect("What builds the step", 0.0)
    plan = Plan(
        device=device,
        expect=partial(expect, "The step"),
        threads=request.threads,
        steps=request.steps,
        budget=request.budget,
        count_only=request.count_only,
        plain_only=request.plain_only,
        options=request.workload.options,
    )
    if request.api is not None:
        timed = backend.apis[request.api]
        plan = replace(plan, api=(request.api, lambda step, steps: timed(step, steps, request.cached)))
    step: Step | None = None
    try:
        if request.without_data and (counted := _counted_without_data(request, backend, plan)) is not None:
            return counted
        step, read, has_run = build(request, backend)
        if has_run:  # a fresh process sees all of its first step, as what is traced and compiled there
            if not request.quiet:
                tell(f"{request.function} returned no callable, so it is the step itself: starting it anew.")
            return {"is_step": True}
        expect("", math.inf)
        if request.verify:
            return {"checks": backend.recorder.verify(step)}
        recording = backend.recorder.record(step, plan, _say_nothing if request.quiet else tell)
        return _result(recording, read)
    except (RooflineError, KeyboardInterrupt):
        raise
    except SystemExit as error:
        from roofline.recording.user_step import exit_of

        called = exit_of(error)
        raise MeasurementError(f"The step called {called}, which ends the measurement: let it return.") from None
    except Exception as error:
        if isinstance(error, MemoryError) or any(
            sign in f"{type(error).__name__}: {text_of(error)}" for sign in _OUT_OF_MEMORY
        ):
            raise MeasurementError(
                f"Out of memory on the {device.upper()}: use a smaller --batch, --seq or --size."
            ) from None
        if (step is None or _leaves_a_frame(step.run)) and _is_of_roofline(error):
            raise
        raise UserError from error


def _is_of_roofline(error: BaseException) -> bool:
    """Tell whether roofline alone ran when an exception was raised: none of a step's code, and no framework's."""
    modules = (frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__))
    # By package, not by name: this module is `__main__`.
    return all((module.get("__package__") or "").partition(".")[0] == "roofline" for module in modules)


def _leaves_a_frame(run: Any) -> bool:
    """Tell whether a call has a frame of Python's: what a function of C raises looks as if its caller had raised it."""
    while isinstance(run, partial):
        run = run.func
    return isinstance(run, FunctionType | MethodType) or isinstance(type(run).__call__, FunctionType)


def _counted_without_data(request: Request, backend: Backend, plan: Plan) -> dict[str, Any] | None:
    """Count the work of a model whose arrays have no data, which takes neither time nor memory.

    Returns None on a backend without such arrays, and where a step needs data: then the step itself is counted.
    """
    if backend.without_data is None:
        return None
    entered = False
    try:
        with backend.without_data():
            entered = True
            step, read, _ = build(request, backend)
            recording = backend.recorder.record(step, plan, tell)
    except NeedsData as error:
        if entered:  # else no step is counted without
            tell(f"The step is counted with data, since it needs {error}.")
        return None
    except (InputError, MissingError, MemoryError):
        raise
    except Exception as error:  # a library that knows of no arrays without data raises whatever it likes
        tell(f"The step is counted with data, since it raises {type(error).__name__} without.")
        return None
    # The memory of this process is not that of the step.
    memory = msgspec.structs.replace(recording.memory, peak=None, source="", resident=None)
    return _result(msgspec.structs.replace(recording, memory=memory), read)


def _result(recording: Recording, read: dict[str, str]) -> dict[str, Any]:
    versions = {"python": sys.version.partition(" ")[0], **recording.versions}
    return {"recording": msgspec.structs.replace(recording, versions=versions, sources=read)}


def build(request: Request, backend: Backend) -> tuple[Step, dict[str, str], bool]:
    """Build the step with its switches turned; for a user's step also return the digests of its source files.

    The last is whether the step has run already (`user_step.LoadedStep`).
    """
    before = frozenset(sys.modules)
    has_run = False

    def build() -> Step:
        nonlocal has_run
        if request.file is None:
            return _model_step(request, backend)
        from roofline.recording.user_step import load_step

        step, has_run = load_step(request, backend.call_with_inputs)
        return step

    for name, value in request.turned.items():
        if name != FLOAT32 and backend.turn is not None:
            build = partial(backend.turn, build, name, value)
    step = build()
    if FLOAT32 in request.turned:  # for all frameworks this is where the models have it from
        import_module(f"roofline.models.float32.{backend.framework}").set_arithmetic(request.turned[FLOAT32])
    if request.file is None:
        return step, {}, has_run
    from roofline.recording.user_step import refuse_other_frameworks, sources

    if request.framework_by_import:
        refuse_other_frameworks(request, backend.framework, before)
    return step, sources(Path(request.file), before), has_run


def _model_step(request: Request, backend: Backend) -> Step:
    workload = request.workload
    with importing():  # a model imports its library when it is built
        model = _model(request, backend)
        step: Step = model.build(replace(workload, options=backend.model_options(workload.options)))
    return step


def _model(request: Request, backend: Backend) -> ModuleType:
    """Load the module of one of our models. Raises MissingError for a missing library of the models."""
    try:
        return plugins.load(backend.models, request.workload.model, "model", sorted_by_kind=True)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "roofline":
            raise
        raise _missing(error.name, request.backend, backend) from None


def _import(name: str, asked: str, backend: Backend) -> None:
    """Import a module that the backend needs; asked: the backend's name.

    Raises MissingError where it is missing or broken, with the module's own error.
    """
    try:
        import_module(name)
    except Exception as error:  # a broken installation raises whatever it likes
        # One of them may import another: Keras imports its backend.
        if isinstance(error, ModuleNotFoundError) and error.name in backend.requires:
            raise _missing(error.name, asked, backend) from None
        why = reason(error)[:250]
        raise MissingError(f"{name} is installed but cannot be imported ({why}): install it again.") from None


def _missing(name: str | None, asked: str, backend: Backend) -> MissingError:
    return MissingError(
        f"The {asked} backend needs {name}, which is not installed here: "
        f"run `pip install 'roofline[{','.join(backend.extras)}]'`."
    )


def _limit_memory(device: str) -> None:
    """Limit the memory on a CPU, so that running out of it raises before the kernel kills this or another process."""
    if device != "cpu" or sys.platform != "linux":
        return
    import resource

    import psutil

    allowed = int(psutil.virtual_memory().available * 0.85)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or allowed < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


class _Parent:
    """Watch the process that started this one; when it ends, end this one and remove its folders.

    gone: a file descriptor that reaches its end when the parent ends, for whatever reason. folders: to be removed.
    """

    #: [s] that this process has to clean up after itself.
    _PATIENCE = 5.0

    def __init__(self, gone: int, folders: Sequence[str]) -> None:
        self._folders, self._own = folders, os.getpid()
        self._is_gone, self._done = threading.Event(), threading.Event()
        signal.signal(signal.SIGTERM, self._stop)
        self._watch = threading.Thread(target=self._wait, args=(gone,), daemon=True)
        self._watch.start()

    def done(self) -> None:
        """End the watch; without a parent it does not return."""
        self._done.set()
        if self._is_gone.is_set():
            self._watch.join()

    def _stop(self, *_: object) -> None:
        if os.getpid() == self._own:
            raise KeyboardInterrupt
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # forked by the user's step, which did not ask for this
        signal.raise_signal(signal.SIGTERM)

    def _wait(self, gone: int) -> None:
        os.read(gone, 1)
        self._is_gone.set()
        os.kill(self._own, signal.SIGTERM)
        self._done.wait(self._PATIENCE)
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        end_descendants()
        os.killpg(0, signal.SIGKILL)


def _say_nothing(text: str) -> None:
    """Say nothing: the parent reports the progress."""


def measure(arguments: Sequence[str]) -> NoReturn:
    """Measure as this process was asked, and end it. arguments: see above; FD is that of `_Parent`."""
    watched, *folders, asked, answered = arguments
    adopt_orphans()
    parent = _Parent(int(watched), folders)
    # Output of the user's step keeps its place among ours, and is not lost if the process dies.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        ended = main([asked, answered])
    except KeyboardInterrupt:
        ended = 130
    parent.done()
    leave(ended)


if __name__ == "__main__":
    measure(sys.argv[1:])
