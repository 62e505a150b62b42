"""Traces of ranks that several processes read: the same profiles, and the same errors, as from one."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

import roofline
from roofline import importing
from roofline.costs import custom
from roofline.devices import cpu, probes_cpu
from roofline.errors import InputError, MeasurementError
from roofline.importing import pool
from roofline.importing.traces import Request

sys.path.append(str(Path(__file__).parents[1] / "data"))

import make_ranks


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"net_rank{rank}.json" for rank in range(5)]
    for path, trace in zip(paths, make_ranks.ranks(number=5), strict=True):
        path.write_bytes(trace)
    return paths


def test_profiles_do_not_depend_on_the_number_of_processes(files: list[Path]) -> None:
    profiles = importing.read(files, device="h100-sxm", workers=1)
    assert importing.read(files, device="h100-sxm", workers=2) == profiles
    assert [profile.imported and profile.imported.rank for profile in profiles] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("workers", [1, 2])
def test_of_several_damaged_traces_the_first_is_named(files: list[Path], workers: int) -> None:
    for rank in (2, 4):
        files[rank].write_text("no trace")
    with pytest.raises(InputError, match="net_rank2"):
        importing.read(files, workers=workers)


def test_a_process_that_ends_is_an_error_and_nothing_waits_for_it(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers nothing to whatever it is given; the others finish what they have."""
    monkeypatch.setattr(pool, "_COMMAND", ("-c", "input(); input()"))
    with pytest.raises(MeasurementError, match="--workers 1"):
        importing.read(files, workers=2)


def test_ctrl_c_while_a_thread_is_started_is_no_defect(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread cannot be waited for: threading raises a RuntimeError, which would take Ctrl-C's place."""

    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        importing.read(files, workers=2)


def test_what_another_process_cannot_read_is_read_here(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(files[0].with_name("pipe"))
    assert not pool._can_be_shared([*files, files[0].with_name("pipe")], Request())
    assert not pool._can_be_shared(files, Request(captures=(str(files[0].with_name("pipe")),)))
    assert pool._can_be_shared(files, Request(device="h100-sxm", captures=(str(files[0]),)))
    monkeypatch.setattr(custom, "_FORMULAS", {})
    roofline.formula("mine::scale")(lambda x: roofline.Cost())
    monkeypatch.setattr(pool, "_COMMAND", ("-c", ""))  # would fail
    assert len(importing.read(files, workers=3)) == 5


def test_no_more_processes_than_cores_and_memory_allow(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10 units each, in 25 free ones: two more. A later trace of twice the size: one more."""
    monkeypatch.setattr(cpu, "affinity", lambda: range(8))
    monkeypatch.setattr(probes_cpu, "available_memory", lambda: 25.0)
    monkeypatch.setattr("roofline.recording.contention.peak_memory", lambda: 10.0)
    files[0].write_bytes(b" " * max(file.stat().st_size for file in files))
    assert pool._affordable(files) == 3
    files[1].write_bytes(b" " * 2 * files[0].stat().st_size)
    assert pool._affordable(files) == 2
    monkeypatch.setattr(cpu, "affinity", lambda: range(2))
    monkeypatch.setattr(probes_cpu, "available_memory", lambda: 1e12)
    assert pool._affordable(files) == 2
