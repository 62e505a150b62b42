"""Send standard error elsewhere for a while, also what libraries write to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quiet() -> Iterator[None]:
    """While active, standard error goes nowhere: profilers announce their own start and stop there."""
    sys.stderr.flush()
    former_stderr = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(former_stderr, 2)
        os.close(former_stderr)
