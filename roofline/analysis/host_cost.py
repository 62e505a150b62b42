"""What the host does while no op runs: getting ops to run, reading input, sleeping or waiting, and other Python.

What an op takes a host around itself was measured in the process of the run, with ops that do next to nothing. Before
each op the framework's own time is its dispatch, however long, and so is Python up to what such an op takes inside
layers, with what an op takes alone for each view before it: views have no layer each, and a loop over a thousand slices
is no dispatch of the op behind it. Right after an op that moves more than the cache of a core holds, it is what the op
takes with nothing in the caches. What is longer in most steps is no dispatch; what is longer in a few of them was the
machine. Of that, a thread that is on no core sleeps or waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofline import units
from roofline.analysis.gap_causes import INPUT, seconds_of
from roofline.core.executor import ASLEEP, COMPILED_CODE, MAKING, OP_ALONE, OP_COLD, OP_IN_LAYERS, READS
from roofline.core.schema import Profile

if TYPE_CHECKING:
    from roofline.analysis.analysis import Analysis

#: The largest cache that a core has to itself.
_OF_A_CORE = "l2"


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What the host of a step gets to run: ops, and calls of the framework that run none (views, results read).

    Calls are recorded before ops, and results read for the whole step. As many of the calls as can be are taken for
    results read, so that `views` is the least number of views.
    """

    ops: int
    views: int
    reads: int

    @property
    def all(self) -> int:
        """How many in all."""
        return self.ops + self.views + self.reads

    @property
    def words(self) -> str:
        """ "300 ops, 150 views and 2 results read"."""
        kinds = ((self.ops, "op"), (self.views, "view"))
        told = [f"{units.count(number)} {what}{'' if number == 1 else 's'}" for number, what in kinds if number]
        told += [f"{units.count(self.reads)} result{'' if self.reads == 1 else 's'} read"] if self.reads else []
        return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


@dataclass(frozen=True, slots=True)
class HostCost:
    """The gap of a step on a CPU [s], by what its host does: the four add up to it.

    dispatch: getting what is `dispatched` to run. input: reading the next batch. asleep: on no core besides; None where
    that is not known: then it is in `other`, which else is Python. alone, in_layers: what an op takes the host around
    itself, as calibrated [s].
    """

    dispatched: Dispatched
    dispatch: float
    input: float
    asleep: float | None
    other: float
    alone: float
    in_layers: float

    @property
    def each(self) -> float:
        """What each thing that is dispatched takes the host [s]."""
        return self.dispatch / self.dispatched.all

    @property
    def words(self) -> str:
        """How many ops and views at what each."""
        return f"{self.dispatched.words} at {units.seconds(self.each)} each"

    @property
    def besides(self) -> float:
        """What the host does besides dispatching and input [s]."""
        return self.other + (self.asleep or 0.0)

    @property
    def gap(self) -> float:
        """All of it [s]."""
        return self.dispatch + self.input + self.besides


def dispatched(analysis: Analysis) -> Dispatched | None:
    """What the host of a step gets to run, op by op; None where that was not recorded.

    Nor of a step with compiled code whose kernels nobody saw: they run where the host seems to dispatch.
    """
    profile = analysis.profile
    if COMPILED_CODE in profile.flags:
        return None
    if not profile.ops or any(op.host_calls is None for op in profile.ops) or OP_ALONE not in profile.conditions:
        return None
    calls, reads = _calls(profile)
    return Dispatched(sum(max(1, op.launches) for op in profile.ops), max(0, calls - reads), reads)


def _calls(profile: Profile) -> tuple[int, int]:
    """Calls of the framework before its ops that run none, and results read: more of these are after the last op."""
    return sum(op.host_calls or 0 for op in profile.ops), round(profile.conditions.get(READS, 0.0))


def host_cost(analysis: Analysis, resolved: bool = True) -> HostCost | None:
    """What the host does in the gap; None where that was not recorded.

    resolved: nor where gap and observed idle time do not agree. Else the gap is taken to be divided as idle time was.
    """
    profile, ran = analysis.profile, dispatched(analysis)
    alone, in_layers = (profile.conditions.get(name) for name in (OP_ALONE, OP_IN_LAYERS))
    if ran is None or alone is None or in_layers is None or analysis.gap <= 0 or not analysis.idle:
        return None
    if profile.profiled is None or (resolved and analysis.gap_causes is None):
        return None
    scale = analysis.gap / analysis.idle
    reading = min(seconds_of(INPUT, profile.profiled.idle_causes), analysis.idle)
    after_last = analysis.idle - reading - 1e-9 * sum(sum(op.host_ns or ()) for op in profile.ops)
    calls, reads = _calls(profile)
    usual = in_layers + alone * max(0, reads - calls)
    beyond = float(_before_ops(analysis, alone, in_layers).sum()) + max(0.0, after_last - usual)
    beyond += profile.conditions.get(MAKING, 0.0)  # what is before an op knows nothing of it
    rest, away = analysis.gap - reading * scale, profile.conditions.get(ASLEEP)
    beyond = min(beyond * scale, rest)
    # Who waits for input is on no core. And in other steps, which are faster with one thread, a host waits longer for
    # whatever feeds it: no more than was seen here.
    asleep = None if away is None else min(max(0.0, away - reading * scale), beyond)
    return HostCost(
        dispatched=ran,
        dispatch=rest - beyond,
        input=reading * scale,
        asleep=asleep,
        other=beyond - (asleep or 0.0),
        alone=alone,
        in_layers=in_layers,
    )


def beyond_dispatch(analysis: Analysis) -> NDArray[np.float64] | None:
    """Return how long before each op the host was in Python beyond what dispatching it takes [s], shape (ops,).

    None where what an op takes this host was not calibrated, or its calls were not recorded.
    """
    profile = analysis.profile
    alone, in_layers = (profile.conditions.get(name) for name in (OP_ALONE, OP_IN_LAYERS))
    if dispatched(analysis) is None or alone is None or in_layers is None:
        return None
    return _before_ops(analysis, alone, in_layers)


def _before_ops(analysis: Analysis, alone: float, in_layers: float) -> NDArray[np.float64]:
    """How long before each op the host did what is no dispatch of it [s]; shape (ops,)."""
    profile = analysis.profile
    columns = [(op.python_ns or 0, max(1, op.launches), op.host_calls or 0) for op in profile.ops]
    python, ops, views = np.asarray(columns, np.float64).T
    cold = profile.conditions.get(OP_COLD, in_layers)
    usual = np.where(_after_large(analysis), cold, in_layers) * ops + alone * views
    found: NDArray[np.float64] = np.maximum(0.0, python * 1e-9 - usual)
    return found


def _after_large(analysis: Analysis) -> NDArray[np.bool_]:
    """Which ops stand right after one that moves more than a core's cache holds; the first stands after another step.

    Where the work of an op or the size of the cache is not known, it may have emptied it.
    """
    profile = analysis.profile
    size = next((cache.size for cache in analysis.device.caches if cache.level == _OF_A_CORE), None) or 0.0
    costs = [one.cost for one in profile.signatures]
    moved = [
        np.inf if c.bytes_read is None or c.bytes_written is None else c.bytes_read + c.bytes_written for c in costs
    ]
    after = np.ones(len(profile.ops), np.bool_)
    after[1:] = (np.asarray(moved) > size)[[op.signature for op in profile.ops[:-1]]]
    return after
