"""Ranks of a job under `roofline run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roofline.ranks import describe, folder
from roofline.running.ranks import Rank, of_launcher

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, Rank(1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Rank(0, 2)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8"}, Rank(3, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),
        ({}, None),
    ],
)
def test_a_launcher_says_the_rank(variables: dict[str, str], rank: Rank | None) -> None:
    assert of_launcher(variables) == rank


def test_each_rank_writes_into_the_folder_of_the_job(tmp_path: Path) -> None:
    """Two ranks take 200 steps; rank 0 alone prints a screen."""
    pytest.importorskip("torch")
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    command = (*launcher, "-m", "roofline", "run", "-o", "job", str(PROGRAMS / "parallel.py"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("per step") == 1
    assert "from one optimizer.step() to the next, 200 seen" in done.stderr
    job = describe(folder.read(tmp_path / "job"))
    assert ([row.number for row in job.ranks], job.of) == ([0, 1], 2)
    assert {profile.mode for profile in job.profiles} == {"train"}
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["rank-0.json", "rank-1.json", "ranks.json"]
