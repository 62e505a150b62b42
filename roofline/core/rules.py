"""The rules: from two runs to the causes of their difference. Each is a mechanism and claims what it explains.

A rule looks at what was recorded (which ops, how many, how many bytes, which precision, which switches) to say *that* a
cause is there; the time of what it claims says how much it matters, and which run it slows down. Rules run in
the order of `RULES`, special ones first, and what the first one claims no later one sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roofline.core.analysis import Analysis
from roofline.core.ledger import NONE, Claim, Ledger, Rows
from roofline.core.matching import ANCHORS
from roofline.core.pieces import Pieces
from roofline.core.profile import Profile
from roofline.core.roofline import ATTAINED
from roofline.core.vocabulary import BOUNDS
from roofline.units import UNKNOWN

Bools = NDArray[np.bool_]

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
    yield _with_dispatch(ledger, Claim("optimizer", *ledger.rows(lambda some: _phase(some, "optimizer"))))


def communication(ledger: Ledger) -> Iterator[Claim]:
    """Collectives between devices."""
    yield Claim("communication", *ledger.rows(lambda some: _classes(some, {"communication"})))


def synchronisation(ledger: Ledger) -> Iterator[Claim]:
    """Results read by the host, copies from and to it, and time in which the host waited for the device.

    What is computed only to be read belongs to it.
    """
    for a, b in _only_one_does(ledger, "transfer"):
        yield _with_dispatch(ledger, Claim("synchronisation", a, b))
    read = _with_dispatch(ledger, Claim("synchronisation", *ledger.rows(lambda some: _classes(some, {"transfer"}))))
    waited = [_part_of_gap(analysis, _SYNCHRONISATION) for analysis in (ledger.comparison.a, ledger.comparison.b)]
    yield replace(read, gap_a=read.gap_a + waited[0], gap_b=read.gap_b + waited[1])


def recomputation(ledger: Ledger) -> Iterator[Claim]:
    """Products that ran again without being asked for: checkpointed activations.

    Between the same neighbours the vector work around them was computed again too.
    """
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        again_a, again_b = a[_again(ledger.a.pieces)[a]], b[_again(ledger.b.pieces)[b]]
        if len(again_a) != len(again_b):
            rows = (a, b) if ledger.matching.alike else (again_a, again_b)
            yield _with_dispatch(ledger, Claim("recomputation", *rows))


def attention(ledger: Ledger) -> Iterator[Claim]:
    """One fused attention kernel against products and a softmax: all that stands in its place is claimed."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        sides = (_named_classes(ledger.a.pieces, a), _named_classes(ledger.b.pieces, b))
        fused = ["attention" in classes for classes in sides]
        written = [{"contraction", "softmax"} <= classes or "contraction" in classes for classes in sides]
        if fused[0] != fused[1] and written[fused.index(False)]:
            blocks = _blocks_with(ledger.a.pieces, a, ANCHORS) | _blocks_with(ledger.b.pieces, b, ANCHORS)
            keep = [
                rows[np.asarray([some.places[row].block in blocks for row in rows], bool)]
                for some, rows in ((ledger.a.pieces, a), (ledger.b.pieces, b))
            ]
            yield _with_dispatch(ledger, Claim("attention", keep[0], keep[1]))


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
            yield _with_dispatch(ledger, Claim("precision", rows, partners, about=about))


#: Floating types that vector work is done in.
_FLOATS = frozenset(("fp64", "fp32", "bf16", "fp16"))


def random(ledger: Ledger) -> Iterator[Claim]:
    """Random numbers, drawn by another generator in each framework, or in one run only, with what is made of them."""
    for a, b in _only_one_does(ledger, "random"):
        yield _with_dispatch(ledger, Claim("random", a, b))
    hunks = ledger.matching.hunks
    rows = [np.concatenate([NONE, *(each[side] for each in ((hunk.a, hunk.b) for hunk in hunks))]) for side in (0, 1)]
    a, b = ledger.free(*rows)
    a, b = a[_classes(ledger.a.pieces, {"random"})[a]], b[_classes(ledger.b.pieces, {"random"})[b]]
    if len(a) or len(b):
        yield _with_dispatch(ledger, Claim("random", a, b))


def unknown_work(ledger: Ledger) -> Iterator[Claim]:
    """Ops of unknown work that have no partner: they take their time, and nothing says what for."""
    free_a, free_b = ledger.rows(lambda some: np.isnan(some.flops) | np.isnan(some.bytes))
    pairs = ledger.matching
    alone = Claim("unknown-work", np.setdiff1d(free_a, pairs.pairs_a), np.setdiff1d(free_b, pairs.pairs_b))
    yield _with_dispatch(ledger, alone)


def padding(ledger: Ledger) -> Iterator[Claim]:
    """Products that are larger than what was asked for, as a compiler or a layout padded them."""
    pairs = ledger.matching
    ratios = [some.flops / np.where(some.model_flops > 0, some.model_flops, np.nan) for some in _sides(ledger)]
    one, other = ratios[0][pairs.pairs_a], ratios[1][pairs.pairs_b]
    padded = np.maximum(one, other) > _MORE * np.minimum(one, other)
    if padded.any():
        yield Claim("padding", pairs.pairs_a[padded], pairs.pairs_b[padded])


def more_products(ledger: Ledger) -> Iterator[Claim]:
    """Products that only one run does: it was asked for more, as parity says."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        a, b = a[_classes(ledger.a.pieces, ANCHORS)[a]], b[_classes(ledger.b.pieces, ANCHORS)[b]]
        flops = [float(np.nansum(some.flops[rows])) for some, rows in ((ledger.a.pieces, a), (ledger.b.pieces, b))]
        if max(flops) > _MORE * min(flops):
            # Beside work that is not known, nobody can say that the other run does less.
            less = ledger.comparison.a if flops[0] < flops[1] else ledger.comparison.b
            rule = "unknown-work" if less.total.unknown_flops > _UNKNOWN * less.wall else "more-work"
            yield _with_dispatch(ledger, Claim(rule, a, b))
        elif len(a) != len(b):  # the same FLOPs in more products, as a loop over a batch makes them
            yield _with_dispatch(ledger, Claim("tiny-ops", a, b))
        elif len(a):
            yield Claim("efficiency", a, b, about={"of": "matmul"})


def layout(ledger: Ledger) -> Iterator[Claim]:
    """Copies and transposes that one run makes between the same ops, and the other does not make at all."""
    for hunk in ledger.matching.hunks:
        a, b = ledger.free(hunk.a, hunk.b)
        moved = a[_classes(ledger.a.pieces, {"movement"})[a]], b[_classes(ledger.b.pieces, {"movement"})[b]]
        if bool(len(moved[0])) == bool(len(moved[1])):
            continue
        other = b if len(moved[0]) else a
        pieces = ledger.b.pieces if len(moved[0]) else ledger.a.pieces
        # Where the other run has a fused kernel here, the copy may be inside it, and that is fusion.
        if not pieces.fused[other].any():
            yield _with_dispatch(ledger, Claim("layout", *moved))


def fusion(ledger: Ledger) -> Iterator[Claim]:
    """Vector work in more or in fewer kernels: intermediates that move through memory, or many small launches.

    Where the run that takes longer neither launches nor moves more, its kernels are slower, and that is efficiency.
    """
    for a, b in _vector_work(ledger):
        one, other = ledger.work(ledger.a, a), ledger.work(ledger.b, b)
        more, less, rows, some = (
            (one, other, a, ledger.a.pieces) if one.seconds >= other.seconds else (other, one, b, ledger.b.pieces)
        )
        launches, traffic = more.launches > _MORE * less.launches, (more.bytes or 0.0) > _MORE * (less.bytes or 0.0)
        small = _launch_bound(some, rows) > 0.5
        if not launches and not traffic:
            yield Claim("efficiency", a, b, about={"of": "vector"})
        elif ledger.matching.alike and not less.ops and not small:
            yield _with_dispatch(ledger, Claim("more-work", a, b))
        elif launches and (small or not traffic):
            yield _with_dispatch(ledger, Claim("tiny-ops", a, b))
        else:
            yield _with_dispatch(ledger, Claim("fusion", a, b))


def threads(ledger: Ledger) -> Iterator[Claim]:
    """The same ops on another number of threads."""
    counts = [_threads(analysis.profile) for analysis in (ledger.comparison.a, ledger.comparison.b)]
    if None not in counts and counts[0] != counts[1]:
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

    An op pays for the pages that it is the first to touch, and the host, between ops, for giving them back. Huge pages
    are 512 times fewer, so the time that the system itself took for the process counts as well.
    """
    if fetching(ledger) is None:
        return
    rows = _pairs_of(ledger, VECTOR | ANCHORS)
    runs = ledger.comparison.a, ledger.comparison.b
    counts = [run.profile.conditions.get("page_faults_per_step") for run in runs]
    a, b = (UNKNOWN if count is None else f"{count:,.0f}" for count in counts)
    yield Claim("allocation", *rows, *ledger.before(*rows), about={"a": a, "b": b})


def fetching(ledger: Ledger) -> Analysis | None:
    """The run that fetches much more memory from the system in each step than the other one; None for neither."""
    runs = ledger.comparison.a, ledger.comparison.b
    for name, least in (
        ("page_faults_per_step", _MANY_FAULTS),
        ("system_seconds_per_step", _MUCH_OF_A_STEP * ledger.wall),
    ):
        a, b = (run.profile.conditions.get(name) for run in runs)
        if _far_apart([a, b], least):
            return runs[0] if (a or 0.0) > (b or 0.0) else runs[1]
    return None


def _far_apart(values: list[float | None], least: float) -> bool:
    """Whether one of two values is at least twice the other, and more by `least`."""
    a, b = values
    return a is not None and b is not None and abs(a - b) >= least and max(a, b) >= 2 * min(a, b)


#: Page faults per step that are worth a thought: 256 of them are 1 MiB of fresh pages of 4 KiB. And time in the system.
_MANY_FAULTS, _MUCH_OF_A_STEP = 256.0, 0.05


def efficiency(ledger: Ledger) -> Iterator[Claim]:
    """The same work at another rate: other kernels, or the same ones that ran slower."""
    for name, classes in (("matmul", ANCHORS), ("vector", VECTOR)):
        yield Claim("efficiency", *_pairs_of(ledger, classes), about={"of": name})


def host_bound(ledger: Ledger) -> Iterator[Claim]:
    """What is left of the gap: how the host dispatches, or what else it does while no op runs."""
    a, b = ledger.comparison.a, ledger.comparison.b
    rule, about = "host-bound", {}
    if ledger.one_executor:
        rule = "host-idle"
        reads = [_reads(analysis.profile) for analysis in (a, b)]
        more = ledger.gap_a * a.gap - ledger.gap_b * b.gap
        # On a CPU reading a result waits for nothing: it is a little more Python, and no more than that is its cost.
        if reads[0] != reads[1] and 0 < more / (reads[0] - reads[1]) < _A_READ:
            rule, about = "synchronisation", {"a": f"{reads[0]:.0f}", "b": f"{reads[1]:.0f}"}
    elif all(_overhead(analysis) > 0.5 for analysis in (a, b)):
        rule = "small-model"
    yield Claim(rule, NONE, NONE, ledger.gap_a, ledger.gap_b, about=about)


#: What reading one result costs a host at most [s], where it need not wait for it.
_A_READ = 50e-6


#: All rules, special ones first. The order decides which of two causes gets what both could claim.
RULES: tuple[Callable[[Ledger], Iterator[Claim]], ...] = (
    *(communication, synchronisation, optimizer, recomputation, attention, random, unknown_work, padding),
    *(more_products, precision, layout, fusion, threads, hardware, allocation, efficiency, host_bound),
)


# What the rules ask


def _phase(some: Pieces, phase: str) -> Bools:
    return np.asarray([place.phase == phase for place in some.places], bool)


def _classes(some: Pieces, classes: frozenset[str] | set[str]) -> Bools:
    return np.asarray([place.op_class in classes for place in some.places], bool)


def _sides(ledger: Ledger) -> tuple[Pieces, Pieces]:
    return ledger.a.pieces, ledger.b.pieces


def _pairs_of(ledger: Ledger, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The matched pieces of some classes that are not claimed in full."""
    pairs = ledger.matching
    chosen = _classes(ledger.a.pieces, classes)[pairs.pairs_a] & _classes(ledger.b.pieces, classes)[pairs.pairs_b]
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


def _again(some: Pieces) -> Bools:
    """Products that ran and were not asked for."""
    return np.asarray((some.model_flops == 0) & (some.flops > 0), bool)


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
        lists[0].append(a[_classes(ledger.a.pieces, VECTOR)[a]])
        lists[1].append(b[_classes(ledger.b.pieces, VECTOR)[b]])
    for some_a, some_b in together.values():
        a, b = np.concatenate(some_a), np.concatenate(some_b)
        if len(a) or len(b):
            yield a, b


def _launch_bound(some: Pieces, rows: Rows) -> float:
    """The share of launches whose op has the launch as its floor."""
    launches = some.launches[rows]
    whole = float(launches.sum())
    return float(launches[some.bound[rows] == BOUNDS.index("overhead")].sum()) / whole if whole else 0.0


def _reads(profile: Profile) -> float:
    """Results that the host reads in a step (`.item()`)."""
    return profile.conditions.get("host_reads_per_step", 0.0)


def _threads(profile: Profile) -> str | None:
    return profile.environment.get("threads")


def _part_of_gap(analysis: Analysis, cause: str) -> float:
    """The share of a gap that has a cause; 0 where causes are not known."""
    causes = analysis.gap_causes or {}
    return sum(value for name, value in causes.items() if re.match(cause, name)) / analysis.gap if analysis.gap else 0.0


def _overhead(analysis: Analysis) -> float:
    """The share of a step in which the host dispatches or a launch is all that an op is."""
    return (analysis.gap + analysis.total.bounds["overhead"]) / analysis.wall


def _with_dispatch(ledger: Ledger, claim: Claim) -> Claim:
    """The claim with the host's dispatching of its ops."""
    gap_a, gap_b = ledger.dispatch(*ledger.free(claim.a, claim.b))
    return replace(claim, gap_a=claim.gap_a + gap_a, gap_b=claim.gap_b + gap_b)
