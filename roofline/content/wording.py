"""Write sentences about an analysis: the verdict, the caption, each flag. Plain text; each format escapes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.analysis.beyond_step import times_as_slow, times_the_step
from roofline.analysis.caches.counted import counted_on
from roofline.analysis.caches.traffic import RangeReason
from roofline.analysis.callbacks import called_back
from roofline.analysis.flags import CURES, FLAGS
from roofline.analysis.floors import ABOVE_TOLERANCE, ATTAINED, UNKNOWN_ARITHMETIC
from roofline.analysis.gap_parts import DEVICE, FOR_A_CORE, OUTSIDE
from roofline.analysis.side_by_side import at_once
from roofline.analysis.step_times import FAR, Trend, far_steps, trend
from roofline.analysis.step_times import spread as spread_of
from roofline.analysis.threads import threads_of
from roofline.analysis.totals import Total
from roofline.content import bounds
from roofline.core.executor import COPY
from roofline.core.framework import framework, written_in
from roofline.core.rows import rows
from roofline.core.schema import EngineSteps, Profile, Wall, slug
from roofline.core.vocabulary import BOUNDS, GROUP_OF, GROUPS, PROTOCOLS, Bound

#: Of kernels whose ops are exempt from the roof: of these the direct convolution's FLOPs are counted.
FEWER_PRODUCTS = "fewer multiplications than are counted (Winograd or FFT)"
#: Of a launch floor that may be nothing, what stands for it [s] (analysis/launch_floor.py).
_TICK = 1e-9
#: What a roof is called, by the family of its ceiling; those of a precision or a function have it in their name.
LAUNCH_FLOOR, _BANDWIDTH = "launch floor", " bandwidth"
_ROOFS = {
    "dram": f"DRAM{_BANDWIDTH}",
    "cache": f"cache{_BANDWIDTH}",
    "vector": "vector peak",
    "launch": LAUNCH_FLOOR,
    "link": f"link{_BANDWIDTH}",
}
#: From this part of the time whose roof is not known on, it is said to be of one group. By choice.
_ONE_GROUP = 0.9
#: Letters of a name in a sentence.
_LONGEST = 120


def plain(text: str, width: int | None = None) -> str:
    """Write `text` on one line, as `units.plain` does; width None: as long as it is."""
    return units.plain(text, width)


def page(annotation: str) -> str:
    """Name the page of the documentation that explains an annotation."""
    return f"docs/annotations/{annotation}.md"


def gap_name(analysis: WorkAnalysis) -> str:
    """Name the gap on this device."""
    return "host time" if analysis.device.kind == "cpu" else "GPU idle"


#: The mode that generates, and modes in words.
GENERATES = "generate"
MODES = {"infer": "inference", "train": "training", GENERATES: "generate"}
#: Parts of the gap in other words than in a profile's JSON.
_GAP_PARTS = {DEVICE: "between launched kernels", OUTSIDE: "other host code"}


def gap_part(name: str, analysis: WorkAnalysis | None = None) -> str:
    """Name a part of the gap. analysis: of a run that may say who had the cores; None: the short name."""
    if name in _GAP_PARTS:
        return _GAP_PARTS[name]
    flags = () if analysis is None else [slug(flag) for flag in analysis.flags]
    is_seen = "contended" in flags and "oversubscribed" not in flags
    return f"{name} that other programs held" if name == FOR_A_CORE and is_seen else plain(name, 60)


def range_of(shares: Sequence[float | None], digits: int) -> str:
    """Write the range of the known shares; "" where none is known."""
    known_shares = [share for share in shares if share is not None]
    if not known_shares:
        return ""
    ends = [
        units.percent(end, digits).replace(">", "over ").replace("<", "under ")
        for end in (min(known_shares), max(known_shares))
    ]
    return ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix(' %')} to {ends[1]}"


def subject(analysis: WorkAnalysis) -> str:
    """Say what was run: "bert infer, b1 s128"."""
    profile = analysis.profile
    lengths = [f"{letter}{n}" for letter, n in (("b", profile.batch), ("s", profile.seq)) if n is not None]
    return f"{plain(profile.model, _LONGEST)} {plain(profile.mode, _LONGEST)}" + (
        f", {' '.join(lengths)}" if lengths else ""
    )


def subject_parts(profile: Profile) -> tuple[str, str, str]:
    """Say what was run, in words: "bert", "inference", "batch 1 x 128 tokens"."""
    model = " ".join(filter(None, (plain(profile.model, 60), _size(profile.size))))
    return model, MODES.get(profile.mode, plain(profile.mode, 20)), _lengths(profile)


def _lengths(profile: Profile) -> str:
    """Write batch and tokens: "batch 1 x 128 tokens", "batch 1, prompt 128 + 32 new tokens"."""
    if profile.mode == GENERATES and profile.new_tokens is not None:
        batch = "" if profile.batch is None else f"batch {units.count(profile.batch)}"
        prompt = "" if profile.seq is None else f"prompt {units.count(profile.seq)} + "
        return ", ".join(filter(None, (batch, f"{prompt}{units.count(profile.new_tokens)} new tokens")))
    batch = "" if profile.batch is None else f"batch {units.count(profile.batch)}"
    return " x ".join(filter(None, (batch, "" if profile.seq is None else counted(profile.seq, "token"))))


def _size(size: str) -> str:
    """Name the size of a model that is not the published one; "-" is of a model that has none."""
    return "" if size in ("base", "-") else plain(size, 20)


def arithmetic(analysis: WorkAnalysis) -> str:
    """Name the arithmetic, as it was found or else as it was asked for; "" where nobody asked for one."""
    return plain(analysis.precision or analysis.profile.precision, 20).removeprefix("default")


def software(profile: Profile) -> str:
    """Name the backend with the versions of what it runs on: "keras-jax (keras 3.15.1, jax 0.10.2)"."""
    backend = plain(profile.backend, 60)
    names = [name for name in dict.fromkeys((written_in(profile), framework(profile))) if name in profile.versions]
    versions = {name: plain(profile.versions[name].partition("+")[0], 20) for name in names}
    if names == [profile.backend]:
        return f"{backend} {versions[profile.backend]}"
    listed = ", ".join(f"{plain(name, 20)} {version}" for name, version in versions.items())
    return f"{backend} ({listed})" if listed else backend


def device(analysis: WorkAnalysis) -> str:
    """Say where it ran: "AMD EPYC, 2 threads"; "" for a step that was counted for no device in particular."""
    if analysis.wall is None and not analysis.device.ceilings:
        return ""
    name, threads = plain(analysis.device.name, _LONGEST), analysis.device.conditions.get("threads")
    if analysis.device.kind != "cpu":
        return name
    # What ran, and not what the ceilings were measured with; a device that a step did not run on has the latter alone.
    threads_run = threads_of(analysis.profile) if analysis.device.name == analysis.profile.device.name else None
    if threads_run is not None:
        return f"{name}, {counted(threads_run.number, 'thread')}" + (
            f" on {counted(threads_run.cores or 0, 'core')}" * threads_run.too_many
        )
    return f"{name}, {plain(threads, 20)} {'thread' if threads == '1' else 'threads'}" if threads else name


def bound(
    analysis: Analysis,
    name: Bound,
    times: bounds.Times,
    upper: bounds.Times | None = None,
    among: bounds.Mask | None = None,
) -> str:
    """Say what limits the ops under one bound, and how close they come: "memory-limited, at 93 % of DRAM bandwidth".

    times: of these ops by `bounds.split`; upper: by `split_at_upper_end`, where other ops may be under the bound;
    None: the same ops are. among: the ops to choose these from; None: all.
    """
    ends = bounds.attained(times, times if upper is None else upper)
    if name == "unknown" or ends is None:
        return "unknown"
    return f"{name}-limited, {closeness(analysis, name, *ends, among)}"


def closeness(analysis: Analysis, name: Bound, low: float, high: float, among: bounds.Mask | None = None) -> str:
    """Say how close the ops under one bound come to their roofs: "at 93 % of DRAM bandwidth".

    low, high: by `bounds.attained`. among: the ops that these are some of; None: all.
    """
    words = f"at {of_roofs(low, high, roofs_of(analysis, name, among))}"
    if low > 1 + ABOVE_TOLERANCE:
        fewer = (
            ", in kernels that need fewer multiplications than are counted"
            if _by_fewer_products(analysis, name, among)
            else ""
        )
        return f"{words} (above its roof{fewer})"
    shared = at_once(analysis, name, among) if low < ATTAINED else 1.0
    if shared == 1 or low * shared > 1 + ABOVE_TOLERANCE:
        return words
    together = between(min(1.0, low * shared), min(1.0, high * shared))
    return f"{words} by each op, {together} together"


def between(low: float, high: float) -> str:
    """Write a share, or the range that it lies in: "51 to 82 %"."""
    return units.percent_between(low, high).replace("–", " to ")


def of_roofs(low: float, high: float, roofs: Sequence[str]) -> str:
    """Say how close ops come to their roofs: a share of rates, of launches the factor over the least time.

    A share of several roofs, each op's of its own, has their names in brackets.
    """
    if roofs == [LAUNCH_FLOOR]:
        return over_launch_floor(low, high)
    if len(roofs) == 1:
        return f"{between(low, high)} of {roofs[0]}"
    if all(roof.endswith(_BANDWIDTH) for roof in roofs):  # "cache and DRAM bandwidth"
        roofs = [*(roof.removesuffix(_BANDWIDTH) for roof in roofs[:-1]), roofs[-1]]
    return f"{between(low, high)} of the ops' roofs ({conjunction(roofs)})"


def over_launch_floor(low: float, high: float, name: str = LAUNCH_FLOOR) -> str:
    """Say how much longer than the least of a launch kernels take, of which that is a share from `low` to `high`."""
    if low <= 0:
        return f"{_times_as_long(high)} times the {name} or more" if high > 0 else f"no {name}"
    ends = list(dict.fromkeys(_times_as_long(share) for share in (high, low)))
    return f"{' to '.join(ends)} times the {name}"


def _times_as_long(share: float) -> str:
    """Write how many times as long as the least of a launch, of which it is a share."""
    return units.significant(1 / share, 2)


def roofs_of(analysis: Analysis, name: Bound, among: bounds.Mask | None = None) -> list[str]:
    """Name the roofs above the ops under one bound, the one with most of their time first: "DRAM bandwidth".

    A roof of less than a tenth of that time is left out. among: the ops that count; None: all.
    """
    table = analysis.table
    under = _costed_under(analysis, name, among)
    roofs = {ceiling: roof_name(ceiling) for ceiling in dict.fromkeys(table.ceiling)}
    spent: dict[str, float] = {}
    for row, seconds in zip(np.flatnonzero(under).tolist(), table.share[under].tolist(), strict=True):
        roof = roofs[table.ceiling[row]]
        spent[roof] = spent.get(roof, 0.0) + seconds
    total = sum(spent.values())
    largest = [roof for roof in sorted(spent, key=lambda roof: -spent[roof]) if spent[roof] > (1 - _ONE_GROUP) * total]
    return largest or list(spent) or ["its roof"]


def _costed_under(analysis: Analysis, name: Bound, among: bounds.Mask | None) -> bounds.Mask:
    """Choose the ops of known work under one bound. among: the ops that count; None: all."""
    table = analysis.table
    under: bounds.Mask = (table.bound == BOUNDS.index(name)) & (table.uncosted == 0)
    return under if among is None else under & among


def roof_name(ceiling: str) -> str:
    """Name a ceiling in words: "dram.copy" is "DRAM bandwidth", "matrix.tf32" is "TF32 peak"."""
    family, _, kind = ceiling.partition(".")
    if family == "matrix":
        return f"{plain(kind, 20).upper()} peak"
    if family == "function":
        return f"{plain(kind, 20)} ceiling"
    return _ROOFS.get(family, "its roof")


#: Why bytes of main memory are a range, by reason: what the record does not say, or what is so instead; and their ends.
_NOT_RECORDED: dict[RangeReason, str] = {
    "no buffers": "what the caches held",
    "no addresses": "where all results lie",
}
_CAUSES: dict[RangeReason, str] = {
    "cpu": "the allocator of a CPU places buffers again in each step",
    "too many touches": "the step touches memory too often to follow which buffers share it",
}
_RESULTS = "from results that exceed the last-level cache to all that it"
_ENDS: dict[RangeReason, str] = {
    "no buffers": "from all that fits in the last-level cache to nothing",
    "no addresses": f"{_RESULTS} would evict if these shared no memory",
    "cpu": f"{_RESULTS} may evict",
    "too many touches": f"{_RESULTS} would evict if no two buffers shared memory",
}
#: What holds at the lower ends of shares of roofs, and what at the upper ends.
_CACHES: tuple[str, str] = ("the fewest bytes that may have moved (caches held all they could)", "the most")
_EVICTIONS = ("the fewest bytes that may have moved (caches kept the results that fit)", "the most")
_ARITHMETIC = (
    "matmuls of unknown precision that traffic alone limits",
    "the slowest arithmetic that their inputs allow",
)


def range_ends(analysis: Analysis, example: str) -> str:
    """Say of what the ranges on a page are, by one that stands there: "such as 51 to 82 %, are of two cases: ...".

    "" where nothing is known of it.
    """
    reason = analysis.table.cold_reason
    pairs = [] if reason is None else [_CACHES if reason == "no buffers" else _EVICTIONS]
    pairs += [_ARITHMETIC] if UNKNOWN_ARITHMETIC in analysis.missing else []
    times = [(ceiling.value, ceiling.high) for ceiling in analysis.device.ceilings.values() if ceiling.high is not None]
    if times and not pairs:
        least, most = min(low for low, _ in times), max(high for _, high in times)
        shortest = units.seconds(least) if least > _TICK else "no time"
        pairs.append((f"launches of {shortest}", f"launches of {units.seconds(most)}"))
    if not pairs:
        return ""
    ends = ", and of ".join(f"{low} and {high}" for low, high in pairs)
    return f"Ranges, such as {example}, are of two cases: {ends}."


def ranges(analysis: Analysis) -> str:
    """Say why floors, losses and shares of roofs are ranges, and from where to where they go."""
    unknowns, ends, reason = [], [], analysis.table.cold_reason
    if reason is not None:
        unknowns += [_NOT_RECORDED[reason]] if reason in _NOT_RECORDED else []
        ends.append(_ENDS[reason])
    if UNKNOWN_ARITHMETIC in analysis.missing:
        unknowns.append("in which arithmetic some matmuls ran")
        ends.append("from their traffic alone to the slowest arithmetic of their inputs")
    for name, ceiling in sorted(analysis.device.ceilings.items(), reverse=True):
        if ceiling.high is not None:
            launched = "copy or fill" if name == f"launch.{COPY}" else "kernel"
            if ceiling.shortest is not None and ceiling.value < ceiling.shortest:
                unknowns.append(f"how much of the shortest {launched} was work")
            else:
                unknowns.append(f"how long the shortest {launched} took, to less than a tick of its clock")
            shortest = units.seconds(ceiling.value) if ceiling.value > _TICK else "nothing"
            ends.append(f"from {shortest} to {units.seconds(ceiling.high)} for each {launched}")
    record = "profile" if analysis.profile.imported is None else "trace"
    why = [_CAUSES[reason]] if reason in _CAUSES else []
    why += [f"the {record} does not say {conjunction(unknowns)}"] if unknowns else []
    return f"{conjunction(why)}, so minimum times are ranges: {conjunction(ends)}, as far as an op's own time allows it"


def attained(total: Total) -> str:
    """Write how close ops come to their roofs: a share, or the range that it lies in."""
    if total.attained is None or total.attained_high is None:
        return units.percent(None, 0)
    return units.percent_between(total.attained, total.attained_high)


def is_range(analysis: Analysis) -> bool:
    """Return whether floors are ranges that can be seen: half a percent of their sum."""
    return analysis.total.floor_reach > 1.005 * analysis.total.floor


def verdict(analysis: WorkAnalysis, gap: str = "") -> str:
    """Write the sentence: what ran where, how long a step takes, and its shares by bound and gap, the largest first.

    gap: a description of the gap, for a bracket behind it.
    """
    if not isinstance(analysis, Analysis):
        return _untimed(analysis)
    wall = analysis.wall
    head = f"{subject(analysis)} on {device(analysis)}: {units.seconds(wall)} per step"
    if odd := beyond(analysis):
        return f"{head}, {odd}: where the time went is not known."
    if slower := times_as_slow(analysis.scale):
        head += f" (its ops timed in steps {units.significant(slower)} times as long)"
    largest = limits(analysis, gap)
    return f"{head}; {'; '.join(largest)}." if largest else f"{head}."


def limits(analysis: Analysis, gap: str = "") -> list[str]:
    """Say the shares of a step by bound and gap, the largest first; gap: a description of it, for a bracket."""
    wall = analysis.wall
    lower, higher = bounds.split(analysis), bounds.split_at_upper_end(analysis)
    split: dict[Bound, bounds.Times] = {}
    upper: dict[Bound, bounds.Times] = {}
    blank: set[Bound] = {name for name in lower if bounds.attained(lower[name], higher[name]) is None} | {"unknown"}
    for name in lower:
        shown: Bound = "unknown" if name in blank else name
        for sums, end in ((split, lower[name]), (upper, higher[name])):
            sums[shown] = sums[shown] + end if shown in sums else end
    parts: list[tuple[float, str]] = []
    for name, times in split.items():
        ends = bounds.ends(times, upper[name])
        low, high = min(end.seconds for end in ends) / wall, max(end.seconds for end in ends) / wall
        if high < 0.005:
            continue  # the table has it
        words = bound(analysis, name, times, upper[name])
        if name == "unknown" and (kind := unknown_work(analysis, blank)):
            words += f" ({kind})"
        elif name == "memory" and bytes_are_counted(analysis):
            words += " (bytes counted)"
        parts.append((times.seconds, f"{between(low, high)} {words}"))
    if analysis.gap >= 0.005 * wall:
        waits = ", the device waits for its host" if analysis.waits_for_host else ""
        of_gap = f" ({gap})" if gap else ""
        parts.append((analysis.gap, f"{units.percent(analysis.gap / wall, 0)} {gap_name(analysis)}{of_gap}{waits}"))
    return [words for _, words in sorted(parts, key=lambda part: -part[0])]


def bytes_are_counted(analysis: Analysis) -> bool:
    """Return whether hardware counters saw the traffic of most of the time under the roof of memory."""
    table = analysis.table
    under = table.share * (table.bound == BOUNDS.index("memory"))
    return 2 * float(under[counted_on(analysis.profile, analysis.device).known].sum()) > float(under.sum())


def _untimed(analysis: WorkAnalysis) -> str:
    """Write the verdict of a step whose ops have no times."""
    if analysis.wall is None:
        return f"{subject(analysis)}: the work of one step, counted and not timed."
    head = f"{subject(analysis)} on {device(analysis)}: {units.seconds(analysis.wall)} per step"
    return f"{head}; no profiled step was kept, so where the time went is not known."


def known_work(analysis: WorkAnalysis) -> str:
    """Say of how many ops of a step the work is known."""
    return f"Work known of {units.count(analysis.total.costed)} of {counted(analysis.total.ops, 'op')}."


def unknown_work(analysis: Analysis, blank: Collection[Bound]) -> str:
    """Name most of the time without a roof: Python, or one group of classes; "" where it is neither.

    blank: the bounds of that time.
    """
    python = ", ".join(plain(function, 40) for function in called_back(analysis))
    if python:
        return f"Python that the step calls back: {python}"
    profile, table = analysis.profile, analysis.table
    group = np.asarray([GROUPS.index(GROUP_OF[signature.op_class]) for signature in profile.signatures], np.int64)
    unknown_rows = np.isin(table.bound, [BOUNDS.index(name) for name in blank])
    times = np.bincount(
        group[rows(profile).signature[unknown_rows]], weights=table.share[unknown_rows], minlength=len(GROUPS)
    )
    largest = GROUPS[int(times.argmax())]
    if times.max() < _ONE_GROUP * times.sum() or largest == "other":
        return ""
    exposed = profile.imported.exposed if profile.imported is not None and largest == "communication" else None
    return largest if exposed is None else f"{largest}, {units.percent(exposed / analysis.wall, 0)} exposed"


def _by_fewer_products(analysis: Analysis, name: Bound, among: bounds.Mask | None = None) -> bool:
    """Return whether the only ops above a roof are those whose kernels are exempt from it."""
    table = analysis.table
    under = _costed_under(analysis, name, among)
    subject_to_roof = under & ~table.exempt
    limit = (1 + ABOVE_TOLERANCE) * float(table.own[subject_to_roof].sum())
    return bool((under & table.exempt).any()) and float(table.floor[subject_to_roof].sum()) <= limit


def beyond(analysis: Analysis) -> str:
    """Describe ops that took far longer than the step, for behind its time; "" where none did."""
    times = times_the_step(analysis.busy, analysis.wall)
    return (
        f"whose ops were recorded as taking {units.significant(times)} times as long, which is impossible"
        if times
        else ""
    )


def spread(analysis: WorkAnalysis) -> str:
    """Say how the step was timed: "n = 20 steps back to back, median 12.5 ms, p10–p90 12.4–12.6 ms; steady"."""
    wall = analysis.profile.wall
    if analysis.wall is None:
        return "counted in one step and not timed"
    number = len(wall.steps)
    if number == 1:
        words = f"n = 1 step {protocol(wall)}, {units.seconds(analysis.wall)}, so its spread is not known"
    else:
        p10, p90 = np.percentile(wall.steps, (10, 90))
        words = f"n = {number} steps {protocol(wall)}, median {units.seconds(analysis.wall)}"
        words += f", p10–p90 {units.seconds_between(float(p10), float(p90))}"
    interval = analysis.wall_interval
    if interval:
        further = f"this one and {units.count(len(wall.processes))} {'in turns' if wall.turns else 'more'}"
        ends = units.seconds_between(*interval)
        across = f"; medians of {1 + len(wall.processes)} processes ({further}): 95 % interval {ends}"
        words += across if wall.processes else f", 95 % interval of the median {ends}"
    return "; ".join(filter(None, (words, evenness(wall))))


def protocol(wall: Wall) -> str:
    """Say how steps were timed: of a trace, which does not tell whether they were waited for, under a profiler."""
    if wall.source == "profiled":
        return "timed under the profiler"
    return PROTOCOLS.get(wall.protocol) or plain(wall.protocol)


def evenness(wall: Wall) -> str:
    """Say whether steps were found to grow or shrink, to be steady or uneven, else how many lie far off, if any."""
    if change := trend(wall):
        return changing(change)
    return uneven(wall) or spread_of(wall) or _far(wall) * (far_steps(wall) > 0)


def uneven(wall: Wall) -> str:
    """Say how many steps lie far from the median; "" of steps that are steady, grow or shrink, or are too few."""
    if spread_of(wall) != "uneven" or trend(wall):
        return ""
    return f"uneven: {_far(wall)}"


def _far(wall: Wall) -> str:
    """Say how many steps lie far from the median."""
    far, number, off = far_steps(wall), len(wall.steps), f"over {units.percent(FAR, 0)} off the median"
    return f"{units.count(far)} of {units.count(number)} steps {'is' if far == 1 else 'are'} {off}"


def changing(change: Trend) -> str:
    """Say how a step grows or shrinks: "growing: a step takes 0.3 % longer than the one before, ..."."""
    low, high = sorted(abs(end) for end in change[1:])
    ends = [units.significant(100 * end, 2) for end in (low, high)]
    head, how = ("growing", "longer") if change.change > 0 else ("shrinking", "less")
    return (
        f"{head}: a step takes {units.significant(100 * abs(change.change), 2)} % {how} than the one before, "
        f"in the median, 95 % interval {ends[0]}–{ends[1]} %"
    )


def provenance(analysis: WorkAnalysis) -> str:
    """Write device, backend, versions, n and spread, which must stand next to every figure and table."""
    profile = analysis.profile
    of = f" ({listed})" if (listed := versions(profile)) else ""
    parts = [*filter(None, [device(analysis)]), f"{plain(profile.backend, _LONGEST)}{of}"]
    parts.append(f"precision {plain(analysis.precision or profile.precision, 60)}")
    return f"{'; '.join(parts)}; {spread(analysis)}."


def versions(profile: Profile) -> str:
    """List what a step ran on with its versions: "torch 2.13.0, numpy 2.4.1"."""
    return ", ".join(f"{plain(name, 60)} {plain(number, 60)}" for name, number in profile.versions.items())


def flag(name: str) -> str:
    """Explain a flag, and say what to do about it. A recorder may add details after a colon."""
    written, _, details = name.partition(":")
    meaning = " ".join(filter(None, (FLAGS.get(slug(name)), cure(name))))
    sentence = f"{plain(written, _LONGEST)}: {meaning}" if meaning else plain(written, _LONGEST)
    return f"{sentence} ({plain(details, 400)})" if details.strip() else sentence


def cure(name: str) -> str:
    """Say in a sentence what to do about a flag; "" where nothing is known to help."""
    text = CURES.get(slug(name), "")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def flags(analysis: WorkAnalysis) -> list[str]:
    """Explain all flags of a profile; of a clock that was held back add the details."""
    sentences = []
    for name in analysis.flags:
        clocks = _held_back(analysis, name) if slug(name) == "throttled" else []
        sentences.append(" ".join([flag(name), *clocks]))
    return sentences


def _held_back(analysis: WorkAnalysis, name: str) -> Iterator[str]:
    """Give the sampled clocks and the rate under a power cap. name: the flag with its reasons."""
    conditions = analysis.profile.conditions
    if "sm_clock" in conditions and "sm_clock_least" in conditions:
        clocks = [units.scaled(conditions[key], "Hz") for key in ("sm_clock", "sm_clock_least")]
        yield f"The sampled clock was {clocks[0]} on average and {clocks[1]} at the lowest."
    ceiling = analysis.device.ceilings.get(f"matrix.{analysis.precision}")
    if "power cap" in name and ceiling is not None and ceiling.sustained is not None:
        kind, lasting = plain(analysis.precision or ""), units.flop_rate(ceiling.sustained)
        lasting += "" if ceiling.clock is None else f" at {units.scaled(ceiling.clock, 'Hz')}"
        yield (
            f"Under the power cap, {kind} matmuls sustain {lasting}, not the peak of {units.flop_rate(ceiling.value)}: "
            "compare long steps with the sustained rate."
        )


#: Reasons that a list names before it counts the rest.
_REASONS = 5
_PHASES = {"forward": "the forward pass", "backward": "the backward pass", "optimizer": "the optimizer"}


def in_words(phase: str) -> str:
    """Name a phase within a sentence."""
    return _PHASES.get(phase, plain(phase))


def compilation(analysis: WorkAnalysis) -> list[str]:
    """Describe the compilation: a sentence with the numbers, then graph breaks, recompilations and notes, each its own.

    Empty where none is recorded. A compilation longer than the first step was not all inside it, as where a later step
    was compiled again.
    """
    facts, first = analysis.profile.compilation, analysis.profile.wall.first
    if facts is None:
        return []
    time = "" if facts.seconds is None else f" in {units.seconds(facts.seconds)}"
    if facts.seconds is not None and first is not None and facts.seconds <= first:
        time += ", inside the first step"
    numbers = [f"{counted(facts.graphs, 'graph')} per step" if facts.graphs else "no compiled graph runs in a step"]
    if facts.opaque:
        numbers.append(f"{counted(facts.opaque, 'region')} whose inside is not known")
    if facts.guards is not None:
        numbers.append(counted(facts.guards, "guard"))
    breaks, recompilations = sum(facts.breaks.values()), len(facts.recompilations)
    numbers.append(counted(breaks, "graph break") if breaks else "no graph break")
    if recompilations:
        numbers.append(counted(recompilations, "recompilation"))
    head = f"{plain(facts.compiler)} (mode {plain(facts.mode)}){time}: {', '.join(numbers)}"
    outside = [
        f"{counted(ops, 'op')} of {in_words(phase)}"
        + (f" ({units.seconds(seconds * analysis.scale)})" if isinstance(analysis, Analysis) else "")
        for phase, (ops, seconds) in facts.eager.items()
    ]
    lines = [f"{head}; outside them {conjunction(outside)}" if outside else head]
    breaks_told = [f"{plain(why)}{f' ({number} times)' * (number > 1)}" for why, number in facts.breaks.items()]
    lines += _some("graph break", breaks_told)
    lines += _some("recompiled", [plain(why) for why in facts.recompilations])
    return lines + [plain(note) for note in facts.notes]


def step_rule(profile: Profile) -> str:
    """Say what was taken as a step of a trace: "a step: from one Optimizer.step to the next, 40 seen"; "" otherwise."""
    facts = profile.imported
    if facts is None or not facts.rule:
        return ""
    used = len(profile.wall.steps)
    of_these = f", {units.count(used)} of them used" if used < facts.steps else ""
    seen = f", {units.count(facts.steps)} seen{of_these}" if facts.marks else _unmarked(facts.engine)
    return f"a step: {plain(facts.rule)}{seen}"


def _unmarked(engine: Sequence[EngineSteps]) -> str:
    """Say what the whole trace, which is taken as a step, holds of a serving engine: at most the range of one step."""
    return f", which holds the range of one {engine[0].phase} step" if engine else "; nothing in it marks steps"


def imported(analysis: WorkAnalysis) -> list[str]:
    """Describe the trace of an import: its totals, its communication, and its warnings, each its own."""
    facts = analysis.profile.imported
    if facts is None:
        return []
    lines = []
    if facts.span is not None and facts.busy is not None and facts.idle is not None:
        marks = f" ({plain(facts.marks)})" if facts.marks else ""
        busy, idle = units.seconds(facts.busy), units.seconds(facts.idle)
        steps = f"{counted(facts.steps, 'step')}{marks}, {len(analysis.profile.wall.steps)} used"
        lines.append(f"{units.seconds(facts.span)} in all, {busy} busy, {idle} idle; {steps}")
    if facts.linked is not None:
        twins = f", {units.percent(facts.twinned)} more by their twins" if facts.twinned else ""
        lines.append(
            f"{units.percent(facts.linked)} of the kernels' time in the whole trace launched inside ops{twins}"
        )
    if facts.communication:
        exposed = "" if facts.exposed is None else f", {units.seconds(facts.exposed)} of it not hidden by computation"
        waiting = "" if facts.waiting is None else f", {units.seconds(facts.waiting)} of it waiting for slower ranks"
        lines.append(f"{units.seconds(facts.communication)} of communication per step{exposed}{waiting}")
    lines += map(_engine_steps, facts.engine)
    lines += _some("warning", [plain(warning) for warning in facts.warnings])
    return lines


def _engine_steps(steps: EngineSteps) -> str:
    """Describe the steps of one kind of a serving engine: how long, of how many sequences, tokens a second."""
    mean, sequences = steps.seconds / steps.steps, steps.sequences / steps.steps
    are_new = steps.phase == "decode" and steps.tokens == steps.sequences
    facts = [
        f"{counted(steps.steps, f'{steps.phase} step')} of {units.seconds(mean)}",
        f"{units.significant(sequences)} sequences each",
        f"{units.count(round(steps.tokens / steps.seconds))} {'new tokens' if are_new else 'tokens processed'}/s",
    ]
    if are_new:
        facts.append(f"{units.seconds(mean)} per token of a sequence")
    return ", ".join(facts)


def counted(number: int, noun: str) -> str:
    """Write a number of things: "1 step", "1,204 steps"."""
    return f"{units.count(number)} {noun}{'' if number == 1 else 's'}"


def _some(kind: str, reasons: Sequence[str]) -> list[str]:
    further = len(reasons) - _REASONS
    tail = [f"{kind}: for {counted(further, 'more reason')}"] if further > 0 else []
    return [f"{kind}: {reason}" for reason in reasons[:_REASONS]] + tail


def conjunction(words: Sequence[str]) -> str:
    """Write a list: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
