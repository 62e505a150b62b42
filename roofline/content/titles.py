"""Say in a sentence what a picture of some runs shows, after their common subject. No format draws here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import tables, wording
from roofline.content.names.distinct import distinct
from roofline.memory.use import memory_use


def limits(runs: Sequence[Analysis], names: Sequence[str], of_ops: bool = False) -> str:
    """Say what limits most of a step: "92 % compute-limited"; of several how long each takes. of_ops: not the gap."""
    if len(runs) > 1:
        return times(runs, names)
    largest = [] if wording.beyond(runs[0]) else wording.limits(runs[0])
    largest = [part for part in largest if not of_ops or "-limited" in part]
    return largest[0].partition(" (")[0] if largest else f"{units.seconds(runs[0].wall)} a step"


def times(runs: Sequence[Analysis], names: Sequence[str], step: str = "a step") -> str:
    """Say the least and the longest time of a step: "a step takes 3.07 ms in torch-compile to 5.63 ms in torch"."""
    return f"{step} takes {_ends([run.wall for run in runs], names, units.seconds)}"


def idle(runs: Sequence[Analysis], names: Sequence[str]) -> str:
    """Say how much of a plain step no op runs: "GPU idle for 41 % of a plain step in jax to 64 % in torch".

    A trace has no plain steps: there it is the median one. Where scaled ops fill a step, its gap is not known: then the
    time of a step.
    """
    step = "a plain step" if all(run.profile.wall.source == "plain" for run in runs) else "the median step"
    shares = [run.gap_told / run.wall for run in runs if run.gap_told is not None]
    if len(shares) < len(runs):
        return times(runs, names, step)
    gaps = dict.fromkeys(map(wording.gap_name, runs))
    return f"{' and '.join(gaps)} for {_ends(shares, names, lambda share: units.percent(share, 0), f' of {step}')}"


def memory(runs: Sequence[WorkAnalysis], names: Sequence[str]) -> str:
    """Say the most that a step holds at once: "a step holds 6.26 MB in torch-compile to 6.85 MB in torch"."""
    uses = [memory_use(run.profile) for run in runs]
    known = [(use.peak, name) for use, name in zip(uses, names, strict=True) if use.peak is not None]
    if not known:
        return "what a step holds is not known"
    least = "at least " if any(use.at_least for use in uses) else ""
    peaks, of = [peak for peak, _ in known], [name for _, name in known]
    return f"a step holds {least}{_ends(peaks, of, units.byte)} at once"


def _ends(values: Sequence[float], names: Sequence[str], write: Callable[[float], str], whole: str = "") -> str:
    """Write the least and the largest of some values with the names of their runs; one that all share, alone.

    whole: what a value is a share of, written once.
    """
    texts = list(map(write, values))
    if len(set(texts)) == 1:
        return f"{texts[0]}{whole}"
    low, high = (pick(range(len(values)), key=values.__getitem__) for pick in (min, max))
    in_low, in_high = (wording.plain(names[number], 40) for number in (low, high))
    return f"{texts[low]}{whole} in {in_low} to {texts[high]} in {in_high}"


def work(runs: Sequence[WorkAnalysis], by: str) -> str:
    """Say how much of the time and of the FLOP the largest row takes, or of FLOP and bytes where nothing was timed."""
    timed = [run for run in runs if isinstance(run, Analysis)]
    sums: dict[str, list[tuple[float | None, float | None]]] = {}
    for run in timed or runs:
        rows: Sequence[tables.Row | tables.WorkRow] = (
            tables.rows(run, by)[:-2] if isinstance(run, Analysis) else tables.work_rows(run, by)[:-1]
        )
        for row in filter(lambda row: row.named, rows):
            if isinstance(row, tables.Row):
                coverage = run.coverage["flops"] if isinstance(run, Analysis) else None
                shares = (row.time, row.flops if tables.says_shares(coverage) else None)
            else:
                shares = (row.flops, row.bytes)
            sums.setdefault(row.label, []).append(shares)
    if not sums:
        return "no op"
    label = max(sums, key=lambda name: sum(share or 0.0 for share, _ in sums[name]))
    known = "known " * any(not units.is_whole(run.coverage["flops"] or 0.0) for run in timed)
    what = (("of the step", 0), (f"of the {known}FLOP", 1)) if timed else (("of the FLOP", 1), ("of the bytes", 0))
    ranges = [
        wording.range_of(shares, digits)
        for shares, (_, digits) in zip(zip(*sums[label], strict=True), what, strict=True)
    ]
    parts = [f"{share} {of}" for share, (of, _) in zip(ranges, what, strict=True) if share]
    (name,) = distinct([label], 40, by)
    return f"{name} {'is' if by == 'block' else 'ops are'} {' and '.join(parts)}"
