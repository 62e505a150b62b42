"""Write plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.content import terminal, wording
from roofline.content.facts import host, memory, notes
from roofline.content.names.kernels import brief
from roofline.content.terminal import SHEET, Page
from roofline.core.device import SHEET_LOW
from roofline.projection.least import Least
from roofline.projection.project import Row, WhatIf
from roofline.renderers.whatif import _counted

_SAME = 1.005  # a factor below it is written as 1.00
_ENOUGH = 0.5  # of the step: where less was carried it is no step, and has no factor. By choice.
_SAME_TIME = 0.005  # of what was carried: a gap below it does not show in the figures
_LONGEST = 60  # characters of a kernel's name in a sentence
_FEW = 6  # names in a list; there may be any number
_TOLD = 0.05  # of the carried time: what the device takes to get going is said from here on


#: What goes first of the table for want of room: the highest.
_RANKS = (0, 6, 2, 0, 3, 5, 4)


def render(whatif: WhatIf | Least, page: Page = SHEET) -> str:
    """Write the sentence, the table by group, and its basis; of a step that was only counted, its least time."""
    if isinstance(whatif, Least):
        return _counted.render(whatif, page)
    lines = terminal.wrapped(_verdict(whatif), page, "bold")
    lines += ["", *_table(whatif, page), "", *terminal.facts(_facts(whatif), page)]
    return "\n".join(lines) + "\n"


def _verdict(whatif: WhatIf) -> str:
    source, target = wording.device(whatif.here), wording.plain(whatif.there.name)
    step = f"{wording.subject(whatif.here)}: {units.seconds(whatif.here.wall)} per step on {source}"
    if odd := wording.beyond(whatif.here):
        return f"{step}, {odd}: nothing of it can be projected to {target}."
    if not whatif.speedup or not whatif.total.projected:
        return f"{step}; no op of it can be projected to {target}."
    not_carried = whatif.total.not_carried
    if whatif.compared < _ENOUGH * whatif.here.wall:
        return (
            f"{step}, {units.seconds(whatif.compared)} of which can be projected to {target}: too little to say how "
            "long a step takes there."
        )
    remainder = f" The other {units.seconds(not_carried)} are left out on both sides." if not_carried > 0 else ""
    if whatif.gap < _SAME_TIME * whatif.compared:
        carried = f"{units.seconds(whatif.seconds)} on {target} (range {units.seconds_between(*whatif.interval)})"
        if units.seconds(whatif.compared) == units.seconds(whatif.here.wall):
            return f"{step}, {carried}, {_factor(whatif.speedup, whatif.compared, whatif.interval)}.{remainder}"
        # The factor is of what was carried alone, so that this is what stands beside it.
        of = f", {units.seconds(whatif.compared)} of which can be projected"
        return f"{step}{of}: {carried}, {_factor(whatif.speedup, whatif.compared, whatif.interval)}.{remainder}"
    ops, gap = whatif.total, wording.gap_name(whatif.here)
    factor = _factor(ops.measured / ops.projected, ops.measured, ops.interval)
    subject = "Its ops" if not_carried <= 0 else "The ops that can be projected"
    ends = units.seconds_between(*ops.interval)
    so = "a step takes" if not_carried <= 0 else "that is"
    return (
        f"{step}. {subject} take {units.seconds(ops.measured)} here and {units.seconds(ops.projected)} on {target} "
        f"(range {ends}), {factor}. With as much {gap} as here, {units.seconds(whatif.gap)}, {so} "
        f"{units.seconds(whatif.seconds)} there; its host time is not projected.{remainder}"
    )


def _factor(speedup: float, source_seconds: float, target_range: tuple[float, float]) -> str:
    """Write how many times faster the step is, and whether the range resolves that; times in [s]."""
    if 1 / _SAME < speedup < _SAME:
        return "as fast as here"
    factor = speedup if speedup >= 1 else 1 / speedup
    sentence = f"{units.significant(factor)} times {'faster' if speedup >= 1 else 'slower'}"
    return (
        f"{sentence}, which is not resolved: the range includes the time here"
        if target_range[0] <= source_seconds <= target_range[1]
        else sentence
    )


def _table(whatif: WhatIf, page: Page) -> list[str]:
    rows: list[tuple[str, ...]] = [("group", "ops", "here", "there", "range", "ceilings alone", "here / there")]
    rows += [_cells(name, row) for name, row in whatif.groups.items()]
    gap = host.gap_time(whatif.here)
    rows.append((wording.gap_name(whatif.here), "", gap, gap, "", units.UNKNOWN, ""))
    source, target = units.seconds(whatif.compared), units.seconds(whatif.seconds)
    speed = units.UNKNOWN if whatif.speedup is None else units.significant(whatif.speedup)
    ends = units.seconds_between(*whatif.interval)
    rows.append(
        ("total", units.count(whatif.total.ops), source, target, ends, units.seconds(whatif.total.floor), speed)
    )
    return terminal.fitted(rows, (0,), _RANKS, page, 1, -1)


def _cells(name: str, row: Row) -> tuple[str, ...]:
    if not row.measured and row.not_carried:
        return (name, units.count(row.ops), *[units.UNKNOWN] * 5)
    speed = units.significant(row.measured / row.projected) if row.projected > 0 else units.UNKNOWN
    ends = units.seconds_between(*row.interval)
    source = units.seconds(row.measured)
    if row.not_carried:
        source += f" of {units.seconds(row.measured + row.not_carried)}"
    times = (source, units.seconds(row.projected), ends, units.seconds(row.floor))
    return (name, units.count(row.ops), *times, speed)


def _facts(whatif: WhatIf) -> Iterator[tuple[str, str]]:
    source, target, gap = (
        wording.plain(whatif.here.device.name),
        wording.plain(whatif.there.name),
        wording.gap_name(whatif.here),
    )
    library = (
        ""
        if whatif.change in (None, "processor")
        else "; a library's matmuls and attention come nearer to what is typical of another device"
    )
    yield (
        "rule",
        "an op that takes twice its least time here (of its work and its launch) is assumed to take twice its least "
        f"time there{library}",
    )
    if whatif.kernels > 1:
        yield (
            "range",
            "nine of ten draws of profiled steps, ceilings and other kernels; other kernels alone may make the ops up "
            f"to {units.significant(whatif.kernels)} times faster or slower, but no range begins below the ceilings",
        )
    else:
        yield "range", "nine of ten draws of profiled steps and ceilings"
    if notes.all_above(whatif.here):
        words = notes.above(whatif.here)
        yield "above", f"here {words}, so the column ceilings alone is no lower limit there"
    yield from _unknown(whatif)
    hidden = sum(unknown_work.hidden for unknown_work in whatif.unknown if not unknown_work.assumed)
    if hidden > whatif.total.projected:
        yield (
            "hidden",
            f"{units.seconds(hidden)} not projected, which other ops hide here: these take less than that there",
        )
    idle = host.gap_time(whatif.here)
    yield gap, f"{idle}, taken over unchanged and without a range: it depends on the host, not on these ceilings"
    if whatif.kept:
        yield "launches", f"{_names(whatif.kept)}: not known for {target}, so that of {source} is used"
    if whatif.left_out:
        yield "left out", f"{_names(whatif.left_out)}: not known for {target}, so left out on both sides"
    if whatif.missing:
        yield "missing", f"{_names(whatif.missing)}: not known for {target}, so not in the column ceilings alone"
    if whatif.caches:
        yield "caches", "the step's buffers are followed through the last-level caches of both devices"
    else:
        yield "caches", "all traffic counts as main memory's on both devices; what caches there would hold is not known"
    if whatif.cached > 0:
        yield (
            "",
            f"caches of both may hold what ops of {units.seconds(whatif.cached)} here move, so the range goes below "
            "main memory's ceiling",
        )
    if whatif.hidden > _SAME_TIME * whatif.total.measured:
        yield (
            "overlap",
            f"{units.seconds(whatif.hidden)} here are hidden by other ops; of two that overlap, the same part of the "
            "shorter one is assumed to be hidden there",
        )
    if whatif.rebound > 0:
        yield "other roof", f"ops of {units.seconds(whatif.rebound)} here are under another roof there"
    if whatif.starting > _TOLD * whatif.total.measured:
        yield (
            "start-up",
            f"{units.seconds(whatif.starting)} here are launch and latency, which no ceiling shortens",
        )
    if whatif.sheet:
        yield (
            "datasheet",
            "measured ceilings are compared with a datasheet's, which no code reaches; the range allows that only "
            f"{units.percent(SHEET_LOW, 0)} of it can be reached",
        )
    yield from _warnings(whatif)


def _unknown(whatif: WhatIf) -> Iterator[tuple[str, str]]:
    """Report the ops that were not projected by their work, first those not projected at all."""
    for assumed, label in ((False, "unprojected"), (True, "assumed")):
        for unknown_work in whatif.unknown:
            if unknown_work.assumed != assumed:
                continue
            ops = wording.counted(unknown_work.ops, "op")
            words = f"{units.seconds(unknown_work.seconds)} here, {ops}: {wording.plain(unknown_work.reason)}"
            if not assumed and unknown_work.hidden > _SAME_TIME * unknown_work.seconds:
                words += f", and {units.seconds(unknown_work.hidden)} hidden by other ops, which is assumed there, too"
            words += (
                f", projected like the rest of {'its' if unknown_work.ops == 1 else 'their'} group" if assumed else ""
            )
            yield label, f"{words} (most in {wording.plain(brief(unknown_work.longest), _LONGEST)})"
            label = ""


def _warnings(whatif: WhatIf) -> Iterator[tuple[str, str]]:
    if whatif.here.device.kind != whatif.there.kind:
        kinds = f"{wording.plain(whatif.here.device.kind)} here and {wording.plain(whatif.there.kind)} there"
        yield (
            "kernels",
            f"{kinds}: other kernels will run there, fused differently and at other fractions of their roofs",
        )
    yield from memory.fit_facts(whatif.fit)
    if whatif.here.profile.imported is not None:
        gap = wording.gap_name(whatif.here)
        yield "trace", f"the time of a step and {gap} come from the trace and include its profiler's overhead"
    for number, words in enumerate(wording.flags(whatif.here)):
        yield "" if number else "flags", words


def _names(names: tuple[str, ...]) -> str:
    shown = [wording.plain(name) for name in names[:_FEW]]
    further = len(names) - len(shown)
    return wording.conjunction([*shown, f"{further} more"] if further else shown)
