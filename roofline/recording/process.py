"""Describe a measuring process, whatever the framework: versions, cores, variables, source of a memory peak."""

from __future__ import annotations

import os
from collections.abc import Iterable

from roofline import plugins

#: Source of the peak of a profile's memory on a GPU.
ALLOCATED = "allocator's peak"


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Look up the versions of distributions; without those that are not installed."""
    installed = ((name, plugins.version_of(name)) for name in distributions)
    return {name: version for name, version in installed if version is not None}


def cores() -> str:
    """Count the cores that this process may run on."""
    return str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def variables(names: Iterable[str]) -> dict[str, str]:
    """Read variables of the environment; without those that are not set."""
    return {name: os.environ[name] for name in names if name in os.environ}
