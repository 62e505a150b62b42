"""`--preset` from the command line: what it fills, what wins, and what `show` says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest

from roofline import plugins
from roofline.cli.options import presets
from roofline.core import shipped
from roofline.core.schema import Wall, load, save
from roofline.published import presets as published_presets

torch = pytest.importorskip("torch")
Run = Callable[..., Any]

SMALL = ("--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")


def test_what_is_given_wins_and_is_said(measuring: Run, tmp_path: Path) -> None:
    words = ("profile", "mlp", *SMALL, "--preset", "simplechains", "--batch", "64", "-o", "out.json")
    ended = measuring(*words)
    assert ended.code == 0, ended.err
    assert "simplechains, MLP, 10,000 epochs, as PyTorch: torch --mode train" in ended.err
    assert "torch differs from the preset: --batch 64 instead of 10000; --steps 3 instead of" in ended.err

    told = " ".join(measuring("show", "out.json", "--details").out.split())
    assert "preset simplechains, MLP, 10,000 epochs, as PyTorch differs from the preset: batch 64 instead of" in told
    assert "mean of 3 plain steps" in told
    assert "15.2–15.3 s in all) on i9-10980XE, which is another device than this one: no ratio" in told

    found = json.loads(measuring("show", "out.json", "--format", "json").out)
    steps = json.loads((tmp_path / "out.json").read_text())["wall"]["steps"]
    assert found["mode"] == "train"
    assert found["preset"]["mean"] == pytest.approx(sum(steps) / 3)
    assert all(figure["ratio"] is None for figure in found["preset"]["published"])


TINY = (*SMALL, "--preset", "keras-benchmark", "--mode", "train", "--size", "tiny", "--batch", "2", "--seq", "8")


def test_what_the_benchmark_timed_is_run_too(measuring: Run, tmp_path: Path) -> None:
    """Native BERT fit is a Trainer. Three steps of it, and at least three plain ones behind them."""
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    ended = measuring("profile", "bert", *TINY, "-o", "out.json")
    assert ended.code == 0, ended.err
    assert "Trainer.train is timed too, as in the benchmark; --core times only the bare step." in ended.err
    assert "it/s" not in ended.err, "its progress bar"
    api = json.loads((tmp_path / "out.json").read_text())["api"]
    assert (api["name"], api["data"], len(api["steps"]), len(api["after"])) == ("Trainer.train", "a DataLoader", 3, 3)
    assert 0 < api["waiting"] < sum(api["steps"]), "some of it is waiting for data, and not all"
    told = " ".join(measuring("show", "out.json", "--details").out.split())
    assert "api Trainer.train, which the benchmark timed: mean of 3 steps" in told
    assert "per step than the bare step (95 % interval" in told
    assert "apart" not in told


def test_core_is_the_bare_step_alone() -> None:
    asked = {"mode": "train", "device": "cpu", "batch": None, "threads": 1}
    for backend, core, api, words in (
        ("keras-jax", False, "fit", "fit is timed too"),
        ("keras-jax", True, None, ""),
        ("torch-compile", False, None, "The benchmark timed Trainer.train, which does not run on torch-compile"),
        ("jax", False, None, ""),
    ):
        _, filled, lines = presets.fill("keras-benchmark", "bert", backend, asked, ("mode", "device"), core)
        assert filled.get("api") == api
        assert ("is timed" in " ".join(lines)) == (api is not None)
        assert words in " ".join(lines)


def test_the_published_size_is_what_the_benchmark_ran() -> None:
    asked = {"mode": "train", "device": "cpu", "batch": None, "threads": 1, "size": "published"}
    given = ("mode", "device", "size")
    for backend, differs in (("torch", False), ("keras-jax", True)):  # Keras ran the tanh form of GELU
        _, _, lines = presets.fill("keras-benchmark", "bert", backend, asked, given, True)
        assert ("--size published instead of base-tanh" in " ".join(lines)) == differs
        assert "--size published instead of base;" not in " ".join(lines)


def test_core_without_a_preset_is_refused(roofline: Run) -> None:
    for words in (("profile", "mlp", "--backend", "torch"), ("compare", "mlp", "--backends", "torch,jax")):
        ended = roofline(*words, "--core")
        assert (ended.code, ended.out) == (2, "")
        assert "--core needs --preset: without one, only the bare step is measured anyway." in ended.err


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


def profiles(folder: Path) -> list[str]:
    """Two of BERT fit, 12.5 and 25 ms, and one of BERT predict."""
    fit = {"preset": "keras-benchmark", "model": "bert", "mode": "train", "batch": 32, "seq": 512}
    names = []
    for name, milliseconds, changed in (
        ("a.json", 12.5, {"backend": "torch"}),
        ("b.json", 25, {"backend": "keras-jax"}),
        ("c.json", 12.5, {"backend": "torch", "mode": "infer", "batch": 256}),
    ):
        steps = tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-2, -1, 0, 1, 2))
        save(handmade.profile(wall=Wall(steps=steps), **{**fit, **changed}), folder / name)
        names.append(name)
    return names


def test_saved_profiles_are_told_by_the_rows_of_a_preset(roofline: Run, tmp_path: Path) -> None:
    ended = roofline("compare", "--preset", "keras-benchmark", *profiles(tmp_path))
    assert ended.code == 0, ended.err
    told = " ".join(ended.out.split())
    assert "BERT fit — bert train, b32 s512 on Round Device" in told
    assert "torch has the least mean, 12.5 ms of 5 plain steps. keras-jax takes 25.0 ms, 2.00x as long" in told
    assert "BERT predict, bert infer b256 s512 on Round Device: only torch, nothing to compare it with." in told
    found = json.loads(roofline("compare", "--preset", "keras-benchmark", *profiles(tmp_path), "--format", "json").out)
    assert [row["pairs"][0]["factor"] for row in found["rows"]] == pytest.approx([2.0])
    written = roofline("compare", "--preset", "keras-benchmark", *profiles(tmp_path), "--format", "markdown").out
    assert "**BERT fit — bert train" in written


SHIPPED = sorted({path.partition("/")[0] for path in shipped.paths()} & set(presets.NAMES))


@pytest.mark.parametrize("name", SHIPPED)
def test_each_profile_that_ships_is_of_a_row(name: str) -> None:
    preset = published_presets.load(name)
    for profile in map(load, plugins.folder("roofline.profiles").glob(f"{name}/*.json")):
        preset.find(profile.model, profile.mode, profile.device.kind, profile.batch)  # raises for one of no row
        assert profile.preset == name


@pytest.mark.parametrize(
    "name", [name if name == "simplechains" else pytest.param(name, marks=pytest.mark.thorough) for name in SHIPPED]
)
def test_without_profiles_those_that_ship_are_told(roofline: Run, name: str) -> None:
    """Each profile of the folder is of a row: beside another in a paragraph, or alone in a line."""
    ended = roofline("compare", "--preset", name, "--format", "json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["of_no_row"] == []
    number = len([path for path in shipped.paths() if path.startswith(f"{name}/")])
    assert sum(len(row["runs"]) for row in told["rows"]) + len(told["alone"]) == number
    assert all(run["with_preset"] for row in told["rows"] for run in row["runs"])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--allow",), "--allow cannot be combined with --preset of saved profiles"),
        (("--prove",), "--prove cannot be combined with --preset of saved profiles"),
        (("--again",), "--again cannot be combined with --preset of saved profiles"),
        (("--by", "class"), "--by cannot be combined with --preset of saved profiles"),
        (("--batch", "2"), "--batch is for measuring"),
        (("--core",), "--core is for measuring"),
        (("--format", "csv"), "There is no format called 'csv'; there are: json, markdown, text."),
    ],
)
def test_what_is_not_for_rows_is_refused(roofline: Run, tmp_path: Path, words: tuple[str, ...], part: str) -> None:
    ended = roofline("compare", "--preset", "keras-benchmark", *profiles(tmp_path), *words)
    assert (ended.code, ended.out) == (2, "")
    assert part in ended.err


def test_an_unknown_preset_of_saved_profiles(roofline: Run, tmp_path: Path) -> None:
    ended = roofline("compare", "--preset", "mlperf", *profiles(tmp_path))
    assert ended.code == 2
    assert "There is no preset called 'mlperf'; there are: hf2019, ivanov, keras-benchmark, simplechains." in ended.err


def test_an_unknown_preset_names_the_known_ones(roofline: Run) -> None:
    ended = roofline("profile", "mlp", "--backend", "torch", "--preset", "mlperf")
    assert ended.code == 2
    assert "There is no preset called 'mlperf'; there are: hf2019, ivanov, keras-benchmark, simplechains." in ended.err
