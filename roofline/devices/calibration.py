"""Measured ceilings of this machine: kept in the user's cache, measured in a child process when missing.

The key of a calibration is all that its numbers depend on: the device, threads, the CPUs the process may use,
the libraries and the driver. A file per key; a full calibration also serves those who ask for a short one.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from roofline import devices, plugins
from roofline.core.device import SHEET_HIGH, SHEET_LOW, Cache, Device
from roofline.devices import cpu as cpus
from roofline.devices import nvidia
from roofline.errors import InputError, MeasurementError, MissingError, from_exit_code

SCHEMA = 1
# Overall limits of the child [s]; it needs about 12 and 60, the rest is for machines that others use as well.
LIMIT_SHORT, LIMIT_FULL = 180.0, 900.0

Progress = Callable[[str, int, int], None]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of the cache holds."""

    schema: int
    key: dict[str, str]
    full: bool
    device: Device


#: Threads that waited for a processor longer than this share of the time: others used it.
CONTENDED = 0.05


def calibrate(
    device: str = "auto",
    threads: int | None = None,
    short: bool = True,
    progress: Progress | None = None,
    force: bool = False,
    only: tuple[str, ...] = (),
) -> Device:
    """The ceilings of this machine's CPU ("cpu") or first GPU ("cuda"); "auto" takes the GPU if there is one.

    Comes from the cache where it was measured before, undisturbed, and `force` is not set; otherwise it is measured,
    which takes about twelve seconds, or a minute unless `short`. threads: None for one per physical core.
    progress: told a text, how many probes are done, and of how many.
    only: names or patterns of ceilings to measure, for a look at a few; kept apart in the cache.
    Raises MissingError without torch or the GPU, InputError for threads that are not there or an unknown name,
    MeasurementError if measuring fails.
    """
    tell = progress or (lambda text, done, of: None)
    kind = resolve(device)
    count = threads if threads is not None else cpus.detect().cores
    if not 1 <= count <= len(cpus.affinity()):
        raise InputError(f"--threads must be between 1 and {len(cpus.affinity())}, the hardware threads here.")
    identity = key(kind, count, only)
    path = location(identity)
    kept = None if force else _read(path, identity, tell)
    if kept is not None and (short or kept.full) and not contended(kept.device):
        return kept.device
    if not plugins.importable("torch"):
        raise MissingError("Calibrating needs torch: run `pip install 'roofline[torch]'`.")
    measured = _measure(kind, count, short, only, tell)
    result = judged(measured, _known(measured, count))
    if kept is not None and kept.full == (not short):
        # The one before was taken while others used the cores: what either of them saw can be reached.
        result = result.seen_again(kept.device.ceilings)
    _write(path, Stored(schema=SCHEMA, key=identity, full=not short, device=result), tell)
    return result


def contended(device: Device) -> bool:
    """Whether others used the processor while `device` was measured, so that its ceilings may be far too low."""
    try:
        return float(device.conditions.get("waited for a processor", 0)) > CONTENDED
    except ValueError:
        return False


def resolve(device: str) -> str:
    """What "auto" means here; "cpu" and "cuda" as they are. Raises MissingError for a GPU that is not there."""
    if device == "cpu":
        return "cpu"
    reason = nvidia.unavailable()
    if device == "cuda" and reason is not None:
        raise MissingError(f"{reason} Use `--device cpu`.")
    usable = reason is None and "+cpu" not in (plugins.version_of("torch") or "")
    return "cuda" if device == "cuda" or usable else "cpu"


def key(kind: str, threads: int, only: tuple[str, ...] = ()) -> dict[str, str]:
    """What the numbers depend on, found without importing a framework."""
    cpu = cpus.detect()
    found = {
        "kind": kind,
        "cpu": cpu.name,
        "caches": ", ".join(f"L{level.level} {level.total}" for level in cpu.caches),
        "affinity": ",".join(map(str, cpu.cpus)),
        "threads": str(threads),
        "torch": plugins.version_of("torch") or "",
        "numpy": plugins.version_of("numpy") or "",
    }
    if kind != "cpu":
        gpu = nvidia.snapshot(nvidia.visible_index())
        found |= {
            "gpu": gpu.name if gpu else "",
            "memory": f"{gpu.memory:.0f}" if gpu and gpu.memory else "",
            "driver": gpu.driver or "" if gpu else "",
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        }
    if only:
        found["only"] = ",".join(sorted(only))
    return found


def folder() -> Path:
    """Where calibrations are kept: $ROOFLINE_CACHE, else $XDG_CACHE_HOME/roofline, else ~/.cache/roofline."""
    if own := os.environ.get("ROOFLINE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "roofline"


def location(identity: Mapping[str, str]) -> Path:
    """The file of a key."""
    digest = hashlib.sha256(msgspec.json.encode(dict(sorted(identity.items())))).hexdigest()[:12]
    name = re.sub(r"[^a-z0-9]+", "-", identity.get("gpu", identity["cpu"]).lower()).strip("-")
    return folder() / f"{identity['kind']}-{name or 'device'}-{identity['threads']}t-{digest}.json"


def stored() -> list[tuple[Path, Stored]]:
    """All calibrations in the cache that can be read, by file name."""
    found = []
    for path in sorted(folder().glob("*.json")):
        try:
            found.append((path, msgspec.json.decode(path.read_bytes(), type=Stored)))
        except (OSError, msgspec.MsgspecError):
            continue
    return [(path, content) for path, content in found if content.schema == SCHEMA]


def judged(measured: Device, known: Device | None) -> Device:
    """`measured` beside the figures of a datasheet: flagged where they disagree, completed where it has gaps.

    The last-level cache of a datasheet completes a device whose cache could not be measured.
    """
    if known is None:
        return measured
    ceilings = dict(measured.ceilings)
    for name, figure in known.ceilings.items():
        ours = ceilings.get(name)
        if ours is None:
            ceilings[name] = figure
        elif not SHEET_LOW <= ours.value / figure.value <= SHEET_HIGH:
            share = ours.value / figure.value
            flag = f"The measured value is {100 * share:.0f} % of the known one ({figure.value:.4g}, {figure.source})."
            ceilings[name] = msgspec.structs.replace(ours, flag=flag)
    caches: tuple[Cache, ...] = measured.caches or known.caches
    return msgspec.structs.replace(measured, ceilings=ceilings, caches=caches)


def _known(measured: Device, threads: int) -> Device | None:
    """The datasheet's figures; for a CPU its theoretical peaks, only to compare with, never to fill a gap."""
    if measured.kind != "cpu":
        return devices.datasheet(measured.name, measured.memory, measured.kind)
    from roofline.core.device import Ceiling

    cpu = cpus.detect()
    figures = {}
    for precision, bits in (("fp64", 64), ("fp32", 32)):
        peak = cpu.peak(bits, threads)
        if peak is not None and f"matrix.{precision}" in measured.ceilings:
            source = "cores x highest clock x lanes x 2 x FMA units"
            figures[f"matrix.{precision}"] = Ceiling(value=peak, source=source)
    return Device(name=cpu.name, kind="cpu", ceilings=figures)


def _measure(kind: str, threads: int, short: bool, only: tuple[str, ...], tell: Progress) -> Device:
    """Runs the child and returns the device that it prints. It is killed when it takes too long or we leave."""
    # -P: a folder of the user's called roofline must not be taken for ours.
    command = [sys.executable, "-P", "-m", "roofline.devices.measure", "--device", kind, "--threads", str(threads)]
    command += [] if short else ["--full"]
    command += ["--only", ",".join(only)] if only else []
    limit = LIMIT_SHORT if short else LIMIT_FULL
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=complaints,
            stdin=subprocess.DEVNULL,
            env=_environment(threads),
            text=True,
            encoding="utf-8",
        )
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            last: dict[str, Any] = {}
            for line in child.stdout or ():
                last = _message(line)
                if "progress" in last:
                    tell(last["progress"], last["done"], last["of"])
            code = child.wait()
        finally:  # also on Ctrl-C: nothing may go on measuring behind the user's back
            timer.cancel()
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()
        if "device" in last:
            return msgspec.convert(last["device"], Device)
        if "error" in last:
            raise from_exit_code(last["code"], last["error"])
        if late.is_set():
            raise MeasurementError(
                f"Calibrating took more than {limit:.0f} s and was stopped; try again when the machine is idle."
            )
        complaints.seek(0)
        lines = complaints.read().strip().splitlines()
        raise MeasurementError(
            f"The process that calibrates ended with code {code} ({lines[-1] if lines else 'it said nothing'}); "
            "try fewer threads or `--device cpu`."
        )


def _message(line: str) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(line)
    except msgspec.DecodeError:  # the child was killed in the middle of a line
        return {}
    return message if isinstance(message, dict) else {}


def _environment(threads: int) -> dict[str, str]:
    """The child's environment: what the libraries read when they are loaded."""
    own = os.environ.copy()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        own[name] = str(threads)
    if "OMP_WAIT_POLICY" not in own:
        # A thread that waits for the others of its team spins for milliseconds by default. Where another
        # process has the core of one of them, that keeps the scheduler from moving it to the spinning one's.
        own.setdefault("GOMP_SPINCOUNT", "2000")
        own.setdefault("KMP_BLOCKTIME", "1")
    root = str(Path(__file__).resolve().parents[2])
    own["PYTHONPATH"] = os.pathsep.join(filter(None, (root, own.get("PYTHONPATH"))))
    return own


def _read(path: Path, identity: Mapping[str, str], tell: Progress) -> Stored | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        tell(f"The calibration in {path} cannot be read ({error.strerror}); measuring again.", 0, 0)
        return None
    try:
        kept = msgspec.json.decode(content, type=Stored)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        tell(f"The calibration in {path} is damaged ({error}); measuring again.", 0, 0)
        return None
    return kept if kept.schema == SCHEMA and kept.key == identity else None


def _write(path: Path, content: Stored, tell: Progress) -> None:
    """Writes beside the place and renames, so that a reader finds the old file or the new one, never half."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".calibration-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(content), indent=1))
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        tell(f"The calibration cannot be kept in {path.parent} ({error.strerror}); set ROOFLINE_CACHE.", 0, 0)
