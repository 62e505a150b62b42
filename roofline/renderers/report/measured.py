"""Describe the measurement: all that somebody needs to believe the numbers, or to measure them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import wording
from roofline.content.facts import evidence, measured, memory
from roofline.content.facts.ceilings import waited
from roofline.content.wording import plain
from roofline.core.device import Ceiling
from roofline.renderers.report.parts.grids import cell, facts, head, table
from roofline.renderers.report.parts.html import Html, name, tag
from roofline.renderers.report.parts.run import Run, for_each_run, section

#: What the values of a family of ceilings are.
_UNITS = {"matrix": "FLOP/s", "vector": "FLOP/s", "function": "/s", "dram": "B/s", "cache": "B/s", "link": "B/s"}


def how(runs: Sequence[Run]) -> Html:
    """Write the section."""
    return section("measured", "How it was measured", for_each_run(runs, _run))


def _run(run: Run) -> Html:
    analysis = run.analysis
    pairs = [*_command(analysis)]
    if isinstance(analysis, Analysis):
        pairs += [*measured.facts(analysis), *_runs(analysis), *evidence.facts(analysis)]
    else:
        pairs += [*memory.facts(analysis.profile), *measured.compiled(analysis)]
    pairs.append(_conditions(analysis))
    return tag("div", facts(pairs), _ceilings(analysis), _settings(analysis))


def _command(analysis: WorkAnalysis) -> Iterator[tuple[str, str]]:
    profile = analysis.profile
    on = wording.device(analysis)
    yield "step", wording.subject(analysis) + (f" on {on}" if on else ", counted and not timed")
    yield "command", plain(profile.command, 1000) or units.UNKNOWN
    yield "date", plain(profile.date, 60) or units.UNKNOWN
    yield "versions", wording.versions(profile) or units.UNKNOWN
    parts = [f"{size} {units.count(number)}" for size, number in _sizes(analysis) if number is not None]
    if parts:
        yield "sizes", ", ".join(parts)


def _sizes(analysis: WorkAnalysis) -> Iterator[tuple[str, int | None]]:
    profile = analysis.profile
    yield from (("batch", profile.batch), ("length", profile.seq), ("layers", profile.layers))
    yield from (("parameters", profile.parameters), ("trainable", profile.trainable))
    yield from (("samples", profile.samples), ("tokens", profile.tokens), ("new tokens", profile.new_tokens))


def _runs(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Describe the three runs: T times plain steps, P profiles a few, C counts one."""
    profile = analysis.profile
    wall, profiled = profile.wall, profile.profiled
    if wall.source == "profiled":
        yield "timed (T)", "no plain step: times are the trace's, the profiler's own cost included"
    else:
        number = 1 + len(wall.processes)
        processes = f"{number} {'process' if number == 1 else 'processes'}"
        yield (
            "timed (T)",
            f"{wording.counted(len(wall.steps), 'plain step')} in {processes}, {wording.protocol(wall)}"
            f"{_synchronised(analysis)}",
        )
    if profiled is not None and profiled.walls:
        profiled_steps = wording.counted(len(profiled.walls), "profiled step")
        dropped = f", {profiled.dropped} dropped as outliers" if profiled.dropped else ""
        cost = f"{wording.counted(profiled.events, 'event')} per step"
        if profiled.event_cost > 0:
            cost += f" at {units.seconds(profiled.event_cost)} each, taken off"
        yield (
            "profiled (P)",
            f"{profiled_steps}{dropped}, median {units.seconds(float(np.median(profiled.walls)))}; {cost}",
        )
        grown = [] if profile.wall.source == "profiled" else [_grown(analysis)]  # of a trace no plain step is known
        yield "inflation", "; ".join([*grown, f"op times scaled by {units.significant(analysis.scale)}"])
    counted = wording.counted(len(profile.ops), "op")
    yield "counted (C)", f"{counted} of {wording.counted(len(profile.signatures), 'signature')}"


def _synchronised(analysis: Analysis) -> str:
    """Say how long the steps took that the host waited for one by one; "" where there are none."""
    single = analysis.profile.wall.single
    if not single:
        return ""
    least_to_most = units.seconds_between(min(single), max(single))
    words = f"; then {wording.counted(len(single), 'step')} with a synchronisation after each, {least_to_most}"
    if max(single) >= analysis.wall:
        return words
    return f"{words}: each shorter than the median plain one, and why was not recorded"


def _grown(analysis: Analysis) -> str:
    if analysis.inflation is None:
        return "not known how much longer a profiled step took"
    return f"the mean profiled step took {units.significant(analysis.inflation)} times as long as the median plain one"


def _conditions(analysis: WorkAnalysis) -> tuple[str, str]:
    """Describe the machine: processor share, switches, load, clocks, as recorded."""
    parts = [_condition(*condition) for condition in analysis.profile.conditions.items()]
    return "machine", ", ".join(parts) or "contention and clocks were not recorded"


def _condition(name: str, value: float) -> str:
    """Write a condition in the unit that its name says: seconds, a share, or a clock [Hz]."""
    words = plain(name, 60).split("_")
    if "seconds" in words:
        words.remove("seconds")
        return f"{' '.join(words)} {units.seconds(value)}"
    number = (
        units.percent(value) if "share" in words
        else units.scaled(value, "Hz") if "clock" in words
        else units.significant(value)
    )  # fmt: skip
    return f"{' '.join(words)} {number}"


def _ceilings(analysis: WorkAnalysis) -> Html:
    """Write the ceilings with their sources."""
    device = analysis.device
    if not device.ceilings:
        return tag("p", f"No ceilings are known of {wording.device(analysis) or 'the device'}.", class_="note")
    rows = [
        tag(
            "tr",
            tag("th", name(ceiling_name, 60), scope="row"),
            cell(value_of(ceiling_name, ceiling)),
            cell(units.percent(ceiling.spread)),
            tag("td", plain(ceiling.date, 30) if ceiling.date else units.UNKNOWN, class_="date"),
            cell([name(ceiling.source, 160), *(tag("small", name(words, 400)) for words in doubts if words)], False),
        )
        for ceiling_name, ceiling in device.ceilings.items()
        # The known figure that it is far from, and others' load while it was measured.
        for doubts in ((ceiling.flag, waited(ceiling, device.kind)),)
    ]
    heads = [head("ceiling", False), head("value"), head("spread"), head("date", False), head("source", False)]
    table_of_ceilings = table(f"Ceilings of {plain(device.ceilings_of or device.name, 80)}", heads, rows, "Ceilings")
    conditions = [f"{plain(condition, 40)} {plain(words, 300)}" for condition, words in device.conditions.items()]
    about = tag("p", f"Where they were measured: {', '.join(conditions)}.", class_="note") if conditions else None
    return tag("div", table_of_ceilings, about)


def value_of(ceiling_name: str, ceiling: Ceiling) -> str:
    """Write a ceiling in its unit: a rate, or the time of a launch."""
    family = ceiling_name.partition(".")[0]
    if family in ("launch", "latency"):
        return units.seconds(ceiling.value)
    return units.scaled(ceiling.value, _UNITS.get(family, ""))


def _settings(analysis: WorkAnalysis) -> Html | None:
    """Write options, switches and environment, as recorded."""
    profile = analysis.profile
    settings: list[tuple[str, Mapping[str, str]]] = [
        ("option", profile.options),
        ("switch", profile.switches),
        ("environment", profile.environment),
    ]
    rows = [
        tag("tr", cell(kind, False), tag("th", name(setting, 60), scope="row"), cell(name(value, 100), False))
        for kind, settings_of_kind in settings
        for setting, value in settings_of_kind.items()
    ]
    if not rows:
        return None
    heads = [head("kind", False), head("name", False), head("value", False)]
    element = table(None, heads, rows, "Options, switches and environment")
    return tag("details", tag("summary", "Options, switches and environment"), element)
