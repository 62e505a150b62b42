"""The tables of pages about measured runs, from the profiles in docs/measured and profiles/."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from roofline import units

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from measured_grids import mean, ratios, read
from measured_tables import DOCS, TABLES, page, ten


def words(name: str) -> str:
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_what_comes_out(name: str) -> None:
    """Where they are not: `python benchmarks/measured_tables.py`."""
    assert page(name) == (DOCS / name).read_text(encoding="utf-8")


def test_what_is_asked_of_bert() -> None:
    """The same model FLOPs and parameters on all ten, and minimum times that differ by what is fused."""
    runs = ten("bert-infer-1-thread")
    (flops,) = {sum(matmul.model for matmul in run.products.values()) for run in runs}
    (parameters,) = {run.profile.parameters for run in runs}
    floors = sorted(1e3 * run.total.floor for run in runs)
    text = words("cpu-comparison.md")
    assert f"the same {flops / 1e9:.2f} GFLOP and have the same {parameters:,} parameters" in text
    assert f"is {floors[0]:.0f} to {floors[-1]:.0f} ms on all ten" in text


def test_the_training_step_of_the_mlp_by_what_takes_its_time() -> None:
    """PyTorch's, op by op: dispatch, tanh, narrow matmuls, page faults."""
    run = next(run for run in ten("mlp-train-1-thread") if run.profile.backend == "torch")
    text, conditions, matmul = words("simplechains.md"), run.profile.conditions, run.by("group")["matmul"]
    tanh = sum(total.seconds for name, total in run.by("op").items() if name.startswith("aten::tanh ["))
    compiled = next(run for run in ten("mlp-train-1-thread") if run.profile.backend == "torch-compile")
    overhead = run.gap / run.wall
    assert matmul.attained is not None
    for said in (
        f"Of PyTorch's {units.seconds(run.wall)} no op runs for {units.seconds(run.gap)}, {100 * overhead:.0f} %",
        f"The least time of its kernels is {units.seconds(run.total.floor)}",
        f"Two `tanh` take {units.seconds(tanh)}",
        f"Matmuls take {units.seconds(matmul.seconds)}, at {100 * matmul.attained:.0f} % of the roof",
        f"{conditions['page_faults_per_step']:.0f} page faults a step, with "
        f"{units.seconds(conditions['system_seconds_per_step'])} of system time",
        f"`torch-compile` takes {units.seconds(compiled.wall)}",
    ):
        assert said in text, said


def test_what_two_grids_say_beside_the_claims() -> None:
    """Geometric means of factors, the largest of them, and the host's shares."""
    script, xla = (ratios("hf2019", "torch", other) for other in ("torchscript", "tensorflow-xla"))
    text = words("grids.md")
    for by_cell in (script, xla):
        for model, name in (("distilbert", "DistilBERT"), ("gpt2", "GPT-2")):
            factor = mean(ratio for (of, *_), ratio in by_cell.items() if of == model)
            assert re.search(rf"{factor:.2f}( times)?( as long)?( as TorchScript)? with {name}", text), (name, factor)
    small_step, traced, gpt2 = ("distilbert", 1, 8), ("gpt2", 8, 32), ("gpt2", 1, 8)
    for model, most in (("distilbert", small_step), ("gpt2", traced)):
        assert max((key for key in script if key[0] == model), key=script.__getitem__) == most
    assert max(xla, key=xla.__getitem__) == gpt2
    assert f"most is {script[small_step]:.2f}, at batch 1 and 8 tokens" in text
    assert f"it is {script[traced]:.2f}, at batch 8 and 32 tokens" in text
    cell = next(one for one in read("hf2019")["cells"] if (one["model"], one["batch"], one["seq"]) == small_step)
    eager, script_share = (100 * host_share(run) for run in cell["runs"] if run["backend"] in ("torch", "torchscript"))
    assert f"the host has {eager:.0f} % of PyTorch's step and {script_share:.0f} % of TorchScript's" in text
    assert f"{100 * (1 - 1 / xla[gpt2]):.0f} % of PyTorch's time with GPT-2 at batch 1 and 8 tokens" in text

    runs = [run for cell in read("hf2019")["cells"] for run in cell["runs"] if run["wall"]]
    assert {run["limit"] for run in runs if run["limit_share"] > 0.5} == {"compute"}
    assert f"the host's share is {100 * max(map(host_share, runs)):.0f} % at most" in text
    for model, batch, said in (
        ("lenet5", 16, "the host has {} to {} % of a step of 16 samples"),
        ("mlp", 16, "With 16 samples the host has {} to {} % of the step"),
        ("mlp", 10_000, "with the 10,000 of the publication {} to {} %"),
    ):
        shares = sorted(100 * host_share(run) for run in small(model, batch))
        assert said.format(f"{shares[0]:.0f}", f"{shares[-1]:.0f}") in text
    walls = sorted(run["wall"] for run in small("lenet5", 2048))
    assert f"at most {100 * max(map(host_share, small('lenet5', 2048))):.0f} % of one of 2,048" in text
    assert f"takes {walls[-1] / walls[0]:.1f} times as long as the fastest" in text


def host_share(run: dict[str, Any]) -> float:
    return float(run["times"]["gap"] / run["wall"])


def small(model: str, batch: int) -> list[dict[str, Any]]:
    """The runs of a cell of the grid of small networks."""
    cells = read("simplechains")["cells"]
    return next(cell["runs"] for cell in cells if (cell["model"], cell["batch"]) == (model, batch))
