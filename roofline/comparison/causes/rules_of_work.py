"""Rules about what one run does and the other does not: other ops, more of them, or the same ones in another form."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import NONE, Bools, Claim, Rows
from roofline.comparison.causes.select import (
    VECTOR,
    are,
    blocks_with,
    both,
    classes_of,
    first_time,
    of_phase,
    only_one_does,
)
from roofline.comparison.matching import ANCHORS
from roofline.comparison.segments import Segments
from roofline.core.vocabulary import BOUNDS

#: Of one stretch, so many blocks are looked at one by one.
_MOST_BLOCKS = 100
#: How much more work between the same neighbours is another way to do the same.
_HALF_AGAIN = 1.5
#: How much more traffic of copies is another layout.
_TWICE = 2.0
#: From this share of a stretch's vector work on, copies are a cause of their own.
_PART = 0.2
#: How much more of something (bytes, launches, FLOPs) is more: below it, rounding and padding of kernels.
_MORE = 1.05
#: From this share of a step on, work that is not known could be the missing one.
_UNKNOWN = 0.05
#: Floating types that vector work is done in, and their bytes.
_WIDTH = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2}
_FLOATS = frozenset(_WIDTH)


def optimizer(attribution: Attribution) -> Iterator[Claim]:
    """The optimizer's update: one fused kernel, or many ops. The same ops in both runs are no other update."""
    if any(hunk.phase == "optimizer" for hunk in attribution.matching.hunks):
        yield Claim("optimizer", *attribution.rows(lambda some: of_phase(some, "optimizer")), host=True)


def recomputation(attribution: Attribution) -> Iterator[Claim]:
    """Products that ran again without being asked for: checkpointed activations.

    Between the same neighbours the vector work around them was computed again too. What is to be computed again is set
    up before it is computed first: what the host takes longer there belongs to it.
    """
    found = []
    for hunk in attribution.matching.hunks:
        a, b = attribution.free(hunk.a, hunk.b)
        again_a, again_b = a[_again(attribution.a.segments, a)], b[_again(attribution.b.segments, b)]
        if len(again_a) != len(again_b):
            rows = (a, b) if attribution.matching.alike else (again_a, again_b)
            found.append(rows)
            yield Claim("recomputation", *rows, host=True)
    if found:
        for side, rows in enumerate(zip(*found, strict=True)):
            yield Claim("recomputation", before=first_time(attribution, side, np.concatenate(rows)))


def _again(some: Segments, rows: Rows) -> Bools:
    """Which of some segments are products that ran and were not asked for."""
    return np.asarray((some.model_flops[rows] == 0) & (some.flops[rows] > 0), bool)


def attention(attribution: Attribution) -> Iterator[Claim]:
    """One fused attention kernel against products and a softmax: all that stands in its place is claimed."""
    for hunk in attribution.matching.hunks:
        a, b = attribution.free(hunk.a, hunk.b)
        sides = (classes_of(attribution.a.segments, a), classes_of(attribution.b.segments, b))
        fused = ["attention" in classes for classes in sides]
        written = ["contraction" in classes for classes in sides]
        if fused[0] != fused[1] and written[fused.index(False)]:
            blocks = blocks_with(attribution.a.segments, a, ANCHORS) | blocks_with(attribution.b.segments, b, ANCHORS)
            keep = [
                rows[np.asarray([some.places[row].block in blocks for row in rows], bool)]
                for some, rows in ((attribution.a.segments, a), (attribution.b.segments, b))
            ]
            yield Claim("attention", keep[0], keep[1], host=True)


def precision(attribution: Attribution) -> Iterator[Claim]:
    """The same work in another arithmetic: TF32, bf16, fp16 or fp64 in one run only, and the casts that go with it."""
    a, b, pairs = attribution.a.segments, attribution.b.segments, attribution.matching
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
    about = {}
    casts = []
    for rows, partners in _stretches(attribution):
        types = [{some.signature[row].dtype for row in chosen} & _FLOATS for some, chosen in ((a, rows), (b, partners))]
        if types[0] != types[1] and all(types) and _dearer(attribution, (rows, partners), types):
            about = {"a": " and ".join(sorted(types[0])), "b": " and ".join(sorted(types[1]))}
            yield Claim("precision", _computing(a, rows), _computing(b, partners), about=about, host=True)
        elif (len(rows) and not len(partners) and _cast(a, rows)) or (
            len(partners) and not len(rows) and _cast(b, partners)
        ):
            casts.append((rows, partners))
    # Copies into another type between ops that both runs have are there for what computes in it.
    for rows, partners in casts if about else ():
        yield Claim("precision", rows, partners, about=about, host=True)


def _stretches(attribution: Attribution) -> Iterator[tuple[Rows, Rows]]:
    """What has no partner, by stretch, and in one by block where both runs have that: each has its own cause."""
    for hunk in attribution.matching.hunks:
        rows, partners = attribution.free(hunk.a, hunk.b)
        places = [
            np.asarray([some.places[row].block for row in chosen.tolist()], object)
            for some, chosen in ((attribution.a.segments, rows), (attribution.b.segments, partners))
        ]
        shared = sorted({*places[0]} & {*places[1]})[:_MOST_BLOCKS]
        alone = rows[~np.isin(places[0], shared)], partners[~np.isin(places[1], shared)]
        if not shared or len({*places[0], *places[1]}) == 1 or _lost_its_place(attribution, (rows, partners), alone):
            yield rows, partners
            continue
        for block in shared:
            yield rows[places[0] == block], partners[places[1] == block]
        yield alone


def _lost_its_place(attribution: Attribution, stretch: tuple[Rows, Rows], alone: tuple[Rows, Rows]) -> bool:
    """Whether what stands in blocks of one run only is in the other run as well, in blocks of both."""
    if bool(len(alone[0])) == bool(len(alone[1])):
        return False
    names = [
        Counter(some.signature[row].name for row in rows) for some, rows in zip(both(attribution), stretch, strict=True)
    ]
    one, other = names if len(alone[0]) else names[::-1]
    some, rows = (attribution.a.segments, alone[0]) if len(alone[0]) else (attribution.b.segments, alone[1])
    here = Counter(some.signature[row].name for row in rows)
    return all(other[name] >= one[name] for name in here)


def _computing(some: Segments, rows: Rows) -> Rows:
    """Some segments without copies that stay in their type: those have another cause."""
    copies = are(some, rows, {"movement"})
    kept: Rows = rows[np.asarray([not copies[n] or _cast(some, rows[[n]]) for n in range(len(rows))], bool)]
    return kept


def _dearer(attribution: Attribution, rows: tuple[Rows, Rows], types: list[set[str | None]]) -> bool:
    """Whether the run that takes longer computes in a wider type, or copies into another one and back."""
    times = [
        float(side.seconds[chosen].sum()) for side, chosen in zip((attribution.a, attribution.b), rows, strict=True)
    ]
    slower = int(times[1] > times[0])
    widest = [max(_WIDTH[one] for one in some if one) for some in types]
    some, chosen = both(attribution)[slower], rows[slower]
    copies = chosen[are(some, chosen, {"movement"})]
    return widest[slower] > widest[1 - slower] or any(_cast(some, copies[[n]]) for n in range(len(copies)))


def _cast(some: Segments, rows: Rows) -> bool:
    """Whether some segments are all copies into another type: called so, or not writing as many bytes as they read."""
    ones = [some.signature[row] for row in rows]
    apart = [one.cost.bytes_read != one.cost.bytes_written or bool(_CALLED_CAST.search(one.kind)) for one in ones]
    return all(apart) and bool(are(some, rows, {"movement"}).all())


#: What frameworks call a copy into another type.
_CALLED_CAST = re.compile("to_copy|convert|cast", re.IGNORECASE)


def _arithmetic(some: Segments, row: int) -> str | None:
    found = some.signature[row].precision
    return found.arithmetic if found and some.places[row].op_class in ANCHORS else None


def random(attribution: Attribution) -> Iterator[Claim]:
    """Random numbers, drawn by another generator in each framework, or in one run only, with what is made of them."""
    for a, b in only_one_does(attribution, "random"):
        yield Claim("random", a, b, host=True)
    hunks = attribution.matching.hunks
    rows = [np.concatenate([NONE, *(each[side] for each in ((hunk.a, hunk.b) for hunk in hunks))]) for side in (0, 1)]
    a, b = attribution.free(*rows)
    a, b = a[are(attribution.a.segments, a, {"random"})], b[are(attribution.b.segments, b, {"random"})]
    if len(a) or len(b):
        yield Claim("random", a, b, host=True)


def unknown_work(attribution: Attribution) -> Iterator[Claim]:
    """Ops of unknown work that have no partner: they take their time, and nothing says what for.

    Where such an op stands in the place of ops of the other run, these go with it.
    """
    free_a, free_b = attribution.rows(lambda some: np.isnan(some.flops) | np.isnan(some.bytes))
    pairs = attribution.matching
    alone = np.setdiff1d(free_a, pairs.pairs_a), np.setdiff1d(free_b, pairs.pairs_b)
    unknown = np.zeros(len(attribution.a.segments), bool), np.zeros(len(attribution.b.segments), bool)
    for marks, rows in zip(unknown, alone, strict=True):
        marks[rows] = True
    for hunk in pairs.hunks if pairs.alike else ():
        a, b = attribution.free(hunk.a, hunk.b)
        if any(len(rows) and marks[rows].all() for marks, rows in zip(unknown, (a, b), strict=True)):
            yield Claim("unknown-work", a, b, host=True)
    yield Claim("unknown-work", *alone, host=True)


def padding(attribution: Attribution) -> Iterator[Claim]:
    """Products that are larger than what was asked for, as a compiler or a layout padded them."""
    pairs = attribution.matching
    ratios = [some.flops / np.where(some.model_flops > 0, some.model_flops, np.nan) for some in both(attribution)]
    one, other = ratios[0][pairs.pairs_a], ratios[1][pairs.pairs_b]
    padded = np.maximum(one, other) > _MORE * np.minimum(one, other)
    # Backward kernels of attention multiply 5 or 7 times for the 4 products that are asked for, and pad nothing.
    kernels = are(attribution.a.segments, pairs.pairs_a, {"attention"})
    for rule, chosen in (("padding", padded & ~kernels), ("attention", padded & kernels)):
        if chosen.any():
            yield Claim(rule, pairs.pairs_a[chosen], pairs.pairs_b[chosen])


def more_products(attribution: Attribution) -> Iterator[Claim]:
    """Products that only one run does: it was asked for more, as parity says; or for the same in more of them."""
    phases: dict[str, list[tuple[Rows, Rows]]] = {}
    again = _again_in(attribution)
    for hunk in attribution.matching.hunks:
        phases.setdefault(hunk.phase, []).append(attribution.free(hunk.a, hunk.b))
    for hunks in phases.values():
        products = [
            (a[are(attribution.a.segments, a, ANCHORS)], b[are(attribution.b.segments, b, ANCHORS)]) for a, b in hunks
        ]
        # The same FLOPs may stand elsewhere: one product before a loop, and one in each turn of it.
        if not _more_flops(attribution, *_together(products)):
            # With what puts the segments together, where the same neighbours say that it is there for that.
            kept = [
                whole if attribution.matching.alike else part
                for whole, part in zip(hunks, products, strict=True)
                if len(part[0]) != len(part[1])
            ]
            if len({len(rows) for rows in _together(products)}) > 1:
                yield Claim("tiny-ops", *_together(kept), host=True)
            continue
        for a, b in products:
            if _more_flops(attribution, a, b):
                # Beside work that is not known, nobody can say that the other run does less.
                fewer = _flops(attribution.a.segments, a) < _flops(attribution.b.segments, b)
                less = attribution.comparison.a if fewer else attribution.comparison.b
                rule = "unknown-work" if less.total.unknown_flops > _UNKNOWN * less.wall else "more-work"
                more = int(fewer)
                if rule == "more-work" and _again_there(both(attribution)[more], (a, b)[more], again[more]):
                    rule = "recomputation"
                yield Claim(rule, a, b, host=True)
            elif len(a) != len(b):
                yield Claim("tiny-ops", a, b, host=True)


def _again_in(attribution: Attribution) -> tuple[frozenset[str], frozenset[str]]:
    """The blocks in which A and B do products again: of the run that does more of them, none of the other."""
    rows = [np.flatnonzero(_again(some, np.arange(len(some)))) for some in both(attribution)]
    done = [_flops(some, again) for some, again in zip(both(attribution), rows, strict=True)]
    a, b = (
        frozenset(some.places[row].block for row in again) for some, again in zip(both(attribution), rows, strict=True)
    )
    none: frozenset[str] = frozenset()
    return (a if done[0] > _MORE * done[1] else none), (b if done[1] > _MORE * done[0] else none)


def _again_there(some: Segments, rows: Rows, blocks: frozenset[str]) -> bool:
    """Whether some segments are all of the backward pass of these blocks."""
    places = [some.places[row] for row in rows]
    return all(place.phase == "backward" and place.block in blocks for place in places)


def _together(rows: Sequence[tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    return np.concatenate([NONE, *(a for a, _ in rows)]), np.concatenate([NONE, *(b for _, b in rows)])


def _flops(some: Segments, rows: Rows) -> float:
    return float(np.nansum(some.flops[rows]))


def _more_flops(attribution: Attribution, a: Rows, b: Rows) -> bool:
    flops = _flops(attribution.a.segments, a), _flops(attribution.b.segments, b)
    return max(flops) > _MORE * min(flops)


def layout(attribution: Attribution) -> Iterator[Claim]:
    """Copies and transposes that one run makes between the same ops, and the other one not, or for half the bytes.

    Not copies that are part of something else: of what is made from nothing in each step, of many small ops that take
    slices and put them together, or inside a fused kernel of the other run, which is fusion.
    """
    for hunk in attribution.matching.hunks:
        a, b = attribution.free(hunk.a, hunk.b)
        moved = _copies(attribution.a.segments, a), _copies(attribution.b.segments, b)
        traffic = [float(np.nansum(some.bytes[rows])) for some, rows in zip(both(attribution), moved, strict=True)]
        if max(traffic) < _TWICE * min(traffic) or not max(traffic):
            continue
        less = traffic.index(min(traffic))
        more, other = (attribution.a, attribution.b)[1 - less], (attribution.a, attribution.b)[less]
        copies = moved[1 - less]
        vector, others = (
            rows[are(side.segments, rows, VECTOR)] for side, rows in ((more, (a, b)[1 - less]), (other, (a, b)[less]))
        )
        made = not len(others) and any(not more.segments.signature[row].reads for row in copies)
        few = more.seconds[copies].sum() < _PART * more.seconds[vector].sum()
        small = _launch_bound(more.segments, copies) > 0.5 and len(vector) - len(copies) > _MORE * len(others)
        if not (made or few or small or other.segments.fused[(a, b)[less]].any()):
            yield Claim("layout", *moved, host=True)


def _copies(some: Segments, rows: Rows) -> Rows:
    """Copies, but those into a type of another width, which is no layout."""
    ones = [some.signature[row] for row in rows.tolist()]
    casts = [bool(_CALLED_CAST.search(one.kind)) and one.cost.bytes_read != one.cost.bytes_written for one in ones]
    kept: Rows = rows[are(some, rows, {"movement"}) & ~np.asarray(casts, bool)]
    return kept


def fusion(attribution: Attribution) -> Iterator[Claim]:
    """Vector work in more or in fewer kernels: intermediates that move through memory, or many small launches.

    Between the same neighbours both do the same thing, and all of the difference is the cause's, where launches or
    bytes are half as many again. Elsewhere time is work times a rate, t = W r, with W what differs more, launches or
    bytes: what the work explains, (W_A - W_B) (r_A + r_B) / 2, is claimed, never more than the difference, and the
    rest is left: slower kernels. Of what only one run does between its neighbours, small ops that elsewhere
    stand among large ones, half of them or more, are part of those.
    """
    stretches = list(_vector_work(attribution))
    large, again = _large(attribution, stretches), _again_in(attribution)
    for a, b in stretches:
        sides = attribution.work(attribution.a, a), attribution.work(attribution.b, b)
        work = [(side.launches, side.bytes or 0.0) for side in sides]
        apart = sides[0].seconds - sides[1].seconds
        deciding = int(_ratio(work[0][1], work[1][1]) > _ratio(work[0][0], work[1][0]))
        slower = int(apart < 0)
        # What does more is not what takes longer: then the cause is another one.
        if work[slower][deciding] <= work[1 - slower][deciding] or not apart:
            continue
        more, less = sides[slower], sides[1 - slower]
        launches, traffic = more.launches > _MORE * less.launches, (more.bytes or 0.0) > _MORE * (less.bytes or 0.0)
        small = _launch_bound(both(attribution)[slower], (a, b)[slower]) > 0.5
        if not launches and not traffic:
            continue
        if attribution.matching.alike and not less.ops:
            some, rows = both(attribution)[slower], (a, b)[slower]
            if _again_there(some, rows, again[slower]):
                rule = "recomputation"
            else:
                names = [some.signature[row].name in large[slower] for row in rows]
                rule = "tiny-ops" if small and 2 * sum(names) < len(names) else "more-work"
        else:
            rule = "tiny-ops" if launches and (small or not traffic) else "fusion"
        one, other = work[0][deciding], work[1][deciding]
        part_a = part_b = 1.0
        if one and other and not (attribution.matching.alike and _ratio(one, other) >= _HALF_AGAIN):
            explained = (one - other) / (2 * one) * sides[0].seconds - (other - one) / (2 * other) * sides[1].seconds
            if abs(explained) < abs(apart):  # never more than there is
                part_a, part_b = (one - other) / (2 * one), (other - one) / (2 * other)
        yield Claim(rule, a, b, part_a=part_a, part_b=part_b, host=True)


def _large(attribution: Attribution, stretches: Sequence[tuple[Rows, Rows]]) -> list[set[str]]:
    """The names of ops that only A has, and that only B has, in stretches that are not bound by their launches."""
    found: list[set[str]] = [set(), set()]
    for pair in stretches:
        for side, some in enumerate(both(attribution)):
            if len(pair[side]) and not len(pair[1 - side]) and _launch_bound(some, pair[side]) <= 0.5:
                found[side] |= {some.signature[row].name for row in pair[side]}
    return found


def _vector_work(attribution: Attribution) -> Iterator[tuple[Rows, Rows]]:
    """Unclaimed vector work that has no partner: by stretch, or by phase where the runs speak two languages.

    Two frameworks do not agree to which block a residual sum belongs: only a phase of theirs can be compared.
    """
    together: dict[Hashable, tuple[list[Rows], list[Rows]]] = {}
    for number, hunk in enumerate(attribution.matching.hunks):
        a, b = attribution.free(hunk.a, hunk.b)
        lists = together.setdefault(number if attribution.matching.alike else hunk.phase, ([], []))
        lists[0].append(a[are(attribution.a.segments, a, VECTOR)])
        lists[1].append(b[are(attribution.b.segments, b, VECTOR)])
    for some_a, some_b in together.values():
        a, b = np.concatenate(some_a), np.concatenate(some_b)
        if len(a) or len(b):
            yield a, b


def _launch_bound(some: Segments, rows: Rows) -> float:
    """The share of launches whose op has the launch as its floor."""
    launches = some.launches[rows]
    whole = float(launches.sum())
    return float(launches[some.bound[rows] == BOUNDS.index("overhead")].sum()) / whole if whole else 0.0


def _ratio(a: float, b: float) -> float:
    """By how much two works differ; 1 where there are none."""
    return (max(a, b) / min(a, b) if min(a, b) else math.inf) if a or b else 1.0
