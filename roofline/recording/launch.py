"""Start a measuring child and take its result: the parent's half of `child`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from roofline.core.decoding import UndecodableError, from_json
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError, from_exit_code
from roofline.recording.prepared import Fork, PreparedProcesses, Server, ServerDied
from roofline.recording.recording import Check, Recording
from roofline.recording.request import Request
from roofline.standard_error import tell
from roofline.version import __version__

#: Stands for the folder of a measuring process in the values of its environment, until there is one.
SCRATCH = "{scratch}"
#: Stands for a folder that the processes of one measurement share.
SHARED = "{shared}"
#: A line of the C++ libraries' log that tells of no failure: of information or a warning, such as
#: "W1121 05:07:22.883056   18089 hlo_module.cc:767] ...", and of the missing driver where no GPU was asked for.
_REMARK = re.compile(
    r"WARNING: All log messages before absl::InitializeLog\(\)|[IW]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\]"
    r"|E\d{4} [\d:.]+ +\d+ cuda_platform\.cc:\d+\] failed call to cuInit"
)

#: Such a line of torch's recorder of ops, one for each op that it cannot read; and the lines printed after it.
_OBSERVER = re.compile(r"\[[IW]\d{4} [\d:.]+ execution_trace_observer\.cpp:\d+\]")
_FRAME = re.compile(r"Exception raised from .+ \(most recent call first\):|frame #\d+: |<omitting python frames>|$")

#: The program that an interpreter is asked to run, and its answer.
_PROBE = """
try:
    import msgspec, roofline
    print("roofline:", roofline.__version__)
except ImportError:
    print("roofline: missing")
"""
_ANSWER = re.compile(r"^roofline: (\S+)\s*$", re.MULTILINE)


#: Files and functions that are steps themselves, as processes of this command have shown.
_STEPS: set[tuple[str, str | None]] = set()


class Result(msgspec.Struct):
    """Hold the result of a child: one of recording, checks, is_step and error.

    is_step: the user's function turned out to be the step itself, and has run.
    """

    recording: Recording | None = None
    checks: list[Check] | None = None
    is_step: bool = False
    error: str | None = None
    code: int = 4


def run(
    request: Request,
    variables: Mapping[str, str],
    shared: Path | None = None,
    prepared: PreparedProcesses | None = None,
) -> Result:
    """Record or verify in a process of its own with `variables` in its environment.

    request.python: an interpreter that `interpreter` has passed; None: this one. prepared: processes that fork it where
    they can; None: it is a fresh one.
    `{scratch}` in a variable is a folder that lives as long as the child, `{shared}` one that lives on: `shared`, or
    where it is None that same folder. What the child prints goes to standard error.
    Raises the error that the child reported, or MeasurementError where it died without a result. Ctrl-C ends both.
    A user's function that turned out to be the step itself is run in another fresh process, whose first step is its
    first call.
    """
    function = os.path.abspath(request.file or ""), request.function
    result = _run_child(msgspec.structs.replace(request, is_step=function in _STEPS), variables, shared, prepared)
    if result.is_step:
        _STEPS.add(function)
        result = _run_child(msgspec.structs.replace(request, is_step=True), variables, shared, prepared)
    return result


def _run_child(
    request: Request, variables: Mapping[str, str], shared: Path | None, prepared: PreparedProcesses | None
) -> Result:
    """Run one child, in a fork of a prepared process where there is one."""
    # Those with a folder are set in the fork: no framework reads them on import.
    fixed = {name: value for name, value in variables.items() if SCRATCH not in value and SHARED not in value}
    if prepared is not None and (server := prepared.server(request, fixed)) is not None:
        try:
            return _run(request, variables, shared, server)
        except ServerDied:
            prepared.drop(server)
    return _run(request, variables, shared, None)


def _run(request: Request, variables: Mapping[str, str], shared: Path | None, server: Server | None) -> Result:
    """Run a child as `run` does: a fork of `server`, or a fresh process."""
    with tempfile.TemporaryDirectory(prefix="roofline-") as folder:
        ask, answer = Path(folder) / "request.json", Path(folder) / "result.json"
        try:
            ask.write_bytes(msgspec.json.encode(request))
        except OSError as error:
            raise InputError(_no_room(error.strerror)) from None
        # Only this process holds the other end: the child reads its end when this one is gone, for whatever reason.
        gone, alive = os.pipe()
        arguments = [folder, *([str(shared)] if shared is not None else []), str(ask), str(answer)]
        places = {SCRATCH: folder, SHARED: str(shared or folder)}
        for place, path in places.items():
            variables = {name: value.replace(place, path) for name, value in variables.items()}
        child: Fork | subprocess.Popen[bytes] | None = None
        try:
            with _relay_output() as (printed, ends):
                try:
                    with _hold_interrupts():
                        if server is not None:
                            child = server.fork(arguments, variables, gone, printed)
                        else:
                            child = _start(request.python or sys.executable, arguments, variables, gone, printed)
                    status = child.wait(request.timeout)
                    _end_group(child)
                except ServerDied:
                    raise
                except BaseException:
                    # In here: to read its output to the end waits for a child that goes on.
                    ends.set()
                    if child is not None:
                        _end_child(child)
                    raise
        except subprocess.TimeoutExpired:
            raise _took_too_long(request.timeout) from None
        finally:
            os.close(gone)
            os.close(alive)
        if answer.exists():
            return _read(answer)
    raise _error_of(status)


def _start(
    python: str, arguments: Sequence[str], variables: Mapping[str, str], gone: int, printed: int
) -> subprocess.Popen[bytes]:
    """Start a fresh child. gone: the end of a pipe that it watches; printed: a file descriptor for its output."""
    # -P: a folder or file of the user's called roofline, random or torch must not be taken for the real one.
    return subprocess.Popen(
        [python, "-P", "-m", "roofline.recording.child", str(gone), *arguments],
        env={**os.environ, **variables},
        stdout=printed,
        stderr=printed,
        stdin=subprocess.DEVNULL,
        pass_fds=(gone,),
        process_group=0,  # with what the user's step forks, so that all of it can be ended
        preexec_fn=_leave_interrupts_to_the_parent,
    )


def _read(answer: Path) -> Result:
    """Read the result of a child; raises the error that it reports."""
    try:
        result = from_json(answer.read_bytes(), Result)
    except UndecodableError:  # it was cut off
        raise MeasurementError(_no_room("the measuring process could not write all of its result")) from None
    if result.error is None:
        return result
    raise from_exit_code(result.code, result.error)


def _no_room(why: str | None) -> str:
    return f"Cannot write in {tempfile.gettempdir()}: {why}; make room there, or set TMPDIR to another folder."


def interpreter(python: str) -> str:
    """Find the path of `python`, and check that it can run this version of roofline.

    Raises InputError for no interpreter or another version of roofline, MissingError where roofline is not installed.
    """
    path = shutil.which(python)
    if path is None:
        raise InputError(f"There is no Python at {python}: give the path of an interpreter with --python.")
    try:
        asked = subprocess.run(
            [path, "-P", "-c", _PROBE], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        raise _no_python(python) from None
    answer = _ANSWER.search(asked.stdout.decode("utf-8", "replace"))
    if answer is None:
        raise _no_python(python)
    if answer[1] == "missing":
        raise MissingError(f"{python} cannot import roofline: run `{python} -m pip install roofline` first.")
    if answer[1] != __version__:
        raise InputError(
            f"{python} has roofline {answer[1]} and this is {__version__}: install the same version in both."
        )
    return path


def _no_python(python: str) -> InputError:
    return InputError(f"{python} does not run as Python 3.11 or later: give the path of an interpreter with --python.")


@contextmanager
def _relay_output() -> Iterator[tuple[int, threading.Event]]:
    """Yield a file descriptor whose lines go to standard error but for remarks of frameworks, until an event is set.

    XLA, TensorFlow and torch's recorder report to standard error whatever their variables for logging say, and would
    bury the one sentence that a failed command owes to its user. So would a child that is being ended: a framework may
    take what interrupts an import of its own for an error, print it, and go on with half of a module.
    """
    reading, writing = os.pipe()
    ends = threading.Event()
    listener = threading.Thread(target=_pass_on, args=(reading, ends), daemon=True)
    listener.start()
    try:
        yield writing, ends
    finally:
        os.close(writing)
        listener.join(2)  # a process that the user's step left behind may hold the other end for ever


def _pass_on(reading: int, ends: threading.Event) -> None:
    """Pass lines on; read to the end even if standard error is closed: the child would die of a pipe without reader."""
    with open(reading, encoding="utf-8", errors="replace") as lines:
        in_remark = False  # a remark of the observer
        for line in lines:
            in_remark = bool(_OBSERVER.match(line) or (in_remark and _FRAME.match(line)))
            if not in_remark and not _REMARK.match(line) and not ends.is_set():
                tell(line, end="")


#: Signals that end a command that measures.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold Ctrl-C and other ending signals back: they would leave a child running that is not yet known."""
    if threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDING}
    held = [number for number, handler in before.items() if callable(handler)]
    for number in held:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number in held:
            signal.signal(number, before[number])
    if came:
        signal.raise_signal(came[0])


def _leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C, which reaches every process of the terminal: the child would print a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_child(child: Fork | subprocess.Popen[bytes]) -> None:
    """End the child and the processes that its step forked."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(5)
    _end_group(child)
    child.wait()


def _end_group(child: Fork | subprocess.Popen[bytes]) -> None:
    """End what is left of the child's group, where it died before it could do so itself."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _took_too_long(timeout: float | None) -> MeasurementError:
    return MeasurementError(
        f"The measuring process was ended after the {timeout:g} s of --timeout: give more, or measure a smaller step."
    )


def _error_of(status: int) -> RooflineError:
    """Make the error of a child that ended with this status and without a result."""
    if status in (130, -signal.SIGINT):
        raise KeyboardInterrupt
    if status == -signal.SIGKILL:
        return MeasurementError(
            "The measuring process was killed, most likely for lack of memory: use a smaller --batch, --seq or --size."
        )
    if status < 0:
        return MeasurementError(
            f"The measuring process died of {signal.Signals(-status).name}: run the step alone to see the crash."
        )
    if status == 0:
        return MeasurementError(
            "The step ended the measuring process, without an error and before there was a result: let it return."
        )
    return MeasurementError(
        f"The measuring process ended with status {status} and no result; what it printed is above."
    )
