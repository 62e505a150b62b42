"""Define what a campaign runs: a function of untrusted bytes, inputs to begin with, and how these are changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

#: Changes bytes of a format, keeping its syntax; None where they are not of that format.
Mutate = Callable[[bytes, Random], bytes | None]
#: Reads or renders bytes; raises a public error for those that it refuses.
Run = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Hold a reader or a renderer.

    run: what is fuzzed. seeds: makes the first inputs. mutate: None for bytes alone.
    """

    run: Run
    seeds: Callable[[], Iterable[bytes]]
    mutate: Mutate | None = None


class EscapeError(AssertionError):
    """Say that an output lets through what it must escape."""


def scratch(name: str) -> Path:
    """Return the path of a file in the folder of this campaign, which lies in memory."""
    return Path(os.environ["ROOFLINE_FUZZ_SCRATCH"]) / name


def written(name: str, data: bytes) -> Path:
    """Write a file into the folder of this campaign and return its path."""
    path = scratch(name)
    path.write_bytes(data)
    return path
