"""One command on every backend: the same step, the same words, the same numbers.

Each command runs once, its measuring child in a process of its own, that of PyTorch in this one. The smallest network;
and in `make test-all` BERT tiny: 2 samples of 16 tokens, one thread.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from msgspec.structs import replace

import roofline as package
from roofline.core.schema import Profile
from tests.cli.conftest import children_here

Run = Callable[..., Any]
pytestmark = pytest.mark.slow

#: What a backend needs to be importable, the versions it must name, and how it compiles.
BACKENDS: dict[str, tuple[set[str], str | None]] = {
    "torch": ({"torch", "transformers"}, None),
    "torch-compile": ({"torch", "transformers"}, None),
    "torchscript": ({"torch", "transformers"}, None),
    "jax": ({"jax", "jaxlib", "flax", "optax"}, "on"),
    "tensorflow": ({"tensorflow"}, "off"),
    "tensorflow-xla": ({"tensorflow"}, "compile"),
    "keras-torch": ({"keras", "keras-hub", "torch"}, "off"),
    "keras-jax": ({"keras", "keras-hub", "jax", "jaxlib"}, "on"),
    "keras-tensorflow": ({"keras", "keras-hub", "tensorflow"}, "off"),
    "keras2": ({"tf_keras", "keras-nlp", "tensorflow"}, "off"),
}
#: (model, backend). BERT is trained by `make test-all` alone: its libraries are on frameworks, of which another backend
#: here has either, and compilers of PyTorch are run from the command line in their own folders.
OTHERS = [
    ("mlp", "tensorflow"),
    # What stays: JAX's child measures a function of the user's in test_children, its models train as PyTorch's in
    # tests/models.
    pytest.param("mlp", "jax", marks=pytest.mark.thorough),
    *(pytest.param("bert", name, marks=pytest.mark.thorough) for name in BACKENDS if name != "torch"),
]
#: Those whose forward pass alone is measured too: one per reader of traces.
INFER = [pytest.param(name, marks=pytest.mark.thorough) for name in ("jax", "tensorflow", "keras-tensorflow:jit=on")]
#: Dictionaries whose keys are names of things, not of fields.
NAMED = {
    *("options", "versions", "switches", "device.ceilings", "gap_causes", "classes", "groups", "phases", "blocks"),
    "transcendentals",
}
ELSEWHERE = {"other", "(no op)", ""}


def file_of(model: str, backend: str, mode: str) -> str:
    return f"{model}-{backend.replace(':', '-')}-{mode}.json"


@pytest.fixture(scope="module")
def profiled(once: Run, brief: dict[str, str]) -> Callable[[str, str, str], dict[str, Any]]:
    """`show --format json` of a model on a backend in a mode."""

    def show_here(model: str, backend: str, mode: str) -> dict[str, Any]:
        with children_here() if backend == "torch" else contextlib.nullcontext():
            return show(once, model, backend, mode, brief)

    return show_here


def show(once: Run, model: str, backend: str, mode: str, more: dict[str, str]) -> dict[str, Any]:
    name = backend.partition(":")[0]
    for distribution in BACKENDS[name][0]:
        module = distribution.replace("-", "_")
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    file = file_of(model, backend, mode)
    work = ("--size", "tiny", "--batch", "2", "--mode", mode, *(("--seq", "16") if model == "bert" else ()))
    cost = ("--device", "cpu", "--threads", "1", "--steps", "3")
    ended = once("profile", model, "--backend", backend, *work, *cost, "-o", file, more=more)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-2] == f"Wrote {file}"
    assert "Traceback" not in ended.err
    assert "calibrating" not in ended.err, "the tests measure no ceilings"
    shown = once("show", file, "--format", "json")
    assert shown.code == 0, shown.err
    return json.loads(shown.out)


def fields(value: Any, path: str = "") -> set[str]:
    """The names of all fields in a document; what is named by a model, a device or a framework is passed over."""
    if not isinstance(value, dict) or path in ("compilation", "host"):  # null where no compiler or host tells
        return {path}
    if path.rpartition("[].")[2] in NAMED:
        rows = [one for one in value.values() if isinstance(one, dict)]
        return {path, *(name for row in rows for name in fields(row, f"{path}[]"))}
    return {name for key, one in value.items() for name in fields(one, f"{path}.{key}".lstrip("."))}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_training_step(once: Run, profiled: Run, backend: str) -> None:
    document = profiled("bert", backend, "train")
    holds(document, package.load(once.folder / file_of("bert", backend, "train")), {"forward", "backward", "optimizer"})
    assert (document["model"], document["backend"], document["options"]) == ("bert", backend, {})
    assert (document["mode"], document["batch"], document["seq"]) == ("train", 2, 16)
    assert (document["samples"], document["tokens"]) == (2, 2 * 16)
    distributions, jit = BACKENDS[backend]
    assert set(document["versions"]) >= {"roofline", "python", *distributions}
    assert document["switches"].get("jit") == jit
    assert document["switches"]["dropout"] == "0.1"
    if backend == "torch-compile":
        facts = document["compilation"]
        assert (facts["graphs"], facts["opaque"], facts["breaks"]) == (2, 0, {}), "forward and backward"
        assert facts["eager"]["optimizer"]["ops"] > 0
    assert "in_process" not in document["flags"]
    assert "unjoined" not in document["flags"]


@pytest.mark.parametrize("backend", INFER)
def test_an_inference_step(once: Run, profiled: Run, backend: str) -> None:
    document = profiled("bert", backend, "infer")
    holds(document, package.load(once.folder / file_of("bert", backend, "infer")), {"forward"})
    assert document["backend"] == backend.partition(":")[0]
    # An option is recorded as it was given, and reaches the model.
    options = dict(part.split("=") for part in backend.partition(":")[2].split(",") if part)
    assert document["options"] == options
    assert document["switches"]["jit"] == options.get("jit", BACKENDS[document["backend"]][1])


def holds(document: dict[str, Any], profile: Profile, phases: set[str]) -> None:
    """What is true of a profile whatever measured it, and however long anything took."""
    wall, small = document["wall"]["median"], 1e-3 * document["wall"]["median"]
    assert (document["wall"]["steps"], document["wall"]["source"]) == (3, "plain")
    assert document["busy"] + document["gap"] == pytest.approx(wall, abs=small)
    for table in ("classes", "groups", "phases", "blocks"):
        rows = document[table].values()
        assert sum(row["seconds"] for row in rows) + document["gap"] == pytest.approx(wall, abs=small), table
        for row in rows:
            whole = row["floor"] + row["loss"] + row["uncosted"] - row["overlap"]
            assert row["seconds"] == pytest.approx(whole, abs=small)
            assert sum(row["bounds"].values()) == pytest.approx(row["seconds"], abs=small)
    assert sum(document["bounds"].values()) == pytest.approx(document["busy"], abs=small)
    # Nothing is left in the dark, of a hundred ops more than two: what was counted, and where in the model it is.
    few = 0.02 * len(profile.ops)
    costs = [profile.signatures[op.signature].cost for op in profile.ops]
    assert sum(not cost.flops_known for cost in costs) <= few
    assert sum(cost.bytes is None for cost in costs) <= few
    assert sum(profile.blocks[op.block] in ELSEWHERE for op in profile.ops) <= few
    # Every event is of a counted op.
    assert document["coverage"]["time"] == 1
    assert set(document["phases"]) - {"(no op)"} == phases
    # Under ceilings that nothing can reach; those that a run measures beside its steps say how fast the machine was.
    made_up = {name: one for name, one in profile.device.ceilings.items() if one.source == "made up"}
    assert made_up
    assert package.analyze(replace(profile, device=replace(profile.device, ceilings=made_up))).above_ceiling == 0


@pytest.mark.parametrize(("model", "backend"), OTHERS)
def test_the_keys_are_those_of_torch(profiled: Run, model: str, backend: str) -> None:
    ours, torchs = fields(profiled(model, backend, "train")), fields(profiled(model, "torch", "train"))
    assert ours == torchs


@pytest.mark.parametrize(("model", "backend"), OTHERS)
def test_the_same_is_asked_for(profiled: Run, model: str, backend: str) -> None:
    """Model FLOPs by phase, and parameters: docs/comparing.md, the parity gate."""
    document, torchs = profiled(model, backend, "train"), profiled(model, "torch", "train")
    asked = {phase: row["model_flops"] for phase, row in document["phases"].items() if phase != "(no op)"}
    assert asked == pytest.approx(
        {phase: row["model_flops"] for phase, row in torchs["phases"].items() if phase != "(no op)"}, rel=1e-3
    )
    if model == "mlp":
        # Of 2 samples, 4-8-8-4; backward for each weight, and for the input of all layers but the first.
        forward = 2 * 2 * (4 * 8 + 8 * 8 + 8 * 4)
        assert (asked["forward"], asked["backward"]) == pytest.approx((forward, 2 * forward - 2 * 2 * 4 * 8), rel=1e-3)
    else:
        # Of 2 * 16 tokens, 4 products with 64 x 64 and 2 with 64 x 256 in each of 2 layers; then there is attention.
        linear = 2 * (2 * 16) * 2 * (4 * 64**2 + 2 * 64 * 256)
        assert linear < asked["forward"] < 1.1 * linear
        assert asked["backward"] > 1.9 * asked["forward"]
    assert (document["parameters"], document["trainable"]) == (torchs["parameters"], torchs["trainable"])


@pytest.mark.parametrize("backend", INFER)
def test_inference_asks_for_the_forward_pass(profiled: Run, backend: str) -> None:
    alone, torchs = profiled("bert", backend, "infer"), profiled("bert", "torch", "train")
    asked = torchs["phases"]["forward"]["model_flops"]
    assert alone["phases"]["forward"]["model_flops"] == pytest.approx(asked, rel=1e-3)
