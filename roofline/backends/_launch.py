"""Starts a measuring child and takes its result: the parent's half of `_child`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roofline.backends import Check, Recording
from roofline.backends._request import Request
from roofline.backends._xla_flags import SCRATCH
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError, from_exit_code


class Result(msgspec.Struct):
    """What a child wrote: one of recording, checks and error."""

    recording: Recording | None = None
    checks: list[Check] | None = None
    error: str | None = None
    code: int = 4


def run(request: Request, variables: Mapping[str, str]) -> Result:
    """Record or verify in a fresh process with `variables` in its environment.

    `{scratch}` in a variable is a folder that lives as long as the child. What the child prints goes to standard error.
    Raises what it reported, or MeasurementError where it died without a word. Ctrl-C ends both.
    """
    python = sys.executable if request.python is None else _interpreter(request.python)
    with tempfile.TemporaryDirectory(prefix="roofline-") as folder:
        ask, answer = Path(folder) / "request.json", Path(folder) / "result.json"
        ask.write_bytes(msgspec.json.encode(request))
        # -P: a folder or file of the user's called roofline, random or torch must not be taken for the real one.
        command = [python, "-P", "-m", "roofline.backends._child", str(ask), str(answer)]
        variables = {name: value.replace(SCRATCH, folder) for name, value in variables.items()}
        child = None
        try:
            with _interrupts_held():
                child = subprocess.Popen(
                    command,
                    env={**os.environ, **variables},
                    stdout=sys.stderr,
                    stdin=subprocess.DEVNULL,
                    preexec_fn=_leave_interrupts_to_the_parent,
                )
            status = child.wait()
        except BaseException:
            if child is not None:
                _end(child)
            raise
        if answer.exists():
            result = msgspec.json.decode(answer.read_bytes(), type=Result)
            if result.error is None:
                return result
            raise from_exit_code(result.code, result.error)
    raise _death(status)


def _interpreter(python: str) -> str:
    """`python` if this version of roofline can be run with it.

    Raises InputError for what is no interpreter or has another version, MissingError where roofline is not installed.
    """
    from roofline import __version__

    found = shutil.which(python)
    if found is None:
        raise InputError(f"There is no Python at {python}: give the path of an interpreter with --python.")
    probe = "import msgspec, roofline; print(roofline.__version__)"
    try:
        asked = subprocess.run([found, "-P", "-c", probe], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired):
        raise InputError(f"{python} does not run as Python: give the path of an interpreter with --python.") from None
    if asked.returncode:
        raise MissingError(f"{python} cannot import roofline: run `{python} -m pip install roofline` first.")
    version = asked.stdout.strip()
    if version != __version__:
        raise InputError(
            f"{python} has roofline {version} and this is {__version__}: install the same version in both."
        )
    return found


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """While active, Ctrl-C waits: it would leave a child behind that is running and not yet known."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of the terminal; in the child it would print a traceback from wherever it was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child, whatever ends us."""
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _death(status: int) -> RooflineError:
    if status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status == -signal.SIGKILL:
        return MeasurementError(
            "The measuring process was killed, most likely for want of memory: use a smaller --batch, --seq or --size."
        )
    if status < 0:
        return MeasurementError(
            f"The measuring process died of {signal.Signals(-status).name}: run the step alone to see the crash."
        )
    return MeasurementError(
        f"The measuring process ended with status {status} and no result; what it printed is above."
    )
