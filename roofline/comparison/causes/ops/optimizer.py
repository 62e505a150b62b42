"""The optimizer's update: one fused kernel, or many ops."""

from __future__ import annotations

from collections.abc import Iterator

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import host_and_after, moved, opening
from roofline.comparison.causes.select import HALF_AGAIN, of_phase
from roofline.core.framework import written_in

#: What to write, by what the program is written in.
_WRITTEN = {
    "torch": "use the fused optimizer (fused=True), or compile the update",
    "keras": "compile the training step (jit_compile), so that the update is a few kernels",
    "tf_keras": "compile the training step (jit_compile), so that the update is a few kernels",
    "jax": "update inside the jitted step, all parameters at once",
}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """All of the phase. The same ops in both runs are no other update, nor as many that move as much."""
    if not any(stretch.phase == "optimizer" for stretch in attribution.matching.unmatched):
        return
    rows = attribution.rows(lambda some: of_phase(some, "optimizer"))
    work = [attribution.work(side, some) for side, some in zip((attribution.a, attribution.b), rows, strict=True)]
    launches, traffic = [one.launches for one in work], [one.bytes or 0.0 for one in work]
    if any(max(each) >= HALF_AGAIN * min(each) for each in (launches, traffic)):
        yield Claim("optimizer", *rows, host=True)


def advice(facts: Facts) -> str:
    """What makes one kernel of it, in the words of what the program is written with; to move less, where that is it."""
    more, less = facts.does_more, facts.does_less
    moves_more = more.bytes and less.bytes and more.bytes > HALF_AGAIN * less.bytes
    if moves_more and more.launches < HALF_AGAIN * less.launches:
        return (
            "move less: of large tables update the rows that changed (sparse gradients, IndexedSlices), in the type "
            "that the other run keeps"
        )
    if more.launches * HALF_AGAIN < less.launches:  # in few kernels already
        return "see what its kernels attain (roofline show --by kernel), and with how many threads they run"
    return _WRITTEN.get(written_in(facts.run_more.profile), "compile the update, or let one op do all of it")


def sentence(facts: Facts) -> str:
    """Launches and bytes of both updates."""
    text = f"{opening(facts, 'the optimizer')}: {moved(facts.does_more)} against {moved(facts.does_less)}"
    return f"{text}{host_and_after(facts)}."


CAUSE = Cause(
    name="optimizer",
    claim=claim,
    after=("data-input",),
    sentence=sentence,
    advice=advice,
    label="the optimizer",
    proved_by=("optimizer",),
)
