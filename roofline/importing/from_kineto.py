"""The profile of a Kineto trace, of a GPU or of a CPU, and what the trace says of itself.

A trace of rocprofv3 has the same tables, without ops: what launched its kernels is any program of HIP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from roofline import devices
from roofline.core import validate
from roofline.core.batch import Batch
from roofline.core.device import Device
from roofline.core.executor import COPY, executor_name
from roofline.core.schema import Collectives, Imported, Profile
from roofline.costs.counted import Counted
from roofline.errors import InputError, MeasurementError
from roofline.importing import gpu
from roofline.importing.assembly import (
    KERNELS_ALONE,
    LONGEST,
    SHAPES,
    assembled,
    bounded,
    check_kind,
    model_name,
    notes_of,
    rows_of,
    versions_of,
)
from roofline.importing.launches import coarse_tick, with_launch_floor
from roofline.importing.python_frames import has_modules
from roofline.importing.ranks import Rank
from roofline.importing.selection import ALL, Selection, trimmed
from roofline.importing.work.costs import Costs
from roofline.pytorch import time_cuda
from roofline.timing.timed import Timed, profiled
from roofline.traces.kineto.reader import KERNEL, TORCH, KinetoTrace
from roofline.traces.kineto.steps import Steps
from roofline.traces.rocprof.reader import ROCPROFV3

if TYPE_CHECKING:
    from roofline.importing.cpu import CpuStep

SUFFIXES = ()  # whatever no other format claims

_NOTHING_REPLAYED = "No graph was replayed in the steps that were used, so what --capture gave is not used."
_DIMS = re.compile(rb'"Input [Dd]ims"\s*:\s*\[\s*[^\]\s]')  # of an op that has arguments
_SAME_MEMORY = 0.15  # drivers give up to so much less memory than a device is sold with, or keep it for themselves


def profile(
    file: Path,
    trace: KinetoTrace,
    rank: Rank,
    captures: Sequence[KinetoTrace],
    costs: Costs,
    requested: Device | None,
    command: str,
    several: bool,
    selection: Selection = ALL,
) -> Profile:
    """The profile of one trace.

    captures: the traces of its graphs' captures. costs: those of all traces of one import. requested: the device whose
    ceilings are asked for, None for the one that the trace names. several: whether it is one of several ranks.
    selection: the steps to use.
    """
    _refuse_unknown(file, trace)
    if not len(trace.device):
        _refuse_lost(file, trace)
    whole, trace = trace, trimmed(trace, selection)
    read = _read(trace, costs, captures, selection)
    named = _device(trace, read.kind)
    asked = named if requested is None else requested
    check_kind(file, read.kind, asked)
    mechanism = time_cuda.mechanism(read.timed)
    by_torch = trace.recorder == TORCH
    backend = "torch" if by_torch else "hip"
    device = _with_launch_floors(asked, trace, executor_name(backend, mechanism))
    modules = any(map(has_modules, (trace, *captures)))
    unshaped = SHAPES if by_torch else KERNELS_ALONE
    shapes = read.shapes or (whole is not trace and _has_shapes(whole))
    notes, flags = notes_of(read.counted, read.timed, shapes, device, bool(captures), unshaped)
    notes += [_NOTHING_REPLAYED] if captures and mechanism == "eager" else []
    flags += [f"steps-inferred: {read.facts['rule']}"] if read.facts["inferred"] else []
    if not asked.ceilings and len(cards := _cards(trace, read.kind)) > 1:
        notes.append(f"Several cards have the name {named.name}: give --device {' or '.join(cards)}.")
    notes += _lacking(costs)
    warnings = [*_repairs(trace), *_contradictions(trace, rank, named, asked), *read.left_out]
    return assembled(
        name=model_name(file) + (f"-rank{rank.number}" if several else ""),
        backend=backend,
        command=command,
        date=_date(trace),
        device=device,
        counted=read.counted,
        timed=read.timed,
        rows=rows_of(read.counted, read.timed, read.kind, device, modules),
        profiled=profiled(read.timed, mechanism),
        versions=versions_of(trace.metadata),
        flags=flags,
        conditions=time_cuda.conditions(read.timed),
        facts=Imported(
            files=(file.name[:LONGEST],),
            rank=rank.number,
            ranks=rank.of,
            modules=modules,
            warnings=tuple(bounded(warnings)),
            notes=tuple(notes),
            **read.facts,
        ),
        collectives=read.collectives,
        batch=read.batch,
    )


class _Read(NamedTuple):
    """Holds what a trace tells of a step. shapes: whether any call has its arguments. left_out: in sentences."""

    kind: str
    counted: Counted
    timed: Timed
    shapes: bool
    facts: dict[str, Any]
    left_out: Sequence[str]
    collectives: Collectives | None = None
    batch: Batch | None = None


def _read(trace: KinetoTrace, costs: Costs, captures: Sequence[KinetoTrace], selection: Selection) -> _Read:
    if not len(trace.device):
        from roofline.importing import cpu

        on_cpu = cpu.read(trace, costs, selection)
        return _Read("cpu", on_cpu.counted, on_cpu.timed, on_cpu.shapes, _facts_cpu(on_cpu), ())
    on_gpu = gpu.read(trace, costs, captures, selection)
    kind = "rocm" if _is_rocm(trace) else "cuda"
    return _Read(
        kind,
        on_gpu.counted,
        on_gpu.timed,
        on_gpu.shapes,
        _facts_gpu(on_gpu),
        on_gpu.warnings,
        on_gpu.collectives,
        on_gpu.batch,
    )


def _lacking(costs: Costs) -> list[str]:
    """Say what was not at hand that would tell the work of some calls."""
    notes = []
    if missing := sorted(costs.missing):
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        notes.append(f"The work of {shown} is not known, as torch is not installed: `pip install 'roofline[torch]'`.")
    if costs.sources is not None and (number := len(costs.sources.missing)):
        kernels = "1 Triton kernel" if number == 1 else f"{number} Triton kernels"
        notes.append(f"The folder of --inductor-cache lacks the source of {kernels}.")
    return notes


def _with_launch_floors(device: Device, trace: KinetoTrace, executor: str) -> Device:
    """Add what a kernel and a copy take at least, as far as the trace has enough of them."""
    kernel, lasted = trace.device.kind == KERNEL, trace.device.duration
    tick = coarse_tick(lasted, trace.device.start)
    device = with_launch_floor(device, executor, lasted[kernel], tick)
    return with_launch_floor(device, COPY, lasted[~kernel], tick)


def _facts_gpu(step: gpu.GpuStep) -> dict[str, Any]:
    figures = step.figures
    return {
        "span": figures.span,
        "busy": figures.busy,
        "idle": figures.span - figures.busy,
        **_facts_steps(step.steps),
        "linked": figures.linked,
        "launched": figures.launched,
        "twinned": figures.twinned,
        "communication": step.communication,
        "exposed": step.exposed,
        "engine": step.engine,
    }


def _facts_steps(steps: Steps) -> dict[str, Any]:
    return {"steps": len(steps), "marks": steps.source, "rule": steps.rule, "inferred": steps.inferred}


def _facts_cpu(step: CpuStep) -> dict[str, Any]:
    return {
        "span": step.span,
        "busy": step.busy,
        "idle": step.span - step.busy,
        **_facts_steps(step.steps),
    }


def _repairs(trace: KinetoTrace) -> list[str]:
    return [f"{repair.count} {repair.description}" if repair.count else repair.description for repair in trace.warnings]


def _contradictions(trace: KinetoTrace, rank: Rank, named: Device, device: Device) -> list[str]:
    """List claims of the trace that cannot be, or contradict the device asked for. named: the device that it names."""
    texts = []
    if rank.is_out_of_range:
        texts.append(f"the trace names rank {rank.number} in a job of {rank.of} ranks (counted from 0)")
    driver = _properties(trace).get("name") if named.kind != "cpu" else None
    names = {name.strip().lower() for name in (named.name, driver) if isinstance(name, str)}
    names |= {devices.load(card).name.lower() for card in _cards(trace, named.kind)}
    if device is named:
        return texts
    if isinstance(driver, str) and driver.strip() and device.name.strip().lower() not in names:
        texts.append(f"the trace was recorded on {named.name}, and --device gives the ceilings of {device.name}")
    elif named.memory and device.memory and abs(named.memory - device.memory) > _SAME_MEMORY * device.memory:
        sizes = [f"{memory / 2**30:.0f} GiB" for memory in (named.memory, device.memory)]
        texts.append(
            f"the trace was recorded on a device with {sizes[0]} of memory, and --device gives the ceilings of "
            f"{device.name} with {sizes[1]}"
        )
    return texts


# ---------------------------------------------------------------------------------------------- what a trace says


def _refuse_unknown(file: Path, trace: KinetoTrace) -> None:
    """InputError for the trace of an accelerator that is neither a GPU of NVIDIA's or AMD's, nor a CPU."""
    if trace.accelerator is not None:
        names = {str(name)[:40] for properties in trace.device_properties if (name := properties.get("name"))}
        called = f", {', '.join(sorted(names))}" if names else ""
        raise InputError(
            f"{file.name} is the trace of {trace.accelerator}{called}: only those of NVIDIA's and AMD's GPUs and of "
            "CPUs can be imported."
        )


def _refuse_lost(file: Path, trace: KinetoTrace) -> None:
    """MeasurementError where a trace without device events is, or may be, of a GPU: lost, or never recorded."""
    launched = any("Launch" in trace.names[code] for code in np.unique(trace.launches.name).tolist())
    damaged = bool(trace.warnings) and bool(trace.device_properties)
    # Kernels are written last: what is left of a GPU's trace that breaks off looks like a CPU's.
    if not (launched or damaged) and any("missing" in repair.description for repair in trace.warnings):
        raise MeasurementError(
            f"{file.name} is cut off, and the rest holds no kernel, although it may be a GPU's trace: export it whole."
        )
    if launched or damaged:
        lost = "none is left in the file, which is damaged" if trace.warnings else "none was recorded"
        raise MeasurementError(
            f"{file.name} launches work on a GPU, but of its kernels {lost}: record it with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export it whole."
        )
    if not len(trace.ops):
        raise MeasurementError(f"{file.name} holds no op and no kernel, so there is nothing to profile.")


def _has_shapes(trace: KinetoTrace) -> bool:
    """Tell whether the arguments of any op were recorded, of which a part of the trace may have none."""
    return any(map(_DIMS.search, trace.ops.args))


def _is_rocm(trace: KinetoTrace) -> bool:
    if trace.recorder == ROCPROFV3 or any(str(key).startswith("hip_") for key in trace.metadata):
        return True
    return any(trace.names[code].startswith("hip") for code in np.unique(trace.launches.name).tolist())


def _device(trace: KinetoTrace, kind: str) -> Device:
    from roofline.devices.recognise import recognise

    if kind == "cpu":
        return Device(name="CPU of the trace", kind="cpu", ceilings={})
    return recognise(_properties(trace), kind)[0]


def _cards(trace: KinetoTrace, kind: str) -> tuple[str, ...]:
    """List the cards whose driver gives the name that the trace has, with its memory where it has that."""
    if kind == "cpu":
        return ()
    properties = _properties(trace)
    name = properties.get("name")
    size = validate.measured(properties.get("totalGlobalMem")) or None
    return devices.fitting(name, size, kind) if isinstance(name, str) else ()


def _properties(trace: KinetoTrace) -> Mapping[str, Any]:
    """Return the properties of the device that most events ran on; a trace lists all devices of the machine."""
    codes, number = np.unique(trace.device.thread, return_counts=True)
    used = trace.threads[int(codes[number.argmax()])][0]
    for properties in trace.device_properties:
        if str(properties.get("id")) == used:
            return properties
    return trace.device_properties[0] if trace.device_properties else {}


def _date(trace: KinetoTrace) -> str:
    """When the trace was recorded, where it says so, else now. ISO 8601."""
    for time in (trace.origin + (trace.base_time or 0), trace.base_time or 0):
        if 10**18 < time < 4 * 10**18:  # [ns] 2001 to 2096: an epoch and no time since the machine started
            return datetime.fromtimestamp(time / 1e9, UTC).isoformat(timespec="seconds")
    return datetime.now(UTC).isoformat(timespec="seconds")
