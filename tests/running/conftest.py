"""Running programs as a user does: by `python`, and by `python -m roofline run`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import brief_recording
import pytest

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Run `python WORDS...` in a process of its own, whose recordings are brief."""
    variables = {**os.environ, **brief_recording.variables(tmp_path_factory.mktemp("brief"))}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, words)],
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
