"""TorchScript: what is traced behaves as the model, every op is found again, and the counts are those of eager mode."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from roofline import plugins, scope
from roofline.backends.torchscript import BACKEND
from roofline.core.schema import load
from roofline.core.step import Step, Workload
from roofline.costs.counted import PHASES, Counted
from roofline.errors import InputError
from roofline.models.torch import _step
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import profiler, record
from roofline.pytorch.torchscript import fusion
from roofline.pytorch.torchscript import record as _torchscript
from roofline.recording import record as measurement
from roofline.recording.recording import Plan, Recording
from roofline.timing.timed import EventCost

CPU = Plan(device="cpu", threads=1, steps=3, profiled_steps=3)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, _step.user_state_kept():
        patch.setattr(measurement, "bandwidth", lambda plan, threads: {})
        patch.setattr(profiler, "event_cost", lambda: EventCost(2e-7, 2e-7))
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)


def silent(text: str) -> None:
    """Says nothing."""


def infer(model: nn.Module, *args, **kwargs) -> Step:
    model.eval()

    def run():
        with torch.no_grad():
            return model(*args, **kwargs)

    return Step(run=run, model=model)


# ------------------------------------------------------------------------------------------------ our models

CASES = [(name, mode) for name in ("bert", "gpt2", "lenet5", "mlp") for mode in ("infer", "train")]


def built(name: str, mode: str, layers: int | None = None) -> Step:
    if name in ("bert", "gpt2"):
        pytest.importorskip("transformers")
        sizes = {"batch": 2, "seq": 16}
    else:
        sizes = {"batch": 4}
    workload = Workload(model=name, mode=mode, size="tiny", layers=layers, **sizes)  # type: ignore[arg-type]
    return plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True).build(workload)


def work(recording: Recording, by: str) -> dict[str, tuple[float, float]]:
    """(model FLOPs, executed FLOPs) by phase, block or scope, where there are any."""
    found: dict[str, tuple[float, float]] = {}
    for op in recording.ops:
        cost = recording.signatures[op.signature].cost
        name = {
            "phase": recording.phases[op.phase],
            "block": recording.blocks[op.block],
            "scope": f"{recording.phases[op.phase]} {recording.scopes[op.scope]}",
        }[by]
        model, executed = found.get(name, (0.0, 0.0))
        found[name] = (model + (cost.model_flops or 0.0), executed + (cost.flops or 0.0))
    return {name: both for name, both in found.items() if any(both)}


@pytest.mark.filterwarnings("ignore:.*loss_type.*")
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(*one, marks=pytest.mark.thorough if one == ("gpt2", "train") else (), id="-".join(one))
        for one in CASES
    ],
)
def test_a_traced_model_is_counted_as_the_eager_one(name: str, mode: str) -> None:
    eager = record.record(built(name, mode), Plan(device="cpu", threads=1, count_only=True), silent)
    step = built(name, mode)
    recording = BACKEND.recorder.record(step, CPU, silent)

    assert recording.notes == ()
    assert recording.profiled is not None
    assert recording.profiled.joined == 1
    assert "unjoined" not in recording.flags
    assert all(recording.signatures[op.signature].cost.quality == "exact" for op in recording.ops)
    for by in ("phase", "block", "scope"):
        assert work(recording, by) == work(eager, by)
    assert {recording.blocks[op.block] for op in recording.ops} == {eager.blocks[op.block] for op in eager.ops}
    assert "other" not in recording.blocks
    assert recording.switches["TorchScript frozen"] == str(mode == "infer")
    assert recording.compilation is not None
    assert recording.compilation.graphs == 1
    assert recording.compilation.seconds is not None
    assert 0 < recording.compilation.seconds < recording.wall.first
    assert "forward" not in vars(step.model)


def test_dropout_and_its_gradient_are_where_the_dropout_layer_is() -> None:
    """In a differentiable graph dropout is native_dropout; eager on a CPU draws, scales and multiplies."""
    step = built("bert", "train", layers=1)
    recording = BACKEND.recorder.record(step, Plan(device="cpu", count_only=True), silent)
    found = {
        (recording.signatures[op.signature].name, recording.blocks[op.block])
        for op in recording.ops
        if "native_dropout" in recording.signatures[op.signature].name
        and recording.scopes[op.scope].endswith("output/dropout")
    }
    block = "norm + residual + dropout"
    assert found == {("aten::native_dropout", block), ("aten::native_dropout_backward", block)}


@pytest.mark.filterwarnings("ignore:.*loss_type.*")
def test_products_have_the_layer_that_the_profiler_tells() -> None:
    """TorchScript runs query, key and value in an order of its own; the profiler knows which is which in forward."""

    class Holder(nn.Module):
        """As the graph sees the model: one part of what was traced."""

        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

    step = built("bert", "train")
    with _torchscript.traced(step, None) as run:
        counted = _torchscript._count_beside_eager(step, run)
        names, told = _torchscript._layers(replace(step, model=Holder(step.model)), counted)
    pairs = [
        (counted.scopes[mine], names[theirs].removeprefix("model/"))
        for mine, theirs, op in zip(counted.scope.tolist(), told.tolist(), counted.ops, strict=True)
        if theirs >= 0 and op.costed.kind in ("matmul", "embedding")
    ]
    assert len(pairs) == 3 + 2 * (6 + 2) + 2  # tables; six products and attention's two per layer; pooler and head
    assert [mine for mine, _ in pairs] == [theirs for _, theirs in pairs]


# ------------------------------------------------------------------------------------------------ tracing


class Small(nn.Module):
    """Two layers: 2 x 4 to 3."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def training(model: nn.Module) -> Step:
    x, y = torch.ones(2, 4), torch.zeros(2, dtype=torch.long)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def run():
        optimizer.zero_grad()
        with scope("loss"):
            loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return Step(run=run, mode="train", model=model)


def test_a_traced_model_learns_what_the_eager_one_learns() -> None:
    eager, traced = Small(), Small()
    for model, freeze in ((eager, None), (traced, "off")):
        step = training(model)
        if freeze is None:
            for _ in range(4):
                step.run()
        else:
            with _torchscript.traced(step, freeze) as run:
                for _ in range(4):
                    step.run()
            assert len(run.graphs) == 1
    for one, other in zip(eager.parameters(), traced.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert not torch.equal(eager.first.weight, Small().first.weight)


Pair = namedtuple("Pair", ["a", "b"])


class Many(nn.Module):
    """Inputs and outputs of all shapes."""

    def forward(self, x, times=2, *, pair, flag=None):
        y = x * times + pair[0]
        return {
            "y": y,
            "none": flag,
            "pair": Pair(y + 1, pair[1]),
            "list": [y - 1, "text", 3],
            "ordered": OrderedDict(z=y),
        }


@pytest.mark.parametrize("freeze", ["on", "off"])
def test_what_a_model_takes_and_returns_stays_what_it_is(freeze: str) -> None:
    model = Many().eval()
    x = torch.arange(3.0)
    expected = model(x, 3, pair=(x, x + 5))
    with _torchscript.traced(Step(run=lambda: None, model=model), freeze):
        for _ in range(3):
            found = model(x, 3, pair=(x, x + 5))
        torch.testing.assert_close(found.pop("pair"), expected.pop("pair"))
        assert found["list"][1:] == expected["list"][1:] == ["text", 3]
        torch.testing.assert_close(found["list"][0], expected["list"][0])
        assert found["none"] is None
        assert list(found["ordered"]) == ["z"]
        torch.testing.assert_close(found["y"], torch.tensor([0.0, 4.0, 8.0]))  # 3 x + x
        assert model(x, 5, pair=(x, x))["y"].tolist() == [0.0, 6.0, 12.0]  # another constant is another graph


def test_arguments_of_another_shape_are_traced_on_their_own() -> None:
    model = Small().eval()
    with _torchscript.traced(Step(run=lambda: None, model=model), None) as run, torch.no_grad():
        assert model(torch.ones(2, 4)).shape == (2, 3)
        assert model(torch.ones(5, 4)).shape == (5, 3)
        assert model(torch.ones(2, 4)).shape == (2, 3)
    assert len(run.graphs) == 2
    assert run.frozen


def test_tracing_another_shape_is_no_work_of_the_step_that_does_it() -> None:
    """Each call has two rows more: all are traced, the counted one as well, which runs the model once more for it."""
    model = nn.Linear(4, 3).eval()
    rows: list[int] = []

    @torch.no_grad()
    def step():
        rows.append(101 + 2 * len(rows))  # the sum of two is even
        return model(torch.ones(rows[-1], 4))

    recording = BACKEND.recorder.record(Step(run=step, model=model), replace(CPU, count_only=True), silent)
    executed = sum(recording.signatures[op.signature].cost.flops for op in recording.ops)
    assert executed in [2 * 4 * 3 * many for many in rows]


class Branches(nn.Module):
    """Looks at its data."""

    def forward(self, x):
        return x + 1 if bool(x.sum() > 0) else x - 1


def test_a_value_that_tracing_makes_constant_is_told_and_warns_nobody() -> None:
    said: list[str] = []
    recording = BACKEND.recorder.record(infer(Branches(), torch.ones(3)), CPU, said.append)
    assert recording.compilation is not None
    assert len(recording.compilation.notes) == 1
    assert "torchscript/test_record.py:" in recording.compilation.notes[0]
    assert recording.compilation.notes[0] in said


# ------------------------------------------------------------------------------------------------ what is refused


class Odd:
    """No tensor, and nothing that a graph can return."""

    def __init__(self, x) -> None:
        self.x = x


class Returns(nn.Module):
    """Returns an Odd."""

    def forward(self, x):
        return Odd(x)


class Numpy(nn.Module):
    """Goes where no trace can follow, for one call in a trace."""

    def forward(self, x):
        return torch.compiler.is_compiling() or (x.numpy() if not torch.jit.is_tracing() else torch.ones(2).expand(3))


class Raises(nn.Module):
    """Has a fault of its own."""

    def forward(self, x):
        raise KeyError("mine")


def test_a_step_without_a_model_is_refused() -> None:
    with pytest.raises(InputError, match="names no model"):
        BACKEND.recorder.record(Step(run=lambda: None), CPU, silent)


def test_a_model_that_returns_an_object_is_refused() -> None:
    with pytest.raises(InputError, match="returns a Odd"):
        BACKEND.recorder.record(infer(Returns(), torch.ones(3)), CPU, silent)


def test_a_model_that_is_given_an_object_is_refused() -> None:
    with pytest.raises(InputError, match="is called with a Odd"):
        BACKEND.recorder.record(infer(Small(), Odd(1)), CPU, silent)


def test_a_model_that_only_tracing_breaks_is_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match=r"cannot trace Numpy \(.*expand.*\): give a step"):
        BACKEND.recorder.record(infer(Numpy(), torch.ones(3)), CPU, silent)


def test_an_error_of_the_model_itself_passes_through() -> None:
    with pytest.raises(KeyError, match="mine"):
        BACKEND.recorder.record(infer(Raises(), torch.ones(3)), CPU, silent)


def test_frozen_training_is_refused() -> None:
    plan = Plan(device="cpu", options={"freeze": "on"})
    with pytest.raises(InputError, match="cannot train"):
        BACKEND.recorder.record(training(Small()), plan, silent)
    with pytest.raises(InputError, match="leave freeze out"):
        BACKEND.recorder.record(infer(torch.jit.script(Small()), torch.ones(2, 4)), plan, silent)


def test_inference_unfrozen_on_request() -> None:
    plan = Plan(device="cpu", count_only=True, options={"freeze": "off"})
    recording = BACKEND.recorder.record(infer(Small(), torch.ones(2, 4)), plan, silent)
    assert recording.switches["TorchScript frozen"] == "False"
    assert recording.compilation is not None
    assert recording.compilation.mode == "traced"


# ------------------------------------------------------------------------------------------------ scripted by the user


class Layer(nn.Module):
    """Grows or shrinks its input by what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 6)
        self.down = nn.Linear(6, 4)

    def forward(self, x):
        h = torch.relu(self.up(x))
        if bool(h.sum() >= 0):
            h = h * 2
        return x + self.down(h)


class Controlled(nn.Module):
    """Two layers with control flow, called in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        times = 0
        while times < 3:
            x = x + 1
            times += 1
        return self.head(x)


def listed(counted: Counted) -> list[tuple[str, str, str, float]]:
    rows = zip(counted.names_of_ops, counted.phase.tolist(), counted.scope.tolist(), counted.ops, strict=True)
    return [
        (name.removeprefix("aten::"), PHASES[phase], counted.scopes[at], float(op.costed.cost.model_flops or 0))
        for name, phase, at, op in rows
    ]


def test_a_module_that_came_scripted_runs_as_it_is_and_keeps_its_layers() -> None:
    said: list[str] = []
    recording = BACKEND.recorder.record(training(torch.jit.script(Controlled())), CPU, said.append)
    assert recording.profiled is not None
    assert recording.profiled.joined == 1
    assert recording.switches["TorchScript"] == "the step's own module"

    found = work(recording, "scope")
    one = 2 * 2 * 4 * 6  # [2, 4] x [4, 6], 2 FLOP per multiply-add; down is as large
    expected = {"forward head": 2 * 2 * 4 * 3, "backward head": 2 * 2 * 2 * 4 * 3}
    for layer in ("layers.0", "layers.1"):
        for part in ("up", "down"):
            expected[f"forward {layer}/{part}"] = one
            expected[f"backward {layer}/{part}"] = 2 * one
    expected["backward layers.0/up"] = one  # nobody asks for the gradient of the data
    assert {name: both[0] for name, both in found.items()} == expected
    assert {name: both[1] for name, both in found.items()} == expected


def test_what_a_scripted_module_really_ran_is_counted() -> None:
    """Three rounds of the loop at the top, and the branch that was taken in each layer."""
    counted = _torchscript._count_scripted(infer(torch.jit.script(Controlled()), torch.ones(2, 4)))
    layer = [("addmm", "up"), ("relu", ""), ("sum", ""), ("ge", ""), ("mul", ""), ("addmm", "down"), ("add", "")]
    expected = [(name, f"layers.{n}/{part}".rstrip("/")) for n in range(2) for name, part in layer]
    expected += [("add", "")] * 3 + [("addmm", "head")]
    assert [(name, at) for name, _, at, _ in listed(counted)] == expected


# ------------------------------------------------------------------------------------------------ the fuser


@pytest.fixture
def fusing() -> Iterator[None]:
    """NNC on a CPU by its interpreter: it is off there by default, and so is what it would need to be fast."""
    own = torch._C
    before = own._jit_can_fuse_on_cpu(), own._jit_get_te_must_use_llvm_cpu()
    own._jit_override_can_fuse_on_cpu(True)
    own._jit_set_te_must_use_llvm_cpu(False)
    yield
    own._jit_override_can_fuse_on_cpu(before[0])
    own._jit_set_te_must_use_llvm_cpu(before[1])


class Chain(nn.Module):
    """A product, and three pointwise ops that become one kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x):
        return torch.sigmoid(self.first(x)) * x + 1


def test_a_fused_kernel_is_one_op_with_its_parts(fusing: None) -> None:
    recording = BACKEND.recorder.record(infer(Chain(), torch.ones(4, 8)), CPU, silent)
    assert recording.switches["TorchScript fuser"] == "NNC"
    assert recording.profiled is not None
    assert recording.profiled.joined == 1
    names = [recording.signatures[op.signature].name for op in recording.ops]
    assert names == ["aten::addmm", "fused_sigmoid_mul_add"]
    op = recording.ops[1]
    cost = recording.signatures[op.signature].cost
    # 32 elements: a multiplication and an addition each, one sigmoid; two inputs and one output of 128 bytes.
    assert (cost.vector_flops, cost.functions) == (64, {"sigmoid": 32})
    assert (cost.bytes_read, cost.bytes_written) == (256, 128)
    assert [recording.signatures[part].kind for part in op.constituents] == ["sigmoid", "mul", "add"]


def test_a_fused_kernel_that_cannot_be_looked_into_is_unknown_by_name(
    fusing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fusion, "groups", lambda module, engine: [])
    recording = BACKEND.recorder.record(infer(Chain(), torch.ones(4, 8)), CPU, silent)
    names = [recording.signatures[op.signature].name for op in recording.ops]
    assert names == ["aten::addmm", "fused_sigmoid_mul_add"]
    assert recording.signatures[recording.ops[1].signature].cost.flops is None
    assert any("fused_sigmoid_mul_add" in note for note in recording.notes)


def test_kernels_of_one_name_are_told_apart_by_order_or_not_at_all(fusing: None) -> None:
    """Two groups of one name and other shapes; of three such events nobody could say which is which."""

    class Twice(nn.Module):
        def forward(self, x):
            y = torch.tanh(x) * x
            z = torch.mm(y, y.T)
            return torch.tanh(z) * z

    x = torch.ones(3, 5)
    module = torch.jit.freeze(torch.jit.trace(Twice().eval(), (x,), check_trace=False))
    for _ in range(3):
        module(x)
    groups = fusion.groups(module, Engine())
    assert [group.name for group in groups] == ["fused_tanh_mul"] * 2
    assert [group.costed.cost.bytes_written for group in groups] == [4 * 3 * 5, 4 * 3 * 3]

    class Nodes:
        names = ("fused_tanh_mul",) * 2
        is_op = (False,) * 2

    def written(names: int) -> list[float | None]:
        Nodes.names, Nodes.is_op = ("fused_tanh_mul",) * names, (False,) * names
        found = fusion.kernels(Nodes(), groups, {})
        return [found[row].costed.cost.bytes_written for row in range(names)]

    assert written(2) == [group.costed.cost.bytes_written for group in groups]
    assert written(3) == [None] * 3


# ------------------------------------------------------------------------------------------------ whole


def test_verify_checks_what_the_traced_step_executes() -> None:
    checks = BACKEND.recorder.verify(built("mlp", "train"))
    counter = [check for check in checks if check.reference_name == "FlopCounterMode"]
    assert {check.what for check in counter} == {"addmm", "mm"}
    assert all(check.verdict == "agrees" for check in counter)


@pytest.mark.slow
def test_from_the_command_line(tmp_path) -> None:
    path = tmp_path / "mlp.json"
    command = "profile mlp --backend torchscript --size tiny --mode train --steps 3 --threads 1 --count-only -o"
    done = subprocess.run(
        [sys.executable, "-m", "roofline", *command.split(), str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert load(path).switches["TorchScript frozen"] == "False"


def test_a_step_of_another_shape_is_no_twin_of_the_traced_one():
    """Calls take 8 and 16 rows in turn: what is counted of one says nothing of what the other one asks for."""
    layer, rows = nn.Linear(32, 32).eval(), cycle((8, 16))

    def run():
        with torch.no_grad():
            layer(torch.ones(next(rows), 32))

    recording = BACKEND.recorder.record(Step(run=run, model=layer), Plan(device="cpu", count_only=True), silent)
    assert recording.flags == ("shapes-vary",)
    costs = [recording.signatures[op.signature].cost for op in recording.ops]
    (product,) = [cost for cost in costs if cost.flops]
    assert product.model_flops == product.flops
    assert product.flops in (2 * 8 * 32 * 32, 2 * 16 * 32 * 32)
