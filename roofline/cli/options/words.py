"""What a command says: while it measures, to the user; in a profile, of how it was called."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def calibrating(text: str, done: int, of: int) -> None:
    """A line for each probe of the ceilings, and one when all are done."""
    say(f"calibrating ({done + 1}/{of}): {text}" if done < of else "calibrated")


def command_line() -> str:
    """What the user typed, folders left out: a profile is made to be passed on."""
    import shlex

    words = [word.rpartition("/")[2] or word for word in sys.argv[1:] if word != "--debug"]
    return shlex.join(["roofline", *words])
