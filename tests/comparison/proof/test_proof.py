"""Experiments planned from an account, what a switch moved, and verdicts about gains; on steps made by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, LINEAR, instead, step

from roofline.analysis.analysis import analyze
from roofline.comparison.account.account import account
from roofline.comparison.account.row import Account, Amount, OpChange, Row
from roofline.comparison.machine_speed import PROCESSES
from roofline.comparison.proof.proof import (
    Experiment,
    Proof,
    cannot,
    judge,
    judge_gain,
    moved_rows,
    plan,
    without_switch,
)
from roofline.comparison.proof.same_run import changed_since, model_flops, other_work
from roofline.comparison.terms import compare
from roofline.comparison.turns import Paired
from roofline.core.schema import Profile
from roofline.core.switch import ATTENTION, COMPILED_AWAY, JIT, OPTIMIZER, Setting, Switch

COMPILE = Switch(
    name="compile",
    kind=COMPILED_AWAY,
    assumed="off",
    turns={"off": "on"},
    backend="compiled",
    moves=("backend", "switch compile"),
)
SWITCHES = (ATTENTION, COMPILE, OPTIMIZER, JIT)
NAMES = ("first", "second")
EAGER, SDPA = ({"attention": form} for form in ("eager", "sdpa"))
WRITTEN = step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION), switches=EAGER, options=EAGER)
FUSED = step(switches=SDPA, options=SDPA)
#: Per layer two products and a softmax of 400 us for an attention of 200 us, and two launches of 10 us more.
APART = 4 * (400 - 200 + 2 * 10) * 1e-6


def switches(profile: Profile) -> Sequence[Switch]:
    return SWITCHES


def row(seconds: float, *names: str, low: float = 0.0, high: float = 0.0) -> Row:
    """A row of ops that only one run has, of that name; low, high: its interval, less its seconds [s]."""
    ci95 = (seconds + low, seconds + high)
    amounts = {"a": Amount(seconds=max(seconds, 0.0)), "b": Amount(seconds=max(-seconds, 0.0))}
    return Row(kind="only", seconds=seconds, ci95=ci95, annotations=names, **amounts)


def planned(*rows: Row, a: Profile = WRITTEN, b: Profile = FUSED) -> tuple[Experiment, ...]:
    return plan(compare(a, b), Account(rows=rows), switches, NAMES)


# ------------------------------------------------------------------------------------------------------- experiments


def test_the_run_that_spends_more_is_set_as_the_other_one_is() -> None:
    for rows, run, text in (
        (row(1e-3, "attention-written-out"), "a", "attention eager -> sdpa"),
        (row(-1e-3, "attention-written-out"), "b", "attention sdpa -> eager"),
    ):
        (experiment,) = planned(rows)
        assert experiment.setting is not None
        assert (experiment.run, experiment.setting.text) == (run, text)
        assert experiment.prediction[0] == pytest.approx(1e-3)


def test_a_setting_predicts_nothing() -> None:
    setting = Row(kind="setting", ops=tuple(OpChange(name=name, a="x", b="y") for name in ("versions", "attention")))
    (experiment,) = planned(setting)
    assert experiment.setting is not None
    assert (experiment.names, list(experiment.rows)) == (("attention",), [1])
    assert experiment.prediction == (None, None)
    # One that the first run cannot be given is taken from the second.
    (experiment,) = planned(setting, a=step(switches={}, options={}))
    assert experiment.run == "b"


def test_rows_that_one_switch_answers_are_one_experiment() -> None:
    setting = Row(kind="setting", ops=(OpChange(name="attention", a="eager", b="sdpa"),))
    experiments = planned(setting, row(3e-3, "attention-written-out"), row(2e-3, "op-by-op"), row(-1e-3, "op-by-op"))
    assert [(each.run, each.names, list(each.rows)) for each in experiments] == [
        ("a", ("attention", "attention-written-out"), [1, 2]),
        ("a", ("op-by-op",), [3]),
        ("b", ("op-by-op",), [4]),  # of the other sign: it is the other run that spends it
    ]
    assert [each.prediction[0] for each in experiments] == [pytest.approx(seconds) for seconds in (3e-3, 2e-3, 1e-3)]
    assert [each.name for each in experiments] == ["first", "first", "second"]


def test_the_prediction_holds_what_processes_differ_by() -> None:
    """Half widths of 4 and 3 ms below, of 4 and 2 ms above, and 10 % of the 30 and the 10 ms that A spends there."""
    (experiment,) = planned(
        row(30e-3, "attention-written-out", low=-4e-3, high=4e-3),
        row(10e-3, "attention-written-out", low=-3e-3, high=2e-3),
    )
    predicted, ci95 = experiment.prediction
    assert predicted == pytest.approx(40e-3)
    assert PROCESSES == 0.1
    below, above = math.hypot(4, 3, 3, 1) * 1e-3, math.hypot(4, 2, 3, 1) * 1e-3
    assert ci95 == pytest.approx((40e-3 - below, 40e-3 + above))
    (without,) = planned(row(30e-3, "attention-written-out"), replace(row(1e-3, "attention-written-out"), ci95=None))
    assert without.prediction[1] is None


def test_a_named_row_without_a_switch_is_not_left_out() -> None:
    (experiment,) = planned(row(3e-3, "broadcast-copy", low=-1e-3, high=1e-3))
    proof = without_switch(experiment)
    assert (proof.verdict, proof.switch, proof.observed, proof.rows) == ("no switch", None, None, (1,))
    assert proof.text == "first, broadcast-copy (3.00 ms (1.96 ms to 4.04 ms)): there is no switch for it."
    own = replace(WRITTEN, model="mine:step", switches={}, options={})
    (experiment,) = planned(row(3e-3, "attention-written-out"), a=own)
    assert without_switch(experiment).text.endswith("no switch: its attention is written in your file.")
    # A row without a name and a setting without a switch ask for nothing.
    assert planned(row(3e-3), Row(kind="setting", ops=(OpChange(name="versions", a="1", b="2"),))) == ()


# ---------------------------------------------------------------------------------------------------------- the gain


def paired(observed: float, ci95: tuple[float, float], busy: bool = False) -> Paired:
    return Paired(a=8e-3, b=8e-3 - observed, ci95=ci95, number=3, busy=(busy, False), hopeless=False)


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
    ],
)
def test_verdicts(observed: float, interval: tuple[float, float], expected: str) -> None:
    """Predicted: 3, between 2.5 and 3.5."""
    assert judge_gain(3.0, (2.5, 3.5), paired(observed, interval)) == expected


def test_verdicts_without_a_prediction() -> None:
    assert judge_gain(None, None, paired(3.0, (2.5, 3.5))) == "measured"
    assert judge_gain(None, None, paired(0.1, (-0.5, 0.7))) == "not resolved"
    assert judge_gain(3.0, None, paired(3.0, (2.5, 3.5))) == "not resolved"
    assert judge_gain(0.1, (-0.5, 0.5), paired(3.0, (2.5, 3.5))) == "resolved now"
    # A busy machine refutes nothing and confirms nothing.
    assert judge_gain(3.0, (2.5, 3.5), paired(0.1, (-0.5, 0.7), busy=True)) == "not resolved"
    assert judge_gain(3.0, (2.5, 3.5), paired(3.0, (2.5, 3.5), busy=True)) == "not resolved"


def test_rows_before_and_after_add_up_to_what_was_gained() -> None:
    moved = moved_rows(account(compare(WRITTEN, FUSED)), account(compare(FUSED, FUSED)))
    assert sum(each.seconds for each in moved) == pytest.approx(APART)
    assert moved[0].before == pytest.approx(moved[0].seconds)
    assert moved[0].after is None
    assert [abs(each.seconds) for each in moved] == sorted((abs(each.seconds) for each in moved), reverse=True)


# ---------------------------------------------------------------------------------------------------------- judging

SETTING = Setting(text="attention eager -> sdpa", moves=("option attention", "switch attention"))
BEFORE = step(switches={"attention": "eager", "gelu": "erf"}, options={"attention": "eager"})
AFTER = step(switches={"attention": "sdpa", "gelu": "erf"}, options={"attention": "sdpa"})


def work_of(profile: Profile) -> dict[str, float]:
    """Return the model FLOPs of a profile that was counted."""
    return model_flops(analyze(profile))


def judged(before: Profile | None = None, after: Profile = AFTER, recorded: Profile = BEFORE, **of: bool) -> Proof:
    """Predicted 3 ms (2.5 to 3.5), observed as much. before: the original as it is now; None: as it was recorded."""
    comparison = compare(recorded, AFTER)
    told = row(3e-3, "attention-written-out", low=-0.5e-3, high=0.5e-3)
    experiment = Experiment(run="a", name="torch", setting=SETTING, names=("attention-written-out",), rows={2: told})
    observed = paired(3e-3, (2.9e-3, 3.1e-3), **of)
    return judge(experiment, comparison, account(comparison), before or recorded, after, observed)


def test_predicted_and_observed_stand_side_by_side() -> None:
    proof = judged()
    assert proof.verdict == "confirmed"
    assert (proof.predicted, proof.observed) == (pytest.approx(3e-3), pytest.approx(3e-3))
    assert (proof.original, proof.flipped, proof.rounds) == (pytest.approx(8e-3), pytest.approx(5e-3), 3)
    assert (proof.rule, proof.rules, proof.rows) == ("attention-written-out", ("attention-written-out",), (2,))
    assert proof.changed == {"option attention": ("eager", "sdpa"), "switch attention": ("eager", "sdpa")}
    assert proof.text == (
        "torch, attention eager -> sdpa: predicted 3.00 ms (2.42 ms to 3.58 ms), "
        "observed 3.00 ms (2.90 ms to 3.10 ms): confirmed."
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
    proof = judged(before=replace(BEFORE, **{field: value}))
    assert proof.verdict == "not proven"
    assert f"no longer what was recorded, as {name} changed" in proof.text


def test_what_plain_steps_do_not_record_may_be_as_it_was() -> None:
    plain = replace(BEFORE, switches={"gelu": "erf"}, parameters=None, mode="train", versions={"roofline": "0.0"})
    assert changed_since(BEFORE, plain) == []
    waiting = replace(BEFORE, environment={**BEFORE.environment, "OMP_WAIT_POLICY": "PASSIVE"})
    assert changed_since(BEFORE, waiting) == []


def test_a_switch_that_did_not_take_proves_nothing() -> None:
    assert "not proven: nothing that is recorded changed" in judged(after=BEFORE).text


def test_other_products_prove_nothing() -> None:
    more = step((*LAYER * 4, LINEAR), switches=AFTER.switches, options=AFTER.options)
    proof = judged(after=more)
    assert proof.verdict == "not proven"
    assert "also model FLOPs of the forward (280 MFLOP to 300 MFLOP) changed" in proof.text
    # 4 layers of 3 products of 20 MFLOP and one attention of 10 MFLOP
    work = work_of(BEFORE)
    assert work == {"forward": pytest.approx(4 * 70e6)}
    assert other_work(work, {"forward": 4 * 70e6 * 1.0005}) == []
    assert other_work(work, {}) != []  # nothing was counted


def test_phases_that_could_not_be_told_apart_are_held_together() -> None:
    told = step((*LAYER, change(LINEAR, phase="backward")))
    assert work_of(told) == {"forward": 70e6, "backward": 20e6}
    untold = replace(told, flags=("phases-unresolved: one program",))
    assert work_of(untold) == {"step": 90e6}
    assert other_work(work_of(told), {"step": 90e6}) == []


def test_contention_is_said() -> None:
    proof = judged(busy=True)
    assert proof.contended
    assert proof.text.endswith("not resolved; others used the processor.")


def test_what_cannot_be_run_is_said() -> None:
    (experiment,) = planned(row(1e-3, "attention-written-out"))
    proof = cannot(experiment, "It died.")
    assert (proof.verdict, proof.reason) == ("not proven", "It died.")
    assert proof.text == "first, attention eager -> sdpa: not proven. It died."


def test_names_of_a_hostile_profile_stay_on_one_line() -> None:
    name = "a\nb\x1b[31m" + "x" * 500
    hostile = replace(BEFORE, switches={name: "1"}, environment={"threads": name})
    proof = judged(after=replace(AFTER, switches={name: "2"}), recorded=hostile)
    assert proof.text.isprintable()
    assert len(proof.text) < 1000
