"""A traced module on a GPU, for real: what the interpreter runs, and what its fuser made, is joined."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import on_gpu
from torch import nn

pytestmark = on_gpu.live

ROWS, WIDTH = 4096, 512


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)).cuda()


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_a_traced_step_is_joined(mode: str) -> None:
    x = torch.randn(ROWS, WIDTH, device="cuda")
    step = on_gpu.training(model(), x) if mode == "train" else on_gpu.inference(model(), x)
    profile, analysis = on_gpu.profiled("torchscript", step)
    assert profile.profiled.joined >= 0.99
    assert analysis.above_ceiling == 0
    assert on_gpu.rows(profile, kind="kernel") == []
    assert on_gpu.flops(profile, "forward") == 2 * 2 * ROWS * WIDTH * WIDTH
    if mode == "train":
        # The first layer's input wants no gradient: three products of the backward pass.
        assert on_gpu.flops(profile, "backward") == 3 * 2 * ROWS * WIDTH * WIDTH
