"""Write the points of a roofline for a reader, and all of them for the script."""

from __future__ import annotations

from typing import Any

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import tables
from roofline.content.points import ALL, COUNTED, Point, Points
from roofline.content.wording import plain
from roofline.renderers.report.parts import columns


def facts(analysis: Analysis, point: Point) -> list[tuple[str, str]]:
    """List the names of facts about a point, and their words."""
    profile, (low, high) = analysis.profile, point.attained
    return [
        ("calls", units.count(point.number)),
        ("class", point.op_class),
        ("phase", plain(profile.phases[point.phase], 60)),
        ("time", f"{units.seconds(point.seconds)} ({units.percent(point.seconds / analysis.wall)})"),
        ("work", units.flop(point.work)),
        ("traffic", units.byte(point.moved[ALL])),
        *((("counted", units.byte(point.moved[COUNTED])),) if COUNTED in point.moved else ()),
        ("rate", units.flop_rate(point.rate)),
        ("bandwidth", units.byte_rate(point.traffic)),
        ("intensity", units.intensity(point.intensity[ALL])),
        ("of roof", f"{tables.between(low, high)} %" if low is not None else units.UNKNOWN),
        ("roof", point.roof),
        ("limited by", point.bound),
        ("precision", plain(point.precision) or units.UNKNOWN),
        ("shapes", plain(profile.signatures[point.signature].shapes, 300) or units.UNKNOWN),
    ]


def columns_of(analysis: WorkAnalysis, plotted: Points) -> dict[str, Any]:
    """Write the points for the script, in the order in which they are drawn."""
    all_points = plotted.all
    facts_of_points = [facts(analysis, point) for point in all_points] if isinstance(analysis, Analysis) else []
    levels = dict.fromkeys(level for point in all_points for level in point.intensity)
    named = [fact for fact, _ in facts_of_points[0]] if facts_of_points else []
    return {
        "signature": [point.signature for point in all_points],
        "phase": [point.phase for point in all_points],
        "group": columns.texts(point.group for point in all_points),
        "precision": columns.texts(point.precision for point in all_points),
        "seconds": columns.numbers(point.seconds for point in all_points),
        "intensity": {level: columns.numbers(point.intensity.get(level) for point in all_points) for level in levels},
        "placed": len(plotted.placed),
        "name": columns.names(point.name for point in all_points),
        "facts": {
            fact: columns.texts(words[place][1] for words in facts_of_points) for place, fact in enumerate(named)
        },
    }
