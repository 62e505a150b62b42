"""Split what the host does while no op runs: getting ops to run, reading input, sleeping or waiting, and other Python.

What an op takes a host around itself was measured in the process of the run, with ops that do next to nothing. Before
each op the framework's own time is its dispatch, however long, and so is Python up to what such an op takes inside
layers, with what an op takes alone for each view before it: views have no layer each, and a loop over a thousand slices
is no dispatch of the op behind it. Right after an op that moves more than the cache of a core holds, it is what the op
takes with nothing in the caches. What is longer in most steps is no dispatch; what is longer in a few of them was the
machine. Of that, a thread that is on no core sleeps or waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.dispatch_cost import Dispatched, calls_and_reads, dispatched, python_beyond
from roofline.analysis.gap_causes import INPUT, seconds_of
from roofline.core.executor import ASLEEP, MAKING, OP_ALONE, OP_IN_LAYERS


@dataclass(frozen=True, slots=True)
class HostCost:
    """The gap of a step on a CPU [s], by what its host does: the four add up to it.

    dispatch: getting what is `dispatched` to run. input: reading the next batch. asleep: on no core besides; None where
    that is not known: then it is in `other_python`. op_alone, in_layers: what an op takes the host around
    itself, as calibrated [s].
    """

    dispatched: Dispatched
    dispatch: float
    input: float
    asleep: float | None
    other_python: float
    op_alone: float
    in_layers: float

    @property
    def each(self) -> float:
        """Return what the host takes for each thing that is dispatched [s]."""
        return self.dispatch / self.dispatched.all

    @property
    def words(self) -> str:
        """Say how many ops and views at what each."""
        return f"{self.dispatched.words} at {units.seconds(self.each)} each"

    @property
    def besides(self) -> float:
        """Return the host's time besides dispatching and input [s]."""
        return self.other_python + (self.asleep or 0.0)

    @property
    def gap(self) -> float:
        """Return all of it [s]."""
        return self.dispatch + self.input + self.besides


def host_cost(analysis: Analysis) -> HostCost | None:
    """Split the gap by what the host does, as idle time was divided; None where that was not recorded."""
    profile, ran = analysis.profile, dispatched(analysis.profile)
    op_alone, in_layers = (profile.conditions.get(name) for name in (OP_ALONE, OP_IN_LAYERS))
    if ran is None or op_alone is None or in_layers is None or analysis.gap <= 0 or not analysis.idle:
        return None
    if profile.profiled is None:
        return None
    scale = analysis.gap / analysis.idle
    reading = min(seconds_of(INPUT, profile.profiled.idle_causes), analysis.idle)
    after_last = analysis.idle - reading - 1e-9 * sum(sum(op.host_ns or ()) for op in profile.ops)
    calls, reads = calls_and_reads(profile)
    usual = in_layers + op_alone * max(0, reads - calls)
    undispatched = float(python_beyond(profile, analysis.device, op_alone, in_layers).sum())
    undispatched += max(0.0, after_last - usual)
    undispatched += profile.conditions.get(MAKING, 0.0)  # what is before an op knows nothing of it
    remaining, away = analysis.gap - reading * scale, profile.conditions.get(ASLEEP)
    undispatched = min(undispatched * scale, remaining)
    # Who waits for input is on no core. And in other steps, which are faster with one thread, a host waits longer for
    # whatever feeds it: no more than was seen here.
    asleep = None if away is None else min(max(0.0, away - reading * scale), undispatched)
    return HostCost(
        dispatched=ran,
        dispatch=remaining - undispatched,
        input=reading * scale,
        asleep=asleep,
        other_python=undispatched - (asleep or 0.0),
        op_alone=op_alone,
        in_layers=in_layers,
    )
