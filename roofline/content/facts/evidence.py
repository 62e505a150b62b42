"""Describe the evidence of a step: how its time adds up, the gap and its causes, coverage and roofs."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import hole
from roofline.content import wording
from roofline.content.facts import ceilings, counters, floors, host, notes, waits

_ROOFS = {
    "serial": "these kernels, one after the other",
    "overlap": "the same, compute and memory overlapped",
    "ideal": "only parameters, optimizer state, inputs and outputs moved, unless a cache keeps them",
}


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield the names of facts and their words."""
    total, wall, gap = analysis.total, analysis.wall, wording.gap_name(analysis)
    if total.overlap > 0 or total.uncosted > 0:
        parts = f"uncosted ({units.seconds(total.uncosted)}) − overlap ({units.seconds(total.overlap)})"
        yield "time", f"minimum + above it + {parts} + {gap} = {units.seconds(wall)}"
    if words := notes.overlap(analysis):
        yield "overlap", words
    if analysis.scaled:
        yield "scale", scale(analysis)
    yield gap, idle(analysis)
    if words := host.describe_host(analysis):
        yield "host", words
    if analysis.products:
        products = "; ".join(_product(phase, *work) for phase, work in analysis.products.items())
        yield "matmuls", f"{notes.least(analysis)}{products}"
    if (devices := analysis.profile.devices) > 1:
        per_device = (
            f"; divided equally, {notes.least(analysis)}{units.flop(total.flops / devices)} of matmuls for each"
        )
        yield "devices", f"{devices} share the step{per_device if analysis.products else ''}"
    coverage = analysis.coverage
    # Of a replayed graph the launch lies in an op, which is not the op of its kernels.
    to = "joined to ops" if analysis.profile.imported is None else "in the steps used has an op of its own"
    joined = "" if coverage["time"] is None else f"; {units.percent(coverage['time'])} of the profiler's time {to}"
    shares = (
        f"FLOPs known for {units.percent(coverage['flops'])} of busy time, bytes for {units.percent(coverage['bytes'])}"
    )
    yield "coverage", shares + joined
    if words := counters.compare_counters(analysis):
        yield "counters", words
    yield "quality", "of busy time: " + ", ".join(f"{n} {units.percent(s)}" for n, s in analysis.quality.items())
    ranged = wording.is_range(analysis)
    roofs = [
        f"{name} {'at least ' if ranged or not floors.complete(total) else ''}{units.seconds(roof)} ({_ROOFS[name]})"
        for name, roof in analysis.roofs.items()
        if roof is not None
    ]
    if roofs:
        why = "; more than its ops took, which ran faster than their minimum times" if notes.all_above(analysis) else ""
        yield "least step", "; ".join(roofs) + why
    if ranged:
        yield "ranges", wording.ranges(analysis)
    if words := ceilings.provenance(analysis.device):
        yield "ceilings", words
    if analysis.missing:
        names = wording.conjunction([wording.plain(name) for name in analysis.missing])
        yield "not known", f"{names}: no such ceiling, so its term is left out of the minimum times"
    if words := notes.above(analysis):
        yield "above", words
    for number, words in enumerate(wording.imported(analysis)):
        yield "" if number else "trace", words
    for number, words in enumerate(wording.flags(analysis)):
        yield "" if number else "flags", words


def _product(phase: str, model: float, executed: float, largest_difference: str) -> str:
    """Compare the FLOPs of a phase's contractions with those that ran."""
    words = f"{wording.plain(phase)} {units.flop(model)}"
    if not largest_difference:
        return f"{words} (executed / model 1)"
    ratio = f"executed / model {executed / model:.4g}" if model else f"{units.flop(executed)} executed"
    return f"{words} ({ratio}, most of the difference in {wording.plain(largest_difference)})"


def scale(analysis: Analysis) -> str:
    """Say by how much op times were scaled down, and for which observation."""
    longer = f"{units.percent(1 / analysis.scale - 1, 1)} longer than"
    if analysis.fills_by_scale:
        why = f"in the profiled steps ops alone took {longer} a plain step"
    else:
        why = f"the profiled steps, without what profiling them cost, took {longer} plain ones"
    return f"all op times were multiplied by {units.significant(analysis.scale)}: {why}"


def idle(analysis: Analysis) -> str:
    """Write the gap with its interval, the observed idle time, and the causes where the two agree."""
    if analysis.gap_told is None:
        return f"not known: op times were scaled so that they fill the plain steps; {_observed(analysis)}"
    words, interval = units.seconds(analysis.gap_told), analysis.gap_interval
    if interval and interval[1] > 0:
        low, high = interval
        # Plain and busy times are drawn apart, so that a drawn gap may be less than nothing; a gap cannot.
        words += (
            f", 95 % interval {units.seconds_between(low, high)}"
            if low > 0
            else f", at most {units.seconds(high)} (95 %)"
        )
    if analysis.profile.wall.source == "profiled":
        words += ", profiler overhead included"
    if analysis.idle is None:
        return f"{words}; idle time was not observed"
    words += f"; {_observed(analysis)}"
    if analysis.gap <= 0 or (interval and interval[0] <= 0):
        return words  # what may be nothing has no causes
    if analysis.gap_causes is None:
        return f"{words}; causes not resolved"
    causes = [f"{wording.plain(cause, 100)} {units.seconds(time)}" for cause, time in analysis.gap_causes.items()]
    if causes:
        # Causes were observed in the idle time, and are carried over to the gap: they add up to that.
        is_whole = units.seconds(analysis.idle) == units.seconds(analysis.gap_told)
        words += f"{': ' if is_whole else f'; {wording.gap_name(analysis)} by cause: '}{', '.join(causes)}"
    if analysis.most_per_launch is not None:
        number, seconds = units.count(analysis.total.kernels), units.seconds(analysis.most_per_launch)
        words += f"; the host launches {number} kernels, in at most {seconds} on average"
    elif analysis.waits_for_host and (idle_stretch := hole(analysis.profile, analysis.idle)):
        row, share = idle_stretch
        name = analysis.profile.signatures[analysis.profile.ops[row].signature].name
        words += f"; {units.seconds(share * analysis.gap)} of it at once, before {wording.plain(name, 100)}"
    named = waits.longest(analysis)
    return f"{words}; {named}" if named else words


def _observed(analysis: Analysis) -> str:
    """Say how long no op ran in the profiled steps, of which a timeline draws one."""
    profiled = analysis.profile.profiled
    number = len(profiled.idle) if profiled else 0
    steps = "the profiled step" if number == 1 else f"the mean of {units.count(number)} profiled steps"
    return f"{units.seconds(analysis.idle)} idle in {steps}"
