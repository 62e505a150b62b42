"""The plan of `make gpu`: every command is one that its program takes, and every path is there."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import evidence
import pytest
import results
import typer
from item import Item, Setting
from plan import ROOT, pieces
from predictions import COUNTED, MARKS, PAGE, Workload, line, page, predict, rows

from roofline import cli
from roofline.cli.options import presets
from roofline.cli.options.request import make_request
from roofline.core.device import Ceiling, Device
from roofline.core.step import PRECISIONS

GPU = Setting()
REHEARSAL = Setting(device="cpu", size="tiny")
SCRIPTS = ROOT / "benchmarks" / "gpu"


def items(setting: Setting) -> Iterator[tuple[str, Item]]:
    for piece, planned in pieces(setting).items():
        for item in planned:
            yield f"{piece}/{item.name}", item


ALL = [(f"{setting.device}:{name}", item) for setting in (GPU, REHEARSAL) for name, item in items(setting)]
OURS = [pair for pair in ALL if pair[1].command[0] == "roofline"]


@cache
def commands() -> dict[str, Any]:
    """The verbs of the command line by their names."""
    return typer.main.get_command(cli.build(None)).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("item", [item for _, item in OURS], ids=[name for name, _ in OURS])
def test_the_command_line_takes_what_is_planned(item: Item) -> None:
    """By its own parser; a profile is then asked for as the verb does, but on the CPU, which every machine has."""
    verb, *words = item.command[1:]
    given = commands()[verb].make_context(verb, list(words)).params
    if verb != "profile":
        return
    assert given["device"] in ("cuda", "cpu")
    backend, preset = given["backend"].partition(":command_buffers")[0], given["preset"]
    names = ("mode", "batch", "seq", "new_tokens", "size", "layers", "precision", "threads", "steps", "input")
    asked = {name: given[name] for name in names} | {"device": "cpu", "optimizer": not given["no_optimizer"]}
    if preset is None:
        assert given["precision"] in PRECISIONS[1:], "JAX's default is TF32 and PyTorch's is not"
    else:
        said = {word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}
        backend, asked, lines = presets.fill(preset, given["model"], backend, asked, said, given["core"])
        # Only how often it runs is not as the benchmark had it, but for a rehearsal's sizes and what a CPU has not.
        told = next((line.partition("the preset: ")[2] for line in lines if "differs from the preset" in line), "")
        differs = [each for each in told.rstrip(".").split("; ") if each and "which a CPU does not have" not in each]
        assert "tiny" in words or all(re.fullmatch(r"--steps \d+ instead of 100", each) for each in differs)
    request = make_request(
        given["model"], backend, **asked, count_only=given["count_only"], python=given["python"], preset=preset
    )
    assert request.workload.batch == given["batch"]


@pytest.mark.parametrize("item", [item for _, item in ALL], ids=[name for name, _ in ALL])
def test_every_path_is_there(item: Item) -> None:
    for word in item.command:
        if "{root}" in word and not word.startswith("-"):
            assert Path(word.format(root=ROOT)).exists(), word
    if item.command[0] == "script":
        text = (SCRIPTS / item.command[1]).read_text(encoding="utf-8")
        assert [word for word in item.command if word.startswith("--") and f'"{word}"' not in text] == []


@pytest.mark.parametrize("name", ["environment", "counters", "keep_trace"])
def test_our_scripts_take_what_is_planned(name: str) -> None:
    module = importlib.import_module(name)
    for _, item in ALL:
        if item.command[:2] == ("script", f"{name}.py"):
            module.parser().parse_args(item.command[2:])


def test_every_item_ends_within_a_piece_and_every_piece_has_its_archive() -> None:
    assert len(pieces(GPU)) <= results.MOST_FILES
    for planned in pieces(GPU).values():
        names = [item.name for item in planned]
        assert len(set(names)) == len(names)
        for item in planned:
            assert item.seconds < item.limit <= 300, item.name
            assert set(item.needs) <= set(names[: names.index(item.name)]), item.name


def test_counters_see_both_frameworks_in_both_modes_and_their_tables_stay() -> None:
    counted = [item for item in pieces(GPU)["counters"] if item.command[:2] == ("script", "counters.py")]
    assert {item.needs[0] for item in counted} == {
        f"bert-{backend}-{mode}-b32-tf32" for backend in ("torch", "jax-buffers-off") for mode in ("infer", "train")
    }
    assert all(f"{item.name}.raw.csv" in item.outputs for item in counted)
    assert sorted(item.name for item in counted) == sorted(evidence.COUNTERS), "the report has a row of each"


def test_tests_of_a_gpu_are_all_planned() -> None:
    planned = {word for item in pieces(GPU)["tests"] for word in item.command if word.startswith("{root}/tests")}
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(
            r"^(@|pytestmark = |    )pytest\.mark\.gpu,?$|^pytestmark = on_gpu\.live$",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    ]
    assert {f"{{root}}/{path.relative_to(ROOT)}" for path in marked} == planned


# Predictions


def sheet(**rates: float) -> Device:
    ceilings = {name.replace("_", "."): Ceiling(value=value, source="made up") for name, value in rates.items()}
    return Device(name="Sheet", kind="cuda", ceilings=ceilings)


COUNTS = {
    "counts": {
        "toy infer s128 fp32": {"model_flops": {"2": 20e9, "4": 40e9}, "external_bytes": {"2": 1.1e9, "4": 1.2e9}}
    }
}


def test_a_straight_line_through_two_batches() -> None:
    assert line({"2": 1.1e9, "4": 1.2e9}, 1) == pytest.approx(1.05e9)  # 1 GB of parameters and 0.05 GB a sample
    assert line({"2": 1.1e9, "4": 1.2e9}, 32) == pytest.approx(2.6e9)
    assert line({"2": 1.3e9, "4": 1.2e9}, 32) == 1.2e9


def test_the_least_time_is_the_longer_of_flops_and_bytes() -> None:
    """Batch 8 is 80 GFLOP and 1.4 GB: at 100 TFLOP/s 0.8 ms, at 1 TB/s 1.4 ms; at 10 TFLOP/s the FLOPs take 8 ms."""
    asked = Workload(model="toy", mode="infer", batch=8, seq=128, precision="tf32")
    device = sheet(matrix_tf32=100e12, matrix_fp32=10e12, dram_copy=1e12, dram_read=1e12)
    found = predict(asked, device, COUNTS)
    assert found is not None
    assert (found.roof, found.least) == ("memory", pytest.approx(1.4e-3))
    found = predict(Workload(model="toy", mode="infer", batch=8, seq=128, precision="fp32"), device, COUNTS)
    assert found is not None
    assert (found.roof, found.least) == ("compute", pytest.approx(8e-3))


def test_what_was_not_counted_or_has_no_ceiling_is_not_predicted() -> None:
    other = Workload(model="toy", mode="train", batch=8, seq=128, precision="tf32")
    assert predict(other, sheet(matrix_tf32=1e12, dram_copy=1e12), COUNTS) is None
    asked = Workload(model="toy", mode="infer", batch=8, seq=128, precision="tf32")
    assert predict(asked, sheet(dram_copy=1e12), COUNTS) is None


def test_every_row_is_predicted_and_the_page_says_so() -> None:
    counted = json.loads(COUNTED.read_text(encoding="utf-8"))
    assert [name for name, asked in rows().items() if asked.key not in counted["counts"]] == []
    text = PAGE.read_text(encoding="utf-8")
    assert all(text.count(mark) == 1 for mark in MARKS)
    assert page(text, counted) == text, "run `python benchmarks/gpu/predictions.py`"
