"""A measuring process, whatever the framework: how it imports one, and what is recorded of it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

#: Where the peak of a profile's memory comes from, on a CPU and on a GPU.
RESIDENT, ALLOCATED = "peak resident set of the process, libraries included", "allocator's peak"


@contextmanager
def importing() -> Iterator[None]:
    """While active, nobody looks for garbage: what is imported stays, and looking at it takes up to a quarter more."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of those distributions that are installed."""
    found = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def cores() -> str:
    """How many cores this process may run on."""
    return str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def variables(names: Iterable[str]) -> dict[str, str]:
    """Those of the variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}
