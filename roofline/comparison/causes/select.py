"""Which segments of two runs a rule is about."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from roofline.comparison.arrays import Bools, Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import NONE
from roofline.comparison.conservation import again
from roofline.comparison.segments import Segments
from roofline.comparison.terms import Side
from roofline.core.schema import Signature
from roofline.core.vocabulary import BOUNDS, CLASSES, PRODUCTS

#: Work that a compiler takes together into fused kernels.
VECTOR = frozenset(("normalisation", "softmax", "reduction", "pointwise", "random", "movement", "embedding", "other"))
#: All that runs on the device, collectives and copies from and to the host aside.
ALL = VECTOR | PRODUCTS | {"optimizer"}
#: How much more of something (bytes, launches, FLOPs) is more, by choice: below it, rounding and padding of kernels.
MORE = 1.05
#: How much more work in the place of the same is another way to do it, or another update. By choice.
HALF_AGAIN = 1.5
#: Where launches grow so many times more than bytes, it is their number. In planted pairs (docs/plants.md) they grow
#: 0.6 to 2.2 times as much as bytes where norms, activations and softmax are written out, and 6 to 260 times where
#: slices and loops do the same piece by piece: by choice what lies between.
_FAR_MORE = 4.0
#: From more than this share of their launches on, ops are small: the launch is their floor. By choice: most of them.
_SMALL_FROM = 0.5
#: From these shares of its time on, something is much, or nearly all, of what a run does in a stretch. By choice.
_MUCH, _NEARLY_ALL = 0.25, 0.9
#: Of equal ops, this part or more must be done again for their first time to be known. By choice: else it is a guess.
_DONE_AGAIN = 0.5
#: From more than this part of a time on, it is most of it. By choice.
_MOST = 0.5
#: What frameworks call a copy into another type, as a kind of op, and as a part of the name of a fused kernel.
_CALLED_CAST = re.compile("to_copy|convert|(?<!broad)(?<!bit)cast", re.IGNORECASE)
_CASTS_INSIDE = re.compile(r"(?:^|_)(?:to_copy|convert|convert_element_type)(?=_|\.|$)")
#: Floating types that vector work is done in, and their bytes.
WIDTH = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2}
FLOATS = frozenset(WIDTH)


def of_phase(some: Segments, phase: str) -> Bools:
    """Which segments are of a phase."""
    return np.asarray([place.phase == phase for place in some.places], bool)


def of_classes(some: Segments, classes: frozenset[str] | set[str]) -> Bools:
    """Which segments are of some classes."""
    return np.isin(some.op_class, [CLASSES.index(name) for name in CLASSES if name in classes])


def are(some: Segments, rows: Rows, classes: frozenset[str] | set[str]) -> Bools:
    """Which of some segments are of some classes."""
    return np.isin(some.op_class[rows], [CLASSES.index(name) for name in CLASSES if name in classes])


def both(attribution: Attribution) -> tuple[Segments, Segments]:
    """The segments of A and of B."""
    return attribution.a.segments, attribution.b.segments


def left(attribution: Attribution, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The segments of some classes that are not claimed in full, with a partner or without."""
    return attribution.rows(lambda some: of_classes(some, classes))


def pairs_of(attribution: Attribution, classes: frozenset[str]) -> tuple[Rows, Rows]:
    """The matched segments of some classes that are not claimed in full."""
    pairs = attribution.matching
    chosen = are(attribution.a.segments, pairs.pairs_a, classes) & are(attribution.b.segments, pairs.pairs_b, classes)
    return attribution.free(pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def first_times(attribution: Attribution, repeated: Sequence[Rows]) -> list[tuple[Rows, Rows]]:
    """For run A and for run B the matched segments that did in the forward pass, in the same block, what it does again.

    repeated: of each run the segments that do again. Only where half of its kind there or more are done again: of equal
    layers of which a few are, nobody knows which. And not what both runs do again: it belongs to neither.
    """
    pairs = attribution.matching.pairs_a, attribution.matching.pairs_b
    chosen = [_done_again(some, *each) for some, *each in zip(both(attribution), pairs, repeated, strict=True)]
    alone = [mine & ~other for mine, other in zip(chosen, chosen[::-1], strict=True)]
    return [(pairs[0][rows], pairs[1][rows]) for rows in alone]


def _done_again(some: Segments, paired: Rows, repeated: Rows) -> Bools:
    """Which of the matched segments of a run did first what `repeated` do again."""

    def what(row: int) -> tuple[str, str, str]:
        return some.signature[row].name, some.signature[row].shapes, some.places[row].block

    forward = of_phase(some, "forward")[paired]
    firsts = [what(row) for row in paired[forward].tolist()]
    times, there = Counter(what(row) for row in repeated.tolist()), Counter(firsts)
    forward[forward] = [times[one] >= _DONE_AGAIN * there[one] for one in firsts]
    return forward


def only_one_does(attribution: Attribution, op_class: str) -> Iterator[tuple[Rows, Rows]]:
    """Stretches that only one run has, with an op of some class in them: (segments of A, of B), one of them empty.

    Vector work only, and only where both runs dispatch alike: elsewhere a stretch is no unit.
    """
    for stretch in attribution.matching.unmatched if attribution.matching.alike else ():
        a, b = attribution.free(stretch.a, stretch.b)
        rows, some = (a, attribution.a.segments) if len(a) else (b, attribution.b.segments)
        classes = classes_of(some, rows)
        if (not len(a) or not len(b)) and op_class in classes and classes <= VECTOR | {op_class}:
            yield a, b


def alone_or_in_place(attribution: Attribution, of: Callable[[Segments], Bools]) -> Iterator[tuple[Rows, Rows]]:
    """The free segments without a partner for which `of` is true: (segments of A, of B).

    Where nearly all that one run does in a stretch is such, by its time, all that both do there goes with it: it stands
    in the place of that; where both runs dispatch alike, as elsewhere a stretch is no unit. So does, where it is much
    of the stretch, what stands beside it there and the other run's compiler fuses: no compiler fuses across such an op.
    """
    pairs = attribution.matching
    free_a, free_b = attribution.rows(of)
    alone = np.setdiff1d(free_a, pairs.pairs_a), np.setdiff1d(free_b, pairs.pairs_b)
    such = np.zeros(len(attribution.a.segments)), np.zeros(len(attribution.b.segments))
    for side, seconds, rows in zip((attribution.a, attribution.b), such, alone, strict=True):
        seconds[rows] = side.seconds[rows]
    for stretch in pairs.unmatched if pairs.alike or attribution.one_executor else ():
        a, b = attribution.free(stretch.a, stretch.b)
        times = float(attribution.a.seconds[a].sum()), float(attribution.b.seconds[b].sum())
        parts = [float(seconds[rows].sum()) for seconds, rows in zip(such, (a, b), strict=True)]
        fused = attribution.a.segments.fused[a].any(), attribution.b.segments.fused[b].any()
        barred = (parts[0] > 0) != (parts[1] > 0) and bool(fused[0 if parts[1] > 0 else 1])
        enough = _MUCH if barred else _NEARLY_ALL
        if (barred or pairs.alike) and any(
            part > 0 and part >= enough * time for part, time in zip(parts, times, strict=True)
        ):
            yield a, b
    yield alone


def classes_of(some: Segments, rows: Rows) -> set[str]:
    """The classes of some segments."""
    return {some.places[row].op_class for row in rows}


def blocks_with(some: Segments, rows: Rows, classes: frozenset[str]) -> set[str]:
    """The blocks in which some of the segments are of some classes."""
    return {some.places[row].block for row in rows if some.places[row].op_class in classes}


def casts(some: Segments) -> Bools:
    """Which segments are copies into another type: called so, or in a kernel that casts.

    Or copies that write more or fewer bytes than they read, unlike what pads, takes slices or fills.
    """
    called = [
        called_a_cast(one) or (one.kind.strip("_") == "copy" and one.cost.bytes_read != one.cost.bytes_written)
        for one in some.signature
    ]
    found: Bools = of_classes(some, {"movement"}) & (np.asarray(called, bool) | casts_inside(some))
    return found


def changes_width(some: Segments) -> Bools:
    """Which segments are copies from one floating type into another: of another width, or there and back in a kernel.

    A copy that is called a cast and writes as much as it reads may be one into another order of axes.
    """
    apart = [one.cost.bytes_read != one.cost.bytes_written for one in some.signature]
    floats = [one.dtype in FLOATS for one in some.signature]
    found: Bools = casts(some) & np.asarray(floats, bool) & (np.asarray(apart, bool) | casts_inside(some))
    return found


def called_a_cast(one: Signature) -> bool:
    """Whether an op is of a kind that copies into another type."""
    return bool(_CALLED_CAST.search(one.kind))


def casts_inside(some: Segments) -> Bools:
    """Which segments are fused kernels that cast, or parts of such: by their names, or as they have several types."""
    types: dict[int, set[str | None]] = {}
    for op, one, whole in zip(some.op.tolist(), some.signature, some.whole, strict=True):
        types.setdefault(op, set()).update((one.dtype, whole.dtype))
    found = [
        (fused or whole.kind == "fusion") and (bool(_CASTS_INSIDE.search(whole.name)) or len(types[op] & FLOATS) > 1)
        for op, fused, whole in zip(some.op.tolist(), some.fused.tolist(), some.whole, strict=True)
    ]
    return np.asarray(found, bool)


def small(some: Segments, rows: Rows) -> bool:
    """Whether most launches of some segments are of ops that have the launch as their floor."""
    launches = some.launches[rows]
    bound = float(launches[some.bound[rows] == BOUNDS.index("overhead")].sum())
    return bound > _SMALL_FROM * float(launches.sum())


def ratio(a: float, b: float) -> float:
    """By how much two works differ; 1 where there are none."""
    return (max(a, b) / min(a, b) if min(a, b) else math.inf) if a or b else 1.0


def piece_by_piece(launches: Sequence[float], traffic: Sequence[float]) -> bool:
    """Whether one run's launches are far more than the other's, and its bytes are not: it does the same in pieces."""
    return ratio(*launches) >= _FAR_MORE * ratio(*traffic)


def mostly(side: Side, rows: Rows, op_class: str) -> bool:
    """Whether ops of some class have most of the time of some segments of a run."""
    seconds = side.seconds[rows]
    of_class = are(side.segments, rows, {op_class})
    return float(seconds[of_class].sum()) > _MOST * float(seconds.sum())


def flops(some: Segments, rows: Rows) -> float:
    """What some segments compute, as far as it is known [FLOP]."""
    return float(np.nansum(some.flops[rows]))


def more_flops(attribution: Attribution, a: Rows, b: Rows) -> bool:
    """Whether some segments of one run compute more than some of the other."""
    work = flops(attribution.a.segments, a), flops(attribution.b.segments, b)
    return max(work) > MORE * min(work)


def together(rows: Sequence[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """Segments of A and of B, in one array of each."""
    return np.concatenate([NONE, *(a for a, _ in rows)]), np.concatenate([NONE, *(b for _, b in rows)])


def again_in(attribution: Attribution) -> tuple[frozenset[str], frozenset[str]]:
    """The blocks in which A and B do products again: of the run that does more of them, none of the other."""
    rows = [np.flatnonzero(again(some, np.arange(len(some)))) for some in both(attribution)]
    done = [flops(some, repeated) for some, repeated in zip(both(attribution), rows, strict=True)]
    a, b = (
        frozenset(some.places[row].block for row in repeated)
        for some, repeated in zip(both(attribution), rows, strict=True)
    )
    none: frozenset[str] = frozenset()
    return (a if done[0] > MORE * done[1] else none), (b if done[1] > MORE * done[0] else none)


def again_there(some: Segments, rows: Rows, blocks: frozenset[str]) -> bool:
    """Whether some segments are all of the backward pass of these blocks."""
    places = [some.places[row] for row in rows]
    return all(place.phase == "backward" and place.block in blocks for place in places)
