"""The headline and the proofs below it: one sentence about both runs, measured again, in every format."""

from __future__ import annotations

import json
from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, instead, step

from roofline.comparison.proof import headline
from roofline.comparison.proof.experiment import Measured, Proof
from roofline.comparison.ranking import Ranking, rank
from roofline.renderers.comparison import json as as_json
from roofline.renderers.comparison import markdown, text

WRITTEN = step(instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION), model="mine:written")
FUSED = step(model="mine:fused")


def shown(ranking: Ranking, proofs: tuple[Proof, ...]) -> dict[str, str]:
    """What each format says, on one line."""
    (pair,) = ranking.pairs
    told = change(ranking, pairs=(change(pair, proofs=headline.beside(proofs, pair.comparison)),))
    formats = {"text": text.render(told), "markdown": markdown.render(told), "json": as_json.render(told)}
    said = {name: " ".join(words.replace("\\", "").split()) for name, words in formats.items()}
    return said | {"json": json.loads(formats["json"])["verdict"]}


def measured(a: float, b: float) -> Measured:
    """Two rounds of each [s]."""
    return Measured(original=[(a,) * 4] * 2, flipped=[(b,) * 4] * 2, before=WRITTEN, after=FUSED, work={})


def test_what_was_measured_again_ends_the_headline() -> None:
    ranking = rank([WRITTEN, FUSED], as_given=True)
    (pair,) = ranking.pairs
    # 4 layers x 220 us were recorded
    proof = headline.difference(pair.comparison, pair.names, measured(5.88e-3, 5e-3))
    for said in shown(ranking, (proof,)).values():
        assert "Measured again in turns, 2 rounds: A − B is +880 µs, 95 % interval 880–880 µs: confirmed." in said
    for said in shown(ranking, ()).values():
        assert "easured again" not in said


def test_what_could_not_be_measured_again_is_said_there() -> None:
    ranking = rank([WRITTEN, FUSED], as_given=True)
    (pair,) = ranking.pairs
    proof = headline.cannot(pair.comparison, pair.names, "mine.py has changed: measure it again.")
    for said in shown(ranking, (proof,)).values():
        assert "Not measured again: mine.py has changed: measure it again." in said


@pytest.mark.parametrize("name", ["text", "markdown", "json"])
def test_no_proof_contradicts_the_headline(name: str) -> None:
    ranking = rank([replace(FUSED, model="mine:one"), FUSED], as_given=True)
    (pair,) = ranking.pairs
    assert not pair.comparison.resolved
    proof = Proof(
        rule="fusion", rules=("fusion",), run="a", switch="torch.compile off -> on", predicted=3e-3,
        predicted_ci95=(2e-3, 4e-3), observed=3e-3, observed_ci95=(2e-3, 4e-3), verdict="confirmed",
        text="torch, torch.compile off -> on: predicted 3.00 ms, observed 3.00 ms: confirmed.",
    )  # fmt: skip
    said = shown(ranking, (proof,))[name]
    assert "no difference that these runs resolve" in said
    if name != "json":  # where the verdict is a field of the proof
        assert "switch confirmed: this is what the switch gains; what the runs differ by" in said
