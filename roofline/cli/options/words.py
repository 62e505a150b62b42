"""Print a command's progress and results, and write its call into a profile."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from roofline.standard_error import tell
from roofline.units import printable

#: Words for what the command takes from `[tool.roofline]`.
DEFAULTS: list[str] = []
#: Words for what the command leaves behind where it is stopped now.
KEPT: list[str] = []


def say(text: str) -> None:
    """Print a line of progress on standard error."""
    tell(printable(text))


def result(text: str, colour: bool | None = None) -> None:
    """Print the result of a command on standard output; colour: keep colours, None: on a terminal only.

    A reader that has gone (`| head`) misses the rest of it; the command still ends with its exit code.
    """
    try:
        typer.echo(text, nl=False, color=colour)
    except BrokenPipeError:
        drop_output()


def drop_output() -> None:
    """Discard all further output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def if_long(text: str, after: float = 1.0) -> Iterator[None]:
    """Name the running work to a person who waits for it longer than `after` [s]; print nothing in a pipe."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(after, say, (f"{text} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def calibrating(text: str, finished: int, of: int) -> None:
    """Print a line for each probe of the ceilings, one when all are done, and sentences (`of` is 0) as they are."""
    if not of:
        say(text)
    else:
        say(f"calibrating ({finished + 1}/{of}): {text}" if finished < of else "calibrated")


def quoted(path: object) -> str:
    """Quote a path for a shell, in a command that is printed to be copied."""
    text = str(path)
    if text.isprintable():
        return shlex.quote(text if not text.startswith("-") else f"./{text}")
    escaped = "".join(f"\\x{byte:02x}" for byte in os.fsencode(text))
    return f"$'{escaped}'"


def command_line(others: int = 0) -> str:
    """Write the command that the user typed, and its defaults, without folders: a profile is made to be passed on.

    others: number of words at its end that are another program's, among which may be a secret: they are left out.
    """
    verb, *typed = [word for word in sys.argv[1 : len(sys.argv) - others] if word != "--debug"] or [""]
    return shlex.join(["roofline", *(word.rpartition("/")[2] or word for word in (verb, *DEFAULTS, *typed))])
