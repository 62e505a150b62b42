"""`--preset` from the command line: what it fills, what wins, and what `show` says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
Run = Callable[..., Any]

SMALL = ("--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")


def test_what_is_given_wins_and_is_said(measuring: Run, tmp_path: Path) -> None:
    words = ("profile", "mlp", *SMALL, "--preset", "simplechains", "--batch", "64", "-o", "out.json")
    ended = measuring(*words)
    assert ended.code == 0, ended.err
    assert "simplechains, MLP, 10,000 epochs, as PyTorch: torch --mode train" in ended.err
    assert "torch differs from the preset: --batch 64 instead of 10000; --steps 3 instead of" in ended.err

    told = " ".join(measuring("show", "out.json").out.split())
    assert "preset simplechains, MLP, 10,000 epochs, as PyTorch differs from the preset: batch 64 instead of" in told
    assert "mean of 3 plain steps" in told
    assert "15.2–15.3 s in all) on i9-10980XE, which is another device than this one: no ratio" in told

    found = json.loads(measuring("show", "out.json", "--format", "json").out)
    steps = json.loads((tmp_path / "out.json").read_text())["wall"]["steps"]
    assert found["mode"] == "train"
    assert found["preset"]["mean"] == pytest.approx(sum(steps) / 3)
    assert all(figure["ratio"] is None for figure in found["preset"]["published"])


def test_the_default_given_by_hand_wins_too(measuring: Run) -> None:
    """--mode infer is the default; given, it is the user's word, which this benchmark has no row for."""
    ended = measuring("profile", "mlp", *SMALL, "--preset", "simplechains", "--mode", "infer")
    assert ended.code == 2
    assert "simplechains has no infer of mlp: use --mode train." in ended.err


@pytest.mark.parametrize("words", [("--backend", "torch"), ("--backends", "torch,jax")])
def test_a_model_that_it_does_not_have(roofline: Run, words: tuple[str, str]) -> None:
    verb = "profile" if words[0] == "--backend" else "compare"
    ended = roofline(verb, "bert", *words, "--preset", "simplechains")
    assert ended.code == 2
    assert "simplechains did not run bert; it has: lenet5, mlp." in ended.err


def test_a_preset_is_for_measuring(roofline: Run) -> None:
    ended = roofline("compare", "a.json", "b.json", "--preset", "hf2019")
    assert ended.code == 2
    assert "--preset is for measuring" in ended.err


def test_an_unknown_preset_names_the_known_ones(roofline: Run) -> None:
    ended = roofline("profile", "mlp", "--backend", "torch", "--preset", "mlperf")
    assert ended.code == 2
    assert "There is no preset called 'mlperf'; there are: hf2019, keras-benchmark, simplechains." in ended.err
