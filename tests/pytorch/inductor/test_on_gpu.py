"""torch.compile on a GPU, for real: generated kernels are joined, of layer norms too, and those that graphs replay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
import on_gpu
from torch import nn

from roofline.pytorch.recording.memory import WITH_GRAPHS

pytestmark = on_gpu.live

#: BERT-base's width at batch 64 and length 128: enough for Inductor to reduce rows and columns in one kernel.
ROWS, WIDTH = 64 * 128, 768


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch.compiler.reset()
    torch.cuda.empty_cache()


class Layer(nn.Module):
    """A feed-forward layer of a transformer; `middle` numbers per row between its products."""

    def __init__(self, middle: int = WIDTH, dropout: float = 0.0) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, middle), nn.Linear(middle, WIDTH)
        self.norm, self.dropout = nn.LayerNorm(WIDTH), nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.dropout(self.down(nn.functional.gelu(self.up(x)))))


def layers(rows: int = ROWS, number: int = 2, **options: float) -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(*(Layer(**options) for _ in range(number))).cuda()
    return model, torch.randn(rows, WIDTH, device="cuda")


def products(rows: int, number: int = 2, middle: int = WIDTH) -> float:
    return number * 2 * 2 * rows * WIDTH * middle


@pytest.mark.parametrize("rows", [1024, ROWS], ids=["small", "batch 64"])
def test_a_training_step_of_generated_kernels_is_joined(rows: int) -> None:
    from torch._inductor import metrics

    before = metrics.codegen_mix_order_reduction
    profile, analysis = on_gpu.profiled("torch-compile", on_gpu.training(*layers(rows)))
    mixed = metrics.codegen_mix_order_reduction - before
    assert (mixed > 0) == (rows == ROWS), "layer norm's backward pass is one kernel from 4096 rows on"
    on_gpu.holds(profile, analysis)
    assert profile.compilation.opaque == 0
    assert on_gpu.flops(profile, "forward") == products(rows)
    kernels = on_gpu.rows(profile, kind="fused")
    assert kernels
    assert all(one.name.startswith("triton_") and op.launches == 1 for op, one in kernels)
    assert all(one.name in profile.kernels[op.kernels[0][0]] for op, one in kernels), "the kernel has the op's name"
    sums = [op for op, one in on_gpu.rows(profile, name="aten::sum") if profile.phases[op.phase] == "backward"]
    assert len(sums) >= mixed, "what a mixed kernel leaves in parts is put together"


def test_dropout_is_drawn_in_generated_kernels() -> None:
    profile, analysis = on_gpu.profiled("torch-compile", on_gpu.training(*layers(1024, dropout=0.1)))
    assert profile.compilation.opaque == 0
    drawn = [one.cost.functions.get("random (Philox)", 0) for _, one in on_gpu.rows(profile, kind="fused")]
    assert sum(drawn) >= 2 * 1024 * WIDTH, "a number per element and layer; again backward where that is cheaper"
    assert analysis.busy > 0


def test_a_graphs_replay_has_the_ops_of_its_capture() -> None:
    profile, analysis = on_gpu.profiled("torch-compile", on_gpu.training(*layers()), mode="reduce-overhead")
    assert profile.profiled.mechanism == "cuda-graph"
    assert not {"replays-unattributed", "opaque-regions"} & {flag.partition(":")[0] for flag in profile.flags}
    assert profile.profiled.joined >= 0.99
    assert profile.compilation.recompilations == (), "compiling again to find the ops is no recompilation of the step"
    assert profile.compilation.seconds <= profile.wall.first
    assert analysis.above_ceiling == 0
    # All but the copies into the graph's fixed inputs, which are no ops of the program.
    assert {one.op_class for _, one in on_gpu.rows(profile, kind="kernel")} <= {"movement"}
    for phase, times in (("forward", 1.0), ("backward", 2.0 - 1 / 4)):
        assert on_gpu.flops(profile, phase) == products(ROWS) * times, "the first input wants no gradient"
    assert all(min(op.own_ns) > 0 for op, _ in on_gpu.rows(profile, op_class="contraction"))


def test_the_peak_holds_what_a_graph_keeps() -> None:
    middle, rows = 8 * WIDTH, ROWS
    inside = 4 * rows * middle  # between the two products: nobody outside of the graph ever holds it
    step = on_gpu.inference(*layers(rows, 1, middle=middle))
    plain, _ = on_gpu.profiled("torch-compile", step)
    torch.compiler.reset()
    graphed, _ = on_gpu.profiled(
        "torch-compile", on_gpu.inference(*layers(rows, 1, middle=middle)), mode="reduce-overhead"
    )
    assert graphed.profiled.mechanism == "cuda-graph"
    assert graphed.memory.source == WITH_GRAPHS
    assert graphed.memory.peak >= inside + graphed.memory.parameters + 2 * 4 * rows * WIDTH
    assert plain.memory.source != WITH_GRAPHS
    assert plain.memory.peak >= inside + plain.memory.parameters


def test_the_least_time_of_autotuning_finds_known_ops() -> None:
    profile, _ = on_gpu.profiled("torch-compile", on_gpu.inference(*layers(512, 1)), mode="max-autotune")
    assert profile.compilation.opaque == 0
    assert not {"replays-unattributed", "opaque-regions"} & {flag.partition(":")[0] for flag in profile.flags}
    assert on_gpu.flops(profile, "forward") == products(512, 1), "generated products and the library's"
