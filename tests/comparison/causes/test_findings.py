"""Planted causes in steps made by hand (synthetic.py): each is named first, with its sign and its size."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import ADD, EAGER_ATTENTION, GELU, LAYER, LINEAR, NORM, SDPA, UNFUSED_NORM, Row, instead, step

from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.claim import Claim
from roofline.comparison.causes.findings import Finding, explain, rest
from roofline.comparison.causes.order import RULES
from roofline.comparison.causes.wording import SENTENCES
from roofline.comparison.terms import compare
from roofline.core.schema import Compilation, Profile

US = 1e-6


def findings(a: Profile, b: Profile) -> tuple[Finding, ...]:
    return explain(compare(a, b))


def only(a: Profile, b: Profile) -> Finding:
    (finding,) = findings(a, b)
    return finding


def near(microseconds: float) -> object:
    return pytest.approx(microseconds * US, rel=1e-6)


def test_nothing_is_found_where_nothing_differs() -> None:
    assert findings(step(), step()) == ()


def test_a_norm_written_out_is_fusion() -> None:
    found = only(step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)), step())
    # per layer 180 us of six ops instead of 30 us of one, and five launches of 10 us of host time more
    assert found.rule == "fusion"
    assert found.seconds == near(4 * (180 - 30 + 5 * 10))
    assert found.text == (
        "torch (A) spends 800 µs more on normalisation and pointwise ops: 24 launches that move 4.04 MB through memory "
        "(aten::mean, aten::pow, aten::mul), where torch (B) has 4 launches that move 800 kB "
        "(aten::native_layer_norm), 200 µs of it in dispatching them."
    )


def test_the_sign_follows_the_order() -> None:
    unfused = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    forth, back = only(unfused, step()), only(step(), unfused)
    assert back.seconds == near(-800)
    assert forth.rule == back.rule
    assert forth.text.replace("(A)", "(?)").replace("(B)", "(A)").replace("(?)", "(B)") == back.text


def test_attention_written_out() -> None:
    found = only(step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)), step())
    assert found.rule == "attention"
    assert found.seconds == near(4 * (400 - 200 + 2 * 10))
    assert "attention written out" in found.text


def test_time_between_ops_that_is_not_dispatch() -> None:
    found = only(step(extra_gap=2000), step())
    assert found.rule == "host-idle"
    assert found.seconds == near(2000)


def test_waiting_for_results() -> None:
    read = Row("aten::_local_scalar_dense", "transfer", 5, bytes=4)
    slow = step((*LAYER, read) * 4, extra_gap=1000, causes={"host dispatch": 0.2, "synchronisation": 0.8})
    first = findings(slow, step())[0]
    # 32 launches of 10 us and 1000 us more: 1320 us of gap, 80 % of it waiting; and 4 ops of 5 us, with what is before
    # each of them of the dispatch, a fifth of 10 us
    assert first.rule == "synchronisation"
    assert first.seconds == near(0.8 * 1320 + 4 * (5 + 0.2 * 10))


def test_small_ops_that_add_up_to_the_same() -> None:
    slices = tuple(change(ADD, name="aten::add_", own=15, bytes=0.03e6) for _ in range(10))
    found = only(step(instead(LAYER * 4, "aten::add", slices)), step())
    assert found.rule == "tiny-ops"
    assert found.seconds == near(4 * (150 - 20 + 9 * 10))


def test_transposes_that_one_run_makes() -> None:
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6, block="FFN")
    found = only(step((*LAYER, copy) * 4), step())
    assert found.rule == "layout"
    assert found.seconds == near(4 * (120 + 10))


@pytest.mark.parametrize(
    ("later", "part", "text"),
    [
        (40, 40, "; 160 µs of it is what the ops right after them take longer."),
        (-40, -40, "; the ops right after them take 160 µs less, which is taken off."),
        (60, 60, "; 240 µs of it is what the ops right after them take longer."),
        (70, 0, "(aten::copy_)."),  # more than half of what the copy costs, 65 µs, has another cause
        (5, 5, "(aten::copy_)."),  # a twenty-seventh is not told
    ],
)
def test_an_op_after_those_that_one_run_has_is_part_of_them(later: float, part: float, text: str) -> None:
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6, block="FFN")
    *before, linear, gelu = LAYER
    found = only(step((*before, copy, change(linear, own=linear.own + later), gelu) * 4), step())
    assert found.rule == "layout"
    assert found.seconds == near(4 * (120 + 10 + part))
    assert "4 launches that move 1.60 MB" in found.text  # what the products move is not of it
    assert found.text.endswith(text)


def test_one_thread() -> None:
    alone = step(tuple(change(row, own=2 * row.own) for row in LAYER * 4), environment={"threads": "1"})
    found = only(alone, step(environment={"threads": "2"}))
    assert found.rule == "threads"
    assert found.seconds == near(4 * 1200)
    assert "it runs 1 thread, torch (2 threads) 2" in found.text


def test_another_precision() -> None:
    fast = tuple(
        change(row, own=row.own / 2, arithmetic="tf32") if row.name == "aten::addmm" else row for row in LAYER * 4
    )
    found = only(step(), step(fast, precision="tf32"))
    assert found.rule == "precision"
    assert found.seconds == near(12 * 150)
    assert "fp32 where torch (tf32) computes in tf32" in found.text


def test_the_optimizer_op_by_op() -> None:
    fused = (Row("aten::_fused_adamw_", "pointwise", 300, bytes=4e6, phase="optimizer", block="head"),)
    single = tuple(Row("aten::mul_", "pointwise", 40, bytes=1e6, phase="optimizer", block="head") for _ in range(20))
    found = only(step((*LAYER * 4, *single)), step((*LAYER * 4, *fused)))
    assert found.rule == "optimizer"
    assert found.seconds == near(20 * 40 - 300 + 19 * 10)


def test_random_numbers_in_one_run() -> None:
    dropout = Row("aten::bernoulli_", "random", 100, bytes=0.1e6, block="FFN")
    found = only(step((*LAYER, dropout) * 4), step())
    assert found.rule == "random"
    assert found.seconds == near(4 * 110)


def test_checkpointed_activations() -> None:
    backward = tuple(change(row, phase="backward") for row in LAYER * 4)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    once = (*LAYER * 4, *backward)
    found = findings(step((*LAYER * 4, *((*again, *backward[:7]) * 4))), step(once))
    assert found[0].rule == "recomputation"
    assert found[0].seconds == near(4 * (1200 + 7 * 10))


def test_what_is_computed_again_takes_longer_at_first_and_again_without_products() -> None:
    """Per layer: what is done first takes a fifth longer, for hooks; and a lone norm is done again backward."""
    backward = tuple(change(row, phase="backward", flops=2 * row.flops) for row in LAYER)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    norm = change(NORM, phase="backward", name="aten::rms_norm")
    first = tuple(change(row, own=1.2 * row.own) for row in LAYER)
    found = only(
        step((*first * 4, *((*again, *backward[:3], norm, *backward[3:]) * 4))), step((*LAYER * 4, *(backward * 4)))
    )
    assert found.rule == "recomputation"
    assert found.seconds == near(4 * (1200 + 7 * 10 + 0.2 * 1200 + 30 + 10))
    assert found.text.endswith("; 960 µs of it is what the ops that do them first or follow them take longer.")


def test_of_equal_layers_of_which_one_is_computed_again_nobody_knows_which() -> None:
    """All forward ops take a fifth longer; one layer of four is done again, and the others were not set up for it."""
    backward = tuple(change(row, phase="backward", flops=2 * row.flops) for row in LAYER)
    again = tuple(change(row, phase="backward", model_flops=0.0) for row in LAYER)
    slower = tuple(change(row, own=1.2 * row.own) for row in LAYER)
    found = findings(step((*slower * 4, *again, *backward * 4)), step((*LAYER * 4, *backward * 4)))
    assert {finding.rule: finding.seconds for finding in found}["recomputation"] == near(1200 + 7 * 10)


def test_an_op_that_follows_two_causes_is_of_neither() -> None:
    """Before each norm A copies and B adds up; the norm takes 20 µs longer in A."""
    copy = Row("aten::copy_", "movement", 120, bytes=0.4e6)
    other = Row("aten::cumsum", "reduction", 100, bytes=0.9e6)
    a = step(instead(LAYER * 4, NORM.name, (copy, change(NORM, own=50))))
    b = step(instead(LAYER * 4, NORM.name, (other, NORM)))
    told = {finding.rule: finding.seconds for finding in findings(a, b)}
    assert told == {"layout": near(4 * (120 + 10)), "more-work": near(-4 * (100 + 10))}


def test_padded_products() -> None:
    big = change(LINEAR, flops=30e6, own=450, model_flops=20e6)
    padded = tuple(big if row == LINEAR else row for row in LAYER * 4)
    found = only(step(padded), step())
    assert found.rule == "padding"
    assert found.seconds == near(8 * 150)


def test_products_that_only_one_run_does() -> None:
    found = only(step((*LAYER, LINEAR) * 4), step())
    assert found.rule == "more-work"
    assert found.seconds == near(4 * 310)


def test_work_that_is_not_known_is_no_less_work() -> None:
    replayed = tuple(change(row, name="graph", own=row.own / 2, known=False) if row.flops else row for row in LAYER * 4)
    found = only(step(), step(replayed))
    assert found.rule == "unknown-work"
    assert found.seconds == near(4 * 550)  # 3 * 300 us and 200 us per layer, half of it gone


def test_kernels_of_another_library() -> None:
    slow = tuple(change(row, own=1.5 * row.own) if row.flops else row for row in LAYER * 4)
    found = only(step(slow), step())
    assert found.rule == "efficiency"
    assert found.seconds == near(4 * 0.5 * 1100)


def test_the_same_kernels_a_little_slower_are_no_finding_after_one_process() -> None:
    slow = tuple(change(row, own=1.08 * row.own) if row.flops else row for row in LAYER * 4)
    assert findings(step(slow), step()) == ()
    rounds = [
        replace(run, wall=replace(run.wall, processes=(run.wall.steps, run.wall.steps))) for run in (step(slow), step())
    ]
    assert only(*rounds).rule == "efficiency"


def test_page_faults() -> None:
    slow = tuple(change(row, own=3 * row.own) if not row.flops else row for row in LAYER * 4)
    found = only(
        step(slow, conditions={"page_faults_per_step": 5000.0}), step(conditions={"page_faults_per_step": 3.0})
    )
    assert found.rule == "allocation"
    assert found.seconds == near(4 * 2 * 100)
    assert "5,000 page faults per step against 3" in found.text


def test_page_faults_inside_products_that_have_another_name() -> None:
    out = tuple(change(row, name="aten::addmm_out", own=2 * row.own) if row == LINEAR else row for row in LAYER * 4)
    found = only(step(out, conditions={"page_faults_per_step": 5000.0}), step(conditions={"page_faults_per_step": 3.0}))
    assert found.rule == "allocation"
    assert found.seconds == near(8 * 300)


def test_results_read_on_a_cpu() -> None:
    reading, none = {"host_reads_per_step": 16.0}, {"host_reads_per_step": 0.0}
    found = only(step(extra_gap=200, conditions=reading), step(conditions=none))
    # 12.5 us for each of 16 reads; a sleep as long as a hundred of them is none
    assert found.rule == "synchronisation"
    assert "16 per step, torch (B) 0" in found.text
    assert only(step(extra_gap=1600, conditions=reading), step(conditions=none)).rule == "host-idle"
    # nor is anything said of reads where one run did not count them
    assert only(step(extra_gap=200, conditions=reading), step()).rule == "host-idle"


def test_work_in_another_floating_type() -> None:
    cast = Row("aten::_to_copy", "movement", 40, bytes=0.3e6, block="FFN", dtype="fp64")
    wide = (cast, change(GELU, own=120, bytes=0.4e6, dtype="fp64"), change(cast, dtype="fp32"))
    found = only(step(instead(LAYER * 4, "aten::gelu", wide)), step())
    assert found.rule == "precision"
    assert found.seconds == near(4 * (40 + 120 + 40 - 50 + 2 * 10))


def test_a_compiler_that_fuses_and_dispatches_less() -> None:
    kernel = Row("fused_add_norm", "normalisation", 30, bytes=0.3e6, parts=(ADD, change(ADD, name="aten::norm")))
    layer = (LINEAR, change(LINEAR, own=200, flops=10e6), LINEAR, kernel, change(LINEAR, block="FFN"), GELU)
    eager = (LINEAR, change(LINEAR, own=200, flops=10e6), LINEAR, ADD, *UNFUSED_NORM, change(LINEAR, block="FFN"), GELU)
    a, b = step(eager * 4), step(layer * 4, backend="torch-compile", host=2)
    found = {finding.rule: finding for finding in findings(a, b)}
    # vector ops per layer: 20 + 180 us against 30 us; gap: 4 * 12 * 10 us against 4 * 6 * 2 us
    assert set(found) == {"fusion", "host-bound"}
    assert found["fusion"].seconds == near(4 * 170)
    assert found["host-bound"].seconds == near(480 - 48)
    assert found["host-bound"].text == (
        "torch spends 432 µs more in which no op runs: 480 µs with 48 launches, torch-compile 48.0 µs with 24; each "
        "launch costs its host 10.0 µs against 2.00 µs."
    )


def test_a_flag_that_did_not_reach_the_model() -> None:
    meant = Compilation(compiler="torch.compile", graphs=0)
    a = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), backend="torch-compile", compilation=meant)
    assert findings(a, step(backend="jax"))[0].rule == "jit-not-in-effect"
    generate = replace(a, mode="generate")
    assert findings(generate, step(backend="jax", mode="generate"))[0].rule == "compiled-not-used"


def test_another_device() -> None:
    fast = step(tuple(change(row, own=row.own / (2 if row.flops else 4)) for row in LAYER * 4))
    device = fast.device
    ceilings = {
        name: replace(c, value=c.value / 2 if name.startswith("launch") else 2 * c.value)
        for name, c in device.ceilings.items()
    }
    fast = replace(fast, device=replace(device, name="Twice As Fast", ceilings=ceilings))
    found = {finding.rule: finding for finding in findings(step(), fast)}
    # The products attain 64 % on both, so all of their 4 * 1100 / 2 us is the devices'. The vector ops attain 35 % on
    # the slow one: of their 4 * (100 - 25) us the devices' part is what the floors differ by, 4 * 35 / 2 us, and the
    # rest is efficiency
    assert found["hardware"].seconds == near(2200 + 70)
    assert found["efficiency"].seconds == near(230)


def test_two_causes_are_both_found_in_their_order() -> None:
    both = instead(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM), "aten::sdpa", EAGER_ATTENTION)
    found = findings(step(both), step())
    assert [f.rule for f in found] == ["attention", "fusion"]
    assert [f.seconds for f in found] == [near(880), near(800)]


def test_two_causes_of_opposite_sign() -> None:
    found = findings(step(extra_gap=1000), step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)))
    assert [(f.rule, f.seconds) for f in found] == [("host-idle", near(1000)), ("fusion", near(-800))]


def test_causes_in_one_stretch_of_opposite_sign() -> None:
    written_gelu = tuple(change(GELU, name=f"aten::{name}", own=60) for name in ("mul", "erf", "add"))
    a = step(instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM))
    b = step(instead(LAYER * 4, "aten::gelu", written_gelu))
    assert [(f.rule, f.seconds) for f in findings(a, b)] == [
        ("fusion", near(800)),
        ("fusion", near(-4 * (180 - 50 + 20))),
    ]


def test_every_rule_has_a_sentence() -> None:
    assert {"fusion", "attention", "optimizer", "threads", "precision", "layout", "recomputation"} <= SENTENCES.keys()


@settings(deadline=None, max_examples=80)
@given(randomly.profiles(), randomly.profiles())
def test_claims_give_out_the_difference_once(a: Profile, b: Profile) -> None:
    comparison = compare(a, b)
    attribution = Attribution(comparison)
    for rule in RULES:
        for claim in rule(attribution):
            attribution.claim(claim)
    left = attribution.rows(lambda some: some.weight > -1)
    attribution.claim(Claim("nothing", *left))
    whole = sum(attribution.seconds(entry) for entry in attribution.entries)
    scale = comparison.a.wall + comparison.b.wall + comparison.a.total.own_seconds + comparison.b.total.own_seconds
    assert whole == pytest.approx(comparison.difference, abs=1e-9 * scale)
    found = explain(comparison)
    assert sum(f.seconds for f in found) + rest(comparison, found) == pytest.approx(
        comparison.difference, abs=1e-9 * scale
    )
    for finding in found:
        assert finding.ci95 is None or finding.ci95[0] > 0 or finding.ci95[1] < 0
        assert sum(p.seconds for p in finding.terms) == pytest.approx(finding.seconds, abs=1e-9 * scale)
        assert finding.text.isprintable()


ROWS = st.sampled_from(
    [LINEAR, ADD, NORM, GELU, SDPA, *UNFUSED_NORM, *EAGER_ATTENTION, change(GELU, own=5, bytes=0.01e6)]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=3, max_size=16), st.lists(ROWS, min_size=3, max_size=16), st.booleans())
def test_what_is_found_flips_with_the_runs(a: list[Row], b: list[Row], same: bool) -> None:
    one, other = step(a * 2), step(b * 2, backend="torch" if same else "jax")
    there, back = explain(compare(one, other)), explain(compare(other, one))
    assert sorted((finding.rule, round(finding.seconds * 1e8)) for finding in there) == sorted(
        (finding.rule, round(-finding.seconds * 1e8)) for finding in back
    )


AGAIN = [change(row, phase="backward", model_flops=0.0) for row in (LINEAR, NORM, SDPA)]
BACKWARD = [change(row, phase="backward", flops=2 * row.flops) for row in (LINEAR, NORM, SDPA, GELU)]
LATE = [change(row, own=1.3 * row.own, host=(5.0, host)) for row in (LINEAR, GELU) for host in (5.0, 490.0, 510.0)]


@settings(deadline=None, max_examples=60)
@given(
    *[st.lists(st.sampled_from([*AGAIN, *BACKWARD]), min_size=3, max_size=16) for _ in range(2)],
    *[st.lists(st.sampled_from([LINEAR, NORM, SDPA, GELU, *LATE]), min_size=3, max_size=8) for _ in range(2)],
)
def test_what_is_computed_again_flips_with_the_runs(
    a: list[Row], b: list[Row], first: list[Row], other: list[Row]
) -> None:
    conditions = {"away_seconds_per_step": 0.0}
    recorded = [[change(row, host=row.host or (2.0, 8.0)) for row in rows] for rows in ((*first, *a), (*other, *b))]
    one, two = (step(rows, conditions=conditions) for rows in recorded)
    there, back = explain(compare(one, two)), explain(compare(two, one))
    assert sorted((finding.rule, round(finding.seconds * 1e8)) for finding in there) == sorted(
        (finding.rule, round(-finding.seconds * 1e8)) for finding in back
    )


@pytest.mark.parametrize(("factor", "rules"), [(1.3, []), (1.6, []), (1.7, ["efficiency"])])
def test_vector_ops_of_one_process_must_be_far_slower(factor: float, rules: list[str]) -> None:
    """Two fifths of the longer time: 0.6 / 1.6 is less, 0.7 / 1.7 more."""
    slow = step(tuple(row if row.flops else change(row, own=factor * row.own) for row in LAYER * 4))
    assert [finding.rule for finding in findings(slow, step())] == rules
