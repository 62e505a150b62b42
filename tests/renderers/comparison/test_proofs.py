"""Proofs as `roofline compare --prove` prints them, in each format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import handmade
import set_in_latex

from roofline.comparison.proof.proof import Moved, Proof
from roofline.comparison.ranking import Ranking, rank
from roofline.content.terminal import SHEET
from roofline.renderers.comparison import _proofs, latex
from roofline.renderers.comparison import csv as comparison_csv

PROOFS = (
    Proof(
        rule="threads",
        rules=("threads",),
        rows=(1,),
        run="a",
        switch="threads 1 -> 2",
        observed=0.5e-3,
        observed_ci95=(-0.5e-3, 1.5e-3),
        original=123e-3,
        flipped=122e-3,
        rounds=3,
        verdict="not resolved",
        text="torch, threads 1 -> 2: observed 500 µs: not resolved.",
    ),
    Proof(
        rule="fusion",
        rules=("fusion", "host-bound"),
        rows=(2, 4),
        run="a",
        switch="torch.compile off -> on",
        predicted=40e-3,
        predicted_ci95=(35e-3, 44e-3),
        observed=38e-3,
        observed_ci95=(36e-3, 41e-3),
        original=122e-3,
        flipped=84e-3,
        rounds=3,
        moved=(
            Moved(label="encoder.layer.*.attention, forward", before=30e-3, after=None),
            Moved(label="pointwise, the same ops", before=9e-3, after=1e-3),
            Moved(label="not known", before=-1e-3, after=-2e-3),
            Moved(label="compiled ops", before=None, after=0.5e-3),
            Moved(label="softmax, the same ops", before=0.2e-3, after=0.1e-3),
        ),
        changed={"backend": ("torch", "torch-compile"), "switch torch.compile": (None, "mode=default")},
        verdict="confirmed",
        text="torch, torch.compile off -> on: predicted 40.0 ms, observed 38.0 ms: confirmed.",
    ),
    Proof(
        rule="random",
        rules=("random",),
        rows=(3,),
        run="b",
        switch="dropout 0.1 -> off",
        predicted=2e-3,
        predicted_ci95=(1e-3, 3e-3),
        observed=5e-3,
        observed_ci95=(4e-3, 6e-3),
        original=84e-3,
        flipped=79e-3,
        rounds=3,
        changed={"switch dropout": ("0.1", "0.0"), "switch attention": ("written out", "fused")},
        contended=True,
        verdict="not proven",
        text="jax, dropout 0.1 -> off: predicted 2.00 ms, observed 5.00 ms: not proven: also switch attention changed.",
    ),
    Proof(
        rule="layout",
        rules=("layout",),
        rows=(5,),
        run="a",
        switch=None,
        predicted=1e-3,
        predicted_ci95=(0.5e-3, 1.5e-3),
        verdict="no switch",
        text="torch, layout (1.00 ms): there is no switch for it.",
    ),
    Proof(
        rule="attention",
        rules=("attention",),
        rows=(6,),
        run="a",
        switch=None,
        predicted=1e-3,
        predicted_ci95=(0.5e-3, 1.5e-3),
        verdict="no switch",
        text="torch, attention (1.00 ms): no switch: its attention is written in your file.",
        reason="its attention is written in your file",
    ),
)


def test_predicted_and_observed_stand_side_by_side(golden: Callable[[str, str], None]) -> None:
    golden("proofs.txt", "\n".join(_proofs.text(PROOFS, SHEET)) + "\n")
    golden("proofs.md", "\n".join(_proofs.markdown(PROOFS)) + "\n")


def test_a_paper_and_a_spreadsheet_have_them_too() -> None:
    pair = replace(rank([handmade.profile(), handmade.profile(backend="jax")], as_given=True).pairs[0], proofs=PROOFS)
    ranking = Ranking(pair.names, (pair.comparison.a, pair.comparison.b), 0, (pair,))
    tex = latex.render(ranking, columns=2)
    set_in_latex.check(tex)
    assert "predicted & 95 \\% & observed & 95 \\% & verdict" in tex
    assert "& ms & ms & ms & ms &" in tex, "one unit for all times"
    assert "& 40.0\\phantom{0} & 35.0--44.0 & 38.0\\phantom{00} & 36.0--41.0 & confirmed" in tex
    assert "% 2: fusion + host-bound; A: torch.compile off -> on\n" in tex
    assert "% 3: jax, dropout 0.1 -> off: predicted 2.00 ms" in tex
    rows = [row for row in csv.DictReader(io.StringIO(comparison_csv.render(ranking))) if row["row"] == "proof"]
    assert [row["seconds"] for row in rows] == ["0.0005", "0.038", "0.005", "", ""]
    assert (rows[1]["kind"], rows[1]["ci95_low"], rows[1]["label"]) == ("fusion + host-bound", "0.036", PROOFS[1].text)


def test_lines_fit_the_terminal() -> None:
    assert max(map(len, _proofs.text(PROOFS, SHEET))) <= 100


def test_nothing_to_prove_is_said() -> None:
    assert _proofs.text((), SHEET) == _proofs.markdown(()) == ["Proof: no row of the account has a switch."]
    assert _proofs.document(()) == []


def test_the_document_has_all_fields_and_null_for_what_was_not_measured() -> None:
    setting, first, _, last, _ = json.loads(json.dumps(_proofs.document(PROOFS)))
    assert list(first) == list(Proof.__struct_fields__)
    assert first["observed"] == 38e-3
    assert (setting["predicted"], setting["predicted_ci95"]) == (None, None)
    assert first["moved"][0] == {"label": "encoder.layer.*.attention, forward", "before": 30e-3, "after": None}
    assert first["changed"]["backend"] == ["torch", "torch-compile"]
    assert (last["switch"], last["observed"], last["observed_ci95"]) == (None, None, None)


def test_hostile_names_do_nothing() -> None:
    for name in handmade.HOSTILE:
        proof = Proof(
            rule=name, rules=(name,), rows=(1,), run="a", switch=name, predicted=1.0, predicted_ci95=(0.5, 1.5),
            verdict="not proven", text=name,
        )  # fmt: skip
        lines = _proofs.text((proof,), SHEET)
        assert all(line.isprintable() for line in lines)
        table = [line for line in _proofs.markdown((proof,)) if line.startswith("|")]
        assert [line.replace("\\|", "").count("|") for line in table] == [9] * 3
        assert not any("<" in line for line in table)
