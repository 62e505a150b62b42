"""Measuring from beginning to end: record in a child, calibrate, put the profile together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from roofline import plugins
from roofline.core.device import Device
from roofline.core.schema import SCHEMA, Profile
from roofline.errors import MissingError
from roofline.measuring import ceilings, own_steps
from roofline.measuring.ceilings import Progress
from roofline.recording.backend import Backend, load
from roofline.recording.recording import Check, Recording, Say
from roofline.recording.request import Request
from roofline.version import __version__

#: Lets the threads of OpenMP sleep while they wait for work.
_ASLEEP = {"OMP_WAIT_POLICY": "PASSIVE"}
#: So many processors must be missing of those that a step wants before its threads sleep from the start. By choice:
#: half of the time of one thread. With less, threads that spin may be faster, and candidates of a comparison that are
#: measured one after the other would not all wait in the same way.
_MISSING = 0.5


def measure(
    request: Request,
    *,
    command: str,
    rounds: int = 1,
    say: Say,
    progress: Progress | None = None,
    given: Device | None = None,
) -> Profile:
    """Record `request` in a fresh child process and put it under this machine's ceilings, or under `given`.

    rounds: processes that time plain steps; the first of them also profiles and counts. On a busy machine threads sleep
    while they wait; where that may be wrong the first round is run again, and the faster of the two counts.
    The step comes first: where it cannot be built or run, no ceiling is measured for it.
    """
    from roofline.devices import calibration

    backend, request = ready(request)
    kind, threads = request.workload.device, request.threads
    if threads is not None and not request.count_only:
        calibration.check_threads(threads)
    with TemporaryDirectory(prefix="roofline-") as shared:
        recording = _recorded(request, backend, rounds, say, Path(shared))
    for note in recording.notes:
        say(f"not known: {note}")
    own_steps.remember(request, command, recording.sources)
    if given is not None:
        return under_given(recording, request, given, command)
    if request.count_only:
        return to_profile(recording, request, Device(name="not measured", kind=kind, ceilings={}), command)
    return under_ceilings(recording, request, ceilings.measured(kind, threads, say, progress), command)


def under_ceilings(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """Make the profile of a step that ran on this machine, whose kept ceilings get what was seen beside the step."""
    from roofline.devices import calibration

    if recording.ceilings and request.python is None:  # another interpreter's libraries have a calibration of their own
        calibration.contribute(device.kind, int(recording.environment["threads"]), recording.ceilings)
    if device.seen_again(recording.ceilings).contended:
        recording = msgspec.structs.replace(recording, flags=(*recording.flags, "contended-ceilings"))
    return to_profile(recording, request, device, command)


def under_given(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """Make the profile of a step under ceilings that the user gave, and under nothing that was seen beside the step."""
    flags = (*recording.flags, f"given-ceilings: {device.ceilings_of}")
    return to_profile(msgspec.structs.replace(recording, ceilings={}, flags=flags), request, device, command)


def _recorded(request: Request, backend: Backend, rounds: int, say: Say, shared: Path) -> Recording:
    """The first round, again where its threads should have waited otherwise, with the plain steps of the others.

    Threads that spin while they wait keep busy cores from those that they wait for. So they sleep where the machine
    lacks room for them already, and where the cores turn out to be contended. Where nobody contended for them while
    threads slept, the framework's own way may be faster, and is measured, too. shared: see `launch.run`.
    """
    may_choose = not request.count_only and "OMP_WAIT_POLICY" not in os.environ
    variables = dict(_ASLEEP) if may_choose and _is_crowded(request) else {}
    if variables:
        say("The machine is busy: measuring with OMP_WAIT_POLICY=PASSIVE.")
    recording = record_whole(request, backend, variables, shared)
    if may_choose and (other := _otherwise(recording, variables)) is not None:
        say(
            "The cores were contended: measuring again with OMP_WAIT_POLICY=PASSIVE."
            if other
            else "The cores were not contended: measuring again without OMP_WAIT_POLICY=PASSIVE."
        )
        again = record_whole(request, backend, other, shared)
        if median(again.wall.steps) < median(recording.wall.steps):
            recording, variables = again, other
    others = []
    for number in range(2, 1 if request.count_only else rounds + 1):
        say(f"Round {number} of {rounds}.")
        others.append(record(plainly(request), backend, variables, shared).wall.steps)
    if not others:
        return recording
    return msgspec.structs.replace(recording, wall=msgspec.structs.replace(recording.wall, processes=tuple(others)))


def _is_crowded(request: Request) -> bool:
    """Whether the threads of a step on the CPU lack room; a step on a GPU does not wait for them."""
    from roofline.devices import contention, cpu

    if request.workload.device != "cpu":
        return False
    return contention.free_processors() <= (request.threads or cpu.detect().cores) - _MISSING


def _otherwise(recording: Recording, variables: Mapping[str, str]) -> dict[str, str] | None:
    """The other way to wait, where it may be faster by what was recorded; None where the first way was right."""
    if "contended" in recording.flags:
        return None if variables else dict(_ASLEEP)
    return {} if variables else None


def ready(request: Request) -> tuple[Backend, Request]:
    """The backend, and the request with its interpreter found; refused here, before anything is measured."""
    from roofline.recording import launch

    backend = load(request.backend)
    if request.python is None:
        require(request.backend, backend)
        return backend, request
    # Another interpreter has libraries of its own: its process says what is missing there.
    return backend, msgspec.structs.replace(request, python=launch.interpreter(request.python))


def require(name: str, backend: Backend) -> None:
    """MissingError where a framework that the backend needs is not installed; looks without importing it."""
    missing = [needed for needed in backend.requires if not plugins.importable(needed)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingError(
            f"The {name} backend needs {' and '.join(missing)}, which {verb} not installed here: "
            f"run `pip install 'roofline[{','.join(backend.extras)}]'`."
        )


def record_whole(
    request: Request, backend: Backend, variables: Mapping[str, str], shared: Path | None = None
) -> Recording:
    """One recording; where the profiled run needs an environment of its own, the plain one gets its own process."""
    if request.count_only or not backend.recorder.profiled_environment(request.workload.device):
        return record(request, backend, variables, shared)
    recording = record(msgspec.structs.replace(request, api=None), backend, variables, shared)
    plain = record(msgspec.structs.replace(request, plain_only=True), backend, variables, shared)
    # What is compared are plain steps: theirs is the environment, too.
    return msgspec.structs.replace(
        recording,
        wall=plain.wall,
        conditions=plain.conditions,
        memory=plain.memory,
        environment=plain.environment,
        notes=(*recording.notes, *plain.notes),
        api=plain.api,
    )


def plainly(request: Request) -> Request:
    """The request for a further process, which times plain steps and nothing else."""
    return msgspec.structs.replace(request, plain_only=True, api=None)


def record(
    request: Request, backend: Backend, variables: Mapping[str, str] | None = None, shared: Path | None = None
) -> Recording:
    """What one child process recorded; `variables` are set in its environment beside the backend's own.

    shared: a folder that it shares with others, see `launch.run`.
    """
    from roofline.recording import launch

    recording = launch.run(request, {**_environment(request, backend), **(variables or {})}, shared).recording
    assert recording is not None  # a result without an error and without checks
    return recording


def verify(request: Request) -> list[Check]:
    """The counts of `request` beside independent references, from a fresh child process."""
    from roofline.recording import launch

    backend, request = ready(request)
    return launch.run(msgspec.structs.replace(request, verify=True), _environment(request, backend)).checks or []


def _environment(request: Request, backend: Backend) -> dict[str, str]:
    """What the backend wants set before its framework is imported; to profile, which is how XLA counts, has its own."""
    device = request.workload.device
    variables = backend.environment(request.threads, device, request.workload.options)
    return variables if request.plain_only else {**variables, **backend.recorder.profiled_environment(device)}


def to_profile(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """A recording with the ceilings of its device and its provenance."""
    workload, backend = request.workload, load(request.backend)
    return Profile(
        schema=SCHEMA,
        model=workload.model,
        backend=request.backend,
        framework=backend.framework,
        written_in=backend.written_in,
        options=workload.options,
        mode=recording.mode,
        size=workload.size,
        precision=workload.precision,
        layers=workload.layers,
        command=command,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device.seen_again(recording.ceilings).together(recording.devices),
        wall=recording.wall,
        profiled=recording.profiled,
        scopes=recording.scopes,
        phases=recording.phases,
        blocks=recording.blocks,
        signatures=recording.signatures,
        ops=recording.ops,
        kernels=recording.kernels,
        addresses=recording.addresses,
        devices=recording.devices,
        batch=recording.batch,
        seq=recording.seq,
        versions={"roofline": __version__, "python": sys.version.partition(" ")[0], **recording.versions},
        switches=recording.switches,
        environment=recording.environment,
        conditions=recording.conditions,
        parameters=recording.parameters,
        trainable=recording.trainable,
        samples=recording.samples,
        tokens=recording.tokens,
        new_tokens=recording.new_tokens,
        memory=recording.memory,
        flags=recording.flags,
        compilation=recording.compilation,
        sources=recording.sources,
        preset=request.preset,
        api=recording.api,
    )


def default_name(profile_: Profile, folder: Path) -> Path:
    """`bert-torch-infer-b1-s128-<device>-<n>.json`, with the first n that is free."""
    parts = [profile_.model, profile_.backend, profile_.mode]
    parts += [f"b{profile_.batch}"] if profile_.batch is not None else []
    parts += [f"s{profile_.seq}"] if profile_.seq is not None else []
    words = "".join(c if c.isalnum() else " " for c in profile_.device.name.lower()).split()
    stem = "-".join([*parts, "-".join(words[:4])])
    number = 1
    while (path := folder / f"{stem}-{number}.json").exists():
        number += 1
    return path
