"""What the rules must not say: found by reviewing them, each case once said something else."""

from __future__ import annotations

from dataclasses import replace as change

import numpy as np
import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, LINEAR, UNFUSED_NORM, Row, instead, step

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.causes.order import RULES
from roofline.comparison.terms import compare
from roofline.core.schema import Profile

US = 1e-6


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {finding.rule: finding for finding in explain(compare(a, b))}


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * US, rel=1e-6)


def rounds(profile: Profile, *factors: float) -> Profile:
    """The run with further processes, so many times as slow as this one."""
    steps = profile.wall.steps
    others = tuple(tuple(factor * each for each in steps) for factor in factors)
    return replace(profile, wall=replace(profile.wall, processes=others))


def slower(factor: float, rows: tuple[Row, ...] = LAYER * 4) -> tuple[Row, ...]:
    return tuple(change(row, own=factor * row.own) for row in rows)


def test_one_slow_process_of_three_is_no_finding() -> None:
    slow = step(slower(1.3), host=13)
    comparison = compare(rounds(slow, 1 / 1.3, 1 / 1.3), rounds(step(), 1.0, 1.0))
    assert not comparison.resolved
    assert explain(comparison) == ()


def test_nulls_with_rounds_have_findings_as_rarely_as_their_intervals_say() -> None:
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(40):
        runs = []
        for _ in range(2):
            # Processes 5 % apart, ops of one process 2 % apart from their own
            own, *others = np.exp(0.05 * rng.standard_normal(3))
            rows = tuple(change(row, own=row.own * own * (1 + 0.02 * rng.standard_normal())) for row in LAYER * 4)
            run = step(rows, host=10 * own)
            runs.append(rounds(run, *(other / own for other in others)))
        wrong += bool(explain(compare(*runs)))
    assert wrong <= 5  # 5 % of 40 are 2; more than 5 have a chance of 1.4 %


def test_page_faults_explain_no_more_than_the_system_took() -> None:
    a = step(slower(3.0), conditions={"page_faults_per_step": 300.0, "system_seconds_per_step": 500e-6})
    b = step(conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    told = explain(compare(a, b))
    assert [f.seconds for f in told if f.rule == "allocation"] == [near(500)]
    # 2 * 1200 us a layer are slower kernels, in products and in vector ops
    assert sum(f.seconds for f in told if f.rule == "efficiency") == near(4 * 2400 - 500)


def test_page_faults_of_the_faster_run_explain_nothing() -> None:
    a = step(slower(3.0), conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    b = step(conditions={"page_faults_per_step": 3000.0, "system_seconds_per_step": 500e-6})
    assert "allocation" not in found(a, b)


def test_what_is_left_of_an_op_is_given_out_and_no_more() -> None:
    # Between frameworks 3 launches against 2 explain a part of the vector ops; page faults may explain what is left
    a_rows = instead(LAYER * 4, "aten::gelu", (Row("aten::f", "pointwise", 200, bytes=0.2e6, block="FFN"),) * 2)
    b_rows = tuple(change(row, name=f"hlo.{row.name}") for row in LAYER * 4)
    a = step(a_rows, conditions={"page_faults_per_step": 9000.0, "system_seconds_per_step": 1.0})
    b = step(b_rows, backend="jax", conditions={"page_faults_per_step": 0.0, "system_seconds_per_step": 0.0})
    attribution = Attribution(compare(a, b))
    for rule in RULES:
        for claim in rule(attribution):
            attribution.claim(claim)
    rules = [entry.claim.rule for entry in attribution.entries if len(entry.a)]
    assert "allocation" in rules
    assert {"fusion", "tiny-ops"} & set(rules)
    given = np.zeros(len(attribution.a.segments))
    for entry in attribution.entries:
        np.add.at(given, entry.a, entry.parts_a)
    assert given == pytest.approx(np.ones(len(given)))
    assert all(part >= 0 for entry in attribution.entries for part in entry.parts_a)


def test_a_sum_with_an_unknown_part_is_at_least_that() -> None:
    mask = Row("mylib::mask", "pointwise", 10, known=False)
    told = found(step(instead(LAYER * 4, "aten::sdpa", (*EAGER_ATTENTION, mask))), step())
    # 4 * 3 * 0.4 MB are known of 16 launches
    assert "16 launches that move at least 4.80 MB" in told["attention"].text
    assert "4 launches that move 1.60 MB" in told["attention"].text


def test_waiting_is_not_charged_to_dispatch_again() -> None:
    unfused = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)
    causes = {"host dispatch": 0.2, "synchronisation": 0.8}
    a = step(unfused, extra_gap=2000, causes=causes)
    told = found(a, step())
    # 48 launches of 10 us and 2000 us: 80 % of 2480 us are waiting; the rest of the gap is dispatch
    assert told["synchronisation"].seconds == near(0.8 * 2480)
    assert sum(f.seconds for f in told.values()) == pytest.approx(compare(a, step()).difference, rel=0.05)


def test_an_option_of_the_model_changes_no_dispatch() -> None:
    eager = instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)
    told = found(step(eager, options={"attention": "eager"}), step(options={"attention": "sdpa"}))
    assert told["attention"].seconds == near(4 * (400 - 200 + 2 * 10))
    assert set(told) == {"attention"}


def test_a_product_that_is_computed_again_is_no_partner_of_one_that_was_asked_for() -> None:
    backward = tuple(change(row, name=f"dot.{row.name}", phase="backward") for row in LAYER)
    again = tuple(change(LINEAR, phase="backward", model_flops=0.0) for _ in range(3))
    once = (*LAYER * 4, *backward * 4)
    a, b = step((*LAYER * 4, *(*again, *backward) * 4)), step(once, backend="jax")
    told = found(a, b)
    assert told["recomputation"].seconds == near(4 * 3 * 300)
    assert "more-work" not in told


def test_jit_that_fell_back_to_a_graph_of_tensorflow() -> None:
    a = step(
        instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), backend="keras-tensorflow", switches={"jit": "on"}
    )
    a = replace(a, profiled=replace(a.profiled, mechanism="tensorflow-graph"))
    b = step(backend="keras-jax", host=2, switches={"jit": "on"})
    b = replace(b, profiled=replace(b.profiled, mechanism="xla-thunk"))
    assert next(iter(found(a, b))) == "jit-not-in-effect"


def test_seven_products_for_five_in_attention_are_no_padding() -> None:
    def backward(executed: float, own: float) -> tuple[Row, ...]:
        row = Row(
            "aten::sdpa_backward", "attention", own, flops=executed, model_flops=20e6, bytes=1e6, phase="backward"
        )
        return (*LAYER * 4, *(row,) * 4)

    told = found(step(backward(35e6, 700)), step(backward(25e6, 500)))
    assert set(told) == {"attention"}
    assert told["attention"].seconds == near(800)


def test_threads_of_the_host_do_not_slow_a_gpu_down() -> None:
    device = replace(step().device, kind="cuda")
    a = step(slower(2.0), device=device, environment={"threads": "8"})
    b = step(device=device, environment={"threads": "16"})
    assert "threads" not in found(a, b)


def test_a_little_more_traffic_does_not_explain_slow_kernels() -> None:
    def other(name: str, bytes: float, own: float) -> tuple[Row, ...]:
        return instead(LAYER * 4, "aten::gelu", (Row(name, "pointwise", own, bytes=bytes, block="FFN"),))

    told = found(step(other("aten::slow_gelu", 0.212e6, 250)), step(other("aten::fast_gelu", 0.2e6, 50)))
    # 6 % more bytes of a mean rate of 250/0.212 and 50/0.2 us/MB: 4 * 0.012 * 715 = 34 us of 800
    assert "fusion" not in told
    assert told["efficiency"].seconds > 700 * US


def test_too_few_steps_are_no_finding() -> None:
    short = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    short = replace(short, wall=replace(short.wall, steps=short.wall.steps[:2]))
    assert explain(compare(short, step())) == ()


def test_a_sleep_between_ops_is_no_dispatch_of_another_framework() -> None:
    a = step(LAYER * 4)
    # 1 ms before the tenth op, and all later ops by as much later
    ops = tuple(replace(op, start_ns=op.start_ns + (1_000_000 if n >= 10 else 0)) for n, op in enumerate(a.ops))
    a = replace(
        a,
        ops=ops,
        wall=replace(a.wall, steps=tuple(each + 1e-3 for each in a.wall.steps)),
        profiled=replace(
            a.profiled,
            walls=tuple(each + 1e-3 for each in a.profiled.walls),
            corrected=tuple(each + 1e-3 for each in a.profiled.corrected),
            idle=tuple(each + 1e-3 for each in a.profiled.idle),
            idle_causes={"host dispatch": 1.28e-3},
        ),
    )
    names = tuple(change(row, name=f"hlo.{n}") for n, row in enumerate(LAYER * 4))
    told = found(a, step(names, backend="jax"))
    assert told["host-idle"].seconds == pytest.approx(1e-3, rel=0.02)


def test_a_copy_beside_many_small_ops_is_part_of_them() -> None:
    slices = (Row("aten::gelu_slice", "pointwise", 20, bytes=0.02e6, block="FFN"),) * 16
    cat = Row("aten::cat", "movement", 40, bytes=0.2e6, block="FFN")
    # 40 of 360 us per layer move data; with one slice it would be 40 of 60
    told = found(step(instead(LAYER * 4, "aten::gelu", (*slices, cat))), step())
    assert set(told) == {"tiny-ops"}
    # per layer 360 us against 50, and 16 launches of 10 us of the host more
    assert told["tiny-ops"].seconds == near(4 * (360 - 50 + 160))
    assert "layout" in found(step(instead(LAYER * 4, "aten::gelu", (slices[0], cat))), step())
