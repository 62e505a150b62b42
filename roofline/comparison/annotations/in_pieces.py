"""The same ops, each many times as often, on pieces of the same tensors."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Seen, bare_name


def matches(seen: Seen) -> bool:
    """Whether ops that both runs execute, each at least twice as often in one of them, have most of the seconds.

    One of its launches moves fewer bytes than one of the other run. How often a loop executes its ops is not in their
    counts. Ops of two frameworks are not the same.
    """
    more, less = seen.amounts
    if seen.row.kind != "only" or seen.row.times > 1 or more.bytes is None or less.bytes is None:
        return False
    if more.bytes * less.launches >= less.bytes * more.launches:
        return False
    both = {bare_name(change.name) for change in seen.row.ops if change.a and change.b}
    shared = {name: seen.uses[name] for name in both if seen.uses[name].more > seen.uses[name].less}
    pieces = [name for name, use in shared.items() if use.more >= 2 * use.less]
    return len(pieces) == len(shared) > 0 and seen.have_most(pieces)


ANNOTATION = Annotation(
    rule="tiny-ops",
    says="{more} executes the same ops as {less} on smaller pieces, each at least twice as often.",
    matches=matches,
    pairs={"torch": "second/towers-linear-per-sample"},
    advice={"torch": "compute on whole tensors in the place of a loop over pieces of them"},
)
