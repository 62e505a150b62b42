"""Define the errors that the user can mend. Each is one sentence with the cure, and carries its exit code.

RooflineError
├── GateError          1   a check that failed, runs that are not comparable
├── InputError         2   an argument, file or option that cannot be used
├── MissingError       3   a framework, device or driver that is not there
└── MeasurementError   4   a measurement that failed or cannot be used
"""

from __future__ import annotations


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


def from_exit_code(code: int, message: str) -> RooflineError:
    """Rebuild in the parent the error that a child process reported."""
    for kind in (InputError, MissingError, MeasurementError):
        if kind.exit_code == code:
            return kind(message)
    return MeasurementError(message)
