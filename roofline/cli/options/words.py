"""What a command says: while it measures, to the user; in a profile, of how it was called."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def result(text: str, colour: bool | None = None) -> None:
    """What a command found, on standard output; colour: whether to keep it, None: on a terminal.

    A reader that has gone (`| head`) misses the rest of it, and what is to be judged is judged all the same.
    """
    try:
        typer.echo(text, nl=False, color=colour)
    except BrokenPipeError:
        drop_output()


def drop_output() -> None:
    """Let what is still to be printed go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def if_long(text: str, after: float = 1.0) -> Iterator[None]:
    """Say what is being done, to a person who waits for it longer than `after` [s]; to nobody else."""
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


def calibrating(text: str, done: int, of: int) -> None:
    """A line for each probe of the ceilings, one when all are done, and sentences (of is 0) as they are."""
    if not of:
        say(text)
    else:
        say(f"calibrating ({done + 1}/{of}): {text}" if done < of else "calibrated")


def printable(text: object) -> str:
    """`text` without what acts on a terminal: a file may have any name."""
    return "".join(character if character.isprintable() else "?" for character in str(text))


def quoted(path: object) -> str:
    """A path as a shell takes it, in a command that is printed to be copied."""
    text = str(path)
    if text.isprintable():
        return shlex.quote(text if not text.startswith("-") else f"./{text}")
    escaped = "".join(f"\\x{byte:02x}" for byte in os.fsencode(text))
    return f"$'{escaped}'"


def command_line() -> str:
    """What the user typed, folders left out: a profile is made to be passed on."""
    words = [word.rpartition("/")[2] or word for word in sys.argv[1:] if word != "--debug"]
    return shlex.join(["roofline", *words])
