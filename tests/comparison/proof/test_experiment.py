"""Experiments planned from findings, and verdicts about gains, on steps made by hand and on times made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace as change

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, LINEAR, instead, step

from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.proof.experiment import Experiment, Measured, Proof, judge, plan, without_switch
from roofline.comparison.proof.same_run import counted_work
from roofline.comparison.proof.settings import setting_for
from roofline.comparison.proof.verdicts import gain, verdict
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import Profile
from roofline.core.switch import ATTENTION, COMPILED_AWAY, JIT, OPTIMIZER, Setting, Switch

US = 1e-6

COMPILE = Switch(
    name="compile",
    kind=COMPILED_AWAY,
    assumed="off",
    turns={"off": "on"},
    backend="compiled",
    moves=("backend", "switch compile"),
)
SWITCHES = (ATTENTION, COMPILE, OPTIMIZER, JIT)


def switches(profile: Profile) -> Sequence[Switch]:
    return SWITCHES


WRITTEN_OUT = instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)
(FOUND,) = explain(compare(step(WRITTEN_OUT), step()))


def finding(rule: str, seconds: float, low: float, high: float) -> Finding:
    return replace(FOUND, rule=rule, seconds=seconds, ci95=(low, high))


def pair(a: Profile | None = None, b: Profile | None = None) -> Comparison:
    return compare(a or step(), b or step())


# ------------------------------------------------------------------------------------------------------- experiments


def test_the_run_that_spends_more_is_set_as_the_other_one_is() -> None:
    eager = step(WRITTEN_OUT, switches={"attention": "eager"})
    fused = step(switches={"attention": "sdpa"})
    comparison = compare(fused, eager)
    (experiment,) = plan(comparison, explain(comparison), switches)
    assert experiment.setting is not None
    # per layer two products and a softmax of 400 us instead of 200 us, and two launches of 10 us more, all of it in B
    assert experiment.run == "b"
    assert experiment.predicted == pytest.approx(4 * (400 - 200 + 2 * 10) * US)
    assert experiment.predicted_ci95[0] <= experiment.predicted <= experiment.predicted_ci95[1]
    assert experiment.setting.text == "attention eager -> sdpa"
    assert experiment.setting.options == {"attention": "sdpa"}
    assert experiment.setting.backend is None


def test_findings_that_one_switch_answers_are_one_experiment() -> None:
    findings = (
        finding("fusion", 30e-3, 26e-3, 34e-3),
        finding("efficiency", -20e-3, -21e-3, -19e-3),
        finding("host-bound", 10e-3, 7e-3, 12e-3),
        finding("fusion", -5e-3, -6e-3, -4e-3),
    )
    experiments = plan(pair(), findings, switches, ("first", "second"))
    assert [tuple(f.rule for f in each.findings) for each in experiments] == [
        ("fusion", "host-bound"),
        ("efficiency",),
        ("fusion",),  # of the other sign: it is the other run that spends it
    ]
    assert [(each.run, each.name) for each in experiments] == [("a", "first"), ("b", "second"), ("b", "second")]
    both, without, other = experiments
    assert both.predicted == pytest.approx(40e-3)
    # half widths 4 and 3 ms below, 4 and 2 ms above: 5 ms and sqrt(20) ms
    assert both.predicted_ci95 == pytest.approx((35e-3, 40e-3 + math.sqrt(20) * 1e-3))
    assert without.setting is None
    assert other.predicted == pytest.approx(5e-3)
    assert other.predicted_ci95 == pytest.approx((4e-3, 6e-3))


def test_a_finding_without_an_interval_predicts_none() -> None:
    findings = (finding("fusion", 3e-3, 2e-3, 4e-3), replace(finding("host-bound", 1e-3, 0, 0), ci95=None))
    (experiment,) = plan(pair(), findings, switches)
    assert (experiment.predicted, experiment.predicted_ci95) == (pytest.approx(4e-3), None)
    assert verdict(4e-3, None, 4e-3, (3e-3, 5e-3)) == "not resolved"


def test_a_finding_without_a_switch_is_not_left_out() -> None:
    (experiment,) = plan(pair(), (finding("layout", 3e-3, 2e-3, 4e-3),), switches)
    proof = without_switch(experiment)
    assert (proof.verdict, proof.switch, proof.observed) == ("no switch", None, None)
    assert proof.text == "torch (A), layout (3.00 ms (2.00 ms to 4.00 ms)): no switch for this cause."


# ---------------------------------------------------------------------------------------------------------- the gain


def test_the_gain_is_between_forms_of_one_round() -> None:
    """Rounds 10 ms apart, as on a machine that slows down; in each the flipped form takes 2 ms less."""
    original = [(0.010,) * 5, (0.020,) * 5, (0.030,) * 5]
    flipped = [tuple(value - 0.002 for value in each) for each in original]
    seconds, interval = gain(original, flipped)
    assert seconds == pytest.approx(0.002)
    assert interval == pytest.approx((0.002, 0.002))


def test_the_interval_spans_rounds_that_disagree() -> None:
    seconds, interval = gain([(0.010,) * 5, (0.011,) * 5, (0.015,) * 5], [(0.008,) * 5] * 3)
    assert seconds == pytest.approx(0.003)
    assert interval == pytest.approx((0.002, 0.007))


def test_two_steps_have_no_interval() -> None:
    assert gain([(0.010,), (0.012,)], [(0.008,), (0.008,)]) == (pytest.approx(0.003), None)


@given(st.lists(st.tuples(*[st.lists(st.floats(1e-6, 10), min_size=3, max_size=6)] * 2), min_size=1, max_size=4))
def test_swapping_the_forms_flips_the_gain(rounds: list[tuple[list[float], list[float]]]) -> None:
    one, other = [a for a, _ in rounds], [b for _, b in rounds]
    forth, back = gain(one, other), gain(other, one)
    assert forth[0] == pytest.approx(-back[0])
    assert forth[1] is not None
    assert forth[1][0] <= forth[1][1]


@pytest.mark.parametrize(
    ("observed", "interval", "expected"),
    [
        (3.0, (2.5, 3.5), "confirmed"),
        (2.0, (1.0, 2.6), "confirmed"),  # the ends meet
        (1.0, (0.5, 1.5), "smaller than predicted"),
        (9.0, (8.0, 9.5), "larger than predicted"),
        (-3.0, (-3.5, -2.5), "refuted"),
        (0.1, (-0.5, 0.7), "refuted"),  # nothing was gained, and it is known well
        (1.0, (-4.0, 6.0), "not resolved"),  # all may be true, the prediction too
        (3.0, None, "not resolved"),
    ],
)
def test_verdicts(observed: float, interval: tuple[float, float] | None, expected: str) -> None:
    """Predicted: 3, between 2.5 and 3.5."""
    assert verdict(3.0, (2.5, 3.5), observed, interval) == expected


# ---------------------------------------------------------------------------------------------------------- judging

SETTING = Setting(text="attention eager -> sdpa", moves=("option attention", "switch attention"))
BEFORE = step(switches={"attention": "eager", "gelu": "erf"}, options={"attention": "eager"})
AFTER = step(switches={"attention": "sdpa", "gelu": "erf"}, options={"attention": "sdpa"})


def judged(before: Profile = BEFORE, after: Profile = AFTER, recorded: Profile = BEFORE, **changes: object) -> Proof:
    """Predicted 3 ms (2.5 to 3.5), observed 3 ms in each of three rounds."""
    experiment = Experiment("a", "torch", SETTING, (finding("attention", 3e-3, 2.5e-3, 3.5e-3),))
    fields: dict[str, object] = {
        "original": [(8e-3,) * 4] * 3,
        "flipped": [(5e-3,) * 4] * 3,
        "before": before,
        "after": after,
        "work": counted_work(before),
    }
    return judge(experiment, compare(recorded, AFTER).a, Measured(**(fields | changes)))  # type: ignore[arg-type]


def test_predicted_and_observed_stand_side_by_side() -> None:
    proof = judged()
    assert proof.verdict == "confirmed"
    assert (proof.predicted, proof.observed) == (pytest.approx(3e-3), pytest.approx(3e-3))
    assert (proof.original, proof.flipped, proof.rounds) == (pytest.approx(8e-3), pytest.approx(5e-3), 3)
    assert proof.changed == {"option attention": ("eager", "sdpa"), "switch attention": ("eager", "sdpa")}
    assert proof.text == (
        "torch, attention eager -> sdpa: predicted 3.00 ms (2.50 ms to 3.50 ms), "
        "observed 3.00 ms (3.00 ms to 3.00 ms): confirmed."
    )


def test_another_switch_that_moved_proves_nothing() -> None:
    after = replace(AFTER, switches={"attention": "sdpa", "gelu": "tanh"})
    proof = judged(after=after)
    assert proof.verdict == "not proven"
    assert "not proven: also switch gelu changed." in proof.text
    assert proof.changed["switch gelu"] == ("erf", "tanh")


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("versions", {"torch": "9.9", "python": "3.11.9"}, "version torch"),
        ("environment", {"threads": "9"}, "environment threads"),
        ("parameters", 7, "parameters"),
        ("batch", 9, "batch"),
        ("precision", "bf16", "precision"),
    ],
)
def test_versions_environment_and_size_are_facts_too(field: str, value: object, name: str) -> None:
    proof = judged(after=replace(AFTER, **{field: value}))
    assert proof.verdict == "not proven"
    assert f"also {name} changed" in proof.text
    # and where the original itself is no longer what was recorded, nothing can be said about that record
    proof = judged(before=replace(BEFORE, **{field: value}), after=replace(AFTER, **{field: value}))
    assert proof.verdict == "not proven"
    assert f"no longer what was recorded, as {name} changed" in proof.text


def test_our_own_version_is_no_fact() -> None:
    assert judged(recorded=replace(BEFORE, versions={**BEFORE.versions, "roofline": "0.0"})).verdict == "confirmed"


def test_a_switch_that_did_not_take_proves_nothing() -> None:
    assert "not proven: nothing that is recorded changed" in judged(after=BEFORE).text


def test_other_products_prove_nothing() -> None:
    # 4 layers of 3 products of 20 MFLOP and one attention of 10 MFLOP
    assert counted_work(BEFORE) == {"forward": pytest.approx(4 * 70e6)}
    proof = judged(work={"forward": 4 * 70e6 * 1.002})
    assert "also model FLOPs of the forward (280 MFLOP to 281 MFLOP) changed" in proof.text
    assert proof.verdict == "not proven"
    assert judged(work={"forward": 4 * 70e6 * 1.0005}).verdict == "confirmed"
    assert judged(work={}).verdict == "not proven"  # nothing was counted


def test_phases_that_could_not_be_told_apart_are_held_together() -> None:
    told = step((*LAYER, change(LINEAR, phase="backward")), switches=BEFORE.switches, options=BEFORE.options)
    assert counted_work(told) == {"forward": 70e6, "backward": 20e6}
    untold = replace(told, flags=("phases-unresolved: one program",))
    assert counted_work(untold) == {"step": 90e6}
    assert judged(before=told, recorded=told, work={"step": 90e6}).verdict == "confirmed"


def test_contention_is_said() -> None:
    proof = judged(contended=True)
    assert proof.contended
    assert proof.text.endswith("confirmed; others used the processor.")


def test_names_of_a_hostile_profile_stay_on_one_line() -> None:
    name = "a\nb\x1b[31m" + "x" * 500
    hostile = replace(BEFORE, switches={name: "1"}, environment={"threads": name})
    proof = judged(before=hostile, after=replace(AFTER, switches={name: "2"}), recorded=hostile)
    assert proof.text.isprintable()
    assert len(proof.text) < 1000
    assert setting_for("threads", hostile, step(environment={"threads": "2"}), ()) is not None
