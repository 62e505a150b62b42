"""Run one step of a profile for an external profiler: `python -m roofline.measuring.one_step PROFILE`.

The step is built and warmed up as it was when the profile was measured, and one more runs between cuProfilerStart and
cuProfilerStop, which Nsight Compute waits for with `--profile-from-start off`. Then the process ends.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from roofline.core.schema import load
from roofline.errors import InputError, MissingError, RooflineError
from roofline.measuring import session
from roofline.measuring.requests import request_of, variables_of
from roofline.recording import child, protocol
from roofline.recording.launch import SCRATCH, SHARED
from roofline.recording.recording import Plan
from roofline.recording.request import Request
from roofline.standard_error import tell

#: Steps that run before the marked one: the first one, which builds and compiles, and the warm-up without its last.
BEFORE = protocol.warm_up("cuda", 0.0)


class Marks(Protocol):
    """Mark the step for a profiler."""

    def start(self) -> None:
        """Mark the start of the step."""

    def stop(self) -> None:
        """Mark the end of the step."""


class CudaMarks:
    """Mark steps through the CUDA driver, whichever framework runs them. Raises MissingError without a driver."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise MissingError(
                "There is no CUDA driver here (libcuda.so.1): count where the profile was made."
            ) from None

    def start(self) -> None:
        """Make the context of the first visible device current in this thread, and start the profiler."""
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxSetCurrent", context)
        self._call("cuCtxSynchronize")
        self._call("cuProfilerStart")

    def stop(self) -> None:
        """Wait for the device, and stop the profiler."""
        self._call("cuCtxSynchronize")
        self._call("cuProfilerStop")

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._driver, name)(*arguments)
        if status:
            raise MissingError(f"{name} failed with the error {status} of the CUDA driver.")


class _Marked(Exception):
    """Leave the recorder: the step has been marked, and no further one is needed."""


def run(request: Request, marks: Marks) -> None:
    """Build the step of a request, run `BEFORE` steps, mark one and end.

    Its recorder runs it, as it runs plain steps: it compiles, and waits for each step of the warm-up. So the marked
    step has ended when the next one begins; there the mark ends, and the recorder is left. This process gets the
    environment of a measuring process; no framework may be loaded before.
    """
    backend, request = session.ready(request)
    device = request.workload.device
    variables = {
        **backend.environment(request.threads, device, request.workload.options),
        **backend.recorder.profiled_environment(device),
    }
    with tempfile.TemporaryDirectory(prefix="roofline-") as folder:
        for name, text in variables.items():
            os.environ[name] = text.replace(SCRATCH, folder).replace(SHARED, folder)
        if device not in backend.recorder.devices():
            raise MissingError(f"{request.backend} finds no {device.upper()} device here: count where there is one.")
        step, _, _ = child.build(request, backend)
        plan = Plan(device=device, threads=request.threads, steps=1, plain_only=True, options=request.workload.options)
        try:
            backend.recorder.record(replace(step, run=_marking(step.run, marks)), plan, tell)
        except _Marked:
            return
    raise RooflineError("The step was never marked.")


def _marking(step: Callable[[], object], marks: Marks) -> Callable[[], object]:
    """Wrap a step so that its call after `BEFORE` ones is marked; the next one is not run."""
    ran = 0

    def marked() -> object:
        nonlocal ran
        if ran == BEFORE:
            marks.start()
        elif ran > BEFORE:
            marks.stop()
            raise _Marked
        ran += 1
        return step()

    return marked


def main(file: str, marks: Callable[[], Marks] = CudaMarks) -> int:
    """Mark one step of the profile in a file; return 0, or the code of the error that is printed.

    marks: makes the `Marks`, before a framework is loaded.
    """
    try:
        profile = load(Path(file))
        if profile.device.kind != "cuda":
            raise InputError(
                "Nsight Compute counts kernels of NVIDIA GPUs only: this profile was made on another device."
            )
        request = request_of(profile)
        os.environ.update(variables_of(profile))
        run(request, marks())
    except RooflineError as error:
        tell(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
