"""The recorded job of eight ranks, read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from roofline import importing
from roofline.ranks import Job, describe


@pytest.fixture(scope="session")
def rank_files(recorded: Callable[[str], Path]) -> list[Path]:
    return [recorded(f"ranks/dlrm_rank{rank}.json.gz") for rank in range(8)]


@pytest.fixture(scope="session")
def recorded_job(rank_files: list[Path]) -> Job:
    return describe(importing.read(rank_files, workers=1))
