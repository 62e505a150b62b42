"""Traces recorded elsewhere, from their files to profiles: read, recognise the device, put the profile together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from roofline.core.device import Device
from roofline.core.profile import SCHEMA, Imported, Profile, Profiled, Wall
from roofline.errors import InputError, MeasurementError
from roofline.traces import chrome, cost_cache, imported, imported_cpu, kineto, precision, timing_cuda
from roofline.traces.counted import PHASES, Counted
from roofline.traces.import_costs import Costs
from roofline.traces.kineto import KinetoTrace
from roofline.traces.op_rows import Rows, op_rows
from roofline.traces.timing import Timed, profiled

Say = Callable[[str], None]

#: Warnings that a profile keeps; beyond them their number.
MAX_WARNINGS = 50
_LONGEST = 300  # characters of a warning, a version or a name

SHAPES = (
    "Recorded without shapes, so no work is known: record with torch.profiler.profile(record_shapes=True, ...) and "
    "import that trace."
)
GRAPHS = (
    "Kernels were replayed from a graph, which does not say for which op: for their work give --capture TRACE, the "
    "trace of the part of the program that captures its graphs, or record a step without graphs."
)
CEILINGS = "The device is not known here, so nothing has a floor: give it with --device NAME or a calibration's file."


@dataclass(frozen=True, slots=True)
class Rank:
    """Which process of a job a trace is of, as far as it says."""

    number: int | None
    of: int | None

    @property
    def beyond(self) -> bool:
        """Whether the job has no such rank."""
        return self.number is not None and self.of is not None and self.number >= self.of


def ranks(paths: Sequence[str | Path]) -> list[int | None]:
    """The rank of each trace where its first few MiB say it, else None. InputError for a file that cannot be read."""
    files = [Path(path) for path in paths]
    return [None if _is_xplane(file) else _rank(chrome.head(file)).number for file in files]


def read(
    paths: Sequence[str | Path],
    *,
    device: str | None = None,
    capture: str | Path | None = None,
    command: str = "",
    say: Say = lambda text: None,
) -> list[Profile]:
    """One profile per trace. Several traces must be the ranks of one job, and come back in the order of their ranks.

    device: a name or a file, as `devices.load` takes it; None: the one that the trace names. capture: the trace of the
    graphs' capture. say: gets each warning once. Raises InputError for files that cannot be read or do not belong
    together, MeasurementError for traces without anything to measure.
    """
    from roofline import devices

    given = None if device is None else devices.load(device)
    files = [Path(path) for path in paths]
    if any(_is_xplane(file) for file in files):
        if len(files) > 1 or capture is not None:
            raise InputError("An XPlane trace is imported by itself, without --capture and without other traces.")
        return [_of_xplane(files[0], given, command, say)]
    traces = [kineto.read(file) for file in files]
    found = [_rank(trace.metadata) for trace in traces]
    if len(files) > 1:
        _check_ranks(files, found)
    captured = None if capture is None else kineto.read(Path(capture))
    costs = Costs(cost_cache.location())
    profiles = [
        _profile(file, trace, rank, captured, costs, given, command, len(files) > 1)
        for file, trace, rank in zip(files, traces, found, strict=True)
    ]
    costs.save()
    profiles = with_waiting(profiles)
    for one in profiles:
        facts = one.imported
        for text in (*facts.warnings, *facts.notes) if facts else ():
            say(f"{one.model}: {text}" if len(profiles) > 1 else text)
    return sorted(profiles, key=lambda one: (one.imported.rank or 0) if one.imported else 0)


def _is_xplane(file: Path) -> bool:
    return file.name.endswith((".pb", ".pb.gz"))


# ---------------------------------------------------------------------------------------------- ranks


def _rank(header: Mapping[str, Any]) -> Rank:
    info = header.get("distributedInfo")
    found = [info.get(key) for key in ("rank", "world_size")] if isinstance(info, dict) else [None, None]
    whole = [one if isinstance(one, int) and not isinstance(one, bool) and one >= 0 else None for one in found]
    return Rank(*whole)


def _check_ranks(files: Sequence[Path], ranks: Sequence[Rank]) -> None:
    """InputError where the traces are not those of different ranks of one job."""
    seen: dict[int, Path] = {}
    for file, rank in zip(files, ranks, strict=True):
        if rank.number is None:
            raise InputError(f"{file.name} does not say which rank it is of: import it by itself.")
        if rank.beyond:
            raise InputError(
                f"{file.name} says that it is of rank {rank.number} of a job of {rank.of}, which are counted from 0: "
                "import it by itself."
            )
        if rank.of != ranks[0].of:
            raise InputError(
                f"{file.name} is of a job of {rank.of} ranks and {files[0].name} of one of {ranks[0].of}: these are no "
                "ranks of one job, import them one by one."
            )
        if rank.number in seen:
            raise InputError(
                f"{file.name} and {seen[rank.number].name} are both of rank {rank.number}: give one trace per rank."
            )
        seen[rank.number] = file


def with_waiting(profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles of the ranks of a job with the time that each waits in collectives for slower ranks.

    A collective cannot end before its last rank has begun: what it lasts longer than on the rank where it is shortest
    is waiting. Clocks need not agree. Where the ranks do not run the same collectives in the same order it stays None.
    """
    if len(profiles) < 2:
        return list(profiles)
    times, names = [], []
    for one in profiles:
        ops = [op for op in one.ops if one.signatures[op.signature].op_class == "communication"]
        names.append([one.signatures[op.signature].name for op in ops])
        times.append(np.asarray([np.mean(op.own_ns) for op in ops]) * 1e-9)
    if not names[0] or any(each != names[0] for each in names):
        return list(profiles)
    shortest = np.min(times, axis=0)
    return [
        msgspec.structs.replace(
            one, imported=msgspec.structs.replace(one.imported, waiting=float((mine - shortest).sum()))
        )
        for one, mine in zip(profiles, times, strict=True)
        if one.imported is not None
    ]


# ---------------------------------------------------------------------------------------------- one trace


def _profile(
    file: Path,
    trace: KinetoTrace,
    rank: Rank,
    capture: KinetoTrace | None,
    costs: Costs,
    given: Device | None,
    command: str,
    several: bool,
) -> Profile:
    name = model_name(file) + (f"-rank{rank.number}" if several else "")
    counted: Counted
    timed: Timed
    if len(trace.device):
        found = imported.read(trace, costs, capture)
        kind, counted, timed, shapes = "rocm" if _is_rocm(trace) else "cuda", found.counted, found.timed, found.shapes
        facts, left_out = _facts_gpu(found), found.warnings
    else:
        _refuse_lost(file, trace)
        on_cpu = imported_cpu.read(trace, costs)
        kind, counted, timed, shapes = "cpu", on_cpu.counted, on_cpu.timed, on_cpu.shapes
        facts, left_out = _facts_cpu(on_cpu), ()
    named = _device(trace, kind)
    device = named if given is None else given
    _check_kind(file, kind, device)
    rows = _rows(counted, timed, kind, device)
    notes, flags = _notes(counted, timed, shapes, device, bool(capture))
    missing = sorted(costs.missing)
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        notes.append(f"The work of {shown} is not known, as torch is not installed: `pip install 'roofline[torch]'`.")
    warnings = [*_repairs(trace), *_contradictions(trace, rank, named, device), *left_out]
    return _assembled(
        name=name,
        backend="torch",
        command=command,
        date=_date(trace),
        device=device,
        counted=counted,
        timed=timed,
        rows=rows,
        profiled=profiled(timed, timing_cuda.mechanism(timed)),
        versions=_versions(trace.metadata),
        flags=flags,
        facts=Imported(
            files=(file.name[:_LONGEST],),
            rank=rank.number,
            ranks=rank.of,
            warnings=tuple(bounded(warnings)),
            notes=tuple(notes),
            **facts,
        ),
    )


def _rows(counted: Counted, timed: Timed, kind: str, device: Device) -> Rows:
    """The rows of a profile; no switch is in a trace, and a device without TF32 needs none."""
    rows = op_rows(counted, timed, blocks(counted), {}, kind)
    return replace(rows, signatures=tuple(precision.settled(one, device) for one in rows.signatures))


def _assembled(
    *,
    name: str,
    backend: str,
    command: str,
    date: str,
    device: Device,
    counted: Counted,
    timed: Timed,
    rows: Rows,
    profiled: Profiled,
    versions: Mapping[str, str],
    flags: Sequence[str],
    facts: Imported,
) -> Profile:
    return Profile(
        schema=SCHEMA,
        model=name,
        backend=backend,
        mode="train" if {1, 2} & set(counted.phase.tolist()) else "infer",
        size="-",
        precision="default",
        command=command,
        date=date,
        device=device,
        wall=Wall(steps=tuple(timed.walls.tolist()), source="profiled"),
        profiled=profiled,
        scopes=counted.scopes,
        phases=PHASES,
        blocks=rows.blocks,
        signatures=rows.signatures,
        ops=rows.ops,
        kernels=rows.kernels,
        versions=versions,
        flags=tuple(flags),
        imported=facts,
    )


_WORDS = {"cpu": "a CPU", "cuda": "an NVIDIA GPU", "rocm": "an AMD GPU"}
_SAME_MEMORY = 0.15  # drivers give up to so much less memory than a device is sold with, or keep it for themselves


def _check_kind(file: Path, kind: str, device: Device) -> None:
    """InputError where ceilings are those of another kind of device than the trace is of."""
    if device.kind != kind:
        raise InputError(
            f"{file.name} is the trace of {_WORDS[kind]}, and {device.name} is {_WORDS.get(device.kind, device.kind)}: "
            "give another --device."
        )


def _contradictions(trace: KinetoTrace, rank: Rank, named: Device, device: Device) -> list[str]:
    """What the trace says of itself that cannot be, or is not what was given. named: the device by the trace alone."""
    told = []
    if rank.beyond:
        told.append(f"the trace says that it is of rank {rank.number} of a job of {rank.of}, which are counted from 0")
    driver = _properties(trace).get("name") if named.kind != "cpu" else None
    names = {name.strip().lower() for name in (named.name, driver) if isinstance(name, str)}
    if device is named:
        return told
    if isinstance(driver, str) and driver.strip() and device.name.strip().lower() not in names:
        told.append(f"the trace is of {named.name}, and its ceilings are those of {device.name}, as --device says")
    elif named.memory and device.memory and abs(named.memory - device.memory) > _SAME_MEMORY * device.memory:
        sizes = f"{named.memory / 2**30:.0f} GiB and {device.name} {device.memory / 2**30:.0f} GiB"
        told.append(f"the trace is of a device with {sizes}, whose ceilings --device gives")
    return told


def model_name(file: Path) -> str:
    """What a trace is called: its file's name without what all traces end in, in characters that a file may have."""
    stem = file.name
    for suffix in (".gz", ".zip", ".json", ".pb", ".xplane", ".trace", ".pt"):
        stem = stem.removesuffix(suffix)
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in stem)[:60].strip("-.") or "trace"


def blocks(counted: Counted) -> list[str]:
    """The block of each scope: its first part, as there is no map of the model."""
    return [path.partition("/")[0] or "(top)" for path in counted.scopes]


def bounded(warnings: Sequence[str]) -> list[str]:
    """The first warnings, each of a bounded length, and how many more there are."""
    kept = [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in warnings[:MAX_WARNINGS]]
    return [*kept, f"{len(warnings) - len(kept)} more warnings"] if len(warnings) > len(kept) else kept


def _repairs(trace: KinetoTrace) -> list[str]:
    return [f"{one.count} {one.what}" if one.count else one.what for one in trace.warnings]


def _facts_gpu(found: imported.Imported) -> dict[str, Any]:
    figures = found.figures
    return {
        "span": figures.span,
        "busy": figures.busy,
        "idle": figures.span - figures.busy,
        "steps": found.found,
        "marks": found.source,
        "linked": figures.linked,
        "launched": figures.launched,
        "twinned": figures.twinned,
        "communication": found.communication,
        "exposed": found.exposed,
    }


def _facts_cpu(found: imported_cpu.ImportedCpu) -> dict[str, Any]:
    return {
        "span": found.span,
        "busy": found.busy,
        "idle": found.span - found.busy,
        "steps": found.found,
        "marks": found.source,
    }


def _notes(counted: Counted, timed: Timed, shapes: bool, device: Device, captured: bool) -> tuple[list[str], list[str]]:
    """(sentences on what to record or give for a fuller profile, flags)."""
    notes, flags = [], []
    if not shapes:
        notes.append(SHAPES)
        flags.append("no-shapes")
    unattributed = timing_cuda.flags(timed)
    if unattributed and not captured:
        notes.append(GRAPHS)
    flags.extend(unattributed)
    if not device.ceilings:
        notes.append(CEILINGS)
        flags.append("no-ceilings")
    if any(op.costed.cost.flops for op in counted.ops):
        flags.append("model-flops-derived")
    return notes, flags


# ---------------------------------------------------------------------------------------------- XPlane

BUFFERS = (
    "Kernels were replayed from command buffers, which name no instruction or the buffer as a whole: record with "
    "XLA_FLAGS=--xla_gpu_enable_command_buffer= for the work of each."
)


def _of_xplane(file: Path, given: Device | None, command: str, say: Say) -> Profile:
    """The profile of an XPlane trace of a GPU."""
    from roofline.traces import imported_xplane, xplane

    trace = xplane.read(file)
    found = imported_xplane.read(trace)
    counted, timed = found.counted, found.timed
    kind = "rocm" if found.rocm else "cuda"
    if given is not None:
        _check_kind(file, kind, given)
    vendor = "AMD GPU" if found.rocm else "NVIDIA GPU"
    # The trace gives the device's memory and clock but no name.
    device = given if given is not None else Device(name=vendor, kind=kind, ceilings={})
    rows = _rows(counted, timed, kind, device)
    notes, flags = _notes(counted, timed, True, device, True)
    flags = [*(flag for flag in flags if flag != "model-flops-derived"), *counted.flags]
    warnings = list(found.warnings)
    if found.others:
        warnings.append(f"the profile is of {found.device}; {found.others} further devices ran kernels or copies")
    if found.buffers:
        flags.append(f"command-buffers: {found.buffers} of {found.kernels} kernels")
        notes.append(BUFFERS)
    facts = Imported(
        files=(file.name[:_LONGEST],),
        span=found.span,
        busy=found.busy,
        idle=found.span - found.busy,
        steps=found.found,
        marks="executions of the main program",
        linked=found.linked,
        buffers=True,
        warnings=tuple(bounded(warnings)),
        notes=tuple(notes),
    )
    for text in (*facts.warnings, *facts.notes):
        say(text)
    date = None if trace.origin is None else datetime.fromtimestamp(trace.origin / 1e9, UTC)
    return _assembled(
        name=model_name(file),
        backend="tensorflow-xla" if _is_tensorflow(trace.modules) else "jax",
        command=command,
        date=(date or datetime.now(UTC)).isoformat(timespec="seconds"),
        device=device,
        counted=counted,
        timed=timed,
        rows=rows,
        profiled=profiled(timed, "xla-gpu"),
        versions=_versions({}),
        flags=flags,
        facts=facts,
    )


def _is_tensorflow(modules: Mapping[int, tuple[str, bytes]]) -> bool:
    """Whether programs have the names that TensorFlow gives, by function or by cluster."""
    return any(name.startswith(("a_inference_", "cluster_", "__inference_")) for name, _ in modules.values())


# ---------------------------------------------------------------------------------------------- what a trace says


def _refuse_lost(file: Path, trace: KinetoTrace) -> None:
    """MeasurementError where a trace without device events is, or may be, of a GPU: lost, or never recorded."""
    launched = any("Launch" in trace.names[code] for code in np.unique(trace.launches.name).tolist())
    damaged = bool(trace.warnings) and bool(trace.device_properties)
    # Kernels are written last: what is left of a GPU's trace that breaks off looks like a CPU's.
    if not (launched or damaged) and any("missing" in repair.what for repair in trace.warnings):
        raise MeasurementError(
            f"{file.name} breaks off, and what is left holds no kernel, so it may have been of a GPU: export it whole."
        )
    if launched or damaged:
        lost = "none is left in the file, which is damaged" if trace.warnings else "none was recorded"
        raise MeasurementError(
            f"{file.name} launches work on a GPU, but of its kernels {lost}: record it with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export it whole."
        )
    if not len(trace.ops):
        raise MeasurementError(f"{file.name} holds no op and no kernel, so there is nothing to profile.")


def _is_rocm(trace: KinetoTrace) -> bool:
    if any(str(key).startswith("hip_") for key in trace.metadata):
        return True
    return any(trace.names[code].startswith("hip") for code in np.unique(trace.launches.name).tolist())


def _device(trace: KinetoTrace, kind: str) -> Device:
    from roofline.devices.recognise import recognise

    if kind == "cpu":
        return Device(name="CPU of the trace", kind="cpu", ceilings={})
    return recognise(_properties(trace), kind)[0]


def _properties(trace: KinetoTrace) -> Mapping[str, Any]:
    """Those of the device that most events ran on; they list all devices of the machine."""
    codes, number = np.unique(trace.device.thread, return_counts=True)
    used = trace.threads[int(codes[number.argmax()])][0]
    for one in trace.device_properties:
        if str(one.get("id")) == used:
            return one
    return trace.device_properties[0] if trace.device_properties else {}


def _versions(metadata: Mapping[str, Any]) -> dict[str, str]:
    from roofline import __version__

    found = {"roofline": __version__}
    for key in (
        "pytorch_version",
        "torch_version",
        "cuda_runtime_version",
        "cuda_driver_version",
        "hip_runtime_version",
        "hip_driver_version",
    ):
        value = metadata.get(key)
        if isinstance(value, str | int):
            found[key.removesuffix("_version").replace("_", " ")] = str(value)[:40]
    return found


def _date(trace: KinetoTrace) -> str:
    """When the trace was recorded, where it says so, else now. ISO 8601."""
    for time in (trace.origin + (trace.base_time or 0), trace.base_time or 0):
        if 10**18 < time < 4 * 10**18:  # [ns] 2001 to 2096: an epoch and no time since the machine started
            return datetime.fromtimestamp(time / 1e9, UTC).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")
