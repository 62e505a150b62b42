"""XLA's flags of measuring processes: one folder for what autotuning found, and only where XLA knows the flag."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roofline.backends.jax import BACKEND
from roofline.core.step import Workload
from roofline.measuring import session
from roofline.recording import launch
from roofline.recording.request import Request
from roofline.xla import flags, jax_environment

OFF = "--xla_gpu_enable_command_buffer="
FLAG = "--xla_gpu_per_fusion_autotune_cache_dir="


def test_plain_and_profiled_steps_find_the_same_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    plain = jax_environment.variables(1, "cuda", {})["XLA_FLAGS"].split()
    profiled = BACKEND.recorder.profiled_environment("cuda")["XLA_FLAGS"].split()
    assert f"{FLAG}{launch.SHARED}" in plain
    assert set(profiled) - set(plain) == {OFF}
    # Both processes are given the folder that stands for it. What is profiled has no command buffers, in which kernels
    # name no op: so has what is counted alone, and what is verified.
    given: list[Any] = []

    def stand_in(
        request: Request, variables: dict[str, str], shared: Path | None = None, prepared: object = None
    ) -> Any:
        given.append((request.plain_only, OFF in variables["XLA_FLAGS"], shared))
        return launch.Result(recording=Recorded(environment="plain" if request.plain_only else "profiled"))  # type: ignore[arg-type]

    monkeypatch.setattr(launch, "run", stand_in)
    request = Request(backend="jax", workload=Workload(model="mlp", device="cuda"))
    found: Any = session.record_whole(request, BACKEND, {}, tmp_path)
    assert given == [(False, True, tmp_path), (True, False, tmp_path)]
    assert found.environment == "plain"
    session.record(msgspec.structs.replace(request, count_only=True), BACKEND)
    session.verify(request)
    assert given[2:] == [(False, True, None), (False, True, None)]


def test_programs_compile_from_their_first_file_to_their_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """2.5 s and 0.25 s; what is written of no program takes no time, nor does one without machine code."""
    for name, second in (
        ("module_0001.f.before_optimizations.hlo.pb", 1.0),
        ("module_0001.f.cpu_after_optimizations.hlo.pb", 1.5),
        ("module_0001.f.obj-file.fusion.o", 3.5),
        ("module_0012.g.before_optimizations.hlo.pb", 4.0),
        ("module_0012.g.obj-file.o", 4.25),
        ("module_0003.h.before_optimizations.hlo.pb", 5.0),
        ("notes.txt", 9.0),
    ):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (second, second))
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    assert flags.compiling_seconds() == pytest.approx(2.75)
    monkeypatch.delenv("XLA_FLAGS")
    assert flags.compiling_seconds() is None, "nobody saw how long"


class Recorded(msgspec.Struct):
    """The parts of a recording that two processes share out."""

    wall: Any = None
    conditions: Any = None
    memory: Any = None
    energy: Any = None
    environment: str = ""
    notes: tuple[str, ...] = ()
    api: Any = None


def test_a_child_is_told_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable of a real child, which is another program here."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\necho "$PLACES" > {tmp_path}/said\nexit 3\n')
    script.chmod(0o755)
    request = Request(backend="jax", workload=Workload(model="mlp", device="cpu"), python=str(script))
    with pytest.raises(launch.MeasurementError):
        launch.run(request, {"PLACES": f"{launch.SHARED} {launch.SCRATCH}"}, tmp_path)
    shared, scratch = (tmp_path / "said").read_text().split()
    assert (shared, scratch == shared) == (str(tmp_path), False)
    with pytest.raises(launch.MeasurementError):
        launch.run(request, {"PLACES": f"{launch.SHARED} {launch.SCRATCH}"})
    shared, scratch = (tmp_path / "said").read_text().split()
    assert shared == scratch


def test_nothing_is_autotuned_on_a_cpu_and_the_users_folder_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FLAG not in jax_environment.variables(1, "cpu", {})["XLA_FLAGS"]
    assert BACKEND.recorder.profiled_environment("cpu") == {}
    monkeypatch.setenv("XLA_FLAGS", f"{FLAG}/mine")
    assert jax_environment.variables(1, "cuda", {})["XLA_FLAGS"].count(FLAG) == 1


def test_a_library_that_does_not_know_the_flag_is_not_given_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known, unknown = tmp_path / "libnew.so", tmp_path / "libold.so"
    known.write_bytes(b"\x7fELF\0xla_gpu_per_fusion_autotune_cache_dir\0")
    unknown.write_bytes(b"\x7fELF\0xla_gpu_autotune_level\0")
    monkeypatch.setenv("XLA_FLAGS", f"--mine {FLAG}/there")
    flags.keep_known([known])
    assert os.environ["XLA_FLAGS"] == f"--mine {FLAG}/there"
    assert flags.recorded() == {"XLA_FLAGS": "--mine"}
    flags.keep_known([known, unknown])
    assert os.environ["XLA_FLAGS"] == "--mine"


def test_the_installed_xla_takes_our_flags_and_dies_of_others(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    program = (
        "from roofline.xla.recorder import JaxRecorder; import jax; "
        "assert JaxRecorder().devices(); print(jax.jit(lambda x: x + 1)(1))"
    )
    alone = "from jaxlib import xla_client; xla_client.make_cpu_client()"  # what jax does of it, which takes longer

    def ends(given: str, program: str) -> int:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": given}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True).returncode

    ours = BACKEND.recorder.profiled_environment("cuda")["XLA_FLAGS"]
    assert ends(ours.replace(launch.SHARED, str(tmp_path)).replace(launch.SCRATCH, str(tmp_path)), program) == 0
    assert ends("", alone) == 0
    assert ends("--xla_no_such_flag=1", alone) != 0
