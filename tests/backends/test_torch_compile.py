"""torch.compile for real, on small modules: what is fused, what moves, what it computes, and what stays eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roofline.backends import Plan, Recording, _torch_inductor, torch_compile  # noqa: E402
from roofline.backends import torch as eager  # noqa: E402
from roofline.backends._torch_inductor_loops import PHILOX  # noqa: E402
from roofline.core.step import Step  # noqa: E402
from roofline.errors import InputError  # noqa: E402

ROWS, WIDTH = 32, 64
COUNT = Plan(device="cpu", count_only=True)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.compiler.reset()
    torch.set_num_threads(before)


def quiet(text: str) -> None:
    """Progress that nobody reads."""


def infer(model: nn.Module, *inputs: Any) -> Step:
    def run() -> None:
        with torch.no_grad():
            model(*inputs)

    return Step(run=run, model=model)


def train(model: nn.Module, *inputs: Any) -> Step:
    def run() -> None:
        model.zero_grad()
        model(*inputs).sum().backward()

    return Step(run=run, model=model, mode="train")


def compiled(step: Step, plan: Plan = COUNT) -> Recording:
    return torch_compile.record(step, plan, quiet)


def products(recording: Recording, phase: str, column: str = "model_flops") -> float:
    """FLOPs of a phase; every op's must be known."""
    rows = [op for op in recording.ops if recording.phases[op.phase] == phase]
    costs = [getattr(recording.signatures[op.signature].cost, column) for op in rows]
    assert None not in costs
    return sum(costs)


def moved(recording: Recording) -> float:
    return sum(recording.signatures[op.signature].cost.bytes or 0.0 for op in recording.ops)


def kernels(recording: Recording) -> list[Any]:
    """Signatures of the generated kernels, in order."""
    return [s for op in recording.ops if (s := recording.signatures[op.signature]).kind == "fused"]


def parts(recording: Recording, number: int) -> list[tuple[str, str, str]]:
    """(kind, class, scope) of what the generated kernel of that number is made of."""
    op = [op for op in recording.ops if recording.signatures[op.signature].kind == "fused"][number]
    made = [recording.signatures[part] for part in op.constituents]
    return [(one.kind, one.op_class, recording.scopes[place[0]]) for one, place in zip(made, op.places, strict=True)]


class Residual(nn.Module):
    """A layer as in a transformer: product, GELU, product, residual, norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Any) -> Any:
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


def test_a_kernel_moves_its_boundary_and_does_the_work_of_its_parts() -> None:
    recording = compiled(infer(Residual(), torch.randn(ROWS, WIDTH)))
    gelu, norm = kernels(recording)
    hidden, row, width = ROWS * 2 * WIDTH * 4, ROWS * WIDTH * 4, WIDTH * 4
    assert (gelu.cost.bytes_read, gelu.cost.bytes_written) == (hidden, hidden)
    # x·0.5·(1 + erf(x·√½)): three multiplications, an addition and an erf per element
    assert gelu.cost.vector_flops == 4 * ROWS * 2 * WIDTH
    assert gelu.cost.functions == {"erf": ROWS * 2 * WIDTH}
    # the two addends and the affine weights come in, the result goes out; the sum and the statistics stay inside
    assert (norm.cost.bytes_read, norm.cost.bytes_written) == (2 * row + 2 * width, row)
    assert norm.cost.functions == {"rsqrt": ROWS}, "the rsqrt of a row is done once per row"
    assert norm.op_class == "normalisation"
    assert parts(recording, 0) == [("gelu", "pointwise", "")]
    assert parts(recording, 1) == [("add", "pointwise", ""), ("native_layer_norm", "normalisation", "norm")]
    assert [recording.signatures[op.signature].name for op in recording.ops if op.constituents == ()] == [
        "aten::addmm",
        "aten::addmm",
    ]


def test_what_compilation_saves_is_the_traffic_between_fused_ops() -> None:
    step = infer(Residual(), torch.randn(ROWS, WIDTH))
    before = eager.record(step, COUNT, quiet)
    after = compiled(step)
    # eager: the sum of the residual is written and read again, and the norm writes its mean and deviation per row
    assert moved(before) - moved(after) == 2 * ROWS * WIDTH * 4 + 2 * ROWS * 4
    assert len(before.ops) == 5
    assert len(after.ops) == 4
    assert products(before, "forward") == products(after, "forward") == 2 * 2 * ROWS * WIDTH * 2 * WIDTH


def test_training_counts_as_eager_and_places_the_backward_pass() -> None:
    step = train(Residual(), torch.randn(ROWS, WIDTH, requires_grad=True))
    before, after = eager.record(step, COUNT, quiet), compiled(step)
    for phase in ("forward", "backward"):
        assert products(before, phase) == products(after, phase)
    assert products(after, "backward", "flops") == 2 * products(after, "forward")
    backward = [op for op in after.ops if after.phases[op.phase] == "backward" and op.constituents]
    scopes = {after.scopes[place[0]] for op in backward for place in op.places}
    assert {"up", "down", "norm"} <= scopes, "gradients of biases and of the norm know their layers"
    facts = after.compilation
    assert facts is not None
    assert (facts.graphs, facts.opaque, sum(facts.breaks.values())) == (2, 0, 0)
    assert facts.eager["forward"][0] == 1, "the sum after the model"


def test_dropout_is_random_and_no_roof_stands_above_it() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5))
    recording = compiled(train(model, torch.randn(ROWS, WIDTH)))
    drawing = [one for one in kernels(recording) if PHILOX in (one.cost.functions or {})]
    assert [one.cost.functions for one in drawing] == [{PHILOX: ROWS * WIDTH}]
    assert drawing[0].op_class == "random"
    assert PHILOX not in {name for name in dir(torch) if callable(getattr(torch, name))}, "so no rate is measured"


def test_modules_of_pytorch_itself_are_compiled_too() -> None:
    facts = compiled(infer(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), torch.randn(ROWS, WIDTH))).compilation
    assert facts is not None
    assert facts.graphs == 1
    assert facts.eager == {}


def test_a_product_written_out_as_loops_stays_a_contraction() -> None:
    class Outer(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return torch.mm(a, b)

    recording = compiled(infer(Outer(), torch.randn(ROWS, 1), torch.randn(1, WIDTH)))
    (op,) = recording.ops
    cost = recording.signatures[op.signature].cost
    # K = 1: one multiply-add per result, 2 FLOP
    assert cost.model_flops == cost.flops == 2 * ROWS * WIDTH
    assert cost.vector_flops == 0
    assert recording.signatures[op.signature].op_class == "contraction"


# ------------------------------------------------------------------------------------------- awkward steps


class Branching(nn.Module):
    """A graph break: a branch on data."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.first(x).relu()
        if x.sum().item() > 0:
            x = x + 1
        return self.second(x).tanh()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo looks at it, and says so elsewhere
def test_a_graph_break_is_counted_and_what_is_between_is_eager() -> None:
    step = train(Branching(), torch.randn(ROWS, WIDTH))
    before, after = eager.record(step, COUNT, quiet), compiled(step)
    for phase in ("forward", "backward"):
        assert products(before, phase) == products(after, phase)
    facts = after.compilation
    assert facts is not None
    assert facts.graphs == 4, "each half, forward and backward"
    assert len(facts.breaks) == 1
    assert "item" in next(iter(facts.breaks))


class Wide(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return nn.functional.gelu(self.dense(x))


def test_a_dynamic_shape_is_counted_with_the_sizes_of_each_run() -> None:
    model, rows = Wide(), (16, 24, 40, 56)
    inputs = [torch.randn(n, WIDTH) for n in rows]

    def run() -> None:
        with torch.no_grad():
            for x in inputs:
                model(x)

    recording = compiled(Step(run=run, model=model))
    facts = recording.compilation
    assert facts is not None
    assert (facts.graphs, len(facts.recompilations)) == (4, 1)
    assert products(recording, "forward") == 2 * sum(rows) * WIDTH * WIDTH
    assert [one.cost.bytes_read for one in kernels(recording)] == [n * WIDTH * 4 for n in rows]
    assert [one.cost.functions for one in kernels(recording)] == [{"erf": n * WIDTH} for n in rows]


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return (x @ weight).clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        return _Scaled.apply(x, self.weight).exp()


def test_a_custom_autograd_function_asks_for_all_that_it_says_and_runs_what_is_used() -> None:
    step = train(Custom(), torch.randn(ROWS, WIDTH))
    before, after = eager.record(step, COUNT, quiet), compiled(step)
    one = 2 * ROWS * WIDTH * WIDTH
    assert products(before, "backward") == products(after, "backward") == 2 * one
    assert products(after, "backward", "flops") == one, "the gradient of the input goes nowhere and is left out"


class Views(nn.Module):
    """In-place writes through views, and into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(WIDTH, WIDTH))
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        y = self.dense(x)
        y.view(WIDTH // 4, 4, WIDTH)[:, 1:3].mul_(2.0)
        self.state.copy_(y)
        self.state.mul_(0.5)
        return y


def test_a_chain_of_views_writes_each_buffer_once() -> None:
    recording = compiled(infer(Views(), torch.randn(WIDTH, WIDTH)))
    (kernel,) = kernels(recording)
    square = WIDTH * WIDTH * 4
    assert kernel.cost.bytes_read == square
    assert kernel.cost.bytes_written == 2 * square  # the result and the state
    # half of the elements are doubled (each is computed and chosen), all are halved
    assert kernel.cost.vector_flops == 2 * WIDTH * WIDTH
    assert products(recording, "forward") == 2 * WIDTH**3


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_users_own_compiled_module_is_left_as_it_is(wrapped: bool) -> None:
    plain = Wide()
    model: Any = torch.compile(plain) if wrapped else plain
    if not wrapped:
        model.compile()
    step = infer(model, torch.randn(ROWS, WIDTH))
    recording = compiled(step)
    assert recording.switches["torch.compile"] == "the step's own"
    assert products(recording, "forward") == 2 * ROWS * WIDTH * WIDTH
    scopes = [recording.scopes[op.scope] for op in recording.ops]
    assert scopes == ["dense", ""]


def test_a_step_that_compiles_nothing_says_what_to_do() -> None:
    x = torch.randn(4, 4)
    with pytest.raises(InputError, match="compiles nothing: give the Step its model"):
        compiled(Step(run=lambda: x.tanh()))


def test_eager_profiles_say_that_compiled_code_runs_in_them() -> None:
    recording = eager.record(infer(torch.compile(Wide()), torch.randn(ROWS, WIDTH)), COUNT, quiet)
    assert "compiled-code" in recording.flags


# ------------------------------------------------------------------------------------ private interfaces


def test_this_pytorch_has_the_interfaces_that_we_use() -> None:
    assert _torch_inductor.missing() == ""


def _raise(*_: Any) -> Any:
    raise KeyError("gone")


@pytest.mark.parametrize(
    ("name", "replacement", "bytes_known"),
    [("missing", lambda: "V.graph", False), ("_generated", _raise, True), ("_sizes", _raise, True)],
)
def test_where_inductor_changed_a_region_is_one_op_with_its_boundary(
    monkeypatch: pytest.MonkeyPatch, name: str, replacement: Callable[..., Any], bytes_known: bool
) -> None:
    monkeypatch.setattr(_torch_inductor, name, replacement)
    recording = compiled(infer(Residual(), torch.randn(ROWS, WIDTH)))
    (op,) = recording.ops
    region = recording.signatures[op.signature]
    assert region.name == "compiled region"
    assert region.cost.quality == "unknown"
    assert region.cost.flops is None
    weights = 2 * WIDTH * 2 * WIDTH + 3 * WIDTH + 2 * WIDTH  # two matrices, their biases, the norm's two
    expected = (4.0 * (ROWS * WIDTH + weights), 4.0 * ROWS * WIDTH) if bytes_known else (None, None)
    assert (region.cost.bytes_read, region.cost.bytes_written) == expected
    facts = recording.compilation
    assert facts is not None
    assert facts.opaque == 1
    assert any("one op of unknown work" in note for note in facts.notes)
    assert any(flag.startswith("opaque-regions") for flag in recording.flags)


# --------------------------------------------------------------------------------------------- when timed


def test_every_kernel_call_is_joined_and_has_a_floor_of_its_own() -> None:
    plan = Plan(device="cpu", steps=4, profiled_steps=3, options={"mode": "reduce-overhead"})
    recording = compiled(train(Residual(), torch.randn(ROWS, WIDTH)), plan)
    assert recording.profiled is not None
    assert recording.profiled.joined == 1.0
    assert "unjoined" not in recording.flags
    assert all(min(op.own_ns) > 0 for op in recording.ops)
    generated = [recording.signatures[op.signature] for op in recording.ops if op.constituents]
    assert {one.executor for one in generated} == {"inductor-cpp"}
    assert {"launch.inductor-cpp", "function.erf", "function.rsqrt"} <= recording.ceilings.keys()
    # An eager op's event holds its dispatch; a generated kernel's is the kernel alone.
    assert recording.ceilings["launch.inductor-cpp"].value < 2e-6
    facts = recording.compilation
    assert facts is not None
    assert facts.seconds is not None
    assert recording.wall.first is not None
    assert 0 < facts.seconds <= recording.wall.first
    assert any("CUDA graphs need a GPU" in note for note in facts.notes)
