"""Say what the ranks of a job were seen to do, by ids. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from roofline import units
from roofline.content import wording
from roofline.content.signed import signed, snapped
from roofline.ranks.job import Job
from roofline.ranks.straggler import Straggler
from roofline.ranks.work import Outlier


def headline(job: Job) -> str:
    """Say what ran on how many ranks: "dlrm · 8 of 8 ranks · training · NVIDIA V100 SXM2 · 1 step"."""
    profile, number = job.profiles[0], len(job.ranks)
    ranks = f"{number} of {wording.counted(job.of, 'rank')}" if job.of else wording.counted(number, "rank")
    devices = dict.fromkeys(wording.plain(profile.device.name, 60) for profile in job.profiles)
    _, mode, _ = wording.subject_parts(profile)
    return " · ".join(filter(None, (name(job), ranks, mode, " and ".join(devices), wording.counted(job.steps, "step"))))


def name(job: Job) -> str:
    """Name the job: what the names of its ranks begin with."""
    names = [row.model.rpartition("-rank")[0] or row.model for row in job.ranks]
    letters = takewhile(lambda alike: len(set(alike)) == 1, zip(*names, strict=False))
    stem = "".join(first for first, *_ in letters).rstrip("0123456789").rstrip("-_. ")
    return wording.plain(stem.removesuffix("rank").rstrip("-_. ") or names[0], 60)


def sentences(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what was seen of the straggler, then what limits that, each with its id."""
    straggler = job.straggler
    if straggler is None:
        yield "no-collectives", "No collective of these ranks could be matched, so who waits for whom is not known."
    else:
        yield ("waited-for" if straggler.stands_out else "nobody-stands-out"), _who(straggler)
        if straggler.stands_out and straggler.later > 0:
            yield "arrives-later", _how_much_later(straggler)
    for outlier in job.outliers:
        yield "slower-ops" if outlier.is_alike else "other-work", _longer(outlier)
    if job.unmatched:
        number = wording.counted(job.unmatched, "collective")
        yield "unmatched", f"{number} could not be matched: not all ranks of the group have as many of the kind."
    missing = 0 if job.of is None else job.of - len(job.ranks)
    if missing:
        yield (
            "missing-ranks",
            f"{wording.counted(missing, 'rank')} of the job {'is' if missing == 1 else 'are'} not here.",
        )
    if job.ends_apart is not None:
        time = units.seconds(snapped(job.ends_apart))
        yield "clocks", f"By one clock a collective ends on all its ranks within {time}, in the median."


def _who(straggler: Straggler) -> str:
    last = f"arrives last at {units.count(straggler.last)} of {wording.counted(straggler.collectives, 'collective')}"
    waits = f"waits {units.seconds(straggler.waiting)} a step, the others {units.seconds_between(*straggler.longer)}"
    if straggler.stands_out:
        return f"Rank {straggler.rank} is waited for: it {last}, and {waits}."
    return f"No rank is waited for more than by chance: rank {straggler.rank} waits least, and {last}; it {waits}."


def _how_much_later(straggler: Straggler) -> str:
    """Say of what the time is made by which a rank arrives later than the others in the mean."""
    parts = [
        (straggler.start, "as its steps begin later"),
        (straggler.idle, "as its device is idle for longer before them"),
        (straggler.computing, "in what it computes before them"),
    ]
    listed = [f"{signed(seconds)} {what}" for seconds, what in sorted(parts, reverse=True) if round(seconds, 9)]
    later = f"{units.seconds(straggler.later)} later than the others in the mean"
    return f"At the collectives of a step together it arrives {later}: {wording.conjunction(listed)}."


def _longer(outlier: Outlier) -> str:
    """Say of a rank that its ops take longer than those of the others, and how much longer nine tenths of them do."""
    times = f"{units.seconds(outlier.seconds)} a step, on the others {units.seconds(outlier.mean)} in the mean"
    if not outlier.is_alike:
        return f"On rank {outlier.rank} ops that not all ranks run as often, with the same arguments, take {times}."
    alike = f"On rank {outlier.rank} the ops that all ranks run alike take {times}"
    if outlier.ratios is None:
        return f"{alike}."
    low, high = map(units.significant, outlier.ratios)
    ratios = f"{low} times" if low == high else f"{low} to {high} times"
    return f"{alike}: nine tenths of that time {ratios} as long."
