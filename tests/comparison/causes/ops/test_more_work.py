"""Work that only one run does. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import handmade
import pytest
from explained import before, findings, found, near, only
from msgspec.structs import replace
from synthetic import (
    GELU,
    LAYER,
    LINEAR,
    Row,
    step,
)

from roofline.comparison.causes.kept_state import updates
from roofline.comparison.terms import compare
from roofline.core.cost import by_index, unknown
from roofline.core.executor import AWAY
from roofline.core.schema import Profile
from roofline.core.vocabulary import OpClass


def test_products_that_only_one_run_does() -> None:
    found = only(step((*LAYER, LINEAR) * 4), step())
    assert found.rule == "more-work"
    assert found.seconds == near(4 * 310)


@pytest.mark.parametrize(
    ("framework", "advised"),
    [
        ("torch", "requires_grad_(False)"),
        ("jax", "argnums of jax.grad"),
        ("another", "of the trained parameters alone"),
    ],
)
def test_gradients_that_only_one_run_asks_for(framework: str, advised: str) -> None:
    gradient = change(LINEAR, name="aten::mm", phase="backward")
    of = {"mode": "train", "framework": framework}
    frozen = step((*LAYER * 4, *(gradient,) * 2), **of)
    told = found(step((*LAYER * 4, *(gradient,) * 2, *(change(gradient, block="FFN"),) * 4), **of), frozen)
    assert told["more-work"].seconds == near(4 * 310)
    assert advised in told["more-work"].advice


def test_phases_that_one_run_does_not_tell_apart_are_no_work_of_one_run() -> None:
    """The same 8 products, 4 of them in the backward pass of one run; in the other all are 200 µs longer: 12 * 200."""
    layers, gradient = (LINEAR,) * 8, change(LINEAR, name="aten::mm", phase="backward")
    told = step((*layers, *(gradient,) * 4), mode="train")
    one = change(LINEAR, own=LINEAR.own + 200)
    all_in_one = step((*(one,) * 8, *(change(one, name="aten::mm"),) * 4), mode="train")
    untold = replace(all_in_one, flags=("trains", "phases-unresolved"))
    assert "more-work" in found(all_in_one, told)  # as its phases say
    findings = found(untold, told)
    assert "more-work" not in findings
    comparison = compare(untold, told)
    assert {term.phase for term in comparison.work.terms} - {None} == {"step"}
    assert sum(finding.seconds for finding in findings.values()) == near(12 * 200)


def test_what_is_made_from_nothing_in_each_step_is_more_work() -> None:
    fill = Row("aten::full", "movement", 80, bytes=0.8e6)
    mask = (fill, Row("aten::triu", "movement", 200, bytes=2e6), Row("aten::_to_copy", "movement", 60, bytes=1e6))
    told = found(reading_nothing(step(before("aten::sdpa", *mask)), fill.name), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"more-work": near(4 * (340 + 30))}


def reading_nothing(profile: Profile, name: str) -> Profile:
    """The run, with ops of one name that make their result from nothing."""
    table = tuple(replace(one, reads=()) if one.name == name else one for one in profile.signatures)
    ops = tuple(op if table[op.signature].reads else replace(op, reads=()) for op in profile.ops)
    return replace(profile, signatures=table, ops=ops)


def test_products_that_a_loop_does_are_no_more_work() -> None:
    # One product of 80 MFLOP before the layers, or one of 20 MFLOP in each of them
    whole = change(LINEAR, name="aten::mm", own=900, flops=80e6)
    each = change(LINEAR, name="aten::mm", own=300, flops=20e6)
    told = found(step(before(GELU.name, each)), step((whole, *LAYER * 4)))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"tiny-ops": near(4 * 310 - 910)}


@pytest.mark.parametrize(("framework", "advised"), [("torch", "functional.embedding"), ("jax", "table[indices]")])
def test_products_with_a_one_hot_matrix(framework: str, advised: str) -> None:
    """No FLOPs are asked for in either run; one picks rows by a product of 900 µs, the other by an index, in 20 µs."""
    product = change(LINEAR, name="aten::mm", own=900, flops=80e6)
    rows = Row("aten::index", "embedding", 20, bytes=2e5)
    by_product = step(before(GELU.name, product), framework=framework)
    table = tuple(
        replace(one, cost=by_index(one.cost)) if one.name == product.name else one for one in by_product.signatures
    )
    told = found(replace(by_product, signatures=table), step(before(GELU.name, rows), framework=framework))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"more-work": near(4 * (900 - 20))}
    assert "one-hot matrices: 4 launches, 320 MFLOP, for rows that an index takes" in told["more-work"].text
    assert "(aten::index)" in told["more-work"].text
    alone = found(replace(by_product, signatures=table), step(framework=framework))["more-work"].text
    assert "where" not in alone  # the other run does nothing in its place, and nobody says that it does
    assert advised in told["more-work"].advice


def averaging(profile: Profile, name: str) -> Profile:
    """The run, in which ops of one name write in place into what no op of the step has made, each into its own."""
    table = tuple(replace(one, inplace=True) if one.name == name else one for one in profile.signatures)
    ops = tuple(
        replace(op, reads=(9000 + n,), writes=(9000 + n,)) if table[op.signature].name == name else op
        for n, op in enumerate(profile.ops)
    )
    return replace(profile, signatures=table, ops=ops)


def test_an_average_of_weights_is_no_part_of_the_forward_pass() -> None:
    """20 small ops, 15 µs and 10 of dispatch each, that update what was there, against small ops on activations."""
    small = (Row("aten::lerp_", "pointwise", 15, bytes=0.001e6, block="head"),) * 20
    one = only(averaging(step((*LAYER * 4, *small)), "aten::lerp_"), step())
    assert (one.rule, one.seconds) == ("more-work", near(20 * 25))
    assert "averages of weights: 20 launches" in one.text
    assert "every few steps" in one.advice
    assert only(step((*LAYER * 4, *small)), step()).rule == "tiny-ops"


def test_copies_of_what_is_kept_are_no_averages() -> None:
    """20 copies into what was there, 15 µs and 10 of dispatch each, as of a checkpoint in memory."""
    copies = (Row("aten::copy_", "movement", 15, bytes=0.001e6, block="head"),) * 20
    one = only(averaging(step((*LAYER * 4, *copies)), "aten::copy_"), step())
    assert (one.rule, one.seconds) == ("more-work", near(20 * 25))
    assert "more on copying what is kept from step to step, such as weights and the optimizer's state" in one.text
    assert one.advice.startswith("copy it every few steps")


def test_what_is_told_of_weights_after_their_update_is_not_kept() -> None:
    """After the optimizer a new tensor made of weights that nothing reads: one element by element, one of bins."""
    adam = Row("aten::_fused_adam_", "optimizer", 300, bytes=4e6, phase="optimizer")

    def kept(name: str, op_class: OpClass) -> bool:
        profile = step((*LAYER, adam, Row(name, op_class, 50, bytes=1e6)))
        weight = replace(profile.ops[-2], reads=(9000,), writes=(9000,))
        made = replace(profile.ops[-1], reads=(9000,), writes=(9001,))
        return bool(updates(replace(profile, ops=(*profile.ops[:-2], weight, made)))[-1])

    assert kept("aten::lerp", "pointwise")
    assert not kept("aten::histc", "other")


def test_a_sort_is_named_and_not_to_be_fused() -> None:
    sort, topk = Row("aten::sort", "other", 400, bytes=2e6), Row("aten::topk", "other", 100, bytes=1e6)
    one = only(step((*LAYER * 4, sort)), step((*LAYER * 4, topk)))
    assert (one.rule, one.seconds) == ("more-work", near(300))
    assert "aten::sort" in one.text
    assert "aten::topk" in one.advice


def writing(profile: Profile, name: str, size: float) -> Profile:
    """The run, with ops of one name that write so many bytes, for all that is known of their work."""
    table = tuple(
        replace(one, writes=(size,), cost=unknown("no formula")) if one.name == name else one
        for one in profile.signatures
    )
    return replace(profile, signatures=table)


def test_the_same_op_that_writes_more_is_no_slower_kernel() -> None:
    """4 gradients of tables, 400 µs each where they write the 6.4 MB of the table, 100 where they write few rows."""
    grad = Row("aten::_embedding_bag_backward", "other", 400, bytes=0.1e6, phase="backward")
    dense = writing(step((*LAYER, grad) * 4), grad.name, 6.4e6)
    few = (*LAYER, change(grad, own=100)) * 4
    one = only(dense, writing(step(few), grad.name, 0.0))
    assert (one.rule, one.seconds) == ("more-work", near(4 * 300))
    assert "4 launches that write 25.6 MB of dense tensors, where" in one.text
    assert "writes 0 B of them in as many" in one.text
    assert only(dense, writing(step(few), grad.name, 6.4e6)).rule == "unknown-op"
    # What writes less and takes longer is slower for another cause
    assert only(writing(step((*LAYER, grad) * 4), grad.name, 0.0), writing(step(few), grad.name, 6.4e6)).rule == (
        "unknown-op"
    )


def test_bytes_that_are_written_are_told_of_these_ops_alone() -> None:
    """Beside the four gradients one run does an op more, in each of four layers: 4 x 300 us of more work, too."""
    grad = Row("aten::_embedding_bag_backward", "other", 400, bytes=0.1e6, phase="backward")
    average = Row("aten::lerp_", "pointwise", 300, bytes=0.1e6)
    dense = writing(step((*LAYER, average, grad) * 4), grad.name, 6.4e6)
    few = writing(step((*LAYER, change(grad, own=100)) * 4), grad.name, 0.0)
    told = [each for each in findings(dense, few) if each.rule == "more-work"]
    [written] = [each for each in told if "4 launches that write 25.6 MB" in each.text]
    assert written.seconds == near(4 * 300)
    assert "aten::lerp_" not in written.text
    assert [each for each in told if "aten::lerp_" in each.text]


def awake(profile: Profile) -> Profile:
    """The step of a host whose thread was on a core all the while."""
    return replace(profile, conditions={**profile.conditions, AWAY: 0.0})


def test_python_that_leads_to_the_ops_of_one_run_goes_with_them() -> None:
    """An op takes the host 10 us, and up to 100 are usual; 400 lead to averages, of which one run alone has 40."""
    usual = tuple(change(row, host=(0.0, 10.0 * row.launches)) for row in LAYER * 4)
    first, other = (Row("aten::lerp_", "pointwise", 20, bytes=0.1e6, host=(0.0, before)) for before in (400.0, 10.0))
    averaged = (*usual, first, *(other,) * 39)
    told = found(awake(step(averaged)), awake(step(usual)))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"more-work": near(40 * 20 + 400 + 39 * 10)}
    # A host that may have slept may have done so there: no more than is usual.
    asleep = found(step(averaged), step(usual))
    assert asleep["more-work"].seconds == near(40 * 20 + 100 + 39 * 10)
    # And where the other host does as much before something else, it is nothing that leads to these.
    late = (change(usual[0], host=(0.0, 10.0 + 300.0)), *usual[1:])
    moved = found(awake(step(averaged)), awake(step(late)))
    assert moved["more-work"].seconds == near(40 * 20 + 100 + 39 * 10 + 90)
    # Beside a queue the time before an op is not known to lead to it, and no second is told twice.
    beside = replace(handmade.device(), kind="cuda")
    queued = found(*(replace(awake(step(rows)), device=beside) for rows in (averaged, usual)))
    assert "host-bound" not in queued
