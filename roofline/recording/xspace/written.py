"""The trace that a profiler writes into a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path


def written(run: Callable[[], None], start: Callable[[str], object], stop: Callable[[], object]) -> bytes | None:
    """XSpace bytes of what ran inside `run`, from a profiler that is started on a folder; None where it wrote none."""
    with tempfile.TemporaryDirectory() as folder:
        start(folder)
        try:
            run()
        finally:
            stop()
        files = list(Path(folder).rglob("*.xplane.pb"))
        return files[0].read_bytes() if files else None
