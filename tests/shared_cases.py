"""Programs that people reported, in a folder next to the repository; a test that needs one is skipped without it."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("ROOFLINE_CASES", Path(__file__).resolve().parents[2] / "shared" / "cases"))


def case(file: str, function: str) -> Callable[[], object]:
    """Return the step that a function of such a program makes."""
    path = FOLDER / file
    if not path.is_file():
        pytest.skip(f"{file} is not in {FOLDER}")
    made: Callable[[], object] = runpy.run_path(str(path))[function]()
    return made
