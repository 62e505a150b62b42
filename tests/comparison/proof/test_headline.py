"""The difference as a whole, measured again in turns, and what proofs say beside it; on steps made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, instead, step

from roofline.comparison.causes.findings import explain
from roofline.comparison.proof.experiment import Measured, Proof
from roofline.comparison.proof.headline import beside, cannot, difference
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import Profile, Wall

NAMES = ("mine:written", "mine:fused")
WRITTEN, FUSED = step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)), step()
#: per layer a product, a softmax and a product of 400 us for 200 us, and two launches of 10 us more
APART = 4 * (400 - 200 + 2 * 10) * 1e-6
RESOLVED, EQUAL = compare(WRITTEN, FUSED), compare(FUSED, FUSED)


def again(seconds: float, *, spread: float = 0.0, before: Profile = WRITTEN, after: Profile = FUSED) -> Measured:
    """Three rounds in which A takes 5 ms and so much more than B [s], plus and minus a spread in two of them."""
    rounds = [(5e-3 + seconds + way * spread,) * 4 for way in (-1, 0, 1)]
    return Measured(original=rounds, flipped=[(5e-3,) * 4] * 3, before=before, after=after, work={})


def equal(seconds: float, spread: float = 0.0) -> Proof:
    """Of two runs that were recorded alike."""
    return difference(EQUAL, NAMES, again(seconds, spread=spread, before=FUSED))


def test_both_steps_are_held_against_what_was_recorded() -> None:
    proof = difference(RESOLVED, NAMES, again(APART))
    assert (proof.rule, proof.switch, proof.verdict) == ("difference", "mine:written against mine:fused", "confirmed")
    assert proof.predicted == RESOLVED.difference == pytest.approx(APART)
    assert proof.observed == pytest.approx(APART)
    assert (proof.original, proof.flipped, proof.rounds) == (pytest.approx(5e-3 + APART), pytest.approx(5e-3), 3)
    assert proof.text.startswith("the difference, mine:written against mine:fused: predicted 880 µs (")
    assert proof.text.endswith("observed 880 µs (880 µs to 880 µs): confirmed.")
    assert difference(RESOLVED, NAMES, again(-APART)).verdict == "refuted"
    assert difference(RESOLVED, NAMES, again(0.0)).verdict == "refuted"
    assert difference(RESOLVED, NAMES, again(2 * APART)).verdict == "larger than predicted"


def test_a_difference_that_was_not_resolved_is_not_confirmed() -> None:
    assert not EQUAL.resolved
    assert equal(0.0, spread=1e-4).verdict == "not resolved"
    assert equal(1e-3).verdict == "resolved now"


def test_one_process_of_each_predicts_no_more_than_processes_lie_apart() -> None:
    """A's rounds are 10 % apart and B's are equal: the sum of squares of A's logarithms is 2 * 0.1 ** 2, shared by four
    degrees of freedom, so that a process differs by 7.1 %, of walls of 6 ms and 5 ms, by t = 2.78 times that."""
    ci95 = RESOLVED.ci95
    assert ci95 is not None
    quiet = difference(RESOLVED, NAMES, again(APART)).predicted_ci95
    assert quiet == pytest.approx(ci95)
    wide = difference(RESOLVED, NAMES, again(1e-3, spread=6e-4)).predicted_ci95
    assert wide is not None
    walls = (WRITTEN.wall.steps[4] ** 2 + FUSED.wall.steps[4] ** 2) ** 0.5
    assert wide[1] - APART == pytest.approx(2.776 * 0.0709 * walls, rel=0.05)
    # So wide an interval may hold 0, and what the headline says is resolved all the same.
    loud = again(2e-3, spread=19e-4)
    for measured, found in ((loud, "confirmed"), (again(-2e-3, spread=19e-4), "refuted")):
        proof = difference(RESOLVED, NAMES, measured)
        assert proof.predicted_ci95 is not None
        assert proof.predicted_ci95[0] < 0 < proof.predicted_ci95[1]
        assert proof.verdict == found
    # Where processes were recorded, their spread is in the interval already.
    more = [replace(each, wall=replace(each.wall, processes=(each.wall.steps,))) for each in (WRITTEN, FUSED)]
    pair = compare(*more)
    assert difference(pair, NAMES, again(1e-3, spread=6e-4)).predicted_ci95 == pair.ci95


def test_another_step_than_was_recorded_proves_nothing() -> None:
    changed = replace(FUSED, sources={"mine.py": "1"})
    proof = difference(RESOLVED, NAMES, again(APART, after=changed))
    assert proof.verdict == "not proven"
    assert "mine:fused is no longer what was recorded, as file mine.py changed" in proof.text
    # 4 layers of 3 products of 20 MFLOP and one attention of 10 MFLOP, and B's work is another one now
    measured = again(APART)
    other = Measured(
        original=measured.original, flipped=measured.flipped, before=WRITTEN, after=FUSED, work={"forward": 4 * 80e6}
    )
    assert "model FLOPs of the forward (280 MFLOP to 320 MFLOP) of mine:fused changed" in (
        difference(RESOLVED, NAMES, other).text
    )


def test_how_threads_wait_is_set_by_the_measurement() -> None:
    after = replace(FUSED, environment={**FUSED.environment, "OMP_WAIT_POLICY": "PASSIVE"})
    assert difference(RESOLVED, NAMES, again(APART, after=after)).verdict == "confirmed"


def test_what_cannot_be_measured_again_is_said() -> None:
    proof = cannot(RESOLVED, NAMES, "mine.py has changed.")
    assert (proof.verdict, proof.observed, proof.reason) == ("not proven", None, "mine.py has changed.")
    assert proof.text.endswith("not proven. mine.py has changed.")


# ------------------------------------------------------------------------------------------ proofs of causes beside it


def proof(verdict: str = "confirmed") -> Proof:
    return Proof(
        rule="fusion", rules=("fusion",), run="a", switch="torch.compile off -> on", predicted=3e-3,
        predicted_ci95=(2e-3, 4e-3), observed=3e-3, observed_ci95=(2e-3, 4e-3), verdict=verdict,
        text=f"torch, torch.compile off -> on: predicted 3.00 ms, observed 3.00 ms: {verdict}.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("comparison", "whole", "found"),
    [
        (RESOLVED, None, "confirmed"),
        (EQUAL, None, "switch confirmed"),
        (EQUAL, equal(1e-3), "confirmed"),  # measured again it is there
        (EQUAL, equal(0.0, spread=1e-4), "switch confirmed"),
        (RESOLVED, difference(RESOLVED, NAMES, again(0.0, spread=1e-4)), "switch confirmed"),  # and here it is gone
        (RESOLVED, cannot(RESOLVED, NAMES, "It is gone."), "confirmed"),
        (EQUAL, cannot(EQUAL, NAMES, "It is gone."), "switch confirmed"),
    ],
)
def test_a_switch_is_no_proof_of_a_difference_that_is_not_there(
    comparison: Comparison, whole: Proof | None, found: str
) -> None:
    *_, told = beside((whole, proof()) if whole else (proof(),), comparison)
    assert told.verdict == found
    assert ("what the runs differ by" in told.text) == ("is not resolved" in told.reason) == (found != "confirmed")
    assert f": {found}" in told.text


def test_only_gains_are_worded_anew() -> None:
    kept = [proof(verdict) for verdict in ("refuted", "not resolved", "not proven", "no switch")]
    assert beside(kept, EQUAL) == tuple(kept)
    (smaller,) = beside((proof("smaller than predicted"),), EQUAL)
    assert smaller.verdict == "smaller than predicted"
    assert "is not resolved" in smaller.text


def test_two_steps_of_a_run_have_no_interval() -> None:
    few = replace(WRITTEN, wall=Wall(steps=(1e-3, 1e-3)))
    assert explain(compare(few, FUSED)) == ()
    assert difference(compare(few, FUSED), NAMES, again(APART, before=few)).verdict == "not resolved"
