"""Measure from beginning to end: record in a child, calibrate, put the profile together."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from roofline.recording.prepared import PreparedProcesses

#: Lets the threads of OpenMP sleep while they wait for work.
_ASLEEP = {"OMP_WAIT_POLICY": "PASSIVE"}
#: Number of processors that a step must lack before its threads sleep from the start. By choice: half of the time of
#: one thread. With less, threads that spin may be faster, and candidates of a comparison that are measured one after
#: the other would not all wait in the same way.
_MISSING = 0.5


def measure(
    request: Request,
    *,
    command: str,
    rounds: int = 1,
    say: Say,
    progress: Progress | None = None,
    given_device: Device | None = None,
    prepared: PreparedProcesses | None = None,
) -> Profile:
    """Record `request` in a child process, under this machine's ceilings or those of `given_device`.

    rounds: processes that time plain steps; the first of them also profiles and counts, and is a fork of `prepared`
    where one is given and can be. On a busy machine threads sleep
    while they wait; where that may be wrong the first round is run again, and the faster of the two counts.
    The step comes first: where it cannot be built or run, no ceiling is measured for it.
    """
    from roofline.devices import calibration

    backend, request = ready(request)
    kind, threads = request.workload.device, request.threads
    if threads is not None and not request.count_only:
        calibration.check_threads(threads)
    with TemporaryDirectory(prefix="roofline-") as shared:
        recording = _record_rounds(request, backend, rounds, say, Path(shared), prepared)
    for note in recording.notes:
        say(f"not known: {note}")
    own_steps.remember(request, command, recording.sources)
    if given_device is not None:
        return under_given(recording, request, given_device, command)
    if request.count_only:
        return to_profile(recording, request, Device(name="not measured", kind=kind, ceilings={}), command)
    return under_ceilings(recording, request, ceilings.measured(kind, threads, say, progress), command)


def under_ceilings(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """Make the profile of a step under this machine's ceilings; the cache gets the measured bandwidths."""
    from roofline.devices import calibration

    if recording.ceilings and request.python is None:  # another interpreter's libraries have a calibration of their own
        calibration.contribute(device.kind, int(recording.environment["threads"]), recording.ceilings)
    if device.merge_measurements(recording.ceilings).contended:
        recording = msgspec.structs.replace(recording, flags=(*recording.flags, "contended-ceilings"))
    return to_profile(recording, request, device, command)


def under_given(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """Make the profile of a step under ceilings that the user gave, without those measured with the step."""
    flags = (*recording.flags, f"given-ceilings: {device.ceilings_of}")
    return to_profile(msgspec.structs.replace(recording, ceilings={}, flags=flags), request, device, command)


def _record_rounds(
    request: Request, backend: Backend, rounds: int, say: Say, shared: Path, prepared: PreparedProcesses | None
) -> Recording:
    """Record the first round, repeat it where its threads should wait otherwise, and add the others' plain steps.

    Threads that spin while they wait keep cores from the threads that they wait for. So they sleep where the machine
    lacks room for them already, and where the cores turn out to be contended. If the cores were not contended while
    threads slept, the framework's own way may be faster, and is measured, too. A step on a GPU does not wait for them,
    nor does a single thread. shared, prepared: see `launch.run`.
    """
    on_cpu = request.workload.device == "cpu"
    threads = _host_threads(request)
    may_choose = not request.count_only and threads > 1 and "OMP_WAIT_POLICY" not in os.environ
    variables = dict(_ASLEEP) if may_choose and on_cpu and _is_crowded(threads) else {}
    if variables:
        say("The machine is busy: measuring with OMP_WAIT_POLICY=PASSIVE.")
    recording = record_whole(request, backend, variables, shared, prepared)
    if may_choose and (other_variables := _other_waiting(recording, variables)) is not None:
        say(
            "The cores were contended: measuring again with OMP_WAIT_POLICY=PASSIVE."
            if other_variables
            else "The cores were not contended: measuring again without OMP_WAIT_POLICY=PASSIVE."
        )
        second = record_whole(request, backend, other_variables, shared, prepared)
        if median(second.wall.steps) < median(recording.wall.steps):
            recording, variables = second, other_variables
    further = []
    for number in range(2, 1 if request.count_only else rounds + 1):
        say(f"Round {number} of {rounds}.")
        further.append(record(plain_request(request), backend, variables, shared).wall.steps)
    if not further:
        return recording
    return msgspec.structs.replace(recording, wall=msgspec.structs.replace(recording.wall, processes=tuple(further)))


def _host_threads(request: Request) -> int:
    """Return how many threads on the host work on an op together; one has none to wait for."""
    from roofline.devices import cpu

    return request.threads or cpu.detect().cores


def _is_crowded(threads: int) -> bool:
    """Tell whether the threads of a step lack room on the processors."""
    from roofline.devices import contention

    return contention.free_processors() <= threads - _MISSING


def _other_waiting(recording: Recording, variables: Mapping[str, str]) -> dict[str, str] | None:
    """Choose the other way to wait, where the recording shows that it may be faster; None where the first was right."""
    if "contended" in recording.flags:
        return None if variables else dict(_ASLEEP)
    return {} if variables else None


def ready(request: Request) -> tuple[Backend, Request]:
    """Load the backend and find the request's interpreter; raises before anything is measured."""
    from roofline.recording import launch

    backend = load(request.backend)
    if request.python is None:
        require(request.backend, backend)
        return backend, request
    # Another interpreter has libraries of its own: its process says what is missing there.
    return backend, msgspec.structs.replace(request, python=launch.interpreter(request.python))


def require(name: str, backend: Backend) -> None:
    """Check the frameworks of a backend without importing them. Raises MissingError for one that is not installed."""
    missing = [needed for needed in backend.requires if not plugins.importable(needed)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingError(
            f"The {name} backend needs {' and '.join(missing)}, which {verb} not installed here: "
            f"run `pip install 'roofline[{','.join(backend.extras)}]'`."
        )


def record_whole(
    request: Request,
    backend: Backend,
    variables: Mapping[str, str],
    shared: Path | None = None,
    prepared: PreparedProcesses | None = None,
) -> Recording:
    """Make one recording; if the profiled run needs an environment of its own, plain steps get their own process."""
    if request.count_only or not backend.recorder.profiled_environment(request.workload.device):
        return record(request, backend, variables, shared, prepared)
    recording = record(msgspec.structs.replace(request, api=None), backend, variables, shared, prepared)
    plain = record(msgspec.structs.replace(request, plain_only=True), backend, variables, shared, prepared)
    # Plain steps are compared: the environment is theirs, too.
    return msgspec.structs.replace(
        recording,
        wall=plain.wall,
        conditions=plain.conditions,
        memory=plain.memory,
        energy=plain.energy,
        environment=plain.environment,
        notes=(*recording.notes, *plain.notes),
        api=plain.api,
    )


def plain_request(request: Request) -> Request:
    """Make the request for a further process, which times plain steps only."""
    return msgspec.structs.replace(request, plain_only=True, api=None)


def record(
    request: Request,
    backend: Backend,
    variables: Mapping[str, str] | None = None,
    shared: Path | None = None,
    prepared: PreparedProcesses | None = None,
) -> Recording:
    """Record in a child process; `variables` are set in its environment, besides the backend's own.

    shared: a folder that it shares with others; prepared: processes that may fork it, see `launch.run`.
    """
    from roofline.recording import launch

    asked = {**_environment(request, backend), **(variables or {})}
    recording = launch.run(request, asked, shared, prepared).recording
    assert recording is not None  # a result without an error and without checks
    return recording


def verify(request: Request) -> list[Check]:
    """Compare the counts of `request` with independent references, in a fresh child process."""
    from roofline.recording import launch

    backend, request = ready(request)
    return launch.run(msgspec.structs.replace(request, verify=True), _environment(request, backend)).checks or []


def _environment(request: Request, backend: Backend) -> dict[str, str]:
    """Return the variables to set before the framework is imported; profiling, by which XLA counts, adds its own."""
    device = request.workload.device
    variables = backend.environment(request.threads, device, request.workload.options)
    return variables if request.plain_only else {**variables, **backend.recorder.profiled_environment(device)}


def to_profile(recording: Recording, request: Request, device: Device, command: str) -> Profile:
    """Make a profile: a recording with the ceilings of its device and its provenance."""
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
        device=device.merge_measurements(recording.ceilings).together(recording.devices),
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
        storages=recording.storages,
        lines=recording.lines,
        waits=recording.waits,
        energy=recording.energy,
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
    """Choose the path `bert-torch-infer-b1-s128-<device>-<n>.json`, with the first n that is free."""
    parts = [profile_.model, profile_.backend, profile_.mode]
    parts += [f"b{profile_.batch}"] if profile_.batch is not None else []
    parts += [f"s{profile_.seq}"] if profile_.seq is not None else []
    words = "".join(c if c.isalnum() else " " for c in profile_.device.name.lower()).split()
    stem = "-".join([*parts, "-".join(words[:4])])
    number = 1
    while os.path.lexists(path := folder / f"{stem}-{number}.json"):  # a link to nothing takes a name, too
        number += 1
    return path
