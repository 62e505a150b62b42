"""What a command says: while it measures, to the user; in a profile, of how it was called."""

from __future__ import annotations

import os
import shlex
import sys


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def calibrating(text: str, done: int, of: int) -> None:
    """A line for each probe of the ceilings, and one when all are done."""
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
