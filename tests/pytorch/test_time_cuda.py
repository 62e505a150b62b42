"""A step of eager PyTorch on a GPU, for real: every kernel has its op, in the phase and the layer that it is of."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import on_gpu
from torch import nn

from roofline.models.float32 import torch as float32

pytestmark = on_gpu.live

ROWS, WIDTH = 4096, 1024


class Layer(nn.Module):
    """A feed-forward layer of a transformer, with its residual and its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


def two_layers() -> tuple[nn.Module, torch.Tensor]:
    return nn.Sequential(Layer(), Layer()).cuda(), torch.randn(ROWS, WIDTH, device="cuda")


@pytest.fixture(autouse=True)
def exact_arithmetic():
    with float32.kept():
        float32.set_arithmetic("ieee")
        yield


def test_inference_is_joined_and_below_its_roofs() -> None:
    profile, analysis = on_gpu.profiled("torch", on_gpu.inference(*two_layers()))
    on_gpu.holds(profile, analysis)
    assert profile.profiled.mechanism == "eager"
    assert len(on_gpu.rows(profile, op_class="contraction")) == 4
    # Two products of ROWS x WIDTH x 4 WIDTH in each of two layers.
    assert on_gpu.flops(profile, "forward") == 4 * 2 * ROWS * WIDTH * 4 * WIDTH
    assert {one.precision.arithmetic for _, one in on_gpu.rows(profile, op_class="contraction")} == {"fp32"}


def test_the_backward_pass_runs_on_a_thread_of_its_own_and_is_placed() -> None:
    profile, analysis = on_gpu.profiled("torch", on_gpu.training(*two_layers()))
    on_gpu.holds(profile, analysis)
    forward, backward = (on_gpu.flops(profile, phase) for phase in ("forward", "backward"))
    product = 2 * ROWS * WIDTH * 4 * WIDTH
    assert forward == 4 * product
    assert backward == 2 * forward - product, "the input of the first layer wants no gradient"
    scopes = {
        profile.scopes[op.scope]
        for op, one in on_gpu.rows(profile, op_class="contraction")
        if profile.phases[op.phase] == "backward"
    }
    assert scopes == {"0/up", "0/down", "1/up", "1/down"}
    assert [op for op, _ in on_gpu.rows(profile) if profile.phases[op.phase] == "optimizer"]


def test_what_is_summed_over_the_steps_is_the_time_between_them() -> None:
    profile, _ = on_gpu.profiled("torch", on_gpu.training(*two_layers()))
    assert len(profile.profiled.walls) + profile.profiled.dropped == 5, "the first of 6 fills the queue"
    # Each step is the time of its ops, an instant that two share counted once, and idle time.
    shares = [
        sum(op.own_ns[number] for op in profile.ops) - sum(op.overlap_ns for op in profile.ops)
        for number in range(len(profile.profiled.walls))
    ]
    for share, idle, wall in zip(shares, profile.profiled.idle, profile.profiled.walls, strict=True):
        assert share * 1e-9 + idle == pytest.approx(wall, rel=0.01)


def test_an_rms_norm_is_one_op_with_a_kernel_of_its_own() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.RMSNorm(WIDTH)).cuda()
    profile, analysis = on_gpu.profiled("torch", on_gpu.inference(model, torch.randn(ROWS, WIDTH, device="cuda")))
    on_gpu.holds(profile, analysis)
    ((_, one),) = on_gpu.rows(profile, op_class="normalisation")
    assert one.name == "aten::_fused_rms_norm"


def test_a_product_with_a_vector_is_no_tf32_whatever_the_switch() -> None:
    float32.set_arithmetic("tf32")
    weight, x = torch.randn(4096, 4096, device="cuda"), torch.randn(4096, device="cuda")
    profile, _ = on_gpu.profiled("torch", on_gpu.inference(Times(weight), x))
    ((op, one),) = on_gpu.rows(profile, op_class="contraction")
    assert [profile.kernels[number] for number, _ in op.kernels if "gemv" in profile.kernels[number]]
    assert one.precision.arithmetic == "fp32"


class Times(nn.Module):
    """A product with a weight."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight @ x
