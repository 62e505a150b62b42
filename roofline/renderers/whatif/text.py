"""Plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.core.device import SHEET_LOW
from roofline.projection.carry import Row, WhatIf
from roofline.renderers import _terminal, _words
from roofline.renderers._facts import notes
from roofline.renderers._names.kernels import brief
from roofline.renderers._terminal import SHEET, Page
from roofline.renderers.whatif._memory import fits

_SAME = 1.005  # a factor below it is written as 1.00
_ENOUGH = 0.5  # of the step: where less was carried it is no step, and has no factor. By choice.
_SAME_TIME = 0.005  # of what was carried: a gap below it does not show in the figures
_LONGEST = 60  # characters of a kernel's name in a sentence
_FEW = 6  # names in a list; there may be any number
_TOLD = 0.05  # of the carried time: what the device takes to get going is said from here on


#: What goes first of the table for want of room: the highest.
_RANKS = (0, 6, 2, 0, 3, 5, 4)


def render(found: WhatIf, page: Page = SHEET) -> str:
    """The sentence, the table by group, and what it rests on."""
    lines = _terminal.wrapped(_verdict(found), page, "bold")
    lines += ["", *_table(found, page), "", *_terminal.facts(_facts(found), page)]
    return "\n".join(lines) + "\n"


def _verdict(found: WhatIf) -> str:
    here, there = _words.device(found.here), _words.plain(found.there.name)
    step = f"{_words.subject(found.here)}: {units.seconds(found.here.wall)} per step on {here}"
    if odd := _words.beyond(found.here):
        return f"{step}, {odd}: nothing of it can be carried to {there}."
    if not found.speedup or not found.total.there:
        return f"{step}, and no time of its ops to carry to {there}."
    left = found.total.not_carried
    if found.compared < _ENOUGH * found.here.wall:
        return (
            f"{step}, of which {units.seconds(found.compared)} can be carried to {there}: too little to say how long a "
            "step takes there."
        )
    rest = f" The other {units.seconds(left)} count on neither side." if left > 0 else ""
    if found.gap < _SAME_TIME * found.compared:
        carried = f"{units.seconds(found.seconds)} on {there} (range {units.seconds_between(*found.interval)})"
        if units.seconds(found.compared) == units.seconds(found.here.wall):
            return f"{step}, {carried}, {_factor(found.speedup, found.compared, found.interval)}.{rest}"
        # The factor is of what was carried alone, so that this is what stands beside it.
        of = f", of which {units.seconds(found.compared)} can be carried"
        return f"{step}{of}: {carried}, {_factor(found.speedup, found.compared, found.interval)}.{rest}"
    ops, gap = found.total, _words.gap_name(found.here)
    factor = _factor(ops.here / ops.there, ops.here, ops.interval)
    which = "Its ops" if left <= 0 else "The ops that can be carried"
    ends = units.seconds_between(*ops.interval)
    so = "a step takes" if left <= 0 else "that is"
    return (
        f"{step}. {which} take {units.seconds(ops.here)} here and {units.seconds(ops.there)} on {there} (range "
        f"{ends}), {factor}. With as much {gap} as here, {units.seconds(found.gap)}, {so} "
        f"{units.seconds(found.seconds)} there; what its host takes is not projected.{rest}"
    )


def _factor(speedup: float, here: float, there: tuple[float, float]) -> str:
    """How many times faster, and whether the range says that at all; times in [s]."""
    if 1 / _SAME < speedup < _SAME:
        return "as fast as here"
    factor = speedup if speedup >= 1 else 1 / speedup
    told = f"{units.significant(factor)} times {'faster' if speedup >= 1 else 'slower'}"
    return f"{told}, which is not resolved: the range holds the time of here" if there[0] <= here <= there[1] else told


def _table(found: WhatIf, page: Page) -> list[str]:
    rows: list[tuple[str, ...]] = [("group", "ops", "here", "there", "range", "ceilings alone", "here / there")]
    rows += [_cells(name, row) for name, row in found.groups.items()]
    gap = units.seconds(found.here.gap_told)
    rows.append((_words.gap_name(found.here), "", gap, gap, "", units.UNKNOWN, ""))
    here, there = units.seconds(found.compared), units.seconds(found.seconds)
    speed = units.UNKNOWN if found.speedup is None else units.significant(found.speedup)
    ends = units.seconds_between(*found.interval)
    rows.append(("total", str(found.total.ops), here, there, ends, units.seconds(found.total.floor), speed))
    return _terminal.fitted(rows, (0,), _RANKS, page, 1, -1)


def _cells(name: str, row: Row) -> tuple[str, ...]:
    if not row.here and row.not_carried:
        return (name, str(row.ops), *[units.UNKNOWN] * 5)
    speed = units.significant(row.here / row.there) if row.there > 0 else units.UNKNOWN
    ends = units.seconds_between(*row.interval)
    here = units.seconds(row.here)
    if row.not_carried:
        here += f" of {units.seconds(row.here + row.not_carried)}"
    times = (here, units.seconds(row.there), ends, units.seconds(row.floor))
    return (name, str(row.ops), *times, speed)


def _facts(found: WhatIf) -> Iterator[tuple[str, str]]:
    here, there, gap = _words.plain(found.here.device.name), _words.plain(found.there.name), _words.gap_name(found.here)
    yield (
        "rule",
        "the least time of each op, of its work and of starting it, is worked out for both devices; an op that takes "
        "twice its least time here is taken to take twice its least time there",
    )
    if found.kernels > 1:
        yield (
            "range",
            "over profiled steps and the uncertainty of the ceilings; other kernels may be up to "
            f"{units.significant(found.kernels)} times faster or slower, but not faster than the ceilings",
        )
    else:
        yield "range", "over profiled steps and the uncertainty of the ceilings"
    if notes.all_above(found.here):
        words = notes.above(found.here)
        yield "above", f"here {words}, so that the column ceilings alone is not the least that it takes there"
    yield from _unknown(found)
    beside = sum(one.hidden for one in found.unknown if not one.assumed)
    if beside > found.total.there:
        yield "hidden", f"{units.seconds(beside)} not carried: more than all that is carried takes there to hide it"
    seconds = units.seconds(found.here.gap_told)
    yield gap, f"{seconds}, carried unchanged and without a range: it depends on the host and not on these ceilings"
    if found.kept:
        yield "launches", f"{_names(found.kept)}: not known of {there}, so that of {here} stands for it"
    if found.left_out:
        yield "left out", f"{_names(found.left_out)}: not known of {there}, so left out on both sides"
    if found.missing:
        yield "missing", f"{_names(found.missing)}: no such ceiling of {there}, so not in the column ceilings alone"
    yield "caches", "all traffic is taken to be main memory's, on both: it is not known what caches there would hold"
    if found.cached > 0:
        yield (
            "",
            f"but caches of both may hold what ops of {units.seconds(found.cached)} here move, so that the range goes "
            "below main memory's ceiling",
        )
    if found.hidden > _SAME_TIME * found.total.here:
        yield (
            "overlap",
            f"{units.seconds(found.hidden)} here are hidden by other ops; of two that run side by side as much of the "
            "shorter one is taken to be hidden there",
        )
    if found.rebound > 0:
        yield "other roof", f"ops of {units.seconds(found.rebound)} here are under another roof there"
    if found.starting > _TOLD * found.total.here:
        yield (
            "start-up",
            f"{units.seconds(found.starting)} here are launch and latency, which no ceiling shortens",
        )
    if found.sheet:
        yield (
            "datasheet",
            "measured ceilings stand against a datasheet's, which no code reaches; the range allows that as little as "
            f"{units.percent(SHEET_LOW, 0)} of it can be reached",
        )
    yield from _warnings(found, there)


def _unknown(found: WhatIf) -> Iterator[tuple[str, str]]:
    """What was not carried by its work, first what was not carried at all."""
    for assumed, label in ((False, "not carried"), (True, "assumed")):
        for one in found.unknown:
            if one.assumed != assumed:
                continue
            ops = f"{units.count(one.ops)} op{'' if one.ops == 1 else 's'}"
            words = f"{units.seconds(one.seconds)} here, {ops}: {_words.plain(one.reason)}"
            if not assumed and one.hidden > _SAME_TIME * one.seconds:
                words += f", and {units.seconds(one.hidden)} hidden by other ops, as they are taken to be there"
            words += f", carried like the rest of {'its' if one.ops == 1 else 'their'} group" if assumed else ""
            yield label, f"{words} (most in {_words.plain(brief(one.most), _LONGEST)})"
            label = ""


def _warnings(found: WhatIf, there: str) -> Iterator[tuple[str, str]]:
    if found.here.device.kind != found.there.kind:
        kinds = f"{_words.plain(found.here.device.kind)} here and {_words.plain(found.there.kind)} there"
        yield (
            "kernels",
            f"{kinds}: other kernels will run, fused otherwise and attaining other fractions of their roofs",
        )
    if fits(found) is False:
        peak, memory = found.here.profile.memory.peak, found.there.memory
        yield "memory", f"the step needs {units.byte(peak)} and {there} has {units.byte(memory)}: it does not fit"
    if found.here.profile.imported is not None:
        yield "trace", "wall and gap are the trace's and hold its profiler's overhead"
    for number, words in enumerate(_words.flags(found.here)):
        yield "" if number else "flags", words


def _names(names: tuple[str, ...]) -> str:
    shown = [_words.plain(name) for name in names[:_FEW]]
    more = len(names) - len(shown)
    return _words.conjunction([*shown, f"{more} more"] if more else shown)
