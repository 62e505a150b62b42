"""Place ops as points under a roof: all ops of one signature and phase are one point. No format draws here."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.caches.counted import counted_on
from roofline.core.vocabulary import GROUP_OF, Group


@dataclass(frozen=True, slots=True)
class Bubble:
    """Ops that do FLOP: intensity [FLOP/byte of main-memory traffic], rate [FLOP/s], both of matrix and vector work.

    The traffic is counted by hardware where that counted all of the ops, else compulsory; `compulsory` is the intensity
    by compulsory traffic, None where `intensity` is that. seconds: their own time per step [s]. number: of these ops in
    a step.
    """

    name: str
    group: Group
    intensity: float
    rate: float
    seconds: float
    number: int
    compulsory: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Ops that move bytes and do no FLOP (copies, gathers): rate [byte/s], seconds, number; traffic as of a `Bubble`.

    compulsory: the rate by compulsory traffic; None where `rate` is that.
    """

    name: str
    group: Group
    rate: float
    seconds: float
    number: int
    compulsory: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Ops that do FLOP and were not timed: intensity [FLOP/byte of compulsory traffic], and their work [FLOP]."""

    name: str
    group: Group
    intensity: float
    work: float


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a step under its roofs, the longest first; of a step whose ops have no times only ticks, by work.

    absent: the share of busy time in ops that are no point: of unknown work, or without any traffic.
    """

    bubbles: tuple[Bubble, ...]
    streams: tuple[Stream, ...]
    absent: float
    ticks: tuple[Tick, ...] = ()

    @property
    def all(self) -> tuple[Bubble | Stream | Tick, ...]:
        """Return the points of all kinds."""
        return (*self.bubbles, *self.streams, *self.ticks)

    @property
    def longest(self) -> float:
        """Return the longest time of a point [s]; 0 of none."""
        times = [bubble.seconds for bubble in self.bubbles] + [stream.seconds for stream in self.streams]
        return max(times, default=0.0)


def points(analysis: WorkAnalysis) -> Points:
    """Collect the points of a step, or its ticks where its ops have no times."""
    if not isinstance(analysis, Analysis):
        return Points((), (), 0.0, _ticks(analysis))
    profile, table = analysis.profile, analysis.table
    by_counters = counted_on(profile, analysis.device)
    moved = (by_counters.read + by_counters.written).tolist()
    merged: dict[tuple[int, int], tuple[int, float, float, Group]] = {}
    for row, op in enumerate(profile.ops):
        number, seconds, traffic, _ = merged.get((op.signature, op.phase), (0, 0.0, 0.0, None))
        group = GROUP_OF[analysis.op_class(op)]
        merged[op.signature, op.phase] = (number + 1, seconds + float(table.own[row]), traffic + moved[row], group)
    bubbles: list[Bubble] = []
    streams: list[Stream] = []
    for (signature, _), (number, seconds, traffic, group) in merged.items():
        name, cost = profile.signatures[signature].name, profile.signatures[signature].cost
        if seconds <= 0 or cost.intensity is None:
            continue  # not timed, unknown, or no traffic
        is_counted = traffic > 0  # NaN, of which some ops were not counted, is not
        least_bytes = number * (cost.bytes or 0.0)
        if cost.intensity > 0:
            work = number * ((cost.flops or 0.0) + (cost.vector_flops or 0.0))
            intensity, compulsory = (work / traffic, cost.intensity) if is_counted else (cost.intensity, None)
            bubbles.append(Bubble(name, group, intensity, work / seconds, seconds, number, compulsory))
        else:
            rate, compulsory = (
                (traffic / seconds, least_bytes / seconds) if is_counted else (least_bytes / seconds, None)
            )
            streams.append(Stream(name, group, rate, seconds, number, compulsory))
    own_seconds = float(table.own.sum())
    shown = sum(bubble.seconds for bubble in bubbles) + sum(stream.seconds for stream in streams)
    return Points(
        tuple(sorted(bubbles, key=lambda point: -point.seconds)),
        tuple(sorted(streams, key=lambda point: -point.seconds)),
        max(0.0, 1 - shown / own_seconds) if own_seconds else 0.0,
    )


def _ticks(analysis: WorkAnalysis) -> tuple[Tick, ...]:
    profile = analysis.profile
    numbers: dict[tuple[int, Group], int] = {}
    for op in profile.ops:
        key = op.signature, GROUP_OF[analysis.op_class(op)]
        numbers[key] = numbers.get(key, 0) + 1
    ticks: list[Tick] = []
    for (signature, group), number in numbers.items():
        name, cost = profile.signatures[signature].name, profile.signatures[signature].cost
        if cost.intensity:
            ticks.append(Tick(name, group, cost.intensity, number * ((cost.flops or 0.0) + (cost.vector_flops or 0.0))))
    return tuple(sorted(ticks, key=lambda tick: -tick.work))
