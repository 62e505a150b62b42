"""Ranks of a job under `roofline run`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roofline import cli
from roofline.ranks import describe, folder
from roofline.running.ranks import Rank, of_launcher

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, Rank(1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Rank(0, 2)),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"}, Rank(3, 8)),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "8"}, None),
        ({}, None),
    ],
)
def test_a_launcher_says_the_rank(variables: dict[str, str], rank: Rank | None) -> None:
    assert of_launcher(variables) == rank


@pytest.mark.thorough
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


JOB = {"RANK": "0", "WORLD_SIZE": "2"}


def run(folder: Path, *words: str, **variables: str) -> tuple[int, str]:
    """Run a program that does nothing as a rank: (exit code, standard error)."""
    (folder / "nothing.py").write_text("")
    command = (sys.executable, "-m", "roofline", "run", "-o", "job", *words, "nothing.py")
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **JOB, **variables}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("option", ["--ranks=0,2", f"--ranks={'1' * 5000}", f"--steps={'1' * 5000}:"])
def test_ranks_that_are_not_there_and_endless_numbers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    (tmp_path / "nothing.py").write_text("")
    monkeypatch.chdir(tmp_path)
    for name, number in JOB.items():
        monkeypatch.setenv(name, number)
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "-o", "job", option, "nothing.py"])
    assert (left.value.code, "Traceback" in capsys.readouterr().err) == (2, False)


def test_ranks_of_an_earlier_job_are_refused_but_not_those_of_a_restarted_one(tmp_path: Path) -> None:
    """The list of an hour ago goes; one that is younger than the process is of another rank of this job, and stays.

    Where nothing is measured the exit code is 4.
    """
    (tmp_path / "job").mkdir()
    listed = tmp_path / "job" / folder.MANIFEST
    hour_ago, ahead = time.time() - 3600, time.time() + 3600
    listed.write_text("{}")
    os.utime(listed, (hour_ago, hour_ago))
    assert run(tmp_path)[0] == 2
    assert listed.exists()
    assert run(tmp_path, TORCHELASTIC_RESTART_COUNT="1")[0] == 4
    assert not listed.exists()
    listed.write_text("{}")
    os.utime(listed, (ahead, ahead))
    assert run(tmp_path, "--force")[0] == 4
    assert listed.exists()
