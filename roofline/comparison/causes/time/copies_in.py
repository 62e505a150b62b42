"""Copies from the host to the device: input, or what the program makes on the host in every step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roofline.comparison.arrays import Bools
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim, Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import following, listed, opening
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import are, of_classes, only_one_does
from roofline.comparison.terms import Side
from roofline.costs.kernel_names import crossing

#: What the driver calls memory of the host that it must copy itself before the device can read it.
_PAGEABLE = "Pageable"
#: How to pin memory, by what the program is written with.
_PIN = {"torch": "tensor.pin_memory(), or pin_memory=True of the DataLoader, and .to(device, non_blocking=True)"}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """The copies, and what one run alone does beside one of its own, such as a cast of what was copied."""
    sides = attribution.a, attribution.b
    into = [_into_the_device(side) for side in sides]
    for rows in only_one_does(attribution, "transfer"):
        if all(
            chosen[mine[are(side.segments, mine, {"transfer"})]].all()
            for side, chosen, mine in zip(sides, into, rows, strict=True)
        ):
            yield Claim("copies-in", *rows, host=True)
    yield Claim("copies-in", *attribution.free(*(np.flatnonzero(chosen) for chosen in into)), host=True)


def _into_the_device(side: Side) -> Bools:
    """Which segments are copies that go to the device, as their kernels or else their own names say."""
    some, profile = side.segments, side.analysis.profile
    found = of_classes(some, {"transfer"})
    for row in np.flatnonzero(found).tolist():
        kernels = [profile.kernels[number] for number, _ in profile.ops[some.op[row]].kernels]
        found[row] = all(crossing(name) == "in" for name in kernels or [some.signature[row].name])
    return found


def sentence(facts: Facts) -> str:
    """How many copies, out of which memory."""
    return (
        f"{opening(facts, 'copies from the host')}: {_copies(facts.does_more)}, {facts.less} has "
        f"{_copies(facts.does_less)}{following(facts)}."
    )


def _copies(work: Work) -> str:
    if not work.ops:
        return "none"
    number = round(work.ops)
    return f"{number} {'copy' if number == 1 else 'copies'} ({listed([work.kernel or work.names[0]])})"


def advice(facts: Facts) -> str:
    """Pinned memory where it is not, and else to copy meanwhile or less."""
    run = facts.run_more.profile
    once = "copy once what stays the same from step to step, or make it on the device"
    if _PAGEABLE in facts.does_more.kernel:
        pin = in_words_of(run, _PIN, "with asynchronous copies")
        return f"copy from pinned memory ({pin}); {once}"
    return f"copy the next batch while this one is computed; {once}; copy a narrower type and cast it there"


def _same(facts: Facts) -> bool:
    """Whether both runs copy as often by the same kind of copy, so that only its time differs."""
    one, other = facts.does_more, facts.does_less
    return one.ops == other.ops and one.kernel == other.kernel


CAUSE = Cause(
    name="copies-in",
    claim=claim,
    after=("communication", "loading"),
    before=("synchronisation",),
    sentence=sentence,
    advice=advice,
    label="copies from the host",
    same_work=_same,
)
