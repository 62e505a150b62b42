"""Describe a job of several ranks: a row for each rank, collective and phase, and the rank that the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

import numpy as np

from roofline.core.arrays import Array
from roofline.core.rows import Ints
from roofline.core.rows import rows as columns
from roofline.core.schema import Message, Profile
from roofline.errors import InputError
from roofline.ranks.matching import Matched, match
from roofline.ranks.number import number_of, ranks_of
from roofline.ranks.straggler import Straggler, find_straggler
from roofline.ranks.work import Outlier, compare_work, find_outliers, own_times

#: What a rank sends, times this, went over its link: of n ranks (NCCL's "bus bandwidth", nccl-tests PERFORMANCE.md).
#: By the first letters of the operation, without underscores.
_ON_THE_BUS = (
    (("allreduce",), lambda n: 2 * (n - 1) / n),
    (("allgather", "reducescatter", "alltoall"), lambda n: (n - 1) / n),
    (("broadcast", "reduce", "send", "recv"), lambda n: 1.0),
)
#: The ceiling of what a GPU's links carry to others, each way. The bus bandwidth of what switches reduce may exceed it:
#: less is moved then than `_ON_THE_BUS` says.
_LINK = "link.peer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTimes:
    """Hold what a rank does per step, or all do in the mean [s]. computing: time in which anything but collectives ran.

    communication: time in collectives; exposed: of it what no computation hides; hidden: the share that one does;
    waiting: of communication what slower ranks take. idle: time in which nothing ran. None: not known, as of a rank
    none of whose collectives was matched, and the mean of what is not known of each rank.
    """

    wall: float
    computing: float | None
    communication: float | None
    exposed: float | None
    hidden: float | None
    waiting: float | None
    idle: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow(RankTimes):
    """A rank. last: of how many collectives it is the last to arrive; None: none of its own was matched."""

    number: int
    model: str
    last: int | None


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """The collectives of one kind and size. Times of one of them [s].

    ranks: how many take part. runs: how many were matched. shortest: on the rank that waits least, in the median: the
    transfer takes no longer. longest: on the one that waits longest. last: the rank that arrives last most often, and
    how often (`times_last`). arrives: when the last rank does, counted from when the first rank came to the first
    collective of the step, and apart: how much later than the first rank, both in the median. algorithm_bandwidth: the
    message by the shortest time, and bandwidth: what a rank sends or receives over its link in it [B/s]; None where
    sizes are not known. of_link: of the ceiling of that link; None where the device has none.
    """

    message: Message
    ranks: int
    runs: int
    shortest: float
    longest: float
    last: int
    times_last: int
    arrives: float
    apart: float
    algorithm_bandwidth: float | None
    bandwidth: float | None
    of_link: float | None


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """The time of a phase's ops on the ranks, without collectives, per step [s]: the mean, and the extremes.

    imbalance: how much longer than the mean the longest is, as a share of the mean.
    """

    name: str
    mean: float
    least: float
    longest: float
    rank_of_longest: int
    imbalance: float


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks of a job. of: how many it has, None where no trace says it. straggler: None where there is none.

    outliers: ranks whose ops take longer than those of the others would by chance. steps: how many were seen of every
    rank. matched, unmatched: collectives that all, or not all, of their ranks have. ends_apart: how far the
    ends of a collective are apart by one clock [s], None where there are none.
    """

    profiles: tuple[Profile, ...]
    of: int | None
    ranks: tuple[RankRow, ...]
    mean: RankTimes
    collectives: tuple[CollectiveRow, ...]
    phases: tuple[PhaseRow, ...]
    straggler: Straggler | None
    outliers: tuple[Outlier, ...]
    steps: int
    matched: int
    unmatched: int
    ends_apart: float | None


def describe(profiles: Sequence[Profile]) -> Job:
    """Describe the ranks of a job by their profiles, in the order of their numbers.

    Raises InputError for a profile whose ops have no times.
    """
    profiles = sorted(profiles, key=_number)
    for profile in profiles:
        if not profile.has_times:
            raise InputError(
                f"The ops of rank {_number(profile)} have no times, by which ranks are compared: measure it again "
                "without --count-only."
            )
    matched = match(profiles)
    numbers = [_number(profile) for profile in profiles]
    steps = max(1, len(set(matched.steps)))
    waiting, parts = matched.waiting.sum(1) / steps, matched.took_part.sum(1)
    lasts, work = np.bincount(matched.last, minlength=len(profiles)), compare_work(profiles)
    rank_rows = tuple(
        _rank_row(profile, number, float(seconds) if matches else None, int(count) if matches else None)
        for profile, number, seconds, count, matches in zip(profiles, numbers, waiting, lasts, parts, strict=True)
    )
    of = {ranks_of(profile) for profile in profiles} - {None}
    return Job(
        profiles=tuple(profiles),
        of=of.pop() if len(of) == 1 else None,
        ranks=rank_rows,
        mean=_means(rank_rows),
        collectives=_collective_rows(matched, numbers, _link(profiles)),
        phases=_phase_rows(profiles, numbers),
        outliers=tuple(find_outliers(numbers, work)),
        straggler=find_straggler(numbers, matched, work) if len(matched) else None,
        steps=steps,
        matched=len(matched),
        unmatched=matched.unmatched,
        ends_apart=matched.ends_apart,
    )


def _number(profile: Profile) -> int:
    return number_of(profile) or 0


def _rank_row(profile: Profile, number: int, waiting: float | None, last: int | None) -> RankRow:
    wall, facts = float(np.mean(profile.wall.steps)), profile.imported
    idle = float(np.mean(profile.profiled.idle)) if profile.profiled and profile.profiled.idle else None
    exposed = facts.exposed if facts else None
    communication = facts.communication if facts else None
    return RankRow(
        number=number,
        model=profile.model,
        wall=wall,
        computing=None if idle is None or exposed is None else wall - idle - exposed,
        communication=communication,
        exposed=exposed,
        hidden=None if exposed is None or not communication else _share_hidden(communication, exposed),
        waiting=waiting,
        idle=idle,
        last=last,
    )


def _share_hidden(communication: float, exposed: float) -> float:
    hidden = round(communication - exposed, 9)  # both are whole nanoseconds
    return hidden / communication if hidden else 0.0


def _means(rows: Sequence[RankRow]) -> RankTimes:
    """Return the mean of each time; None of those that are not known of each rank."""
    names = [field.name for field in fields(RankTimes) if field.name != "wall"]
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    means = {name: None if None in values else fmean(values) for name, values in columns.items()}
    return RankTimes(wall=fmean(row.wall for row in rows), **means)


def _link(profiles: Sequence[Profile]) -> float | None:
    """Return what the slowest of the ranks' devices moves to others, each way [B/s]; None where one is not known."""
    ceilings = [profile.device.ceilings.get(_LINK) for profile in profiles]
    return min(ceiling.value for ceiling in ceilings if ceiling) if all(ceilings) else None


def _collective_rows(matched: Matched, numbers: Sequence[int], link: float | None) -> tuple[CollectiveRow, ...]:
    """Sum up collectives that exchange alike, those first that last longest in all. link: the ceiling [B/s]."""
    groups: dict[tuple[str, str, float | None, float | None], list[int]] = {}
    for at, message in enumerate(matched.messages):
        groups.setdefault((message.name, message.among, message.sent, message.received), []).append(at)
    rows = [_collective_row(matched, np.asarray(at), numbers, link) for at in groups.values()]
    return tuple(sorted(rows, key=lambda row: -row.longest * row.runs))


def _collective_row(matched: Matched, at: Ints, numbers: Sequence[int], link: float | None) -> CollectiveRow:
    took_part, duration = matched.took_part[:, at], matched.duration[:, at]
    shortest = float(np.median(np.where(took_part, duration, np.inf).min(0)))
    message, counts = matched.messages[int(at[0])], np.bincount(matched.last[at], minlength=len(numbers))
    ranks = message.ranks or len(message.members) or int(took_part.sum(0).max())
    algorithm = _algorithm_bandwidth(message, shortest)
    bus = _bus_bandwidth(message, ranks, algorithm)
    return CollectiveRow(
        message=message,
        ranks=ranks,
        runs=len(at),
        shortest=shortest,
        longest=float(np.median(duration.max(0))),
        last=numbers[int(counts.argmax())],
        times_last=int(counts.max()),
        arrives=float(np.median(matched.arrives[at])),
        apart=float(np.median(matched.waiting[:, at].max(0))),
        algorithm_bandwidth=algorithm,
        bandwidth=bus,
        of_link=None if bus is None or link is None else bus / link,
    )


def _algorithm_bandwidth(message: Message, seconds: float) -> float | None:
    """Divide the size of a message by its time [B/s]; None where it is not known. The larger of sent and received."""
    size = max(message.sent or 0.0, message.received or 0.0)
    return size / seconds if size and seconds > 0 else None


def _bus_bandwidth(message: Message, ranks: int, algorithm: float | None) -> float | None:
    """Return what a rank moves over its link [B/s]; None where that is not known of the operation or its size."""
    name = message.name.lower().replace("_", "")
    factor = next((factor for names, factor in _ON_THE_BUS if name.startswith(names)), None)
    return algorithm * factor(ranks) if factor is not None and algorithm is not None and ranks > 1 else None


def _phase_rows(profiles: Sequence[Profile], numbers: Sequence[int]) -> tuple[PhaseRow, ...]:
    """Compare what the ops of each phase take on the ranks."""
    times: dict[str, Array] = {}
    for row, profile in enumerate(profiles):
        of = columns(profile)
        classes = [signature.op_class for signature in profile.signatures]
        computes = np.asarray([name != "communication" for name in classes], bool)[of.signature]
        sums = np.bincount(of.phase[computes], own_times(profile)[computes], len(profile.phases))
        for name, seconds in zip(profile.phases, sums.tolist(), strict=True):
            times.setdefault(name, np.zeros(len(profiles)))[row] += seconds
    return tuple(
        PhaseRow(
            name,
            mean=float(of.mean()),
            least=float(of.min()),
            longest=float(of.max()),
            rank_of_longest=numbers[int(of.argmax())],
            imbalance=float(of.max() / of.mean() - 1),
        )
        for name, of in times.items()
        if of.any()
    )
