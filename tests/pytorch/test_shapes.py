"""Models counted without data: the ops that they run with data, and any size."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from math import prod
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roofline import plugins
from roofline.backends.torch import BACKEND
from roofline.core.step import Workload
from roofline.models import dimensions
from roofline.models.torch._step import user_state_kept
from roofline.pytorch.recording import shapes
from roofline.recording.backend import NeedsData
from roofline.recording.recording import Plan, Recording

sys.path.append(str(Path(__file__).parent.parent / "backends"))
from work_of_images import parameters_of_stable_diffusion, stable_diffusion

PLAN = Plan(device="cpu", threads=1, steps=1, count_only=True)


def counted(workload: Workload, *, data: bool) -> Recording:
    with nullcontext() if data else shapes.without_data(), user_state_kept():
        module = plugins.load("roofline.models.torch", workload.model, "model", sorted_by_kind=True)
        return BACKEND.recorder.record(module.build(workload), PLAN, lambda text: None)


def ops(recording: Recording, *names: str) -> Counter[tuple[str, ...]]:
    """The ops of a step, or those of some names, with their places and work."""
    found: Counter[tuple[str, ...]] = Counter()
    for op in recording.ops:
        one = recording.signatures[op.signature]
        if not names or one.name in names:
            found[one.name, one.shapes, repr(one.cost), recording.scopes[op.scope], recording.phases[op.phase]] += 1
    return found


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("model", ["mlp", "lenet5"])
def test_the_same_ops_at_the_same_places(model: str, mode: str) -> None:
    workload = Workload(model=model, mode=mode, size="tiny")  # type: ignore[arg-type]
    real, without = (counted(workload, data=data) for data in (True, False))
    assert ops(real) == ops(without)
    assert (real.parameters, real.memory.parameters) == (without.parameters, without.memory.parameters)


@pytest.mark.parametrize("precision", ["default", pytest.param("bf16", marks=pytest.mark.thorough)])
def test_the_same_products_of_a_transformer(precision: str) -> None:
    # Beside them there is a mask: nobody sees that it holds only ones.
    workload = Workload(model="gpt2", size="tiny", batch=2, seq=16, precision=precision)
    products = [ops(counted(workload, data=data), "aten::addmm", "aten::mm") for data in (True, False)]
    assert products[0] == products[1]
    # 4 projections as 2 products and 2 of the FFN in each of 2 layers, and the head
    assert sum(products[0].values()) == 2 * 4 + 1


def test_buffers_are_told_apart() -> None:
    """Each product reads what the one before wrote, and a weight that no other op touches."""
    recording = counted(Workload(model="mlp", size="tiny"), data=False)
    readers: dict[int, list[int]] = {}
    for row, op in enumerate(recording.ops):
        for buffer in op.reads:
            readers.setdefault(buffer, []).append(row)
    for row, op in enumerate(recording.ops[:-1]):
        (written,) = op.writes
        assert readers[written] == [row + 1]
    products = [op for op in recording.ops if recording.signatures[op.signature].name == "aten::addmm"]
    weights = [buffer for op in products for buffer in op.reads if len(readers[buffer]) == 1]
    assert len(weights) == len(set(weights))


def test_a_model_of_billions_of_parameters() -> None:
    workload = Workload(model="mistral", size="published", batch=1, seq=128, layers=2)
    recording, dims = counted(workload, data=False), dimensions(workload)
    hidden, ffn, tokens = dims["hidden"], dims["ffn"], 128
    heads, keys = dims["heads"] * dims["head"], dims["kv_heads"] * dims["head"]
    layer = 2 * tokens * (2 * hidden * heads + 2 * hidden * keys + 3 * hidden * ffn) + 4 * tokens * tokens * heads
    products = sum(recording.signatures[op.signature].cost.model_flops or 0.0 for op in recording.ops)
    assert products == 2 * layer + 2 * tokens * hidden * dims["vocabulary"]
    weights = 2 * (2 * hidden * heads + 2 * hidden * keys + 3 * hidden * ffn + 2 * hidden) + hidden
    assert recording.parameters == weights + 2 * prod((dims["vocabulary"], hidden))


def test_who_asks_for_numbers_is_told_apart() -> None:
    with pytest.raises(NeedsData), shapes.without_data():
        torch.ones(3).sum().item()


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("size", ["one-layer", "published"])
def test_stable_diffusion_in_full_width(size: str, mode: str) -> None:
    """One residual block a level instead of two, and one more on the way up; counted without data."""
    pytest.importorskip("diffusers")
    workload = Workload(model="stable-diffusion", size=size, mode=mode)  # type: ignore[arg-type]
    recording, dims = counted(workload, data=False), dimensions(workload)
    assert dims["layers"] == {"one-layer": 1, "published": 2}[size]
    assert recording.parameters == parameters_of_stable_diffusion(dims, mode)
    work = stable_diffusion(dims, mode)
    total = sum(recording.signatures[op.signature].cost.model_flops or 0 for op in recording.ops)
    assert total == sum(each.forward + (each.backward if mode == "train" else 0) for each in work.values())
