"""The energy of a step in each output: where it is known, and nothing but null where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import handmade
import pytest
import toy_sweeps
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import rank
from roofline.content.comparison import pair_facts
from roofline.content.facts import energy, measured
from roofline.core.schema import Energy, Profile, load, save
from roofline.errors import InputError
from roofline.renderers import json as of_show
from roofline.renderers import text
from roofline.renderers.comparison import json as of_comparison
from roofline.renderers.comparison import text as comparison_text
from roofline.renderers.report import sweep as of_report
from roofline.renderers.sweep import json as of_sweep
from roofline.renderers.sweep import text as sweep_text
from roofline.sweeping.plan import points

#: 3 J a step, sure to 2 %; a step of the hand-made profile has 4 samples.
ENERGY = Energy(per_step=3.0, uncertainty=0.06, tick=0.02, seconds=2.0, steps=160, alone=True)


def test_it_is_saved_and_read(tmp_path: Path) -> None:
    save(handmade.profile(energy=ENERGY), tmp_path / "p.json")
    assert load(tmp_path / "p.json").energy == ENERGY
    with pytest.raises(InputError, match="energy"):
        save(handmade.profile(energy=replace(ENERGY, tick=-1.0)), tmp_path / "p.json")


def test_show_has_it_beside_the_time() -> None:
    known, unknown = analyze(handmade.profile(energy=ENERGY)), analyze(handmade.profile())
    document = json.loads(of_show.render(known, None))["energy"]
    assert document == {
        "per_step": 3.0, "per_sample": 0.75, "uncertainty": 0.06, "tick": 0.02, "seconds": 2.0, "steps": 160,
        "alone": True,
    }  # fmt: skip
    assert json.loads(of_show.render(unknown, None))["energy"] is None
    assert energy.amounts(known.profile) == ["3.00 J ± 2.0 % per step", "0.750 J ± 2.0 % per sample"]
    assert all(amount in text.render(known, None) for amount in energy.amounts(known.profile))
    assert "energy" in dict(measured.facts(known))
    assert "energy" not in dict(measured.facts(unknown))
    assert energy.amounts(unknown.profile) == []
    assert dict(measured.facts(known))["energy"].startswith("3.00 J ± 2.0 % per step, 0.750 J ± 2.0 % per sample; ")


def test_compare_has_it_of_both_runs() -> None:
    a, b = handmade.profile(energy=ENERGY), handmade.profile(backend="jax", energy=replace(ENERGY, per_step=2.0))
    document = json.loads(of_comparison.render(rank([a, b], as_given=True)))
    assert [run["energy"]["per_step"] for run in document["runs"]] == [3.0, 2.0]
    two = comparison_text.render(rank([a, b], as_given=True))
    assert "A uses 1.50 times as much per step" in _of_pair(a, b)
    assert "3.00 J ± 2.0 % per step, 0.750 J ± 2.0 % per sample" in two
    half = comparison_text.render(rank([a, handmade.profile(backend="jax")], as_given=True))
    assert "B not known" in half
    assert "times as much" not in half
    several = [a, b, handmade.profile(backend="tensorflow")]
    assert "2.00 J ± 3.0 %" in comparison_text.render(rank(several))
    assert "energy" not in comparison_text.render(rank([handmade.profile(backend=name) for name in ("a", "b", "c")]))


@pytest.mark.parametrize(
    ("changes", "less"),
    [({"batch": 8, "samples": 8}, ENERGY), ({"backend": "jax"}, replace(ENERGY, per_step=0.0, uncertainty=0.0))],
    ids=["other work", "a counter that did not move"],
)
def test_no_run_uses_more_where_the_work_differs_or_none_was_seen(changes: dict[str, Any], less: Energy) -> None:
    words = _of_pair(handmade.profile(energy=replace(ENERGY, per_step=6.0)), handmade.profile(energy=less, **changes))
    assert words.count("per step") == 2
    assert "times as much" not in words


@pytest.mark.parametrize(("per_step", "apart"), [(2.0, True), (2.2, False)])
def test_which_run_uses_more_is_known_where_their_intervals_are_apart(per_step: float, apart: bool) -> None:
    """1.0 ± 0.3 J ends at 1.3 J; 2.0 ± 0.6 J begins at 1.4 J, and 2.2 ± 1.0 J at 1.2 J."""
    less = replace(ENERGY, per_step=1.0, uncertainty=0.3)
    more = replace(ENERGY, per_step=per_step, uncertainty=0.6 if apart else 1.0)
    words = _of_pair(handmade.profile(energy=less), handmade.profile(backend="jax", energy=more))
    assert words.endswith("B uses 2.00 times as much per step" if apart else "which uses more is not known")


def test_an_energy_of_nothing_has_no_share() -> None:
    nothing = replace(ENERGY, per_step=0.0, uncertainty=0.0)
    assert nothing.relative is None
    assert "±" not in dict(energy.facts(handmade.profile(energy=nothing)))["energy"]


def _of_pair(a: Profile, b: Profile) -> str:
    (pair,) = rank([a, b], as_given=True).pairs
    return dict(pair_facts.runs(pair))["energy"]


def test_a_sweep_has_it_of_each_point(tmp_path: Path) -> None:
    """Only torch runs where it is counted."""
    every = points(["mlp"], ["torch", "jax"], ["infer"], ["fp32"], [1, 2], [8])
    grid = toy_sweeps.sweep(
        tmp_path, every, lambda point: toy_sweeps.measured(point, energy=ENERGY if point.backend == "torch" else None)
    )
    runs = [run for cell in json.loads(of_sweep.render(grid))["cells"] for run in cell["runs"]]
    fields = ("joules", "joules_per_sample", "joules_relative")
    assert [[run[field] for field in fields] for run in runs if run["backend"] == "torch"] == [[3.0, 0.75, 0.02]] * 2
    assert [[run[field] for field in fields] for run in runs if run["backend"] == "jax"] == [[None] * 3] * 2
    assert sweep_text.render(grid).count("per sample") == 1
    assert sweep_text.render(grid).count("0.750 J ± 2.0 %") == 2
    assert str(of_report.points(grid)).count("0.750 J ± 2.0 % per sample") == 2
