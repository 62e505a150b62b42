"""Say how far a step is above the floors of its ops, and which group of ops has most of that."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.totals import Total
from roofline.content.wording import is_range, plain

#: From this share of the step on, what is above the floors is worth a sentence. By choice.
_SOME = 0.02


def complete(total: Total) -> bool:
    """Return whether the sum of floors holds all ops, but for those too small to be seen."""
    return not total.own_seconds or units.is_whole(1 - total.uncosted / total.own_seconds)


def describe_floors(analysis: Analysis) -> str:
    """Sum the floors, the time beyond them, and its largest group; say why where nothing has a floor."""
    total, wall = analysis.total, analysis.wall
    if not total.ops:
        return "No op was recorded."
    if total.floor_reach <= 0:
        if not analysis.device.ceilings:
            return f"Nothing has a minimum time, since no ceilings are known of {plain(analysis.device.name)}."
        return "Nothing has a minimum time, since no op has both known work and known ceilings."
    floor = units.seconds_between(total.floor, total.floor_reach) if is_range(analysis) else units.seconds(total.floor)
    ops = "its ops" if complete(total) else "its ops of known work"
    sentence = f"The least times of {ops} add up to {floor} on this device"
    if total.loss <= -_SOME * wall:
        at_least = "at least " if is_range(analysis) else ""
        return f"{sentence}, which is {at_least}{units.seconds(-total.loss)} more than they take."
    if total.loss < _SOME * wall:
        return f"{sentence}, which is what they take."
    groups = {name: group_total.loss for name, group_total in analysis.by("group").items()}
    largest = max(groups, key=lambda name: groups[name])
    at_most = "at most " if is_range(analysis) else ""
    return (
        f"{sentence}; they take {at_most}{units.seconds(total.loss)} longer, "
        f"{units.percent(min(1.0, groups[largest] / total.loss), 0)} of it in {largest}."
    )
