"""What is recorded of a measuring process, whatever the framework: versions, cores, variables, where a peak is from."""

from __future__ import annotations

import os
from collections.abc import Iterable

from roofline import plugins

#: Where the peak of a profile's memory comes from, on a CPU and on a GPU.
RESIDENT, ALLOCATED = "peak resident set of the process, libraries included", "allocator's peak"


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """The versions of those distributions that are installed."""
    found = ((name, plugins.version_of(name)) for name in distributions)
    return {name: version for name, version in found if version is not None}


def cores() -> str:
    """How many cores this process may run on."""
    return str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def variables(names: Iterable[str]) -> dict[str, str]:
    """Those of the variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}
