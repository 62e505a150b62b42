"""Vector work in more or in fewer kernels: intermediates that move through memory, or many small launches."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from roofline import units
from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim, Work
from roofline.comparison.causes.compiled import in_pieces
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, kinds, listed, moved, opening, ops, size
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import (
    HALF_AGAIN,
    MORE,
    VECTOR,
    again_in,
    again_there,
    are,
    both,
    mostly,
    piece_by_piece,
    ratio,
    small,
)
from roofline.core.executor import compiles
from roofline.core.switch import COMPILED_AWAY

#: From this share of small ops on whose like stand among large ones, they are part of those. By choice: half of them.
_AMONG_LARGE = 0.5


def claim(attribution: Attribution) -> Iterator[Claim]:
    """As fusion what moves more, and as tiny-ops what is launched more often.

    Between the same neighbours both do the same thing, and all of the difference is the cause's, where launches or
    bytes are half as many again: tiny-ops where the launches grow far more than the bytes, or all are small. Elsewhere
    time is work times a rate, t = W r, with W what differs more, launches or bytes: what the work explains,
    (W_A - W_B) (r_A + r_B) / 2, is claimed, never more than the difference, and the rest is left: slower kernels. Of
    what only one run does between its neighbours, small ops that elsewhere stand among large ones, half of them or
    more, are part of those.
    """
    stretches = list(_vector_work(attribution))
    large, repeated = _large(attribution, stretches), again_in(attribution)
    runs = attribution.comparison.a, attribution.comparison.b
    for a, b in stretches:
        sides = _left(attribution, a, b)
        work = [(side.launches, side.bytes or 0.0) for side in sides]
        apart = sides[0].seconds - sides[1].seconds
        deciding = int(ratio(work[0][1], work[1][1]) > ratio(work[0][0], work[1][0]))
        slower = int(apart < 0)
        # What does more is not what takes longer: then the cause is another one.
        if work[slower][deciding] <= work[1 - slower][deciding] or not apart:
            continue
        more, less = sides[slower], sides[1 - slower]
        launches, traffic = more.launches > MORE * less.launches, (more.bytes or 0.0) > MORE * (less.bytes or 0.0)
        tiny = small(both(attribution)[slower], (a, b)[slower])
        if not launches and not traffic:
            continue
        side, done = (attribution.a, attribution.b)[slower], (a, b)[slower]
        if mostly(side, done, "other"):  # a sort is not taken into its neighbours by any compiler
            yield Claim("more-work", a, b, host=True)
            continue
        single = not (less.fused or more.fused) and 0 < more.launches <= less.launches
        if attribution.matching.alike and single and ratio(work[0][1], work[1][1]) >= HALF_AGAIN:
            # As many ops that move more are other ones, and not the same in pieces: nothing would take them together.
            yield Claim("more-work", a, b, host=True)
            continue
        if attribution.matching.alike and not less.ops:
            some, rows = both(attribution)[slower], (a, b)[slower]
            if again_there(some, rows, repeated[slower]):
                name = "recomputation"
            elif in_pieces(*runs[:: 1 if slower == 0 else -1]):
                name = "fusion"  # op by op nothing is taken together: the other run may do it within another op
            else:
                names = [some.signature[row].name in large[slower] for row in rows]
                name = "tiny-ops" if tiny and sum(names) < _AMONG_LARGE * len(names) else "more-work"
        else:
            many = piece_by_piece([one for one, _ in work], [moved for _, moved in work])
            name = "tiny-ops" if launches and (tiny or many or not traffic) else "fusion"
        one, other = work[0][deciding], work[1][deciding]
        part_a = part_b = 1.0
        if one and other and not (attribution.matching.alike and ratio(one, other) >= HALF_AGAIN):
            explained = (one - other) / (2 * one) * sides[0].seconds - (other - one) / (2 * other) * sides[1].seconds
            if abs(explained) < abs(apart):  # never more than there is
                part_a, part_b = (one - other) / (2 * one), (other - one) / (2 * other)
        yield Claim(name, a, b, part_a=part_a, part_b=part_b, host=True)


def _left(attribution: Attribution, a: Rows, b: Rows) -> tuple[Work, Work]:
    """What both runs do in some segments, without what of them is claimed: what a wider type moves and takes more."""
    found = []
    for side, rows, left in ((attribution.a, a, attribution.left_a), (attribution.b, b, attribution.left_b)):
        work, moved = attribution.work(side, rows), side.segments.bytes[rows] * left[rows]
        moves = None if work.bytes is None else float(np.nansum(moved))
        found.append(replace(work, seconds=float((side.seconds[rows] * left[rows]).sum()), bytes=moves))
    return found[0], found[1]


def _large(attribution: Attribution, stretches: Sequence[tuple[Rows, Rows]]) -> list[set[str]]:
    """The names of ops that only A has, and that only B has, in stretches that are not bound by their launches."""
    found: list[set[str]] = [set(), set()]
    for pair in stretches:
        for side, some in enumerate(both(attribution)):
            if len(pair[side]) and not len(pair[1 - side]) and not small(some, pair[side]):
                found[side] |= {some.signature[row].name for row in pair[side]}
    return found


def _vector_work(attribution: Attribution) -> Iterator[tuple[Rows, Rows]]:
    """Unclaimed vector work that has no partner: by stretch, or by phase where the runs speak two languages.

    Two frameworks do not agree to which block a residual sum belongs: only a phase of theirs can be compared.
    """
    together: dict[Hashable, tuple[list[Rows], list[Rows]]] = {}
    for number, stretch in enumerate(attribution.matching.unmatched):
        a, b = attribution.free(stretch.a, stretch.b)
        lists = together.setdefault(number if attribution.matching.alike else stretch.phase, ([], []))
        lists[0].append(a[are(attribution.a.segments, a, VECTOR)])
        lists[1].append(b[are(attribution.b.segments, b, VECTOR)])
    for some_a, some_b in together.values():
        a, b = np.concatenate(some_a), np.concatenate(some_b)
        if len(a) or len(b):
            yield a, b


def sentence(facts: Facts) -> str:
    """Launches, bytes and names of both runs, and how many of the one are fused."""
    text = (
        f"{opening(facts, kinds(facts))}: {moved(facts.does_more)} through memory ({listed(facts.does_more.names)}), "
        f"where {facts.less} has {moved(facts.does_less)}"
    )
    if facts.does_less.names:
        text += f" ({listed(facts.does_less.names)})"
    if facts.does_less.fused >= 1:
        text += f", {units.count(round(facts.does_less.fused))} of them fused"
    return f"{text}{host_and_after(facts)}."


#: How a program is compiled, by what it is written with.
_COMPILED = {
    "torch": "torch.compile",
    "jax": "jax.jit around the whole step",
    "tensorflow": "tf.function(jit_compile=True)",
    "keras": "compile(jit_compile=True)",
    "tf_keras": "compile(jit_compile=True)",
}


def advice(facts: Facts) -> str:
    """The compiler of what the program is written with, where it was not compiled; or one op for all."""
    own = "use one op that does all of it, where the framework has one"
    if compiles(facts.run_more.profile):
        return f"write them so that the compiler takes them together, or {own}"
    how = in_words_of(facts.run_more.profile, _COMPILED, "torch.compile, jit")
    return f"let a compiler fuse them ({how}), or {own}"


def label(facts: Facts) -> str:
    """What kind of ops, with bytes or launches, whichever are more."""
    more, less = facts.does_more, facts.does_less
    if (more.bytes or 0.0) <= (less.bytes or 0.0):
        return f"{kinds(facts)} ({ops(more)} against {ops(less)})"
    return f"{kinds(facts)} ({size(more)} moved against {size(less)})"


CAUSE = Cause(
    name="fusion",
    claim=claim,
    after=("layout",),
    sentence=sentence,
    advice=advice,
    label=label,
    two_signs=True,
    compilable=True,
    proved_by=(COMPILED_AWAY,),
)
