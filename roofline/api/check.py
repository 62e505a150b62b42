"""Judge runs by a baseline: `roofline.check`."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from roofline.api._run import Run, profile
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.regression import check as gates
from roofline.regression import limits_file
from roofline.regression.batch import Judgement, judge
from roofline.regression.limits import Limits, parse_limits


def check(
    baseline: Run,
    *current: Run,
    counts_only: bool = False,
    allow_name: bool = False,
    max_time: str | None = None,
    max_bytes: str | None = None,
    max_kernels: str | None = None,
    max_gap: str | None = None,
    max_memory: str | None = None,
    limits: str | PathLike[str] | None = None,
) -> Judgement:
    """Judge one or more runs by a baseline.

    baseline, current: profiles, or paths of saved ones. counts_only: FLOPs, bytes, kernels, graph breaks and opaque
    regions alone, which are the same on every machine. allow_name: the model may have another name. max_*: growth that
    passes, written as for `roofline check` ("5%"); limits: a TOML file of them.

    Returns a Judgement: `passed`, `error` (of the command line) and the gates of each profile. For a single profile
    that cannot be judged, raises InputError for another step, MeasurementError for times that others disturbed; of
    several profiles each holds its own error.

    >>> assert roofline.check("baseline.json", profile, max_time="10%").passed
    """
    if not current:
        raise InputError("There is nothing to check: give at least one run in addition to the baseline.")
    options = {"time": max_time, "bytes": max_bytes, "kernels": max_kernels, "gap": max_gap, "memory": max_memory}
    texts = {name: text for name, text in options.items() if text is not None}
    allowed = parse_limits(texts, Limits() if limits is None else limits_file.read(Path(limits)), "max_")
    before = gates.Baseline(profile(baseline))
    runs = {_name(run, f"run {number}"): run for number, run in enumerate(current, 1)}
    judged = judge(
        list(runs),
        lambda name: profile(runs[name]),
        lambda after: gates.check(before, after, allowed, counts_only, allow_name),
    )
    if len(judged) == 1 and judged[0].error is not None:
        raise judged[0].error
    return Judgement(_name(baseline, "the baseline"), tuple(judged))


def _name(run: Run, otherwise: str) -> str:
    """Name a run in a verdict: its path, or `otherwise` for a profile in memory."""
    return otherwise if isinstance(run, Profile) else fspath(run)
