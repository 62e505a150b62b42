"""Define the errors that the user can mend. Each is one sentence with the cure, and carries its exit code.

RooflineError
├── GateError          1   a check that failed, runs that are not comparable
├── InputError         2   an argument, file or option that cannot be used
├── MissingError       3   a framework, device or driver that is not there
├── MeasurementError   4   a measurement that failed or cannot be used
└── DefectError       70   an exception that nobody foresaw, in roofline itself
"""

from __future__ import annotations

import os


class RooflineError(Exception):
    """Base of all errors that are shown to the user without a traceback."""

    exit_code = 1


class GateError(RooflineError):
    """A gate that failed: `check`, `verify`, parity."""

    exit_code = 1


class InputError(RooflineError):
    """An argument, file or option of the user that cannot be used."""

    exit_code = 2


class MissingError(RooflineError):
    """A framework, a device or a driver that is not installed here."""

    exit_code = 3


class MeasurementError(RooflineError):
    """A measurement that failed: out of memory, a child that died, a step that raised."""

    exit_code = 4


class DefectError(RooflineError):
    """A defect of roofline itself; 70 is what sysexits.h has for it."""

    exit_code = 70


#: Of a command whose own memory ran out, as where it reads a trace.
OUT_OF_MEMORY = "Out of memory: give the command more, or less to read at once (of several traces, --workers 1)."
#: Says how to see a traceback.
_HOW_TO_PRINT = ": put --debug before the verb"


def defect(error: Exception, *, is_printed: bool = False) -> DefectError:
    """Make the error of an exception that nobody foresaw: what was raised and where, and what a report of it needs.

    is_printed: the traceback stands above.
    """
    place, traceback = "", error.__traceback__
    while traceback is not None:
        place = f" at {os.path.basename(traceback.tb_frame.f_code.co_filename)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    made = DefectError(
        f"This is a defect of roofline ({reason(error)}{place}). Please report it, with the command, the files that it "
        f"reads, what `roofline doctor` prints, and the traceback{' above' if is_printed else _HOW_TO_PRINT}."
    )
    made.__cause__ = error
    return made


def text_of(error: BaseException) -> str:
    """Return the text of an exception, whoever raised it; "" where the method that makes it raises itself."""
    try:
        return str(error)
    except Exception:
        return ""


def reason(error: BaseException) -> str:
    """Write an exception on a line: "ValueError: no shape", its type alone where it has no text."""
    line = next(filter(None, map(str.strip, text_of(error).splitlines())), "")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def from_exit_code(code: int, message: str) -> RooflineError:
    """Rebuild in the parent the error that a child process reported."""
    for kind in (InputError, MissingError, MeasurementError, DefectError):
        if kind.exit_code == code:
            return kind(message)
    return MeasurementError(message)
