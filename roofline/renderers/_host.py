"""What the host does while no op runs, in words: so many ops at so much each, input, sleep, other Python."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.host_cost import HostCost, dispatched, host_cost
from roofline.renderers._words import conjunction

#: From this share of the gap on a part of it is told; and from this share of the step on, the gap in the first
#: sentence. By choice.
_SOME = 0.1
#: A part of the gap from this share on is most of it. By choice.
_MOST = 0.5


def told(analysis: Analysis) -> str:
    """All parts that are not little, the dispatch of ops always; "" where it is not known.

    Where the parts are not known, ops can take no more than all of the gap.
    """
    cost = host_cost(analysis)
    if cost is None:
        ran = dispatched(analysis)
        if ran is None or analysis.gap <= 0 or analysis.has_queue:
            return ""
        return f"{ran.words} per step, at most {units.seconds(analysis.gap / ran.all)} of host time each"
    parts = [f"{units.seconds(cost.dispatch)} for {cost.words} (dispatch and Python around them)"]
    for seconds, what in _others(cost):
        if seconds >= _SOME * cost.gap:
            parts.append(f"{units.seconds(seconds)} {what}")
    alone, in_layers = units.seconds(cost.alone), units.seconds(cost.in_layers)
    return f"{conjunction(parts)}; an op that does nothing takes this host {alone}, inside layers {in_layers}"


def most(analysis: Analysis) -> str:
    """The part that is most of a gap which is much of the step; "" where none is, or it is not known."""
    cost = host_cost(analysis)
    if cost is None or cost.gap < _SOME * analysis.wall:
        return ""
    if cost.dispatch >= _MOST * cost.gap:
        return f"most of it for {cost.words}"
    return next((f"most of it {what}" for seconds, what in _others(cost) if seconds >= _MOST * cost.gap), "")


def _others(cost: HostCost) -> list[tuple[float, str]]:
    rest = "in Python besides" if cost.asleep is not None else "in Python besides, asleep or waiting"
    return [(cost.input, "waiting for input"), (cost.asleep or 0.0, "asleep or waiting"), (cost.other, rest)]
