"""The same ops in another time, where no roof is known above them: nobody can say which of two reasons it has.

A device without ceilings, an op of unknown work, a product of unknown arithmetic. What such ops attain is not known, so
that a longer time may be the hardware, more work or a wider type as well as other kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.floors import ABOVE_TOLERANCE
from roofline.comparison.arrays import Bools
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import OP, Claim, Work
from roofline.comparison.causes.facts import Facts, printable
from roofline.comparison.causes.ops.precision import SET_FLOAT32
from roofline.comparison.causes.phrases import flop, listed, opening, ops, other_kernels
from roofline.comparison.causes.select import ALL, left, pairs_of
from roofline.comparison.labels import kernel_name
from roofline.comparison.segments import Segments
from roofline.core.framework import framework
from roofline.core.vocabulary import PRODUCTS


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All ops, where a device has no ceilings and the other run another device; else matched ones without a roof."""
    if attribution.comparison.hardware_differs and _without_ceilings(
        attribution.comparison.a, attribution.comparison.b
    ):
        yield Claim("unknown-device", *left(attribution, ALL))
        return
    yield from _of_unknown_work(attribution)
    if attribution.comparison.hardware_differs:
        a, b = pairs_of(attribution, ALL - PRODUCTS)
        open_ = attribution.a.segments.uncosted[a] | attribution.b.segments.uncosted[b]
        open_ &= ~(_dark(attribution.a.segments)[a] | _dark(attribution.b.segments)[b])
        yield Claim("unknown-roof", a[open_], b[open_])
    a, b = pairs_of(attribution, PRODUCTS)
    chosen = np.asarray([_unproven(attribution, *pair) for pair in zip(a.tolist(), b.tolist(), strict=True)], bool)
    if chosen.any():
        yield Claim("unknown-arithmetic", a[chosen], b[chosen])


def _without_ceilings(*runs: Analysis) -> list[str]:
    """The devices of which no ceilings are known."""
    return list(dict.fromkeys(run.device.name for run in runs if not run.device.ceilings))


def _of_unknown_work(attribution: Attribution) -> Iterator[Claim]:
    """The matched ops whose work neither run knows, one claim for each name: each has a cause of its own."""
    a, b = pairs_of(attribution, ALL)
    dark = _dark(attribution.a.segments)[a] & _dark(attribution.b.segments)[b]
    a, b = a[dark], b[dark]
    names = np.asarray([attribution.a.segments.signature[row].name for row in a.tolist()], object)
    for name in dict.fromkeys(names.tolist()):
        yield Claim("unknown-op", a[names == name], b[names == name], about={OP: name})


def _dark(some: Segments) -> Bools:
    """Which segments have no floor as their work is unknown; of products with known FLOPs it is the arithmetic."""
    unknown: Bools = some.uncosted & (np.isnan(some.flops) | np.isnan(some.bytes))
    return unknown


def _unproven(attribution: Attribution, row: int, partner: int) -> bool:
    """Whether two products may run in two kinds of arithmetic: that of one is unknown, and no kernel is the same."""
    some, other = attribution.a.segments, attribution.b.segments
    used = [
        one.precision.arithmetic if one.precision else None for one in (some.signature[row], other.signature[partner])
    ]
    if None not in used or not (some.signature[row].precision or other.signature[partner].precision):
        return False
    kernels = [
        {kernel_name(side.analysis.profile.kernels[number]) for number, _ in side.analysis.profile.ops[op].kernels}
        for side, op in ((attribution.a, some.op[row]), (attribution.b, other.op[partner]))
    ]
    return kernels[0] != kernels[1] if all(kernels) else used[0] != used[1]


def _of_device(facts: Facts) -> str:
    """The times on both devices, and of which of them nothing is known."""
    text = f"{opening(facts, 'the same ops')}: {units.seconds(facts.does_more.seconds)} against "
    text += units.seconds(facts.does_less.seconds)
    unknown = " and of ".join(printable(name) for name in _without_ceilings(facts.run_more, facts.run_less))
    return f"{text}. No ceilings are known of {unknown}, so that hardware and kernels cannot be told apart."


def _of_op(facts: Facts) -> str:
    """Which ops, how long they take, and that nobody knows what they do."""
    names = listed(facts.does_more.unknown or facts.does_more.names)
    text = (
        f"{opening(facts, names)}: {ops(facts.does_more)} in {units.seconds(facts.does_more.seconds)}, in {facts.less} "
    )
    text += f"{ops(facts.does_less)} in {units.seconds(facts.does_less.seconds)}"
    return f"{text}. Their work is unknown, so that nobody can say whether it is more of it or slower."


def _of_roof(facts: Facts) -> str:
    """The times on both devices, and why no roof tells them apart."""
    text = f"{opening(facts, 'the same ops')}: {units.seconds(facts.does_more.seconds)} against "
    text += units.seconds(facts.does_less.seconds)
    return (
        f"{text}. They end sooner than main memory allows, as a cache of unknown speed served them on one device at "
        "least, so that hardware and kernels cannot be told apart."
    )


def _register(facts: Facts) -> str:
    return f"register a formula for {listed(facts.does_more.unknown or facts.does_more.names)} (docs/counting.md)"


def _of_arithmetic(facts: Facts) -> str:
    """The rates of both runs, the kernels, and what a rate proves."""
    rates = [_rate(work) for work in (facts.does_more, facts.does_less)]
    text = f"{opening(facts, 'the same products')}: {flop(facts.does_more)} at {_told(rates[0])}, in {facts.less} at "
    text += (
        f"{_told(rates[1])}. Their arithmetic is not known of both runs, so that it may be precision as well as kernels"
    )
    peak = facts.run_less.device.rate("matrix.fp32")
    if (
        rates[1]
        and peak
        and rates[1] > peak * (1 + max(ABOVE_TOLERANCE, facts.run_less.device.uncertainty("matrix.fp32")))
    ):
        text += f"; in {facts.less} they are faster than fp32 can be"
    if other_kernels(facts):
        text += f". Most of it is in {printable(facts.does_more.kernel)}, in {facts.less} in "
        text += printable(facts.does_less.kernel)
    return f"{text}."


def _rate(work: Work) -> float | None:
    """Of products [FLOP/s]."""
    return work.flops / work.own if work.flops and work.own > 0 else None


def _told(rate: float | None) -> str:
    return "an unknown rate" if rate is None else units.flop_rate(rate)


def _alike(facts: Facts) -> str:
    names = dict.fromkeys(framework(run.profile) for run in (facts.run_more, facts.run_less))
    how = "; ".join(SET_FLOAT32[name] for name in names if name in SET_FLOAT32)
    return f"set in both runs what products of float32 data compute in{f': {how}' if how else ''}, then compare again"


CAUSES = (
    Cause(
        name="unknown-device",
        claim=claim,
        after=("after-others",),
        before=("efficiency",),
        sentence=_of_device,
        advice="give the ceilings of the device (import --device FILE), so that both can be told apart",
        label="hardware or kernels",
        excused_by="others",
    ),
    Cause(
        name="unknown-roof",
        sentence=_of_roof,
        advice="give the speed of the last-level caches (import --device FILE), so that both can be told apart",
        label="hardware or kernels of vector ops",
        excused_by="others",
    ),
    Cause(
        name="unknown-op",
        sentence=_of_op,
        advice=_register,
        label=lambda facts: f"{listed((facts.does_more.unknown or facts.does_more.names)[:1])}, of unknown work",
        same_work=lambda facts: not other_kernels(facts),
        excused_by="others",
    ),
    Cause(
        name="unknown-arithmetic",
        sentence=_of_arithmetic,
        advice=_alike,
        label="precision or kernels of products",
        excused_by="products",
    ),
)
