"""Stable Diffusion of KerasCV's layers on every backend of Keras: the work of PyTorch's, and how it is compared.

At tiny size, two images. FLOPs are closed forms of the dimensions, the same as for PyTorch's model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import roofline as package
from roofline.core.step import Workload
from roofline.models import dimensions

sys.path.append(str(Path(__file__).parent.parent / "backends"))
from work_of_images import parameters_of_stable_diffusion, stable_diffusion

Run = Callable[..., Any]
pytestmark = pytest.mark.slow

NEEDS = {
    "torch": ("torch", "diffusers"),
    "keras-torch": ("torch", "keras", "keras_cv", "tensorflow"),
    "keras-jax": ("jax", "keras", "keras_cv", "tensorflow"),
    "keras-tensorflow": ("keras", "keras_cv", "tensorflow"),
    "keras2": ("tf_keras", "keras_cv", "tensorflow"),
}
KERAS = [
    name if name == "keras-torch" else pytest.param(name, marks=pytest.mark.thorough)
    for name in NEEDS
    if "keras" in name
]


def profiled(once: Run, brief: dict[str, str], backend: str, mode: str) -> dict[str, Any]:
    """`show --format json` of a step of two images."""
    for module in NEEDS[backend]:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    asked = ("--size", "tiny", "--batch", "2", "--mode", mode, "--device", "cpu", "--threads", "1", "--steps", "3")
    ended = once("profile", "stable-diffusion", "--backend", backend, *asked, "-o", file_of(backend, mode), more=brief)
    assert ended.code == 0, ended.err
    shown = once("show", file_of(backend, mode), "--format", "json")
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


def file_of(backend: str, mode: str) -> str:
    return f"diffusion-{backend}-{mode}.json"


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("backend", KERAS)
def test_the_work_is_that_of_pytorchs_model(once: Run, brief: dict[str, str], backend: str, mode: str) -> None:
    document = profiled(once, brief, backend, mode)
    dims = dimensions(Workload(model="stable-diffusion", mode=mode, size="tiny", batch=2))
    expected = stable_diffusion(dims, mode)
    trains = mode == "train"

    phases = {phase: row["model_flops"] for phase, row in document["phases"].items() if row["model_flops"]}
    assert phases.pop("forward") == sum(work.forward for work in expected.values())
    assert phases == ({"backward": sum(work.backward for work in expected.values())} if trains else {})
    blocks = {block: row["model_flops"] for block, row in document["blocks"].items() if row["model_flops"]}
    assert blocks == {block: work.forward + trains * work.backward for block, work in expected.items()}
    assert document["parameters"] == parameters_of_stable_diffusion(dims, mode)

    profile = package.load(once.folder / file_of(backend, mode))
    known = set(expected) | {"norm + residual", "loss", "optimizer"}
    assert {profile.blocks[op.block] for op in profile.ops} <= known
    assert document["coverage"] == {"time": 1, "flops": 1, "bytes": 1}


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["infer", "train"])
def test_it_is_comparable_with_pytorch_and_differs_in_what_keras_does(
    once: Run, brief: dict[str, str], mode: str
) -> None:
    for backend in ("torch", "keras-torch"):
        profiled(once, brief, backend, mode)
    files = [file_of(backend, mode) for backend in ("torch", "keras-torch")]
    ended = once("compare", *files, "--format", "json")
    assert ended.code == 0, ended.err
    parity = json.loads(ended.out)["parity"]
    assert parity["verdict"] == "named differences"
    named = {each["what"]: (each["a"], each["b"]) for each in parity["differences"] if each["severity"] != "warning"}
    assert named.pop("attention") == ("a fused kernel (flash)", "written out")
    if mode == "infer":
        assert named.pop("switch guidance") == ("7.5, in one call", "7.5, in two calls")
        assert named.pop("switch scheduler") == ("PNDM", "DDIM")
        assert named.pop("gelu") == ("erf", "tanh")
    else:
        assert "foreach" in named.pop("optimizer kernels")[0]
    assert named == {}
