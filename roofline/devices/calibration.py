"""Measure the ceilings of this machine in a child process, and keep them in the user's cache.

The key of a calibration holds what its numbers depend on: the device, threads, the CPUs the process may use,
the libraries and the driver. A file per key; a full calibration also serves a request for a short one.

The numbers depend on hardware, firmware and kernel, too, which stay the same while the machine runs: a calibration is
valid until the machine is started again, whatever its date. Where the system does not tell when it was started, a
calibration is valid for the day. A ceiling is the best of all measurements in that time; a measurement under the load
of other programs lowers no ceiling.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date as Date
from pathlib import Path
from typing import Any

import msgspec

from roofline import devices, plugins
from roofline.core import validate
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.device import SHEET_HIGH, SHEET_LOW, Cache, Ceiling, Device
from roofline.core.files import user_cache
from roofline.devices import contention, nvidia
from roofline.devices import cpu as cpus
from roofline.errors import InputError, MeasurementError, MissingError, from_exit_code

#: 2: the usable size of a cache is that of reads and writes, and ceilings say how busy the machine was. 3: on a GPU
#: that size is measured with a kernel for each pass; one kernel for all passes took the cache for too large.
SCHEMA = 3
# Overall limits of the child [s]; it needs about 12 and 60, the rest is for machines that others use as well.
LIMIT_SHORT, LIMIT_FULL = 180.0, 900.0

#: Linux draws a number at each start.
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Starts of machines that a file remembers. By choice: nodes of a cluster that share a cache and the key.
_MOST_BOOTS = 256

Progress = Callable[[str, int, int], None]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Hold the content of a file of the cache. boots: the `period` of each measurement, the latest last."""

    schema: int
    key: dict[str, str]
    full: bool
    device: Device
    boots: tuple[str, ...] = ()


def calibrate(
    device: str = "auto",
    threads: int | None = None,
    short: bool = True,
    progress: Progress | None = None,
    remeasure: bool = False,
    only: tuple[str, ...] = (),
) -> Device:
    """Return the ceilings of this machine's CPU ("cpu") or first GPU ("cuda"); "auto" takes the GPU if there is one.

    They come from the cache if they were measured since the machine was started. Ceilings that were only measured while
    other programs used the processor are measured again as soon as it is idle, and all of them with `remeasure`.
    Measuring takes about twelve seconds, or a minute unless `short`, and is merged with the cached calibration.
    threads: None for one per physical core. progress: called with a text, the number of finished probes and their
    total; the total is 0 if the text is a sentence. only: names or patterns of the ceilings to measure; such a
    calibration has its own file.

    Raises MissingError without torch or the GPU, InputError for more threads than there are or an unknown name,
    MeasurementError if measuring fails.
    """
    tell = progress or (lambda text, count, of: None)
    kind = resolve(device)
    count = threads if threads is not None else cpus.detect().cores
    check_threads(count)
    identity = key(kind, count, only)
    path = location(identity)
    cached = _read(path, identity, tell)
    due = only if cached is None or remeasure else _ceilings_due(cached, kind, short, count, only, tell)
    if cached is not None and due is None:
        return cached.device
    if not plugins.importable("torch"):
        raise MissingError("Calibrating needs torch: run `pip install 'roofline[torch]'`.")
    try:
        measured = _measure(kind, count, short, due or (), tell)
    except MeasurementError as error:
        if cached is None or remeasure or not short:
            raise
        tell(f"{error} Those that are kept are used.", 0, 0)
        return cached.device
    stored = Stored(schema=SCHEMA, key=identity, full=not short, device=measured)
    stored = merge(cached, stored, period(), partial=due != only)
    stored = msgspec.structs.replace(stored, device=compare_with_sheet(stored.device, _reference(stored.device, count)))
    _write(path, stored, tell)
    return stored.device


def contribute(kind: str, threads: int, ceilings: Mapping[str, Ceiling]) -> None:
    """Raise the cached bandwidths of main memory to those in `ceilings`, measured with a profile's steps.

    They are measured in less time than a calibration takes, so a lower one changes nothing. Launches and functions
    are those of the framework that ran, and stay in its profile. Writes nothing where no calibration is cached.
    """
    identity = key(kind, threads)
    path = location(identity)
    cached = _read(path, identity, lambda *_: None)
    if cached is None:
        return
    higher = {
        name: ceiling
        for name, ceiling in ceilings.items()
        if name.startswith("dram.") and ceiling.value > (cached.device.rate(name) or math.inf)
    }
    if higher:
        _write(path, msgspec.structs.replace(cached, device=cached.device.merge_measurements(higher)), lambda *_: None)


def merge(cached: Stored | None, measured: Stored, current_period: str, partial: bool = False) -> Stored:
    """Merge a new calibration with the cached one: the best rates of both.

    current_period: see `period`. A ceiling from an earlier period is replaced, unless the new one was measured while
    other programs used the device: such a measurement raises ceilings and lowers none. partial: only the ceilings that
    the cache had from a busy machine were measured again. Datasheet figures that filled a gap are not merged.
    """
    if cached is None:
        return msgspec.structs.replace(measured, boots=(current_period,))
    now, before = measured.device, cached.device
    old = current_period not in cached.boots
    ceilings = {
        name: ceiling
        for name, ceiling in before.ceilings.items()
        if ceiling.spread is not None and not (old and name in now.ceilings and not now.ceilings[name].contended)
    }
    full = cached.full or measured.full
    conditions = {
        **(before.conditions if partial else {}),
        **now.conditions,
        "calibration": "full" if full else "short",
    }
    device = msgspec.structs.replace(now, caches=_merge_caches(before, now, old), conditions=conditions)
    return msgspec.structs.replace(
        measured,
        full=full,
        device=device.merge_measurements(ceilings),
        boots=(*(boot for boot in cached.boots if boot != current_period), current_period)[-_MOST_BOOTS:],
    )


def _merge_caches(before: Device, now: Device, old: bool) -> tuple[Cache, ...]:
    """Keep the larger usable size of each level; a size from a busy machine only if an idle one gave none.

    old: `before` was measured before the machine was started.
    """
    if not now.caches:
        return before.caches
    sized_before = {cache.level: cache for cache in before.caches if cache.source.startswith("measured")}
    merged = []
    for cache in now.caches:
        name, earlier = f"cache.{cache.level}", sized_before.get(cache.level)
        busy = name in now.contended
        if earlier is None or (not busy and (old or name in before.contended)):
            merged.append(cache)
        elif busy and name not in before.contended:
            merged.append(earlier)
        else:
            merged.append(max(cache, earlier, key=lambda cache: cache.size or 0.0))
    return tuple(merged)


def _ceilings_due(
    cached: Stored, kind: str, short: bool, threads: int, only: tuple[str, ...], tell: Progress
) -> tuple[str, ...] | None:
    """Name the ceilings to measure again, as `only` gives them; None while the cached ones are valid."""
    if not (short or cached.full):
        return only
    if period() not in cached.boots:
        since = "The machine was started since its ceilings were measured"
        tell(f"{'The ceilings were measured on another day' if boot() is None else since}: measuring again.", 0, 0)
        return only
    contended = cached.device.contended
    if not contended:
        return None
    if kind != "cpu":
        if not nvidia.is_free(nvidia.visible_index()):
            return None
        tell("The GPU is idle now: measuring again the ceilings that were measured while it was busy.", 0, 0)
    elif contention.is_idle(threads):
        tell("The machine is idle now: measuring again the ceilings that were measured while it was busy.", 0, 0)
    else:
        return None
    return contended


def period() -> str:
    """Name the time for which ceilings hold: this start of the machine, or the day where the system does not tell it.

    A day is by choice: long enough to measure once in a session, and short enough for a machine that was started again.
    """
    return boot() or Date.today().isoformat()


def boot() -> str | None:
    """Read the identifier of this start of the machine; None where the system has none (Linux has)."""
    with suppress(OSError, UnicodeDecodeError):
        return _BOOT.read_text(encoding="ascii").strip() or None
    return None


def check_threads(threads: int) -> None:
    """Check a number of threads. Raises InputError for more than this process may use."""
    if not 1 <= threads <= len(cpus.affinity()):
        raise InputError(f"--threads must be between 1 and {len(cpus.affinity())}, the hardware threads here.")


def resolve(device: str) -> str:
    """Resolve "auto" to "cpu" or "cuda"; both stay as they are. Raises MissingError for "cuda" without a GPU."""
    if device == "cpu":
        return "cpu"
    reason = nvidia.unavailable()
    if device == "cuda" and reason is not None:
        raise MissingError(f"{reason} Use `--device cpu`.")
    usable = reason is None and "+cpu" not in (plugins.version_of("torch") or "")
    return "cuda" if device == "cuda" or usable else "cpu"


def key(kind: str, threads: int, only: tuple[str, ...] = ()) -> dict[str, str]:
    """Collect what the numbers depend on, without importing a framework."""
    cpu = cpus.detect()
    parts = {
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
        parts |= {
            "gpu": gpu.name if gpu else "",
            "memory": f"{gpu.memory:.0f}" if gpu and gpu.memory else "",
            "driver": gpu.driver or "" if gpu else "",
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        }
    if only:
        parts["only"] = ",".join(sorted(only))
    return parts


def folder() -> Path:
    """Return the folder of the calibrations."""
    return user_cache()


def location(identity: Mapping[str, str]) -> Path:
    """Return the path of the file of a key."""
    digest = hashlib.sha256(msgspec.json.encode(dict(sorted(identity.items())))).hexdigest()[:12]
    name = re.sub(r"[^a-z0-9]+", "-", identity.get("gpu", identity["cpu"]).lower()).strip("-")
    return folder() / f"{identity['kind']}-{name or 'device'}-{identity['threads']}t-{digest}.json"


def stored() -> list[tuple[Path, Stored]]:
    """Read all calibrations of the cache that can be read and hold possible numbers, sorted by file name."""
    calibrations = []
    for path in sorted(folder().glob("*.json")):
        with suppress(OSError, UndecodableError, InputError):
            content = from_json(path.read_bytes(), Stored)
            validate.check_device(content.device, str(path))
            calibrations.append((path, content))
    return [(path, content) for path, content in calibrations if content.schema == SCHEMA]


def compare_with_sheet(measured: Device, sheet: Device | None) -> Device:
    """Compare a measured device with its datasheet: flag ceilings that disagree, and fill those that are missing.

    The last-level cache of the datasheet is used where the cache could not be measured.
    """
    if sheet is None:
        return measured
    ceilings = dict(measured.ceilings)
    for name, figure in sheet.ceilings.items():
        ours = ceilings.get(name)
        if ours is None:
            ceilings[name] = figure
        elif not SHEET_LOW <= ours.value / figure.value <= SHEET_HIGH:
            share = ours.value / figure.value
            flag = f"The measured value is {100 * share:.0f} % of the known one ({figure.value:.4g}, {figure.source})."
            ceilings[name] = msgspec.structs.replace(ours, flag=flag)
    caches: tuple[Cache, ...] = measured.caches or sheet.caches
    return msgspec.structs.replace(measured, ceilings=ceilings, caches=caches)


def _reference(measured: Device, threads: int) -> Device | None:
    """Return the datasheet's figures; for a CPU its theoretical peaks, only of ceilings that were measured."""
    if measured.kind != "cpu":
        return devices.datasheet(measured.name, measured.memory, measured.kind)
    cpu = cpus.detect()
    figures = {}
    for precision, bits in (("fp64", 64), ("fp32", 32)):
        peak = cpu.peak(bits, threads)
        if peak is not None and f"matrix.{precision}" in measured.ceilings:
            source = "cores x highest clock x lanes x 2 x FMA units"
            figures[f"matrix.{precision}"] = Ceiling(value=peak, source=source)
    return Device(name=cpu.name, kind="cpu", ceilings=figures)


def _measure(kind: str, threads: int, short: bool, only: tuple[str, ...], tell: Progress) -> Device:
    """Run the child and return the device that it prints. The child is killed at its time limit, or if we leave."""
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
        return from_json(line, dict[str, Any])
    except UndecodableError:  # the child was killed in the middle of a line, or a library printed one
        return {}


def _environment(threads: int) -> dict[str, str]:
    """Build the child's environment: the variables that the libraries read when they are loaded."""
    variables = os.environ.copy()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        variables[name] = str(threads)
    if "OMP_WAIT_POLICY" not in variables:
        # A thread that waits for the others of its team spins for milliseconds by default. Where another
        # process has the core of one of them, that keeps the scheduler from moving it to the spinning one's.
        variables.setdefault("GOMP_SPINCOUNT", "2000")
        variables.setdefault("KMP_BLOCKTIME", "1")
    root = str(Path(__file__).resolve().parents[2])
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (root, variables.get("PYTHONPATH"))))
    return variables


def _read(path: Path, identity: Mapping[str, str], tell: Progress) -> Stored | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        tell(f"The calibration in {path} cannot be read ({error.strerror}); measuring again.", 0, 0)
        return None
    try:
        cached = from_json(content, Stored)
    except UndecodableError as error:
        tell(f"The calibration in {path} is damaged ({error}); measuring again.", 0, 0)
        return None
    if cached.schema != SCHEMA or cached.key != identity:
        return None
    try:  # numbers that no profile may hold would keep every profile of this machine from being saved
        validate.check_device(cached.device, str(path))
    except InputError:
        tell(f"The calibration in {path} holds numbers that nothing measures; measuring again.", 0, 0)
        return None
    return cached


def _write(path: Path, content: Stored, tell: Progress) -> None:
    """Write a temporary file in the same folder and rename it: a reader finds the old file or the new one."""
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
