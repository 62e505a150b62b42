"""Copies and transposes that one run makes between the same ops, and the other one not, or for half the bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Bools
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.compiled import taken_apart
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, listed, moved, opening, ops
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import (
    MORE,
    VECTOR,
    are,
    both,
    called_a_cast,
    casts_inside,
    of_classes,
    piece_by_piece,
    small,
)
from roofline.comparison.segments import Segments

#: What a tensor is whose layout nothing is said of, and what sentences call the formats.
_PLAIN = "contiguous"
_TOLD = {"contiguous": "contiguous (NCHW)", "channels_last": "channels_last (NHWC)"}
#: How each keeps one layout, by what the program is written with.
_KEEP = {
    "torch": "keep one layout from layer to layer (all NCHW or all channels_last, no .contiguous() in between)",
    "jax": "keep one order of axes from layer to layer (dimension_numbers of einsum and convolutions take any)",
    "tensorflow": "keep one data_format from layer to layer (on a CPU NHWC)",
    "keras": "keep one data_format from layer to layer, and permute as little as possible",
    "tf_keras": "keep one data_format from layer to layer, and permute as little as possible",
}
#: How much more traffic of copies is another layout. By choice: one copy more among several is none.
_TWICE = 2.0
#: From this share of a stretch's vector work on, copies are a cause of their own. By choice.
_PART = 0.2


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Those copies, and the ops that both runs have, in another memory format.

    Not copies that are part of something else: of what is made from nothing in each step, of many small ops that take
    slices and put them together, or inside a fused kernel of the other run, which is fusion. Nor small ones between the
    programs of a step that the other run has in fewer.
    """
    yield from _formats(attribution)
    runs = attribution.comparison.a, attribution.comparison.b
    copies_a, copies_b = (_copies(some) for some in both(attribution))
    for stretch in attribution.matching.unmatched:
        a, b = attribution.free(stretch.a, stretch.b)
        copied = a[copies_a[a]], b[copies_b[b]]
        traffic = [float(np.nansum(some.bytes[rows])) for some, rows in zip(both(attribution), copied, strict=True)]
        if max(traffic) < _TWICE * min(traffic) or not max(traffic):
            continue
        less = traffic.index(min(traffic))
        more, other = (attribution.a, attribution.b)[1 - less], (attribution.a, attribution.b)[less]
        copies = copied[1 - less]
        vector, others = (
            rows[are(side.segments, rows, VECTOR)] for side, rows in ((more, (a, b)[1 - less]), (other, (a, b)[less]))
        )
        made = not len(others) and any(not more.segments.signature[row].reads for row in copies)
        few = more.seconds[copies].sum() < _PART * more.seconds[vector].sum()
        tiny = small(more.segments, copies)
        among = tiny and len(vector) - len(copies) > MORE * len(others)
        # What only stands between two programs is there for them, and one program of both does not make it.
        between = tiny and taken_apart(*runs[:: 1 if less else -1])
        # What is taken apart and put together again around many launches is their number, whatever the pieces are.
        work = [attribution.work(more, vector), attribution.work(other, others)]
        launches, moved_by = [one.launches for one in work], [one.bytes or 0.0 for one in work]
        pieces = len(others) and piece_by_piece(launches, moved_by)
        if not (made or few or among or between or pieces or other.segments.fused[(a, b)[less]].any()):
            yield Claim("layout", *copied, host=True)


def _formats(attribution: Attribution) -> Iterator[Claim]:
    """The matched ops of which one run lays the tensors out in another way."""
    pairs = attribution.matching
    one, other = (
        np.asarray([some.signature[row].layout for row in rows.tolist()], object)
        for some, rows in zip(both(attribution), (pairs.pairs_a, pairs.pairs_b), strict=True)
    )
    differ = one != other
    if differ.any():
        a, b = (next(filter(None, each[differ].tolist()), _PLAIN) for each in (one, other))
        if a != b:
            about = {"a": a, "b": b}
            yield Claim("layout", pairs.pairs_a[differ], pairs.pairs_b[differ], about=about)


def _copies(some: Segments) -> Bools:
    """Which segments are copies, but those into a type of another width, or in a kernel that casts: no layout."""
    ones = some.signature
    casts = [called_a_cast(one) and one.cost.bytes_read != one.cost.bytes_written for one in ones]
    copies: Bools = of_classes(some, {"movement"}) & ~np.asarray(casts, bool) & ~casts_inside(some)
    return copies


def sentence(facts: Facts) -> str:
    """How many copies, their bytes and what they are called; or in which format either run has its tensors."""
    if facts.about_more:
        text = opening(facts, f"the same ops on {_TOLD.get(facts.about_more, facts.about_more)} tensors")
        names = f"{ops(facts.does_more)} ({listed(facts.does_more.names)})"
        return f"{text}: {names}, where those of {facts.less} are {_TOLD.get(facts.about_less, facts.about_less)}."
    text = (
        f"{opening(facts, 'copies and transposes')} that {facts.less} does not make: {moved(facts.does_more)} "
        f"({listed(facts.does_more.names)}){host_and_after(facts)}"
    )
    return f"{text}."


def advice(facts: Facts) -> str:
    """The other format; or one format throughout."""
    if facts.about_more:
        if facts.about_less == _PLAIN:
            return "leave the tensors of model and input contiguous, without memory_format=torch.channels_last"
        return "keep model and input in channels_last (.to(memory_format=torch.channels_last), once, both of them)"
    keep = in_words_of(facts.run_more.profile, _KEEP, "keep one order of axes from layer to layer")
    return f"copy less: {keep}, and write into a buffer instead of concatenating or cloning"


def label(facts: Facts) -> str:
    """Both formats, or copies."""
    if facts.about_more:
        return f"memory format ({facts.about_more.replace('_', ' ')} against {facts.about_less.replace('_', ' ')})"
    return "copies and transposes"


CAUSE = Cause(
    name="layout",
    compilable=True,  # a compiler has what is copied read in another order
    claim=claim,
    after=("precision",),  # a copy into another type is there for its precision
    sentence=sentence,
    advice=advice,
    label=label,
    two_signs=True,
)
