"""Draw a step on its device and as it is projected to another one: a bar for each, by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofline import units
from roofline.content import wording
from roofline.core.vocabulary import Group
from roofline.projection.project import WhatIf
from roofline.renderers.figures import _bars, _frame, _style
from roofline.renderers.figures._written import Caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(whatif: WhatIf, width: float) -> tuple[Figure, Caption]:
    """Stack the times of the groups that can be projected, here and there, each with the gap; there with its range."""
    here, there = wording.device(whatif.here), wording.plain(whatif.there.name, 60)
    times = units.seconds(whatif.compared), units.seconds(whatif.seconds)
    speed = units.UNKNOWN if whatif.speedup is None else f"{units.significant(whatif.speedup)}x"
    groups = whatif.groups.items()
    bars = (
        _bars.Bar(here, _pieces(whatif, {name: row.measured for name, row in groups}), None, (times[0], "")),
        _bars.Bar(
            there,
            _pieces(whatif, {name: row.projected for name, row in groups}),
            whatif.interval,
            (times[1], speed),
        ),
    )
    sentence = f"{times[0]} on {here}, {times[1]} projected to {there}"
    if whatif.total.not_carried > 0:
        sentence += f", both without {units.seconds(whatif.total.not_carried)} that cannot be projected"
    heading = _frame.heading([whatif.here], [whatif.here.profile.backend], width, sentence)
    explanation = (
        "Time of one step by group, of the ops that can be projected; the whisker is the range of the projection."
    )
    return _bars.sheet(heading, bars, ("time", "faster"), _bars.FULL, width), Caption(
        " ".join(heading.title), explanation, explanation
    )


def _pieces(whatif: WhatIf, times: Mapping[Group, float]) -> list[_bars.Piece]:
    """Return the pieces of a bar: the groups, and the gap, which stays as it is."""
    pieces = [_bars.Piece(name, seconds, *_style.filled(name)) for name, seconds in times.items() if seconds > 0]
    return [*pieces, _bars.Piece(wording.gap_name(whatif.here), max(0.0, whatif.gap), _style.GAP, "black")]
