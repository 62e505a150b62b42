"""Work that only one run does: it was asked for more, as parity says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from roofline import units
from roofline.comparison.arrays import Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import Claim, Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.kept_state import updates
from roofline.comparison.causes.ops.graph_breaks import prevails
from roofline.comparison.causes.phrases import flop, host_and_after, listed, moved, opening, ops
from roofline.comparison.causes.program import in_words_of
from roofline.comparison.causes.select import (
    HALF_AGAIN,
    MORE,
    VECTOR,
    again_in,
    again_there,
    are,
    both,
    flops,
    more_flops,
    of_phase,
    together,
)
from roofline.comparison.conservation import asks_alike, by_index, other_work
from roofline.comparison.segments import Segments
from roofline.core.vocabulary import PRODUCTS

#: From this share of a step on, work that is not known could be the missing one. By choice.
_UNKNOWN = 0.05

#: How to update many tensors at once, by what the program is written with.
_AT_ONCE = {
    "torch": "all tensors at once (torch._foreach_lerp_, or AveragedModel with get_ema_multi_avg_fn)",
    "jax": "inside the jitted step",
    "tensorflow": "inside the compiled step",
    "keras": "let the optimizer do it in the compiled step (use_ema=True)",
    "tf_keras": "let the optimizer do it in the compiled step (use_ema=True)",
}
#: How each asks for no gradients of what is not trained, by what the program is written with.
_FREEZE = {
    "torch": "freeze what is not trained (requires_grad_(False)), inputs too",
    "jax": "differentiate with respect to the trained parameters alone (argnums of jax.grad, jax.lax.stop_gradient)",
    "tensorflow": "ask the tape for gradients of the trained variables alone (tf.stop_gradient before them)",
    "keras": "freeze what is not trained (layer.trainable = False before compile)",
    "tf_keras": "freeze what is not trained (layer.trainable = False before compile)",
}
#: How to take rows by their index, by what the program is written with.
_INDEX = {
    "torch": "index the table (torch.nn.functional.embedding, or table[indices])",
    "jax": "index the table (table[indices])",
    "tensorflow": "index the table (tf.gather)",
    "keras": "index the table (keras.layers.Embedding, or keras.ops.take)",
    "tf_keras": "index the table (layers.Embedding, or tf.gather)",
}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Products that only one run does; for tiny-ops, the same FLOPs in more products.

    And what one run alone keeps up to date from step to step, outside of the optimizer. Beside work that is not known
    products are unknown work, and in blocks that are computed again, recomputation. Other ops that are no products are
    claimed in fusion.py.
    """
    yield from _by_index(attribution)
    yield from _kept_up_to_date(attribution)
    yield from _written_in_full(attribution)
    phases: dict[str, list[tuple[Rows, Rows]]] = {}
    repeated = again_in(attribution)
    for stretch in attribution.matching.unmatched:
        phases.setdefault(stretch.phase, []).append(attribution.free(stretch.a, stretch.b))
    for phase, stretches in phases.items():
        products = [(_products(attribution.a.segments, a), _products(attribution.b.segments, b)) for a, b in stretches]
        difference = other_work(*both(attribution), phase)
        # The same FLOPs may stand elsewhere: one product before a loop, and one in each turn of it.
        if not difference or not more_flops(attribution, *together(products)):
            # With what puts the segments together, where the same neighbours say that it is there for that.
            kept = [
                whole if attribution.matching.alike else part
                for whole, part in zip(stretches, products, strict=True)
                if len(part[0]) != len(part[1])
            ]
            if _slower_in_more(attribution, *together(products), *together(kept)):
                yield Claim("tiny-ops", *together(kept), host=True)
            continue
        for a, b in _within(attribution, products, difference):
            if more_flops(attribution, a, b):
                # Beside work that is not known, nobody can say that the other run does less.
                fewer = flops(attribution.a.segments, a) < flops(attribution.b.segments, b)
                less = attribution.comparison.a if fewer else attribution.comparison.b
                name = "unknown-work" if less.total.unknown_flops > _UNKNOWN * less.wall else "more-work"
                more = int(fewer)
                if name == "more-work" and again_there(both(attribution)[more], (a, b)[more], repeated[more]):
                    name = "recomputation"
                other = name == "more-work" and not asks_alike(*both(attribution), phase)
                yield Claim(name, a, b, host=True, about={"asked": phase} if other else {})
            elif _slower_in_more(attribution, a, b, a, b):
                yield Claim("tiny-ops", a, b, host=True)


def _slower_in_more(attribution: Attribution, one: Rows, other: Rows, a: Rows, b: Rows) -> bool:
    """Whether segments `a` of A and `b` of B take longer where there are more products (`one` of A, `other` of B).

    What takes longer in fewer of them has another cause.
    """
    apart = float(attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum())
    return (len(one) - len(other)) * apart > 0


def _by_index(attribution: Attribution) -> Iterator[Claim]:
    """Products with a one-hot matrix that one run alone does, and what both do between the same neighbours."""
    for stretch in attribution.matching.unmatched:
        whole = attribution.free(stretch.a, stretch.b)
        part = [rows[by_index(some, rows)] for some, rows in zip(both(attribution), whole, strict=True)]
        if bool(len(part[0])) != bool(len(part[1])):
            a, b = whole if attribution.matching.alike else part
            yield Claim("more-work", a, b, host=True, about={"rows": "by index"})


def _kept_up_to_date(attribution: Attribution) -> Iterator[Claim]:
    """Vector work of one run alone that averages weights or keeps statistics, and is no part of model or optimizer.

    In the backward pass such work is there for the optimizer (gradients of what nothing else depends on).
    """
    if not attribution.matching.alike:
        return
    alone = attribution.free(*together([(one.a, one.b) for one in attribution.matching.unmatched]))
    kept = []
    for side, rows in zip((attribution.a, attribution.b), alone, strict=True):
        some = side.segments
        chosen = updates(side.analysis.profile)[some.op[rows]] & are(some, rows, VECTOR)
        kept.append(rows[chosen & ~of_phase(some, "optimizer")[rows]])
    if bool(len(kept[0])) != bool(len(kept[1])):
        for backward, about in ((True, {}), (False, {"kept": "up to date"})):
            a, b = (
                rows[of_phase(side.segments, "backward")[rows] == backward]
                for side, rows in zip((attribution.a, attribution.b), kept, strict=True)
            )
            if len(a) or len(b):
                yield Claim("more-work", a, b, host=True, about=about)


def _written_in_full(attribution: Attribution) -> Iterator[Claim]:
    """Ops of one name and of the same arguments that write far more in one run, which takes longer for it.

    As gradients of tables that are dense in one run and sparse in the other: they are the same op, and not the same
    work.
    """
    if not attribution.one_executor:
        return
    pairs = attribution.matching.pairs_a, attribution.matching.pairs_b
    known = (attribution.left_a[pairs[0]] == 1) & (attribution.left_b[pairs[1]] == 1)
    written = []
    for some, rows in zip(both(attribution), pairs, strict=True):
        signatures = [some.signature[row] for row in rows.tolist()]
        written.append(np.asarray([sum(one.writes) for one in signatures], np.float64))
        known &= are(some, rows, VECTOR) & ~some.fused[rows]
        known &= np.asarray([bool(one.writes) for one in signatures], bool)
    for more, less in ((0, 1), (1, 0)):
        chosen = known & (written[more] > HALF_AGAIN * written[less])
        a, b = pairs[0][chosen], pairs[1][chosen]
        apart = float(attribution.a.seconds[a].sum() - attribution.b.seconds[b].sum())
        if apart * (less - more) > 0:  # what writes less and takes longer has another cause
            told = [units.byte(float(side[chosen].sum())) for side in written]
            yield Claim("more-work", a, b, host=True, about={"written": "ab"[more], "a": told[0], "b": told[1]})


def _products(some: Segments, rows: Rows) -> Rows:
    """Those of some segments that multiply, or may: the bias of a product may be a kernel of its own in its class."""
    return np.asarray(rows[are(some, rows, PRODUCTS) & ~((some.flops[rows] == 0) & (some.model_flops[rows] == 0))])


def _within(
    attribution: Attribution, products: Sequence[tuple[Rows, Rows]], difference: float
) -> Sequence[tuple[Rows, Rows]]:
    """The products of a phase by place, as far as they differ by no more than the `difference` of the phase [FLOP].

    Else some stand at another place in the other run, and nobody can say which: then all of the phase together.
    """
    more = [
        flops(attribution.a.segments, a) - flops(attribution.b.segments, b)
        for a, b in products
        if more_flops(attribution, a, b)
    ]
    same_way = sum(one for one in more if one * difference > 0)
    return products if abs(same_way) <= MORE * abs(difference) else [together(products)]


def sentence(facts: Facts) -> str:
    """FLOPs of both runs, or the ops of the one."""
    if "kept" in facts.about:
        kept = "what is kept from step to step"
        what = f"updating {kept} outside of the optimizer, such as averages of weights"
        if _copied(facts):
            what = f"copying {kept}, such as weights and the optimizer's state"
        return f"{opening(facts, what)}: {_done(facts.does_more)}{host_and_after(facts)}."
    if "rows" in facts.about:
        instead = f", where {facts.less} has {_done(facts.does_less)}" if facts.does_less.ops else ""
        return (
            f"{opening(facts, 'products with one-hot matrices')}: {ops(facts.does_more)}, {flop(facts.does_more)}, for "
            f"rows that an index takes without a product{instead}{host_and_after(facts)}."
        )
    if "written" in facts.about:
        return (
            f"{opening(facts, listed(facts.does_more.names))}: {ops(facts.does_more)} that write "
            f"{facts.about_more} of dense tensors, where {facts.less} writes {facts.about_less} of them in as many"
            f"{host_and_after(facts)}."
        )
    if facts.does_less.ops and not facts.does_more.flops and not facts.does_less.flops:
        return (
            f"{opening(facts, listed(facts.does_more.names))}: {moved(facts.does_more)}, where {facts.less} has "
            f"{_done(facts.does_less)}{host_and_after(facts)}."
        )
    if _no_products(facts):
        text = (
            f"{opening(facts, 'ops that the other run does not do')}: {_done(facts.does_more)}{host_and_after(facts)}"
        )
        return f"{text}{_out_of_sight(facts)}."
    text = (
        f"{opening(facts, 'products')}: {flop(facts.does_more)} against "
        f"{flop(facts.does_less)} in their place{host_and_after(facts)}"
    )
    return f"{text}."


def _out_of_sight(facts: Facts) -> str:
    """That the other run may do it in Python, where its graph is broken more often: such work is in no op."""
    if not prevails(facts.run_less, facts.run_more):
        return ""
    return f", unless {facts.less} does them in the Python that breaks its graph, which is seen in no op"


def _copied(facts: Facts) -> bool:
    """Whether what is kept is copied and not computed."""
    return facts.does_more.classes == {"movement"}


def _done(work: Work) -> str:
    return f"{moved(work)} ({listed(work.names)})"


def advice(facts: Facts) -> str:
    """Not to do it, or to compare equal models, where the claim says that one run is asked for more."""
    if "kept" in facts.about:
        if _copied(facts):
            return "copy it every few steps, or only what is needed of it, into tensors that are there already"
        every = "update it every few steps"
        return f"{every}, or {in_words_of(facts.run_more.profile, _AT_ONCE, 'in few large ops')}"
    if "rows" in facts.about:
        return in_words_of(facts.run_more.profile, _INDEX, "take the rows by their index")
    if "written" in facts.about:
        return "write no more than the step needs (of embeddings: sparse gradients, where the optimizer takes them)"
    if facts.does_less.ops and not facts.does_more.flops and not facts.does_less.flops:
        return f"take the cheaper of the two ({listed(facts.does_less.names[:1])}) where it gives what is needed"
    if _no_products(facts):
        if _out_of_sight(facts):
            return f"look what {facts.less} does in their place between its graphs; if nothing, leave them out"
        return "leave them out where they are not needed"
    if facts.about.get("asked") == "backward" and not facts.does_less.flops:
        freeze = in_words_of(facts.run_more.profile, _FREEZE, "take gradients of the trained parameters alone")
        return f"no gradients are asked for there in the other run: {freeze}, or compare steps that train the same"
    if "asked" in facts.about:
        return "the runs do not ask for the same work: compare equal models first"
    return "both programs ask for these products, and the other run left them out: see whether they are needed"


def _no_products(facts: Facts) -> bool:
    return not facts.does_less.ops and not facts.does_more.flops


CAUSE = Cause(
    name="more-work",
    claim=claim,
    after=("padding",),
    sentence=sentence,
    advice=advice,
    label="work that the other does not do",
    two_signs=True,
)
