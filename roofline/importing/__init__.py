"""Traces recorded elsewhere, from their files to profiles: read, recognise the device, put the profile together.

The parts: a trace of each kind (`from_kineto`, `from_xplane`), what their profiles have in common (`assembly`), and the
`ranks` of one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.importing import from_kineto
from roofline.importing.assembly import Say
from roofline.importing.ranks import check_ranks, rank_of, with_waiting
from roofline.importing.work import cache
from roofline.importing.work.costs import Costs
from roofline.traces.chrome import reader
from roofline.traces.kineto import reader as kineto


def ranks(paths: Sequence[str | Path]) -> list[int | None]:
    """The rank of each trace where its first few MiB say it, else None. InputError for a file that cannot be read."""
    files = [Path(path) for path in paths]
    return [None if _is_xplane(file) else rank_of(reader.head(file)).number for file in files]


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
        from roofline.importing import from_xplane  # brings protobuf, which no other trace needs

        return [from_xplane.profile(files[0], given, command, say)]
    traces = [kineto.read(file) for file in files]
    found = [rank_of(trace.metadata) for trace in traces]
    if len(files) > 1:
        check_ranks(files, found)
    captured = None if capture is None else kineto.read(Path(capture))
    costs = Costs(cache.location())
    profiles = [
        from_kineto.profile(file, trace, rank, captured, costs, given, command, len(files) > 1)
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
