"""torch.compile for real, on small modules: what is fused, what moves, what it computes, and what stays eager."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count, cycle
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn
from torch._inductor import compile_fx

from roofline.backends.torch import BACKEND as EAGER
from roofline.backends.torch_compile import BACKEND
from roofline.core.cost import matrix
from roofline.core.step import Step, scope
from roofline.costs.counted import Costed
from roofline.pytorch.compiled import Part
from roofline.pytorch.inductor import kernels as torch_inductor
from roofline.pytorch.inductor import parts as torch_inductor_parts
from roofline.pytorch.inductor import record as torch_compiled_record
from roofline.pytorch.inductor import sites
from roofline.pytorch.inductor.loops import PHILOX, LoopWork
from roofline.pytorch.inductor.sites import Site
from roofline.recording import record as measurement
from roofline.recording.recording import Plan, Recording

ROWS, WIDTH = 32, 64
COUNT = Plan(device="cpu", count_only=True)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Kernels have the number of their graph in their names. Counted anew in each test, as in a process of its own, the
    # same kernel is the same C++, which g++ compiles once for all tests: it takes most of their time.
    monkeypatch.setattr(compile_fx, "_graph_counter", count())
    monkeypatch.setattr(measurement, "bandwidth", lambda plan, threads: {})
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
    return BACKEND.recorder.record(step, plan, quiet)


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


@cache
def residual() -> tuple[Recording, Recording]:
    """The same layer eager and compiled."""
    step = infer(Residual(), torch.randn(ROWS, WIDTH))
    return EAGER.recorder.record(step, COUNT, quiet), compiled(step)


def test_a_kernel_moves_its_boundary_and_does_the_work_of_its_parts() -> None:
    _, recording = residual()
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
    before, after = residual()
    # eager: the sum of the residual is written and read again, and the norm writes its mean and deviation per row
    assert moved(before) - moved(after) == 2 * ROWS * WIDTH * 4 + 2 * ROWS * 4
    assert len(before.ops) == 5
    assert len(after.ops) == 4
    assert products(before, "forward") == products(after, "forward") == 2 * 2 * ROWS * WIDTH * 2 * WIDTH


def test_training_counts_as_eager_and_places_the_backward_pass() -> None:
    step = train(Residual(), torch.randn(ROWS, WIDTH, requires_grad=True))
    before, after = EAGER.recorder.record(step, COUNT, quiet), compiled(step)
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
    forward, called = (inspect.getsourcelines(part)[1] + below for part, below in ((Residual.forward, 1), (train, 3)))
    rows = [
        (after.signatures[op.signature], bool(op.constituents), after.lines[op.line].rpartition(":")[2])
        for op in after.ops
    ]
    of_graphs = {line for signature, is_fused, line in rows if is_fused or signature.cost.flops}
    assert of_graphs == {str(forward)}, "by the nodes of the graphs, forward and backward"
    eager = {line for signature, _, line in rows if signature.name == "aten::sum"}
    assert eager == {str(called)}, "it runs after the model"


def test_what_stays_eager_has_the_scope_of_its_eager_twin() -> None:
    model, x = Wide(), torch.randn(ROWS, WIDTH)

    def run() -> None:
        model.zero_grad()
        y = model(x)
        with scope("loss"):
            value = nn.functional.cross_entropy(y, torch.zeros(ROWS, dtype=torch.long))
        value.backward()

    recording = compiled(Step(run=run, model=model, mode="train"))
    losses = [op for op in recording.ops if "loss" in recording.signatures[op.signature].kind]
    assert {recording.scopes[op.scope] for op in losses} == {"loss"}
    assert {recording.phases[op.phase] for op in losses} == {"forward", "backward"}


def test_dropout_is_random_and_no_roof_stands_above_it() -> None:
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5))
    recording = compiled(train(model, torch.randn(ROWS, WIDTH)))
    drawing = [one for one in kernels(recording) if PHILOX in (one.cost.functions or {})]
    assert [one.cost.functions for one in drawing] == [{PHILOX: ROWS * WIDTH}]
    assert drawing[0].op_class == "random"


def test_modules_of_pytorch_itself_are_compiled_too() -> None:
    facts = compiled(infer(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), torch.randn(ROWS, WIDTH))).compilation
    assert facts is not None
    assert facts.graphs == 1
    assert facts.eager == {}


class Calls(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def only_kernel(function: Callable[..., Any], *inputs: Any) -> Any:
    """The one op of a function, a generated kernel; unlike `kernels`, also one of the class contraction."""
    recording = compiled(infer(Calls(function), *inputs))
    (op,) = recording.ops
    assert op.constituents
    return recording.signatures[op.signature]


def test_a_kernel_of_mixed_types_has_that_of_what_it_writes() -> None:
    single, double = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH, dtype=torch.float64)
    kernels_and_types = [
        (only_kernel(lambda a, b: a * b + 1, single, double), "fp64", "fp64"),
        (only_kernel(lambda a: a.half(), single), "fp16", "fp16"),
        (only_kernel(lambda a: a * 2 > 1, single), "bool", "fp32"),
    ]
    for kernel, written, computes_in in kernels_and_types:
        assert (kernel.dtype, kernel.computes_in) == (written, computes_in)


def test_a_product_written_out_as_loops_stays_a_contraction() -> None:
    kernel = only_kernel(lambda a, b: torch.relu(a @ b), torch.randn(4, 1), torch.randn(1, 8))
    # K = 1: one multiply-add per result, 2 FLOP; one comparison with 0 per result for the relu
    assert kernel.cost.model_flops == kernel.cost.flops == 2 * 4 * 8
    assert kernel.cost.vector_flops == 4 * 8
    assert kernel.op_class == "contraction"


@pytest.mark.parametrize(
    "library",
    [
        lambda x: x.sort(-1).values,
        pytest.param(lambda x: x.topk(4, -1)[0], marks=pytest.mark.thorough),
        pytest.param(lambda x: torch.linalg.qr(x)[0], marks=pytest.mark.thorough),
    ],
    ids=["sort", "topk", "qr"],
)
def test_a_kernel_keeps_its_ops_before_a_librarys(library: Callable[[Any], Any]) -> None:
    """Inductor says of what a library does that it came from what was computed for it, too."""
    recording = compiled(infer(Calls(lambda x: library(nn.functional.gelu(x))), torch.randn(ROWS, WIDTH)))
    assert parts(recording, 0) == [("gelu", "pointwise", "")]
    assert kernels(recording)[0].op_class == "pointwise"


def test_only_the_product_itself_is_matrix_work() -> None:
    kernel = only_kernel(
        lambda c, a, b: torch.addmm(c, a, b, alpha=2.0, beta=0.5).tanh() * 3.0,
        *(torch.randn(16), torch.randn(1, 16), torch.randn(16, 16)),
    )
    assert kernel.cost.model_flops == kernel.cost.flops == 2 * 16 * 16
    assert kernel.cost.vector_flops == 16 * (1 + 1 + 1 + 1)  # alpha, beta, their sum, times 3
    assert kernel.cost.functions == {"tanh": 16}


def test_the_square_of_a_vector_is_a_product_too() -> None:
    kernel = only_kernel(lambda a: torch.dot(a, a) + 1, torch.randn(64))
    assert kernel.cost.flops == 2 * 64
    assert kernel.cost.vector_flops == 1
    assert (kernel.cost.bytes_read, kernel.cost.bytes_written) == (4 * 64, 4)


def product_of(flops: float, vector: float) -> torch_inductor_parts._CountedPart:
    costed = Costed(matrix(flops), "matmul", "contraction", "", "fp32", "fp32")
    return torch_inductor_parts._CountedPart(Part(costed, "", 1.0), vector)


def site(vector: float, templates: tuple[Any, ...] = ()) -> Site:
    return Site("", "", False, (), (), False, (), templates, (LoopWork(vector=vector),))


def test_a_sum_done_by_two_kernels_is_one_product() -> None:
    # 1000 products and 1000 - 1 additions: 8 partial sums in the first kernel, their sum in the second
    parts = [product_of(2.0 * 1000, 1000 + 999)]
    first, second = (torch_inductor_parts._work(site(n), {}, parts) for n in (1000 + 992, 7))
    assert first.flops + second.flops == pytest.approx(2.0 * 1000)
    assert first.vector_flops == second.vector_flops == 0


def test_a_template_of_an_op_without_a_formula_is_unknown() -> None:
    assert torch_inductor_parts._work(site(0, templates=(object(),)), {}, []).quality == "unknown"


# ---------------------------------------------------------------------------------------------- what moves


def test_adding_into_rows_of_a_copy_reads_and_writes_the_table_once() -> None:
    rows, picked = 100, 32
    kernel = only_kernel(
        lambda table, index, value: table.index_put((index,), value, accumulate=True),
        *(torch.randn(rows, 16), torch.randint(0, rows, (picked,)), torch.randn(picked, 16)),
    )
    # The copy and the additions are two loops of one kernel: table, indices and values in, table out.
    assert kernel.cost.bytes_read == 4 * rows * 16 + 8 * picked + 4 * picked * 16
    assert kernel.cost.bytes_written == 4 * rows * 16
    assert kernel.cost.vector_flops == picked * 16, "each value is added"


def test_adding_into_rows_in_place_touches_those_rows() -> None:
    kernel = only_kernel(
        lambda table, index, value: table.index_put_((index,), value, accumulate=True),
        *(torch.randn(100, 16), torch.randint(0, 100, (32,)), torch.randn(32, 16)),
    )
    assert kernel.cost.bytes_read == 8 * 32 + 2 * 4 * 32 * 16  # indices, values, and what they are added to
    assert kernel.cost.bytes_written == 4 * 32 * 16
    assert kernel.inplace


def test_a_number_looked_up_for_each_row_is_read_once_per_row() -> None:
    kernel = only_kernel(
        lambda table, index, x: table[index][:, None] + x,
        *(torch.randn(100), torch.randint(0, 100, (ROWS,)), torch.randn(ROWS, WIDTH)),
    )
    assert kernel.cost.bytes_read == (8 + 4) * ROWS + 4 * ROWS * WIDTH


def test_a_concatenation_inside_a_kernel_does_not_move() -> None:
    def rotate(x: Any, y: Any) -> Any:
        half = WIDTH // 2
        return x * y + torch.cat([-x[:, half:], x[:, :half]], 1)

    kernel = only_kernel(rotate, torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH))
    assert (kernel.cost.bytes_read, kernel.cost.bytes_written) == (2 * 4 * ROWS * WIDTH, 4 * ROWS * WIDTH)
    assert kernel.cost.vector_flops == ROWS * WIDTH * 2 + ROWS * WIDTH // 2  # mul, add; half is negated


def test_what_a_library_wrote_of_a_concatenation_is_read_and_no_more() -> None:
    model = Calls(lambda x, y: torch.cat([x @ y, x * 2], 1) + 1)
    (kernel,) = kernels(compiled(infer(model, torch.randn(ROWS, WIDTH), torch.randn(WIDTH, WIDTH))))
    # in: x, and the half that the product wrote; out: the sum
    assert (kernel.cost.bytes_read, kernel.cost.bytes_written) == (2 * 4 * ROWS * WIDTH, 2 * 4 * ROWS * WIDTH)


def test_batch_norm_in_training_is_a_norm_and_writes_its_statistics() -> None:
    (kernel,) = kernels(compiled(infer(nn.BatchNorm1d(WIDTH), torch.randn(ROWS, WIDTH))))
    assert kernel.op_class == "normalisation"
    # the input, weight and bias, running mean and variance, the number of batches; out: the result and the last three
    assert kernel.cost.bytes_read == 4 * ROWS * WIDTH + 4 * 4 * WIDTH + 8
    assert kernel.cost.bytes_written == 4 * ROWS * WIDTH + 2 * 4 * WIDTH + 8


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
    before, after = EAGER.recorder.record(step, COUNT, quiet), compiled(step)
    for phase in ("forward", "backward"):
        assert products(before, phase) == products(after, phase)
    facts = after.compilation
    assert facts is not None
    assert facts.graphs == 4, "each half, forward and backward"
    assert len(facts.breaks) == 1
    assert "item" in next(iter(facts.breaks))


class Reshaped(nn.Module):
    """Three graphs, of which the one in the middle only looks at its input in another shape."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        y = self.dense(x)
        torch._dynamo.graph_break()
        y = y.view(2, -1, WIDTH).transpose(0, 1)
        torch._dynamo.graph_break()
        return y.tanh()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # as above
def test_a_graph_of_views_alone_runs_no_kernel_and_hides_nothing() -> None:
    recording = compiled(train(Reshaped(), torch.randn(ROWS, WIDTH)))
    # Nobody wants the gradient of the input.
    assert [products(recording, phase) for phase in ("forward", "backward")] == [2 * ROWS * WIDTH * WIDTH] * 2
    facts = recording.compilation
    assert facts is not None
    # Three and two: PyTorch makes the gradient of a view itself.
    assert (facts.graphs, facts.opaque) == (3 + 2, 0)


class Either(nn.Module):
    """A branch in the graph: each side is a graph of its own inside it."""

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.tanh() * 2, lambda x: (x * 3).exp(), (x,)) + 1


@pytest.mark.parametrize("noted", [True, False])
def test_of_a_branch_the_kernels_that_ran_count(monkeypatch: pytest.MonkeyPatch, noted: bool) -> None:
    if not noted:
        launches = torch_inductor_parts._launches
        monkeypatch.setattr(torch_inductor_parts, "_launches", lambda *given: (launches(*given)[0], ()))
    recording = compiled(infer(Either(), torch.ones(ROWS, WIDTH)))
    facts = recording.compilation
    assert facts is not None
    if not noted:
        assert facts.opaque == 1, "a kernel that nobody noted makes its region unknown"
        return
    test, branch, rest = (one.cost for one in kernels(recording))
    assert test.vector_flops == ROWS * WIDTH - 1
    assert (branch.vector_flops, branch.functions) == (ROWS * WIDTH, {"tanh": ROWS * WIDTH})
    assert rest.vector_flops == ROWS * WIDTH
    assert facts.opaque == 0


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return self.dense(self.dense(x).tanh()).tanh()


def test_a_layer_called_twice_has_all_three_products_of_its_backward_pass() -> None:
    recording = compiled(train(Twice(), torch.randn(ROWS, WIDTH)))
    backward = [op for op in recording.ops if recording.phases[op.phase] == "backward"]
    costs = [(recording.scopes[op.scope], recording.signatures[op.signature].cost) for op in backward]
    # The second gradient of the weight is multiplied and added to the first in one call, which autograd does in none.
    assert [(scope, cost.flops, cost.model_flops) for scope, cost in costs if cost.flops] == [
        ("dense", 2 * ROWS * WIDTH**2, 2 * ROWS * WIDTH**2)
    ] * 3


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


class Picks(nn.Module):
    """Rows whose number depends on data."""

    def forward(self, x: Any) -> Any:
        return torch.nonzero(x).float().mul(0.5).exp()


def test_sizes_that_only_the_run_knows_are_unknown_and_not_nothing() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        recording = compiled(infer(Picks(), torch.eye(8)))
    (kernel,) = kernels(recording)
    assert kernel.cost.quality == "unknown"
    assert (kernel.cost.vector_flops, kernel.cost.bytes_read, kernel.cost.bytes_written) == (None, None, None)
    (op,) = [op for op in recording.ops if op.constituents]
    for part in op.constituents:
        cost = recording.signatures[part].cost
        assert (cost.quality, cost.bytes_read, cost.bytes_written) == ("unknown", None, None)


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
    before, after = EAGER.recorder.record(step, COUNT, quiet), compiled(step)
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


def test_a_step_that_compiles_nothing_is_recorded_and_says_so() -> None:
    model, x, said = Wide(), torch.randn(ROWS, WIDTH), []
    torch.compile(model)  # and what it returns is not called
    recording = BACKEND.recorder.record(Step(run=lambda: model(x)), COUNT, said.append)
    assert "nothing-compiled" in recording.flags
    assert any("call what torch.compile returns" in text for text in said)
    assert recording.compilation.graphs == 0
    assert products(recording, "forward") == 2 * ROWS * WIDTH * WIDTH


def test_eager_profiles_say_that_compiled_code_runs_in_them() -> None:
    recording = EAGER.recorder.record(infer(torch.compile(Wide()), torch.randn(ROWS, WIDTH)), COUNT, quiet)
    assert "compiled-code" in recording.flags


def test_what_is_compiled_to_find_the_ops_of_graphs_is_no_compilation_of_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As beside a GPU the model is compiled once more without CUDA graphs, which a CPU has none of: the code is equal.

    Counted together, that was a recompilation, twice the guards, and a compile time longer than the first step.
    """
    plan = Plan(device="cpu", count_only=True, options={"mode": "reduce-overhead"})
    stats = torch._dynamo.utils.counters["stats"]
    before = stats["unique_graphs"]
    alone = compiled(infer(Wide(), torch.randn(ROWS, WIDTH)), plan).compilation
    once = stats["unique_graphs"] - before
    monkeypatch.setattr(torch_compiled_record, "has_graphs", lambda mode, device: True)
    recording = compiled(infer(Wide(), torch.randn(ROWS, WIDTH)), plan)
    facts = recording.compilation
    assert stats["unique_graphs"] - before - once == 2 * once == 2, "it was compiled twice"
    assert alone is not None
    assert facts is not None
    assert facts.recompilations == alone.recompilations == ()
    assert facts.guards == alone.guards
    assert facts.graphs == alone.graphs == 1
    assert facts.seconds is not None
    assert recording.wall.first is not None
    assert 0 < facts.seconds <= recording.wall.first


# ------------------------------------------------------------------------------------ private interfaces


def test_this_pytorch_has_the_interfaces_that_we_use() -> None:
    assert torch_inductor.missing() == ""


@pytest.mark.parametrize("name", ["addmm", "bias_addmm", "mm", "baddbmm", "_mm_plus_mm", "conv1x1_via_mm", "_int_mm"])
def test_a_librarys_kernel_goes_by_the_op_that_it_calls(name: str) -> None:
    """bias_addmm and conv1x1_via_mm are functions of Inductor's own, and no ops."""
    from torch._inductor.kernel import bmm, conv, mm, mm_plus_mm
    from torch._inductor.select_algorithm import ExternKernelChoice, extern_kernels
    from torch.autograd.profiler import profile

    a, b, c = torch.randn(32, 64), torch.randn(64, 16), torch.randn(32, 16)
    batches = (torch.randn(2, 4, 8), torch.randn(2, 4, 3), torch.randn(2, 3, 8))
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    arguments, out = {
        "addmm": ((c, a, b), c.clone()),
        "bias_addmm": ((torch.randn(16).expand(32, 16), a, b), c.clone()),
        "mm": ((a, b), c.clone()),
        "baddbmm": (batches, batches[0].clone()),
        "_mm_plus_mm": ((a, b, a, b), c.clone()),
        "conv1x1_via_mm": ((image, torch.randn(5, 3, 1, 1)), torch.empty(2, 4, 4, 5).permute(0, 3, 1, 2)),
        "_int_mm": ((a.to(torch.int8), b.to(torch.int8)), c.to(torch.int32)),
    }[name]
    choices = [*vars(mm).values(), *vars(mm_plus_mm).values(), *vars(conv).values(), *vars(bmm).values()]
    known = {one.name: one.op_overload for one in choices if isinstance(one, ExternKernelChoice)}
    with profile(use_kineto=True) as profiler, torch.no_grad():
        getattr(extern_kernels, name)(*arguments, out=out)
    called = [event.name for event in profiler.function_events]
    assert sites.event(f"extern_kernels.{name}", known[name]) in called


def _raise(*_: Any) -> Any:
    raise KeyError("gone")


@pytest.mark.parametrize(
    ("module", "name", "replacement", "bytes_known"),
    [
        (torch_inductor, "missing", lambda: "V.graph", False),
        (sites, "generated", _raise, True),
        (torch_inductor, "_sizes", _raise, True),
        (torch_inductor.Recorder, "_note", lambda *_: None, True),
    ],
)
def test_where_inductor_changed_a_region_is_one_op_with_its_boundary(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, replacement: Callable[..., Any], bytes_known: bool
) -> None:
    monkeypatch.setattr(module, name, replacement)
    recording = compiled(infer(Wide(), torch.randn(ROWS, WIDTH)))
    (op,) = recording.ops
    region = recording.signatures[op.signature]
    assert region.name == "compiled region"
    assert region.cost.quality == "unknown"
    assert region.cost.flops is None
    weights = WIDTH * WIDTH + WIDTH  # the matrix and its bias
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
    recording = compiled(train(nn.Sequential(Residual(), nn.Dropout(0.5)), torch.randn(ROWS, WIDTH)), plan)
    assert recording.profiled is not None
    assert recording.profiled.joined == 1.0
    assert "unjoined" not in recording.flags
    assert all(sum(op.own_ns) > 0 for op in recording.ops if op.constituents)
    generated = [recording.signatures[op.signature] for op in recording.ops if op.constituents]
    assert {one.executor for one in generated} == {"inductor-cpp"}
    assert {"launch.inductor-cpp", "function.erf", "function.rsqrt"} <= recording.ceilings.keys()
    drawn = {name for one in generated for name in one.cost.functions or ()}
    assert PHILOX in drawn
    assert f"function.{PHILOX}" not in recording.ceilings, "no roof stands above random numbers"
    facts = recording.compilation
    assert facts is not None
    assert facts.seconds is not None
    assert recording.wall.first is not None
    assert 0 < facts.seconds <= recording.wall.first
    assert any("CUDA graphs need a GPU" in note for note in facts.notes)


def test_a_step_of_another_shape_is_no_twin_of_the_compiled_one() -> None:
    """Each call takes 8 rows more: what is counted of another one says nothing of what this one asks for."""
    layer, rows = nn.Linear(WIDTH, WIDTH), count(8, 8)

    def run() -> None:
        x = torch.randn(next(rows), WIDTH)
        torch._dynamo.mark_dynamic(x, 0)  # or the step that is counted would be one that compiles anew
        with torch.no_grad():
            layer(x)

    recording = compiled(Step(run=run, model=layer))
    assert recording.flags == ("shapes-vary",)
    executed = products(recording, "forward", "flops")
    assert products(recording, "forward") == executed
    assert executed % (2 * 8 * WIDTH * WIDTH) == 0


def test_a_step_that_runs_more_than_it_asks_for_is_a_twin() -> None:
    """Two rows of zeros are filled up and cut off each time: the eager step says so of the compiled one."""

    class Filled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            return nn.functional.pad(self.layer(nn.functional.pad(x, (0, 0, 0, 2)))[:30], (0, 1))

    recording = compiled(infer(Filled(), torch.randn(30, WIDTH)))
    assert recording.flags == ()
    row = 2 * WIDTH * WIDTH
    assert (products(recording, "forward"), products(recording, "forward", "flops")) == (30 * row, 32 * row)


def test_a_step_that_compiled_is_followed_by_one_that_is_counted() -> None:
    """Each call has other rows. The second compiles for any number, and is not counted: the third is, of 17 rows."""
    model = nn.Sequential(nn.Linear(WIDTH, 23), nn.GELU(), nn.Linear(23, 3)).eval()
    run = torch.compile(model)
    lengths = cycle((5, 11, 7, 17))  # compiled, then of the eager twin, compiled again, counted

    @torch.no_grad()
    def step() -> object:
        return run(torch.ones(next(lengths), WIDTH))

    recording = compiled(Step(run=step))
    assert products(recording, "forward") == products(recording, "forward", "flops") == 2 * 17 * (WIDTH * 23 + 23 * 3)
    assert [kernel.cost.functions["erf"] for kernel in kernels(recording)] == [17 * 23]
    assert "opaque-regions" not in recording.flags


def test_what_a_step_runs_to_compile_is_no_op_of_it() -> None:
    """Compiled in every call: the traced products, of tensors without numbers, are not those of the step."""
    x = torch.ones(8, WIDTH)

    def step() -> object:
        torch.compiler.reset()
        return torch.compile(lambda x: torch.relu(x @ x.T), backend="aot_eager")(x)

    recording = compiled(Step(run=step))
    assert products(recording, "forward", "flops") == 2 * 8 * WIDTH * 8
    assert len(recording.ops) == 2
