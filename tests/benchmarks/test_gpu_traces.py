"""Raw traces kept beside the profile that they were read for: in a process of its own, of eager PyTorch and of JAX."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import handmade
import msgspec
import pytest

from roofline.core.schema import decode
from roofline.devices import calibration
from roofline.traces.annotations import STEP
from roofline.traces.kineto import reader

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu" / "keep_trace.py"


@pytest.mark.thorough
@pytest.mark.parametrize(("backend", "suffix"), [("torch", ".trace.json.gz"), ("jax", ".xplane.pb.gz")])
def test_the_traces_of_a_run_are_kept_with_its_profile(backend: str, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip(backend)
    environment = {**os.environ, "ROOFLINE_CACHE": str(tmp_path)}
    with pytest.MonkeyPatch.context() as patch:  # no ceilings are measured: all of them are kept already
        patch.setenv("ROOFLINE_CACHE", str(tmp_path))
        for threads in range(1, (os.cpu_count() or 1) + 1):
            key = calibration.key("cpu", threads)
            kept = calibration.Stored(
                schema=calibration.SCHEMA,
                key=key,
                full=True,
                device=handmade.device(),
                boots=(calibration.period(),),
            )
            calibration.location(key).write_bytes(msgspec.json.encode(kept))
    words = ["--backend", backend, "--mode", "infer", "--precision", "fp32", "--device", "cpu"]
    command = [sys.executable, "-P", str(SCRIPT), *words, "--out", str(tmp_path / "tiny")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads((tmp_path / "tiny.kept.json").read_text(encoding="utf-8"))
    assert said["error"] is None
    files = [tmp_path / one["file"] for one in said["traces"]]
    assert all(file.name.endswith(suffix) and file.stat().st_size == one["bytes"]
               for file, one in zip(files, said["traces"], strict=True))  # fmt: skip
    profile = decode(gzip.decompress((tmp_path / "tiny.profile.json.gz").read_bytes()))
    assert (profile.model, profile.backend, profile.size) == ("bert", backend, "tiny")
    steps = [gzip.decompress(file.read_bytes()).count(STEP.encode()) for file in files]
    assert sum(bool(number) for number in steps) == 3  # in turns with plain ones, as on every CPU
    if backend == "torch":
        trace = reader.read(files[0])
        assert any(name.startswith(f"{STEP}#") for name in trace.names)
        assert len(profile.ops) > 30
