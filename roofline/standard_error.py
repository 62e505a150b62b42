"""Write to standard error, and send elsewhere what libraries write there; it may be closed, or be missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def tell(text: str, end: str = "\n") -> None:
    """Write a line on standard error at once; nowhere where there is none, or where nobody reads it any more."""
    with suppress(AttributeError, OSError, ValueError):  # None, or an object of the user's that only writes; closed
        sys.stderr.write(f"{text}{end}")
        sys.stderr.flush()


def _flush() -> None:
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.flush()


@contextmanager
def quiet() -> Iterator[None]:
    """While active, standard error goes nowhere: profilers announce their own start and stop there."""
    _flush()
    former = None
    with suppress(OSError):  # it is closed
        former = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)  # 2 itself where that was closed
    os.dup2(nowhere, 2)
    if nowhere != 2:
        os.close(nowhere)
    try:
        yield
    finally:
        _flush()
        if former is None:
            os.close(2)
        else:
            os.dup2(former, 2)
            os.close(former)
