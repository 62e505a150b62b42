"""Turn traces of torch.profiler or rocprofv3 into profiles, one after another, with what they share read once."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from roofline import devices
from roofline.core.schema import Profile
from roofline.errors import RooflineError
from roofline.importing import from_kineto
from roofline.importing.ranks import Rank, rank_of
from roofline.importing.selection import ALL, Selection
from roofline.importing.work import cache
from roofline.importing.work.costs import Costs
from roofline.pytorch.inductor.triton_source import Sources
from roofline.traces.kineto import reader
from roofline.traces.rocprof import reader as rocprof


class Request(msgspec.Struct, frozen=True):
    """Hold what is asked of every trace of an import.

    device: name or file of the device whose ceilings to use, None for the trace's own. captures: the files of the
    graphs' captures. inductor_cache: the folder with the sources of Triton kernels. several: whether the traces are
    those of several ranks. selection: the steps to use.
    """

    device: str | None = None
    captures: tuple[str, ...] = ()
    inductor_cache: str | None = None
    command: str = ""
    several: bool = False
    selection: Selection = ALL


class Outcome(NamedTuple):
    """Hold what came of a trace: its rank, None where it could not be read, and a profile or an error."""

    rank: Rank | None
    profile: Profile | None = None
    error: RooflineError | None = None


class Importer:
    """Import traces, of which one is in memory at a time."""

    def __init__(self, request: Request) -> None:
        """Raises InputError where the device, a capture or the sources cannot be read."""
        self._request = request
        self._device = None if request.device is None else devices.load(request.device)
        self._captures = [reader.read(Path(file)) for file in request.captures]
        sources = None if request.inductor_cache is None else Sources(Path(request.inductor_cache))
        self._costs = Costs(cache.location(), sources=sources)

    def read(self, file: Path) -> Outcome:
        """Read a trace and make its profile; an error that its user can mend is returned."""
        rank = None
        self._costs.forget()
        try:
            trace = rocprof.read(file) if rocprof.recognises(file) else reader.read(file)
            rank = rank_of(trace.metadata)
            asked = self._request
            profile = from_kineto.profile(
                file,
                trace,
                rank,
                self._captures,
                self._costs,
                self._device,
                asked.command,
                asked.several,
                asked.selection,
            )
        except RooflineError as error:
            return Outcome(rank, error=error)
        return Outcome(rank, profile)

    def close(self) -> None:
        """Keep the costs of what was read in the user's cache."""
        self._costs.save()
