"""Say what the ranks of a job were seen to do, by ids. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from roofline import units
from roofline.ranks.job import Job, Outlier
from roofline.ranks.straggler import Straggler
from roofline.renderers import _words
from roofline.renderers._signed import signed, snapped


def headline(job: Job) -> str:
    """Say what ran on how many ranks: "dlrm · 8 of 8 ranks · training · NVIDIA V100 SXM2 · 1 step"."""
    profile, number = job.profiles[0], len(job.ranks)
    ranks = f"{number} of {_words.counted(job.of, 'rank')}" if job.of else _words.counted(number, "rank")
    devices = dict.fromkeys(_words.plain(each.device.name, 60) for each in job.profiles)
    mode = {"infer": "inference", "train": "training"}.get(profile.mode, _words.plain(profile.mode, 20))
    return " · ".join(filter(None, (name(job), ranks, mode, " and ".join(devices), _words.counted(job.steps, "step"))))


def name(job: Job) -> str:
    """Name the job: what the names of its ranks begin with."""
    names = [row.model.rpartition("-rank")[0] or row.model for row in job.ranks]
    letters = takewhile(lambda alike: len(set(alike)) == 1, zip(*names, strict=False))
    stem = "".join(first for first, *_ in letters).rstrip("0123456789").rstrip("-_. ")
    return _words.plain(stem.removesuffix("rank").rstrip("-_. ") or names[0], 60)


def sentences(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what was seen of the straggler, then what limits that, each with its id."""
    found = job.straggler
    if found is None:
        yield "no-collectives", "No collective of these ranks could be matched, so who waits for whom is not known."
    else:
        yield ("waited-for" if found.stands_out else "nobody-stands-out"), _who(found)
        if found.stands_out and found.later > 0:
            yield "arrives-later", _why(found)
    for outlier in job.outliers:
        yield "slower-ops" if outlier.alike else "other-work", _longer(outlier)
    if job.unmatched:
        number = _words.counted(job.unmatched, "collective")
        yield "unmatched", f"{number} could not be matched: not all ranks of the group have as many of the kind."
    missing = 0 if job.of is None else job.of - len(job.ranks)
    if missing:
        yield (
            "missing-ranks",
            f"{_words.counted(missing, 'rank')} of the job {'is' if missing == 1 else 'are'} not here.",
        )
    if job.apart is not None:
        apart = units.seconds(snapped(job.apart))
        yield "clocks", f"By one clock a collective ends on all its ranks within {apart}, in the median."


def _who(found: Straggler) -> str:
    low, high = found.others
    others = units.seconds_between(low, high) if low <= high else units.UNKNOWN
    last = f"arrives last at {units.count(found.last)} of {_words.counted(found.of, 'collective')}"
    waits = f"waits {units.seconds(found.waiting)} a step, the others {others}"
    if found.stands_out:
        return f"Rank {found.rank} is waited for: it {last}, and {waits}."
    return f"No rank is waited for more than by chance: rank {found.rank} waits least, and {last}; it {waits}."


def _why(found: Straggler) -> str:
    """Say of what the time is made by which a rank arrives later than the others in the mean."""
    parts = [
        (found.start, "as its steps begin later"),
        (found.idle, "as its device is idle for longer before them"),
        (found.computing, "in what it computes before them"),
    ]
    listed = [f"{signed(seconds)} {what}" for seconds, what in sorted(parts, reverse=True) if round(seconds, 9)]
    text = (
        f"At the collectives of a step together it arrives {units.seconds(found.later)} later than the others in the "
    )
    text += f"mean: {_words.conjunction(listed)}."
    return text


def _longer(outlier: Outlier) -> str:
    """Say of a rank that its ops take longer than those of the others."""
    times = f"{units.seconds(outlier.seconds)} a step against {units.seconds(outlier.others)} on the others in the mean"
    if not outlier.alike:
        return f"On rank {outlier.rank} ops that not all ranks run as often, with the same arguments, take {times}."
    ratio = f", {units.significant(outlier.seconds / outlier.others)} times as long" if outlier.others else ""
    return f"On rank {outlier.rank} the ops that all ranks run alike take {times}{ratio}, as at a lower clock."
