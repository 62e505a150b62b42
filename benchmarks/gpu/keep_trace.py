"""Records one profile as `roofline profile` does and keeps the raw traces that it was made of.

    python benchmarks/gpu/keep_trace.py --backend torch --mode train --precision tf32 --out FOLDER/NAME

Leaves NAME.profile.json.gz, NAME.0.trace.json.gz or NAME.0.xplane.pb.gz and so on, and NAME.kept.json, which says what
each trace is of. Three steps are profiled after one that settles, so that the traces stay small. Traces of XLA keep
command buffers if the backend's option does: the profile then shows what the live run would see in them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from roofline.cli.options.request import make_request
from roofline.core.schema import encode
from roofline.devices import calibration
from roofline.errors import RooflineError
from roofline.measuring import session
from roofline.recording import child, protocol
from roofline.recording.launch import SCRATCH, Result

STEPS = 3
#: Of a compressed trace [byte]; a larger one is no fixture.
MOST = 2 * 2**20


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--backend", required=True)
    words.add_argument("--mode", choices=("infer", "train"), required=True)
    words.add_argument("--precision", required=True)
    words.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    words.add_argument("--batch", type=int, default=2)
    words.add_argument("--out", type=Path, required=True)
    return words


def main() -> int:
    asked = parser().parse_args()
    request = make_request(
        "bert",
        asked.backend,
        mode=asked.mode,
        batch=asked.batch,
        seq=32,
        size="tiny",
        layers=None,
        precision=asked.precision,
        device=asked.device,
        threads=None,
        steps=None,
        input="device",
        optimizer=True,
        count_only=False,
        python=None,
    )
    backend, request = session.ready(request)
    workload = request.workload
    ceilings = calibration.calibrate(workload.device, request.threads)
    protocol.profiled_steps = lambda *_: STEPS  # type: ignore[assignment]
    protocol.settling = lambda *_: 1  # type: ignore[assignment]
    kept: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, value in backend.environment(request.threads, workload.device, workload.options).items():
            os.environ[name] = value.replace(SCRATCH, folder)
        keep = _keeper(asked.out, kept)
        if backend.requires == ("torch",):
            _watch_kineto(keep)
        else:
            _watch_jax(keep)
        ask, answer = Path(folder) / "request.json", Path(folder) / "result.json"
        ask.write_bytes(msgspec.json.encode(request))
        code = child.main([str(ask), str(answer)])
        result = msgspec.json.decode(answer.read_bytes(), type=Result) if code == 0 else Result(error=f"exit {code}")
    said = {"backend": asked.backend, "mode": asked.mode, "precision": asked.precision, "error": result.error}
    text = json.dumps({**said, "traces": kept}, indent=1)
    _beside(asked.out, ".kept.json").write_text(text + "\n", encoding="utf-8")
    for one in kept:
        print(f"{one['file']}: {one['bytes']} bytes, {one['of']}")
    if result.recording is None:  # a trace that could not be read is worth most
        print(f"{asked.backend}, {asked.mode}: {result.error}", file=sys.stderr)
        return result.code
    profile = session.to_profile(result.recording, request, ceilings, "benchmarks/gpu/keep_trace.py")
    _beside(asked.out, ".profile.json.gz").write_bytes(gzip.compress(encode(profile), mtime=0))
    return 0


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(out.name + suffix)


def _keeper(out: Path, kept: list[dict[str, Any]]) -> Callable[[Path, str], None]:
    """A function that keeps a trace file, compressed, and notes of what it is."""

    def keep(file: Path, suffix: str) -> None:
        if _of_probes():
            return
        packed = gzip.compress(file.read_bytes(), mtime=0)
        note: dict[str, Any] = {"file": "", "bytes": len(packed), "of": f"left out: more than {MOST} bytes"}
        if len(packed) <= MOST:
            path = _beside(out, f".{len(kept)}{suffix}.gz")
            path.write_bytes(packed)
            note |= {"file": path.name, "of": _asked_by()}
        kept.append(note)

    return keep


def _of_probes() -> bool:
    """Whether what is being profiled measures the executor, and no step."""
    return any(name in ("probes.py", "rates.py") for name, _ in _callers())


def _asked_by() -> str:
    """The functions of roofline that led here, outermost first."""
    return " > ".join(reversed([f"{file.removesuffix('.py')}.{function}" for file, function in _callers()]))


def _callers() -> list[tuple[str, str]]:
    frame, found = sys._getframe(1), []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if "roofline" in path.parts and path.parent.name != "gpu":
            found.append((path.name, frame.f_code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _watch_kineto(keep: Callable[[Path, str], None]) -> None:
    """Keep every trace that PyTorch's profiler writes."""
    from torch.autograd.profiler import profile

    export = profile.export_chrome_trace

    def export_and_keep(self: Any, path: str) -> Any:
        result = export(self, path)
        keep(Path(path), ".trace.json")
        return result

    profile.export_chrome_trace = export_and_keep  # type: ignore[method-assign]


def _watch_jax(keep: Callable[[Path, str], None]) -> None:
    """Keep every trace that JAX's profiler writes."""
    import jax

    start, stop = jax.profiler.start_trace, jax.profiler.stop_trace
    folders: list[str] = []

    def start_and_note(log_dir: Any, *words: Any, **named: Any) -> Any:
        folders.append(str(log_dir))
        return start(log_dir, *words, **named)

    def stop_and_keep() -> Any:
        result = stop()
        for file in sorted(Path(folders.pop()).rglob("*.xplane.pb")):
            keep(file, ".xplane.pb")
        return result

    jax.profiler.start_trace, jax.profiler.stop_trace = start_and_note, stop_and_keep


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RooflineError as error:
        sys.exit(f"{error}")
