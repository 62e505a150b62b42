"""The profile of an XPlane trace of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from roofline.core.device import Device
from roofline.core.schema import Imported, Profile
from roofline.devices.recognise import recognise
from roofline.importing.assembly import (
    LONGEST,
    Say,
    assembled,
    bounded,
    check_kind,
    model_name,
    notes_of,
    rows_of,
    versions_of,
)
from roofline.importing.launches import with_launch_floor
from roofline.timing.timed import profiled

SUFFIXES = (".pb", ".pb.gz")
WORDS = "An XPlane trace of JAX or TensorFlow"

#: What launches the kernels of XLA's programs on a GPU, as profiles name it.
_MECHANISM = "xla-gpu"

BUFFERS = (
    "Kernels were replayed from command buffers, which name no instruction or the buffer as a whole: record with "
    "XLA_FLAGS=--xla_gpu_enable_command_buffer= for the work of each."
)


def profile(file: Path, requested: Device | None, command: str, say: Say) -> Profile:
    """The profile of an XPlane trace of a GPU.

    requested: the device whose ceilings are asked for; without it those of the datasheet of the device that the trace
    names. Older traces name none, and nothing has a floor then.
    say: gets each warning.
    """
    from roofline.importing import xplane  # these bring protobuf, which no other trace needs
    from roofline.traces.xplane import reader

    trace = reader.read(file)
    step = xplane.read(trace)
    counted, timed = step.counted, step.timed
    kind = "rocm" if step.rocm else "cuda"
    if requested is not None:
        check_kind(file, kind, requested)
    properties = trace.devices.get(step.device, {})
    device = requested if requested is not None else recognise(properties, kind)[0]
    device = with_launch_floor(device, _MECHANISM, step.lasted)
    rows = rows_of(counted, timed, kind, device)
    notes, flags = notes_of(counted, timed, True, device, True)
    flags = [*(flag for flag in flags if flag != "model-flops-derived"), *counted.flags]
    warnings = list(step.warnings)
    if step.further_devices:
        others = "1 other device" if step.further_devices == 1 else f"{step.further_devices} other devices"
        warnings.append(f"the profile holds {step.device} alone; {others} ran kernels or copies, too")
    if step.buffers:
        flags.append(f"command-buffers: {step.buffers} of {step.kernels} kernels")
        notes.append(BUFFERS)
    facts = Imported(
        files=(file.name[:LONGEST],),
        span=step.span,
        busy=step.busy,
        idle=step.span - step.busy,
        steps=step.step_count,
        marks="executions of the main program",
        rule="an execution of the main program",
        linked=step.linked,
        buffers=True,
        warnings=tuple(bounded(warnings)),
        notes=tuple(notes),
    )
    for text in (*facts.warnings, *facts.notes):
        say(text)
    date = None if trace.origin is None else datetime.fromtimestamp(trace.origin / 1e9, UTC)
    return assembled(
        name=model_name(file, SUFFIXES),
        backend="tensorflow-xla" if _is_tensorflow(trace.modules) else "jax",
        command=command,
        date=(date or datetime.now(UTC)).isoformat(timespec="seconds"),
        device=device,
        counted=counted,
        timed=timed,
        rows=rows,
        profiled=profiled(timed, _MECHANISM),
        versions=versions_of({}),
        flags=flags,
        facts=facts,
    )


def _is_tensorflow(modules: Mapping[int, tuple[str, bytes]]) -> bool:
    """Tell whether programs have the names that TensorFlow gives, by function or by cluster."""
    return any(name.startswith(("a_inference_", "cluster_", "__inference_")) for name, _ in modules.values())
