"""Traces recorded elsewhere, from their files to profiles: read, recognise the device, put the profile together.

The parts: one file per trace format (`from_kineto`, `from_xplane`), what their profiles have in common (`assembly`),
and the ranks of one job.

A format is a module `from_<format>` with what `Format` names, and is found by its name. What no format claims by its
suffix is read as a trace of rocprofv3, if it begins so, else of torch.profiler, the only one of which several (the
ranks of one job) can be given, or a `--capture`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from roofline import plugins
from roofline.core.device import Device
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.importing import pool
from roofline.importing.assembly import Say
from roofline.importing.ranks import Rank, check_ranks, rank_of, with_waiting
from roofline.importing.selection import ALL, Selection
from roofline.importing.traces import Request
from roofline.traces.chrome import reader

#: How files of torch.profiler's traces are called in a folder.
_TRACES = (".json", ".json.gz", ".zip")
#: A name that may stand in that of a file.
_NAME = re.compile(r"\w(?:[\w.-]{0,58}\w)?")


class Format(Protocol):
    """Describes the module of a trace format."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:
        """How its files are called."""

    @property
    def WORDS(self) -> str:
        """What such a file is called in a message."""

    def profile(self, file: Path, requested: Device | None, command: str, say: Say) -> Profile:
        """Return the profile of a file, on the device asked for (None: its own)."""


def traces_in(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the paths with the traces of torch.profiler in them for folders. Raises InputError for one without any."""
    traces: list[str | Path] = []
    for path in paths:
        if not Path(path).is_dir():
            traces.append(path)
            continue
        files = sorted(file for file in Path(path).iterdir() if file.is_file() and file.name.endswith(_TRACES))
        if not files:
            raise InputError(f"The folder {path} holds no trace ({', '.join(_TRACES)}): name one that does.")
        traces += files
    return traces


def ranks(paths: Sequence[str | Path]) -> list[int | None]:
    """The rank of each trace where its first few MiB say it, else None. InputError for a file that cannot be read."""
    files = [Path(path) for path in paths]
    return [None if _format(file) else rank_of(reader.head(file)).number for file in files]


def read(
    paths: Sequence[str | Path],
    *,
    device: str | None = None,
    capture: str | Path | Sequence[str | Path] | None = None,
    inductor_cache: str | Path | None = None,
    name: str | None = None,
    command: str = "",
    selection: Selection = ALL,
    say: Say = lambda text: None,
    workers: int | None = None,
) -> list[Profile]:
    """Return one profile per trace. Several traces must be the ranks of one job, and are sorted by rank.

    device: a name or a file, as `devices.load` takes it; None: the one that the trace names. capture: the
    traces of the graphs' captures, or folders of them. inductor_cache: the folder with the sources of Triton kernels.
    name: what the model is called; None: as its file is. selection: the steps to use, of each trace. say: gets each
    warning once. workers: number of processes that read the traces of ranks; None: one per usable core, as far as the
    memory allows.

    Raises InputError for files that cannot be read or do not belong together and for what is no name, MeasurementError
    for traces without anything to measure.
    """
    from roofline import devices

    if name is not None and not _NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} is no name for a model: give up to 60 letters, digits, '-', '_' or '.'.")
    files = [Path(path) for path in paths]
    for form in filter(None, map(_format, files)):
        if len(files) > 1 or capture is not None or inductor_cache is not None:
            raise InputError(
                f"{form.WORDS} is imported by itself: leave --capture, --inductor-cache and the other traces out."
            )
        if selection != ALL:
            raise InputError(f"{form.WORDS} tells its steps itself: leave --steps, --between and --trim out.")
        requested = None if device is None else devices.load(device)
        return [_called(form.profile(files[0], requested, command, say), name)]
    several = len(files) > 1
    given = [] if capture is None else [capture] if isinstance(capture, str | Path) else list(capture)
    request = Request(
        device=device,
        captures=tuple(map(str, traces_in(given))),
        inductor_cache=None if inductor_cache is None else str(inductor_cache),
        command=command,
        several=several,
        selection=selection,
    )
    profiles: list[Profile] = []
    ranks: list[Rank] = []
    with closing(pool.read(files, request, workers)) as outcomes:
        for rank, profile, error in outcomes:
            if rank is not None:
                ranks.append(rank)
            if several and rank is not None:
                check_ranks(files[: len(ranks)], ranks)
            if error is not None:
                raise error
            profiles += [] if profile is None else [profile]
    profiles = [_called(profile, name, several) for profile in (with_waiting(profiles) if several else profiles)]
    for profile in profiles:
        facts = profile.imported
        for text in (*facts.warnings, *facts.notes) if facts else ():
            say(f"{profile.model}: {text}" if len(profiles) > 1 else text)
    return sorted(profiles, key=lambda profile: (profile.imported.rank or 0) if profile.imported else 0)


def _called(profile: Profile, name: str | None, several: bool = False) -> Profile:
    """The profile with that name, of several with its rank."""
    if name is None:
        return profile
    rank = f"-rank{profile.imported.rank}" if several and profile.imported else ""
    return replace(profile, model=name + rank)


def _format(file: Path) -> Format | None:
    """Return the format that claims a file by its suffix; None for a trace of torch.profiler."""
    formats = [name for name in plugins.names(__name__) if name.startswith("from-")]
    loaded: list[Format] = [plugins.load(__name__, name, "trace format") for name in formats]
    return next((form for form in loaded if file.name.endswith(form.SUFFIXES)), None)
