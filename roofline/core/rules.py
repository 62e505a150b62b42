"""The rules: from two runs to the causes of their difference. Each is a mechanism and claims what it explains.

A rule looks at what was recorded (which ops, how many, how many bytes, which precision, which switches) to say *that* a
cause is there; the time of what it claims says how much it matters, and which run it slows down. Rules run in
the order of `RULES`, special ones first, and what the first one claims no later one sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roofline.core.analysis import Analysis
from roofline.core.ledger import NONE, Claim, Ledger, Rows, share_of_gap
from roofline.core.matching import ANCHORS
from roofline.core.pieces import Pieces
from roofline.core.profile import Profile
from roofline.core.roofline import ATTAINED
from roofline.core.vocabulary import BOUNDS, CLASSES
from roofline.units import seconds

Bools = NDArray[np.bool_]

#: How much more work between the same neighbours is another way to do the same.
_HALF_AGAIN = 1.5
#: How much more traffic of copies is another layout.
_TWICE = 2.0
#: How much more of something (bytes, launches, FLOPs) is more: below it, rounding and padding of kernels.
_MORE = 1.05
#: From this share of a step on, work that is not known could be the missing one.
_UNKNOWN = 0.05
#: Where the profiled steps say that the host waited for the device.
_SYNCHRONISATION = "synchronisation"
#: Work that a compiler takes together into fused kernels.
VECTOR = frozenset(("normalisation", "softmax", "reduction", "pointwise", "random", "movement", "embedding", "other"))


def optimizer(ledger: Ledger) -> Iterator[Claim]:
    """The optimizer's update: one fused kernel, or many ops."""
    yield Claim("optimizer", *ledger.rows(lambda some: _phase(some, "optimizer")), host=True)


def communication(ledger: Ledger) -> Iterator[Claim]:
    """Collectives between devices."""
    yield Claim("communication", *ledger.rows(lambda some: _classes(some, {"communication"})))


def synchronisation(ledger: Ledger) -> Iterator[Claim]:
    """Results read by the host, copies from and to it, and time in which the host waited for the device.

    What is computed only to be read belongs to it.
    """
    for a, b in _only_one_does(ledger, "transfer"):
        yield Claim("synchronisation", a, b, host=True)
    read = ledger.rows(lambda some: _classes(some, {"transfer"}))
    waited = [share_of_gap(analysis, _SYNCHRONISATION) for analysis in (ledger.comparison.a, ledger.comparison.b)]
    yield Claim("synchronisation", read[0], read[1], waited[0], waited[1], host=True)


def recomputation(ledger: Ledger) -> Iterator[Claim]:
    """Products that ran again without being asked for: checkpointed activations.

    Between the same neighbours the vector work around them was computed again too.
    """
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        again_a, again_b = a[_again(ledger.a.pieces, a)], b[_again(ledger.b.pieces, b)]
        if len(again_a) != len(again_b):
            rows = (a, b) if ledger.matching.alike else (again_a, again_b)
            yield Claim("recomputation", *rows, host=True)


def attention(ledger: Ledger) -> Iterator[Claim]:
    """One fused attention kernel against products and a softmax: all that stands in its place is claimed."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        sides = (_named_classes(ledger.a.pieces, a), _named_classes(ledger.b.pieces, b))
        fused = ["attention" in classes for classes in sides]
        written = ["contraction" in classes for classes in sides]
        if fused[0] != fused[1] and written[fused.index(False)]:
            blocks = _blocks_with(ledger.a.pieces, a, ANCHORS) | _blocks_with(ledger.b.pieces, b, ANCHORS)
            keep = [
                rows[np.asarray([some.places[row].block in blocks for row in rows], bool)]
                for some, rows in ((ledger.a.pieces, a), (ledger.b.pieces, b))
            ]
            yield Claim("attention", keep[0], keep[1], host=True)


def precision(ledger: Ledger) -> Iterator[Claim]:
    """The same work in another arithmetic: TF32, bf16, fp16 or fp64 in one run only, and the casts that go with it."""
    a, b, pairs = ledger.a.pieces, ledger.b.pieces, ledger.matching
    differ = [
        _arithmetic(a, row) != _arithmetic(b, partner) and None not in (_arithmetic(a, row), _arithmetic(b, partner))
        for row, partner in zip(pairs.pairs_a, pairs.pairs_b, strict=True)
    ]
    chosen = np.asarray(differ, bool)
    if chosen.any():
        rows, partners = pairs.pairs_a[chosen], pairs.pairs_b[chosen]
        about = {"a": str(_arithmetic(a, rows[0])), "b": str(_arithmetic(b, partners[0]))}
        yield Claim("precision", rows, partners, about=about)
    if not pairs.alike:
        return
    for hunk in pairs.hunks:
        rows, partners = ledger.free(hunk.a, hunk.b)
        types = [{some.signature[row].dtype for row in chosen} & _FLOATS for some, chosen in ((a, rows), (b, partners))]
        if types[0] != types[1] and all(types):
            about = {"a": " and ".join(sorted(types[0])), "b": " and ".join(sorted(types[1]))}
            yield Claim("precision", rows, partners, about=about, host=True)


#: Floating types that vector work is done in.
_FLOATS = frozenset(("fp64", "fp32", "bf16", "fp16"))


def random(ledger: Ledger) -> Iterator[Claim]:
    """Random numbers, drawn by another generator in each framework, or in one run only, with what is made of them."""
    for a, b in _only_one_does(ledger, "random"):
        yield Claim("random", a, b, host=True)
    hunks = ledger.matching.hunks
    rows = [np.concatenate([NONE, *(each[side] for each in ((hunk.a, hunk.b) for hunk in hunks))]) for side in (0, 1)]
    a, b = ledger.free(*rows)
    a, b = a[_are(ledger.a.pieces, a, {"random"})], b[_are(ledger.b.pieces, b, {"random"})]
    if len(a) or len(b):
        yield Claim("random", a, b, host=True)


def unknown_work(ledger: Ledger) -> Iterator[Claim]:
    """Ops of unknown work that have no partner: they take their time, and nothing says what for."""
    free_a, free_b = ledger.rows(lambda some: np.isnan(some.flops) | np.isnan(some.bytes))
    pairs = ledger.matching
    alone = np.setdiff1d(free_a, pairs.pairs_a), np.setdiff1d(free_b, pairs.pairs_b)
    yield Claim("unknown-work", *alone, host=True)


def padding(ledger: Ledger) -> Iterator[Claim]:
    """Products that are larger than what was asked for, as a compiler or a layout padded them."""
    pairs = ledger.matching
    ratios = [some.flops / np.where(some.model_flops > 0, some.model_flops, np.nan) for some in _sides(ledger)]
    one, other = ratios[0][pairs.pairs_a], ratios[1][pairs.pairs_b]
    padded = np.maximum(one, other) > _MORE * np.minimum(one, other)
    # Backward kernels of attention multiply 5 or 7 times for the 4 products that are asked for, and pad nothing.
    kernels = _are(ledger.a.pieces, pairs.pairs_a, {"attention"})
    for rule, chosen in (("padding", padded & ~kernels), ("attention", padded & kernels)):
        if chosen.any():
            yield Claim(rule, pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def more_products(ledger: Ledger) -> Iterator[Claim]:
    """Products that only one run does: it was asked for more, as parity says."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        a, b = a[_are(ledger.a.pieces, a, ANCHORS)], b[_are(ledger.b.pieces, b, ANCHORS)]
        flops = [float(np.nansum(some.flops[rows])) for some, rows in ((ledger.a.pieces, a), (ledger.b.pieces, b))]
        if max(flops) > _MORE * min(flops):
            # Beside work that is not known, nobody can say that the other run does less.
            less = ledger.comparison.a if flops[0] < flops[1] else ledger.comparison.b
            rule = "unknown-work" if less.total.unknown_flops > _UNKNOWN * less.wall else "more-work"
            yield Claim(rule, a, b, host=True)
        elif len(a) != len(b):  # the same FLOPs in more products, as a loop over a batch makes them
            yield Claim("tiny-ops", a, b, host=True)


def layout(ledger: Ledger) -> Iterator[Claim]:
    """Copies and transposes that one run makes between the same ops, and the other one not, or for half the bytes."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        moved = a[_are(ledger.a.pieces, a, {"movement"})], b[_are(ledger.b.pieces, b, {"movement"})]
        traffic = [float(np.nansum(some.bytes[rows])) for some, rows in zip(_sides(ledger), moved, strict=True)]
        if max(traffic) < _TWICE * min(traffic) or not max(traffic):
            continue
        less = traffic.index(min(traffic))
        # Where the other run has a fused kernel here, the copy may be inside it, and that is fusion.
        if not _sides(ledger)[less].fused[(a, b)[less]].any():
            yield Claim("layout", *moved, host=True)


def fusion(ledger: Ledger) -> Iterator[Claim]:
    """Vector work in more or in fewer kernels: intermediates that move through memory, or many small launches.

    Between the same neighbours both do the same thing, and all of the difference is the cause's, where launches or
    bytes are half as many again. Elsewhere time is work times a rate, t = W r, with W what differs more, launches or
    bytes: what the work explains, (W_A - W_B) (r_A + r_B) / 2, is claimed, and the rest is left: slower kernels.
    """
    for a, b in _vector_work(ledger):
        one, other = ledger.work(ledger.a, a), ledger.work(ledger.b, b)
        more, less, rows, some = (
            (one, other, a, ledger.a.pieces) if one.seconds >= other.seconds else (other, one, b, ledger.b.pieces)
        )
        launches, traffic = more.launches > _MORE * less.launches, (more.bytes or 0.0) > _MORE * (less.bytes or 0.0)
        small = _launch_bound(some, rows) > 0.5
        if not launches and not traffic:
            continue
        if ledger.matching.alike and not less.ops and not small:
            rule = "more-work"
        else:
            rule = "tiny-ops" if launches and (small or not traffic) else "fusion"
        work = (one.launches, one.bytes or 0.0), (other.launches, other.bytes or 0.0)
        part_a, part_b = (1.0, 1.0) if ledger.matching.alike and _ratio(*work) >= _HALF_AGAIN else _by_work(*work)
        yield Claim(rule, a, b, part_a=part_a, part_b=part_b, host=True)


def _ratio(a: tuple[float, float], b: tuple[float, float]) -> float:
    """By how much two works differ, in what they differ more."""
    return max(max(x, y) / min(x, y) if min(x, y) else math.inf for x, y in zip(a, b, strict=True) if x or y)


def _by_work(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """What part of the times of A and of B their work explains, by what it differs more in."""
    if not all(a) or not all(b):
        return 1.0, 1.0
    one, other = max(zip(a, b, strict=True), key=lambda pair: max(pair[0] / pair[1], pair[1] / pair[0]))
    return (one - other) / (2 * one), (other - one) / (2 * other)


def threads(ledger: Ledger) -> Iterator[Claim]:
    """The same ops on another number of threads."""
    runs = ledger.comparison.a, ledger.comparison.b
    counts = [_threads(run.profile) for run in runs]
    if all(run.device.kind == "cpu" for run in runs) and None not in counts and counts[0] != counts[1]:
        about = {"a": str(counts[0]), "b": str(counts[1])}
        yield Claim("threads", ledger.matching.pairs_a, ledger.matching.pairs_b, about=about)


def hardware(ledger: Ledger) -> Iterator[Claim]:
    """The same ops under the ceilings of another device.

    Where both runs attain half of their roofs, time is floor times what it misses the floor by, t = f x, and
    t_A - t_B splits symmetrically: (f_A - f_B) (x_A + x_B) / 2 is the devices', which is (f_A - f_B) / 2 f_A of the
    time of A less (f_B - f_A) / 2 f_B of that of B. Far below its roof a kernel does not wait for it, and the devices'
    part is what the floors differ by. The rest is left to whatever else explains it.
    """
    if not ledger.comparison.hardware_differs:
        return
    for classes in (ANCHORS, VECTOR):
        a, b = _pairs_of(ledger, classes)
        floors = float(ledger.a.pieces.floor[a].sum()), float(ledger.b.pieces.floor[b].sum())
        times = float(ledger.a.own[a].sum()), float(ledger.b.own[b].sum())
        if not all(floors) or not all(times):
            continue
        if all(floor >= ATTAINED * time for floor, time in zip(floors, times, strict=True)):
            apart = floors[0] - floors[1]
            yield Claim("hardware", a, b, part_a=apart / (2 * floors[0]), part_b=-apart / (2 * floors[1]))
        else:
            yield Claim("hardware", a, b, part_a=floors[0] / times[0], part_b=floors[1] / times[1])


def allocation(ledger: Ledger) -> Iterator[Claim]:
    """Memory that is fetched from the system anew in each step: the first touch of a page is a fault.

    An op pays for the pages that it is the first to touch, and the host, between ops, for giving them back. Of what is
    left it explains as much as the system itself took more time for the process, or by `_A_FAULT` for each fault where
    that was not recorded.
    """
    runs = ledger.comparison.a, ledger.comparison.b
    faults = [run.profile.conditions.get("page_faults_per_step") for run in runs]
    system = [run.profile.conditions.get("system_seconds_per_step") for run in runs]
    many = _far_apart(faults, _MANY_FAULTS)
    if not many and not _far_apart(system, _MUCH_OF_A_STEP * ledger.wall):
        return
    cost = _apart(system) if None not in system else _A_FAULT * _apart(faults)
    rows = _left(ledger, VECTOR | ANCHORS)
    gaps = ledger.gap_a * _awake(runs[0]), ledger.gap_b * _awake(runs[1])
    slower = float((ledger.a.seconds[rows[0]] * ledger.left_a[rows[0]]).sum())
    slower -= float((ledger.b.seconds[rows[1]] * ledger.left_b[rows[1]]).sum())
    slower += gaps[0] * runs[0].gap - gaps[1] * runs[1].gap
    if slower * cost <= 0:
        return  # the run that fetches more is not the slower one
    part = min(1.0, cost / slower)
    told = [f"{count:,.0f} page faults" for count in faults if count is not None]
    if not many or len(told) < 2:
        told = [f"{seconds(value)} of the system's time" for value in system]
    about = {"a": told[0], "b": told[1]}
    claim = Claim("allocation", *rows, part * gaps[0], part * gaps[1], about=about)
    yield replace(claim, part_a=part, part_b=part)


def _awake(run: Analysis) -> float:
    """The share of a run's gap in which the host cannot have slept."""
    away = run.profile.conditions.get("away_seconds_per_step")
    return max(0.0, 1 - away / run.gap) if away is not None and run.gap > 0 else 1.0


def _apart(values: list[float | None]) -> float:
    a, b = values
    return (a or 0.0) - (b or 0.0)


def _far_apart(values: list[float | None], least: float) -> bool:
    """Whether one of two values is at least twice the other, and more by `least`."""
    a, b = values
    return a is not None and b is not None and abs(a - b) >= least and max(a, b) >= 2 * min(a, b)


#: Page faults per step that are worth a thought: 256 of them are 1 MiB of fresh pages of 4 KiB. And time in the system.
_MANY_FAULTS, _MUCH_OF_A_STEP = 256.0, 0.05
#: What a fault costs, with giving the page back [s]: 1.7 us were measured (docs/plants.md).
_A_FAULT = 2e-6


def efficiency(ledger: Ledger) -> Iterator[Claim]:
    """The same work at another rate: other kernels, or the same ones that ran slower."""
    for name, classes in (("matmul", ANCHORS), ("vector", VECTOR)):
        yield Claim("efficiency", *_left(ledger, classes), about={"of": name})


def waiting(ledger: Ledger) -> Iterator[Claim]:
    """What the profiled steps know of a gap besides dispatch: input, compilation, collectives."""
    for cause, rule in (
        ("communication wait", "communication"),
        ("data input", "data-input"),
        ("graph break/compilation", "compilation"),
    ):
        a, b = (share_of_gap(run, cause) for run in (ledger.comparison.a, ledger.comparison.b))
        if a or b:
            yield Claim(rule, NONE, NONE, a, b)


def host_bound(ledger: Ledger) -> Iterator[Claim]:
    """What is left of the gap: how the host dispatches, or what else it does while no op runs."""
    a, b = ledger.comparison.a, ledger.comparison.b
    rule, about = "host-bound", {}
    if ledger.one_executor:
        rule = "host-idle"
        one, other = _reads(a.profile), _reads(b.profile)
        more = ledger.gap_a * a.gap - ledger.gap_b * b.gap
        about = _asleep(ledger, more)
        # On a CPU reading a result waits for nothing: it is a little more Python, and no more than that is its cost.
        if one is not None and other is not None and one != other and 0 < more / (one - other) < _A_READ:
            rule, about = "synchronisation", {"a": f"{one:.0f}", "b": f"{other:.0f}"}
    else:
        # Between ops, and far longer than a dispatch: whatever dispatches, that is something else.
        between = [float(shares.sum()) for shares in ledger.besides]
        yield Claim("host-idle", NONE, NONE, between[0], between[1])
        if all(_overhead(analysis) > 0.5 for analysis in (a, b)):
            rule = "small-model"
    yield Claim(rule, NONE, NONE, ledger.gap_a, ledger.gap_b, about=about)


#: What reading one result costs a host at most [s], where it need not wait for it.
_A_READ = 50e-6


#: All rules, special ones first. The order decides which of two causes gets what both could claim.
RULES: tuple[Callable[[Ledger], Iterator[Claim]], ...] = (
    *(communication, synchronisation, waiting, optimizer, recomputation, attention, random, unknown_work, padding),
    *(more_products, precision, layout, fusion, threads, hardware, allocation, efficiency, host_bound),
)


# What the rules ask


def _phase(some: Pieces, phase: str) -> Bools:
    return np.asarray([place.phase == phase for place in some.places], bool)


def _classes(some: Pieces, classes: frozenset[str] | set[str]) -> Bools:
    return np.isin(some.op_class, [CLASSES.index(name) for name in CLASSES if name in classes])


def _are(some: Pieces, rows: Rows, classes: frozenset[str] | set[str]) -> Bools:
    """Which of some pieces are of some classes."""
    return np.isin(some.op_class[rows], [CLASSES.index(name) for name in CLASSES if name in classes])


def _sides(ledger: Ledger) -> tuple[Pieces, Pieces]:
    return ledger.a.pieces, ledger.b.pieces


def _left(ledger: Ledger, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The pieces of some classes that are not claimed in full, with a partner or without."""
    return ledger.rows(lambda some: _classes(some, classes))


def _pairs_of(ledger: Ledger, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The matched pieces of some classes that are not claimed in full."""
    pairs = ledger.matching
    chosen = _are(ledger.a.pieces, pairs.pairs_a, classes) & _are(ledger.b.pieces, pairs.pairs_b, classes)
    return ledger.free(pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def _only_one_does(ledger: Ledger, op_class: str) -> Iterator[tuple[Rows, Rows]]:
    """Stretches that only one run has, with an op of some class in them: (pieces of A, of B), one of them empty.

    Vector work only, and only where both runs dispatch alike: elsewhere a stretch is no unit.
    """
    for hunk in ledger.matching.hunks if ledger.matching.alike else ():
        a, b = ledger.free(hunk.a, hunk.b)
        rows, some = (a, ledger.a.pieces) if len(a) else (b, ledger.b.pieces)
        classes = _named_classes(some, rows)
        if (not len(a) or not len(b)) and op_class in classes and classes <= VECTOR | {op_class}:
            yield a, b


def _named_classes(some: Pieces, rows: Rows) -> set[str]:
    return {some.places[row].op_class for row in rows}


def _blocks_with(some: Pieces, rows: Rows, classes: frozenset[str]) -> set[str]:
    return {some.places[row].block for row in rows if some.places[row].op_class in classes}


def _again(some: Pieces, rows: Rows) -> Bools:
    """Which of some pieces are products that ran and were not asked for."""
    return np.asarray((some.model_flops[rows] == 0) & (some.flops[rows] > 0), bool)


def _arithmetic(some: Pieces, row: int) -> str | None:
    found = some.signature[row].precision
    return found.arithmetic if found and some.places[row].op_class in ANCHORS else None


def _vector_work(ledger: Ledger) -> Iterator[tuple[Rows, Rows]]:
    """Unclaimed vector work that has no partner: by stretch, or by phase where the runs speak two languages.

    Two frameworks do not agree to which block a residual sum belongs: only a phase of theirs can be compared.
    """
    together: dict[Hashable, tuple[list[Rows], list[Rows]]] = {}
    for number, hunk in enumerate(ledger.matching.hunks):
        a, b = ledger.free(hunk.a, hunk.b)
        lists = together.setdefault(number if ledger.matching.alike else hunk.phase, ([], []))
        lists[0].append(a[_are(ledger.a.pieces, a, VECTOR)])
        lists[1].append(b[_are(ledger.b.pieces, b, VECTOR)])
    for some_a, some_b in together.values():
        a, b = np.concatenate(some_a), np.concatenate(some_b)
        if len(a) or len(b):
            yield a, b


def _launch_bound(some: Pieces, rows: Rows) -> float:
    """The share of launches whose op has the launch as its floor."""
    launches = some.launches[rows]
    whole = float(launches.sum())
    return float(launches[some.bound[rows] == BOUNDS.index("overhead")].sum()) / whole if whole else 0.0


def _asleep(ledger: Ledger, more: float) -> dict[str, str]:
    """Whether a host that spends so much more [s] is on a core meanwhile; nothing where that is not known.

    Of a thread among others it is not: it also waits for them.
    """
    runs = ledger.comparison.a, ledger.comparison.b
    away = [run.profile.conditions.get("away_seconds_per_step") for run in runs]
    if away[0] is None or away[1] is None or any(_threads(run.profile) != "1" for run in runs) or not more:
        return {}
    share = (away[0] - away[1]) / more
    if _PARTLY < share < 1 - _PARTLY:
        return {}
    told = {"a": seconds(away[0]), "b": seconds(away[1])}
    return told | {"of": "asleep" if share > _PARTLY else "awake"}


#: Between this share and its complement time on a core is neither most nor little of it.
_PARTLY = 0.25


def _reads(profile: Profile) -> float | None:
    """Results that the host reads in a step (`.item()`); None where that was not recorded."""
    return profile.conditions.get("host_reads_per_step")


def _threads(profile: Profile) -> str | None:
    return profile.environment.get("threads")


def _overhead(analysis: Analysis) -> float:
    """The share of a step in which the host dispatches or a launch is all that an op is."""
    return (analysis.gap + analysis.total.bounds["overhead"]) / analysis.wall
