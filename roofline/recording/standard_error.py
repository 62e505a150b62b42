"""Send standard error elsewhere for a while, also what libraries write to it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def quiet() -> Iterator[None]:
    """While active, standard error goes nowhere: profilers announce their own start and stop there."""
    with Path(os.devnull).open("wb") as nowhere, _standard_error_in(nowhere):
        yield


@contextmanager
def without_lines(phrase: bytes) -> Iterator[None]:
    """While active, standard error is kept back; then all its lines are written that do not hold a phrase."""
    with tempfile.TemporaryFile() as kept:
        try:
            with _standard_error_in(kept):
                yield
        finally:
            kept.seek(0)
            for line in kept:
                if phrase not in line:
                    os.write(2, line)


@contextmanager
def _standard_error_in(file: IO[bytes]) -> Iterator[None]:
    """While active, standard error is written to a file, also by libraries."""
    sys.stderr.flush()
    former_stderr = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(former_stderr, 2)
        os.close(former_stderr)
