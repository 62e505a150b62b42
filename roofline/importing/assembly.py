"""Assemble the profiles of all kinds of traces: names, bounds, notes, and how parts are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from roofline.core import scopes
from roofline.core.batch import Batch
from roofline.core.device import Device
from roofline.core.schema import SCHEMA, Collectives, Imported, Profile, Profiled, Wall
from roofline.core.scopes import TOP
from roofline.core.vocabulary import PASSES
from roofline.costs import precision
from roofline.costs.counted import PHASES, Counted
from roofline.errors import InputError
from roofline.pytorch import time_cuda
from roofline.recording.rows import OpTables, op_rows
from roofline.timing.timed import Timed
from roofline.units import cut
from roofline.version import __version__

Say = Callable[[str], None]

#: Warnings that a profile keeps; beyond them their number.
MAX_WARNINGS = 50
#: Characters of a warning or a name.
LONGEST = 300

SHAPES = (
    "Recorded without shapes, so no work is known. A minimum time needs an op's work and the device's ceilings: record "
    "with torch.profiler.profile(record_shapes=True, ...) and import that trace."
)
KERNELS_ALONE = (
    "Recorded without shapes, so no work is known: rocprofv3 records kernels and calls, no ops. A minimum time needs "
    "an op's work and the device's ceilings: where PyTorch runs the step, record it with "
    "torch.profiler.profile(record_shapes=True, ...) and import that trace."
)
GRAPHS = (
    "Kernels were replayed from a graph, and the trace does not say which op each is of, so their work is not known: "
    "import with --capture TRACE, a trace of the program while it captures its graphs, or record a step without graphs."
)
CEILINGS = (
    "No ceilings are known for this device. A minimum time needs an op's work and the device's ceilings: name "
    "a device that `roofline devices` lists, with --device NAME, or give a calibration's file, with --device FILE."
)
_WORDS = {"cpu": "a CPU", "cuda": "an NVIDIA GPU", "rocm": "an AMD GPU"}


def model_name(file: Path, suffixes: Sequence[str] = ()) -> str:
    """Name a profile after its trace's file, without the suffixes of traces, in characters that a file may have.

    suffixes: those that its format claims.
    """
    stem = file.name
    for suffix in (*sorted(suffixes, key=len, reverse=True), ".gz", ".zip", ".json", ".xplane", ".trace", ".pt"):
        stem = stem.removesuffix(suffix)
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in stem)[:60].strip("-.") or "trace"


def blocks(counted: Counted) -> list[str]:
    """The block of each scope: its first part, as there is no map of the model."""
    return [path.partition("/")[0] or TOP for path in counted.scopes]


def blocks_of_modules(counted: Counted, timed: Timed) -> list[str]:
    """The block of each scope of a model, whose tree of modules is descended (`core.scopes.blocks`) by the time of ops.

    Not by their work, of which a trace without shapes knows nothing.
    """
    times: list[dict[str, float]] = [{} for _ in counted.scopes]
    for op, scope, phase, own in zip(
        counted.ops, counted.scope.tolist(), counted.phase.tolist(), timed.own.mean(axis=1).tolist(), strict=False
    ):
        if PHASES[phase] != "optimizer":
            times[scope][op.costed.op_class] = times[scope].get(op.costed.op_class, 0.0) + own
    classes = [max(sums, key=sums.__getitem__, default="") for sums in times]
    return scopes.blocks(counted.scopes, [sum(sums.values()) for sums in times], classes)


def bounded(warnings: Sequence[str]) -> list[str]:
    """Return the first warnings, each of a bounded length, and how many more there are."""
    texts = [cut(text, LONGEST) for text in warnings[:MAX_WARNINGS]]
    return [*texts, f"{len(warnings) - len(texts)} more warnings"] if len(warnings) > len(texts) else texts


def check_kind(file: Path, kind: str, device: Device) -> None:
    """InputError where ceilings are those of another kind of device than the trace is of."""
    if device.kind != kind:
        raise InputError(
            f"{file.name} is the trace of {_WORDS[kind]}, and {device.name} is {_WORDS.get(device.kind, device.kind)}: "
            "give another --device."
        )


def rows_of(counted: Counted, timed: Timed, kind: str, device: Device, modules: bool = False) -> OpTables:
    """The rows of a profile; no switch is in a trace, and a device without TF32 needs none.

    modules: whether scopes are those of modules.
    """
    rows = op_rows(counted, timed, blocks_of_modules(counted, timed) if modules else blocks(counted), {}, kind)
    return replace(rows, signatures=tuple(precision.settled(signature, device) for signature in rows.signatures))


def notes_of(
    counted: Counted, timed: Timed, shapes: bool, device: Device, captured: bool, unshaped: str = SHAPES
) -> tuple[list[str], list[str]]:
    """(sentences on what to record or give for a fuller profile, flags). unshaped: what to say where shapes lack."""
    notes, flags = [], []
    if not shapes:
        notes.append(unshaped)
        flags.append("no-shapes")
    unattributed = time_cuda.flags(timed, captured)
    if unattributed and not captured:
        notes.append(GRAPHS)
    flags.extend(unattributed)
    if not device.ceilings:
        notes.append(CEILINGS)
        flags.append("no-ceilings")
    if any(op.costed.cost.flops for op in counted.ops):
        flags.append("model-flops-derived")
    return notes, flags


def versions_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of what wrote the profile and, as far as its trace says, of what ran the step."""
    versions = {"roofline": __version__}
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
            versions[key.removesuffix("_version").replace("_", " ")] = str(value)[:40]
    return versions


def assembled(
    *,
    name: str,
    backend: str,
    command: str,
    date: str,
    device: Device,
    counted: Counted,
    timed: Timed,
    rows: OpTables,
    profiled: Profiled,
    versions: Mapping[str, str],
    flags: Sequence[str],
    facts: Imported,
    collectives: Collectives | None = None,
    batch: Batch | None = None,
    conditions: Mapping[str, float] = MappingProxyType({}),
) -> Profile:
    """The profile of an imported step: its only times are the profiled ones.

    batch: that a serving engine ran in it: each of its sequences is a sample.
    """
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
        addresses=rows.addresses if facts.buffers else (),
        storages=rows.storages,
        lines=rows.lines,
        waits=rows.waits,
        versions=versions,
        conditions=dict(conditions),
        flags=tuple(flags),
        imported=facts,
        collectives=collectives,
        **({} if batch is None else _sizes(batch)),
    )


def _sizes(batch: Batch) -> dict[str, Any]:
    """What a step of a serving engine has to do: fields of `Profile`.

    Of several queries of a sequence all but one are drafted, or of its prompt: how many are kept is not in the trace.
    """
    is_new = batch.phase == "decode" and batch.tokens == batch.sequences
    return {
        "samples": batch.sequences,
        "tokens": batch.tokens,
        "new_tokens": 1 if is_new else None,
        "switches": {} if batch.phase == "prefill" else {PASSES: "1"},
    }
