"""The same work in another type, and its casts. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import COPY, before, found, near, only
from msgspec.structs import replace
from synthetic import (
    GELU,
    LAYER,
    NORM,
    UNFUSED_NORM,
    Row,
    instead,
    step,
)

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.terms import compare
from roofline.core.schema import Profile

TO_DOUBLE = Row("aten::_to_copy", "movement", 40, bytes=0.3e6, block="FFN", dtype="fp64")
DOUBLE = change(GELU, own=120, bytes=0.4e6, dtype="fp64")


def test_another_precision() -> None:
    fast = tuple(
        change(row, own=row.own / 2, arithmetic="tf32") if row.name == "aten::addmm" else row for row in LAYER * 4
    )
    found = only(step(), step(fast, precision="tf32"))
    assert found.rule == "precision"
    assert found.seconds == near(12 * 150)
    assert "fp32 where torch (tf32) computes in tf32" in found.text


def test_what_most_products_compute_in_is_told_of_them() -> None:
    """The first product of A is a small one in fp32, the other twelve are in bf16; all of B is in TF32 and slower."""
    small = Row("aten::bmm", "contraction", 4, flops=1e3, bytes=1e3)
    mixed = tuple(change(row, arithmetic="bf16") if row.name == "aten::addmm" else row for row in LAYER * 4)
    wide = tuple(change(row, own=2 * row.own, arithmetic="tf32") if row.flops else row for row in LAYER * 4)
    told = found(step((small, *mixed)), step((change(small, arithmetic="tf32"), *wide)))["precision"]
    assert "tf32 where torch (A) computes in bf16" in told.text


def test_the_type_of_its_input_is_not_what_a_generated_kernel_computes_in() -> None:
    """Of a trace nothing is known of it but its name, in which it casts; the ops that it replaces are in fp32."""
    kernel = Row("triton_red_fused__to_copy_mean_pow_rsqrt_0", "normalisation", 30, bytes=0.2e6, dtype="bf16")
    told = found(step(instead(LAYER * 4, NORM.name, UNFUSED_NORM)), step(instead(LAYER * 4, NORM.name, (kernel,))))
    assert "precision" not in told
    assert sum(one.seconds for one in told.values() if one.rule == "fusion") > 0


def test_work_in_another_floating_type() -> None:
    cast = Row("aten::_to_copy", "movement", 40, bytes=0.3e6, block="FFN", dtype="fp64")
    wide = (cast, change(GELU, own=120, bytes=0.4e6, dtype="fp64"), change(cast, dtype="fp32"))
    found = only(step(instead(LAYER * 4, "aten::gelu", wide)), step())
    assert found.rule == "precision"
    assert found.seconds == near(4 * (40 + 120 + 40 - 50 + 2 * 10))


def test_a_wider_type_that_is_faster_is_not_the_cause() -> None:
    # In fp64, and in half the time: what takes longer are ten small ops in fp32
    many = (Row("aten::mul", "pointwise", 30, bytes=0.1e6, block="FFN"),) * 10
    told = found(step(instead(LAYER * 4, GELU.name, many)), step(instead(LAYER * 4, GELU.name, (DOUBLE,))))
    assert "precision" not in told


def test_copies_beside_another_type_are_another_cause() -> None:
    rows = (TO_DOUBLE, DOUBLE, change(TO_DOUBLE, dtype="fp32"), COPY, COPY)
    told = found(step(instead(LAYER * 4, GELU.name, rows)), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "precision": near(4 * (40 + 120 + 40 - 50 + 20)),
        "layout": near(4 * 220),
    }


def test_casts_between_ops_that_both_runs_have_belong_to_the_type() -> None:
    rows = tuple(
        one
        for row in LAYER * 4
        for one in (
            (TO_DOUBLE, DOUBLE) if row.name == GELU.name else (TO_DOUBLE, row) if row.name == NORM.name else (row,)
        )
    )
    told = found(step(rows), step())
    assert {rule: finding.seconds for rule, finding in told.items()} == {"precision": near(4 * (40 + 70 + 10 + 50))}


def test_a_wider_type_beside_small_ops_of_another_block_is_a_cause_of_its_own() -> None:
    # Between the last linear op of a layer and the first of the next: A's GELU in fp64, with a cast, in the FFN; B's
    # twenty small ops before attention. What takes longer there, in all, is B.
    small = (Row("aten::mul", "pointwise", 20, bytes=0.01e6, block="attention"),) * 20
    a = step(instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE)))
    b = step(instead(LAYER * 4, GELU.name, (GELU, *small)))
    told = found(a, b)
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "tiny-ops": near(-4 * 20 * 30),
        "precision": near(4 * (40 + 120 - 50 + 10)),
    }


def test_what_one_run_puts_in_another_block_is_no_work_of_its_own() -> None:
    """A's GELU in fp64 and its product stand in the FFN; B has the GELU there, and the product in another block."""
    product = Row("aten::mul", "pointwise", 60, bytes=0.2e6, block="FFN")
    wide = change(product, own=130, bytes=0.4e6, dtype="fp64")
    a = step(instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE, wide)))
    b = step(instead(LAYER * 4, GELU.name, (GELU, change(product, block="head"))))
    told = found(a, b)
    assert {rule: finding.seconds for rule, finding in told.items()} == {
        "precision": near(4 * (40 + 120 + 130 - 50 - 60 + 10))
    }


def test_runs_in_two_types_still_dispatch_the_same_ops() -> None:
    a, b = step(), step(tuple(change(row, dtype="fp64") for row in LAYER * 4))
    assert Attribution(compare(a, b)).matching.alike


def test_a_wider_type_in_one_of_two_frameworks() -> None:
    # 4 x 400 us of a loss in fp64 under names that the other framework does not have: in fp32 they would move half.
    wide = (Row("hlo.loss", "pointwise", 400, bytes=1.6e6, block="FFN", dtype="fp64"),)
    theirs = tuple(change(row, name=f"hlo.{row.name}") for row in (*LAYER * 4, *wide * 4))
    ours = (*LAYER * 4, *(Row("aten::loss", "pointwise", 200, bytes=0.8e6, block="FFN"),) * 4)
    told = found(step(theirs, backend="jax", host=0), step(ours, backend="torch", host=0))
    assert {rule: finding.seconds for rule, finding in told.items()} == {"precision": near(4 * 200)}
    assert "fp64 where torch computes in fp32" in told["precision"].text
    alike = tuple(change(row, dtype="fp32") for row in theirs)
    assert "precision" not in found(step(alike, backend="jax", host=0), step(ours, backend="torch", host=0))


#: Per layer 100000 evaluations, in one framework in fp64 and in the other in fp32: 0.8 MB and 100 us there.
WIDE_EXP = Row("hlo.exp", "pointwise", 500, bytes=1.6e6, block="FFN", dtype="fp64")
OUR_EXP = Row("aten::exp", "pointwise", 100, bytes=0.8e6, block="FFN")


def between_frameworks(theirs: tuple[Row, ...], function: str = "exp", casts: str = "") -> dict[str, float]:
    """What is found where the one framework has some rows more per layer, and the other one OUR_EXP."""
    a = step((*(change(row, name=f"hlo.{row.name}") for row in LAYER * 4), *theirs * 4), backend="jax", host=0)
    b = step((*LAYER * 4, *(OUR_EXP,) * 4), backend="torch", host=0)
    runs = [with_functions(one, name, of) for one, name, of in ((a, "hlo.exp", "exp"), (b, "aten::exp", function))]
    a = with_bytes(runs[0], casts, 0.4e6, 0.8e6)
    return {rule: finding.seconds for rule, finding in found(a, runs[1]).items()}


def with_functions(profile: Profile, name: str, function: str) -> Profile:
    """The run, in which ops of one name evaluate a function 100000 times."""
    table = tuple(
        replace(one, cost=replace(one.cost, functions={function: 1e5})) if one.name == name else one
        for one in profile.signatures
    )
    return replace(profile, signatures=table)


def test_functions_in_a_wider_type_take_what_they_take_beyond_the_other_framework() -> None:
    """It evaluates as much and, in fp32, would move as much; a function may take five times as long in fp64."""
    assert between_frameworks((WIDE_EXP,)) == {"precision": near(4 * (500 - 100))}


def test_what_functions_move_besides_the_wider_type_is_left() -> None:
    """Of 3.2 MB 1.6 in fp32, 0.8 more than the other run moves, at the rate of all around that evaluates nothing."""
    told = between_frameworks((change(WIDE_EXP, bytes=3.2e6),))
    assert told["precision"] == near(4 * (500 - 100 - 0.8 * (20 + 30 + 50) / 0.7))
    assert told["fusion"] > 0


def test_functions_that_the_other_framework_does_not_evaluate_are_as_the_widths() -> None:
    assert between_frameworks((WIDE_EXP,), "erf")["precision"] == near(4 * 250)
    # Nor where the other run takes as long, in whatever its ops do besides.
    assert between_frameworks((change(WIDE_EXP, own=150),))["precision"] == near(4 * 75)


def test_casts_into_a_type_that_the_other_framework_has_not_belong_to_it() -> None:
    """From fp32 into fp64, as their bytes say: the type of the op is what it reads."""
    cast = Row("hlo.to_copy", "movement", 60, bytes=1.2e6, block="FFN")
    told = between_frameworks((cast, WIDE_EXP), casts=cast.name)
    assert told == {"precision": near(4 * (500 - 100 + 60))}


def with_bytes(profile: Profile, name: str, read: float, written: float) -> Profile:
    """The run, in which ops of one name read and write so much."""
    cost = {"bytes_read": read, "bytes_written": written}
    table = tuple(
        replace(one, cost=replace(one.cost, **cost)) if one.name == name else one for one in profile.signatures
    )
    return replace(profile, signatures=table)


def test_weights_that_each_step_casts_are_casts_by_name() -> None:
    """Before each GELU 0.2 MB of fp32 are read and 0.1 MB of bf16 written; all else is the same in both runs."""
    casting = with_bytes(step(before(GELU.name, change(TO_DOUBLE, dtype="fp32"))), TO_DOUBLE.name, 0.2e6, 0.1e6)
    one = only(casting, step())
    assert (one.rule, one.seconds) == ("precision", near(4 * (40 + 10)))
    assert "casts into another type that torch (B) does not make: 4 launches" in one.text
    # What an op reads was there before the step, which updates no weights.
    assert one.advice.startswith("cast weights and input once (model.to(dtype) before the steps)")
    assert "--precision" not in one.advice
    trained = [
        replace(run, ops=(*run.ops, replace(run.ops[-1], phase=run.phases.index("optimizer"))))
        for run in (casting, step())
    ]
    assert only(*trained).advice.startswith(
        "keep weights in the type that they are used in, or cast each once per step"
    )


def test_results_that_a_step_casts_are_left_in_their_type() -> None:
    """Each cast reads what the op before it wrote: nothing of it could be cast before the steps."""
    casting = with_bytes(step(before(GELU.name, change(TO_DOUBLE, dtype="fp32"))), TO_DOUBLE.name, 0.2e6, 0.1e6)
    ops = list(casting.ops)
    for place, op in enumerate(ops):
        if casting.signatures[op.signature].name == TO_DOUBLE.name:
            ops[place] = replace(op, reads=ops[place - 1].writes)
    one = only(replace(casting, ops=tuple(ops)), step())
    assert one.advice.startswith("leave what the step computes in one type: look for .to(dtype), .double() or .float()")


#: As XLA writes them on a CPU: weights to bf16 and back in one kernel, and bf16 weights to fp32.
THERE_AND_BACK = Row("convert_convert_fusion", "movement", 100, bytes=0.8e6, block="FFN")
TO_SINGLE = Row("wrapped_convert", "movement", 100, bytes=0.6e6, block="FFN", dtype="bf16")


def kernels(profile: Profile) -> Profile:
    """The run, in which ops that are called so are fused kernels."""
    table = tuple(replace(one, kind="fusion") if "wrapped" in one.name or "fusion" in one.name else one
                  for one in profile.signatures)  # fmt: skip
    return with_bytes(replace(profile, signatures=table), TO_SINGLE.name, 0.2e6, 0.4e6)


def test_a_kernel_that_casts_there_and_back_is_a_cast_and_no_layout() -> None:
    """It writes as many bytes as it reads. Where the other run does not cast, this is all of it."""
    one = only(kernels(step(before(GELU.name, THERE_AND_BACK))), step())
    assert (one.rule, one.seconds) == ("precision", near(4 * (100 + 10)))
    assert "casts into another type that torch (B) does not make: 4 launches" in one.text


def test_casts_of_both_runs_are_one_cause_whatever_their_types() -> None:
    a, b = (kernels(step(before(GELU.name, row))) for row in (THERE_AND_BACK, TO_SINGLE))
    assert found(a, b) == {}
    longer = kernels(step(before(GELU.name, change(TO_SINGLE, own=150))))
    told = found(a, longer)
    assert {rule: finding.seconds for rule, finding in told.items()} == {"precision": near(-4 * 50)}


@pytest.mark.parametrize("name", ["multiply_convert_fusion", "multiply_fusion"])
def test_what_a_fused_kernel_of_two_types_moves_belongs_to_the_type(name: str) -> None:
    """A GELU in fp64 with the casts around it, in one kernel: its name tells, or the types of what it is made of."""
    moves = Row("movement", "movement", 0, bytes=0.6e6, block="FFN")
    computes = Row("pointwise", "pointwise", 0, bytes=0.6e6, block="FFN", dtype="fp64")
    kernel = Row(name, "pointwise", 250, bytes=0.2e6, block="FFN", dtype="fp64", parts=(moves, computes))
    one = only(step(instead(LAYER * 4, GELU.name, (kernel,))), step())
    assert (one.rule, one.seconds) == ("precision", near(4 * (250 - 50)))


def test_what_writes_more_than_it_reads_is_no_cast_for_that() -> None:
    fills = kernels(step(before(GELU.name, Row("wrapped_broadcast", "movement", 100, bytes=0.4e6, block="FFN"))))
    pads = step(before(GELU.name, Row("aten::constant_pad_nd", "movement", 100, bytes=0.4e6, block="FFN")))
    for run, name in ((fills, "wrapped_broadcast"), (pads, "aten::constant_pad_nd")):
        assert "precision" not in found(with_bytes(run, name, 0.1e6, 0.3e6), step())


def test_the_run_that_spends_more_computes_in_a_type_that_the_other_does_not() -> None:
    """A: 20 small ops in fp32 and a copy of truth values; B: its GELU in fp32, and one more in fp64, in less time."""
    mask = Row("aten::_to_copy", "movement", 30, bytes=0.1e6, block="FFN", dtype="bool")
    small = (change(GELU, name="aten::mul", own=20, bytes=0.01e6),) * 20
    told = found(
        step(instead(LAYER * 4, GELU.name, (*small, mask))), step(instead(LAYER * 4, GELU.name, (GELU, DOUBLE)))
    )
    assert "precision" not in told


def test_only_models_of_roofline_are_told_of_its_flag() -> None:
    wide = instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE, change(TO_DOUBLE, dtype="fp32")))
    told = [
        found(step(wide, framework="torch", **of), step(framework="torch", **of))["precision"].advice
        for of in ({}, {"model": "mine.py:step"})
    ]
    assert "--precision" in told[0]
    assert "--precision" not in told[1]
    assert "torch.autocast" in told[1]


def test_the_advice_names_what_sets_the_type_that_differs() -> None:
    """Products of float32 data hang on a switch of the framework; the type of data is set in the program."""
    fast = tuple(
        change(row, own=row.own / 2, arithmetic="tf32") if row.name == "aten::addmm" else row for row in LAYER * 4
    )
    of = {"model": "mine.py:step", "framework": "torch"}
    switched = found(step(**of), step(fast, **of))["precision"].advice
    assert switched.startswith("compute products of float32 data alike in both: torch.set_float32_matmul_precision")
    # which PyTorch's documentation says nothing of convolutions of
    assert "torch.backends.cudnn.allow_tf32 for convolutions" in switched
    jax = {"model": "mine.py:step", "framework": "jax", "backend": "jax"}
    both = found(step(**of), step(fast, **jax))
    assert "torch.set_float32_matmul_precision" in both["precision"].advice
    assert "jax.default_matmul_precision" in both["precision"].advice
    wide = instead(LAYER * 4, GELU.name, (TO_DOUBLE, DOUBLE, change(TO_DOUBLE, dtype="fp32")))
    typed = found(step(wide, **of), step(**of))["precision"].advice
    assert "matmul_precision" not in typed
    assert ".double()" in typed
    # Products of other data are another type of data, too.
    doubled = step(tuple(change(row, arithmetic="fp64") if row.name == "aten::addmm" else row for row in fast), **of)
    table = tuple(
        replace(one, precision=replace(one.precision, inputs="fp64")) if one.precision else one
        for one in doubled.signatures
    )
    assert found(step(**of), replace(doubled, signatures=table))["precision"].advice == typed
