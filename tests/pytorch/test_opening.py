"""Ops without a rule: their work is that of the calls inside them, as far as these say it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from roofline.core.step import Step, scope
from roofline.core.vocabulary import CALLBACK
from roofline.costs import counted as counted_ops
from roofline.costs.calls import UNKNOWN, Call, Tensor
from roofline.importing import cpu
from roofline.importing.work.costs import Costs
from roofline.pytorch import count, opening
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting as torch_counting
from roofline.traces.kineto import reader

#: Remembers what a call costs, for all tests.
ENGINE = Engine()
NAMESPACE = f"opening_{uuid4().hex[:8]}"


def counted_of(run):
    return count.count(torch_counting.record(Step(run=run)), ENGINE)


def custom_op(function, mutates=()):
    """An op of the user's own under the function's name."""
    return torch.library.custom_op(f"{NAMESPACE}::{function.__name__}", mutates_args=mutates)(function)


def step_of(run):
    def step():
        with torch.no_grad():
            return run()

    return step


def only(counted):
    """Its one op that does work."""
    (op,) = counted.ops
    return op


def products(counted):
    return sum(op.costed.cost.model_flops for op in counted.ops)


# What PyTorch itself runs as one op


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_an_encoder_that_packs_padded_sequences_is_known_in_its_products():
    """10 of 12 positions of 16 remain: q, k, v and out, and to 32 and back; attention is of 6 with 6.

    PyTorch's observer ended the process where it met what is packed.
    """
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 6, 16)
    padded = torch.arange(6) >= torch.tensor([[6], [4]])
    counted = [counted_of(step_of(lambda: encoder(x, src_key_padding_mask=padded))) for _ in range(3)]
    model_flops = [
        [op.costed.cost.model_flops for op in found.ops if op.costed.op_class == "contraction"] for found in counted
    ]
    assert model_flops == [[2 * 10 * (4 * 16**2 + 2 * 16 * 32) + 2 * 2 * 2 * 6 * 6 * 16] * 2] * 3


def test_a_transformer_layer_in_its_fast_path():
    """Each of 12 positions: q, k, v and out are 4 x 16^2, the two layers 2 x 16 x 32, attention 2 x 6 x 16."""
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    x = torch.ones(2, 6, 16)
    counted = counted_of(step_of(lambda: layer(x)))
    op = only(counted)
    assert counted.names_of_ops == ("aten::_transformer_encoder_layer_fwd",)
    assert op.costed.cost.model_flops == op.costed.cost.flops == 2 * 12 * (4 * 16 * 16 + 2 * 16 * 32 + 2 * 6 * 16)
    assert (op.costed.cost.quality, op.costed.op_class, counted.unknown) == ("assumed", "contraction", {})
    assert opening.NOTE in op.costed.cost.note
    assert {"matmul", "softmax"} <= {part.kind for part in op.costed.parts}
    # The parts add up to the whole, and what one makes for another is not read from before it.
    assert sum(part.cost.flops for part in op.costed.parts) == op.costed.cost.flops
    assert sum(part.cost.bytes for part in op.costed.parts) == op.costed.cost.bytes
    assert sum(size for _, _, size in op.costed.reads) < op.costed.cost.bytes_read
    assert set(op.reads).isdisjoint(op.writes) or len(set(op.reads) & set(op.writes)) < len(set(op.writes))


def test_layers_one_after_another_are_all_known():
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 6).eval()
    x = torch.ones(2, 6, 16)
    counted = counted_of(step_of(lambda: stack(x)))
    assert products(counted) == 6 * 2 * 12 * (4 * 16 * 16 + 2 * 16 * 32 + 2 * 6 * 16)
    assert not counted.unknown


@pytest.mark.parametrize("masked", [False, True])
def test_attention_in_its_fast_path(masked):
    """Each of 2 x 5 positions: 4 x 8^2 and 2 x 5 x 8."""
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(2, 5, 8)
    mask = torch.zeros(2, 5, dtype=torch.bool) if masked else None
    counted = counted_of(step_of(lambda: attention(x, x, x, key_padding_mask=mask, need_weights=False)))
    assert products(counted) == 2 * 10 * (4 * 64 + 2 * 5 * 8)
    assert not counted.unknown


def test_the_bias_of_fused_projections():
    """3 x 8 numbers for each of 10 positions get a bias, and a third of them are scaled."""
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.ones(2, 5, 8)
    op = only(counted_of(step_of(lambda: attention(x, x, x, need_weights=False))))
    bias = next(part for part in op.costed.parts if part.kind == "transform_bias_rescale_qkv")
    assert bias.cost.vector_flops == 4 * 10 * 8
    assert (bias.cost.bytes_read, bias.cost.bytes_written) == (4 * (240 + 24), 4 * 240)


# Ops of the user's own


def test_an_op_that_is_written_in_pytorch():
    """Two products of 8 x 16 x 32."""

    def ffn(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ a) @ b

    op = custom_op(ffn)
    x, a, b = torch.ones(8, 16), torch.ones(16, 32), torch.ones(32, 16)
    counted = counted_of(lambda: op(x, a, b))
    cost = only(counted).costed.cost
    assert (cost.model_flops, cost.vector_flops) == (2 * 2 * 8 * 16 * 32, 8 * 32)
    assert (cost.quality, only(counted).costed.kind, counted.unknown) == ("assumed", "ffn", {})
    # What passes between its calls is not read from before it.
    assert [size for _, _, size in only(counted).costed.reads] == [4 * 8 * 16, 4 * 16 * 32, 4 * 32 * 16]


@pytest.mark.parametrize(("whole", "taps"), [(False, 28 * 3), (True, 29 + 30 + 29)])
def test_what_it_cuts_off_again_is_not_asked_for(whole, taps):
    """One of 3 taps, 4 to 6 channels and 30 places, without the outermost ones, and beside that read as a whole."""

    def middle(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.conv1d(x, w, padding=1)
        return y[:, :, 1:-1].relu().sum() + y.relu().sum() if whole else y[:, :, 1:-1].relu()

    middle.__name__ = f"middle_{taps}"  # PyTorch keeps calling the first op of a name, which is gone by then
    op = custom_op(middle)
    x, w = torch.ones(2, 4, 30), torch.ones(6, 4, 3)
    counted = counted_of(lambda: op(x, w))
    assert products(counted) == 2 * 2 * 4 * 6 * taps


def test_one_that_changes_its_argument_and_one_in_another():
    """A product of 8^3 is added in place, twice."""

    def change(x: torch.Tensor, w: torch.Tensor) -> None:
        x.add_(x @ w)

    inner = custom_op(change, ("x",))

    def outer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        inner(y, w)
        inner(y, w)
        return y

    op = custom_op(outer)
    x, w = torch.ones(8, 8), torch.ones(8, 8)
    counted = counted_of(lambda: op(x, w))
    assert products(counted) == 2 * 2 * 8**3
    assert [part.kind for part in only(counted).costed.parts] == ["clone", "matmul", "add", "matmul", "add"]
    assert not counted.unknown


def test_its_gradient():
    """Forward 4 x 8 x 8; each of the two gradients as much."""

    def weigh(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ w

    def weigh_backward(gradient: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        return [gradient @ w.t(), x.t() @ gradient]

    op, back = custom_op(weigh), custom_op(weigh_backward)
    op.register_autograd(
        lambda ctx, gradient: tuple(back(gradient, *ctx.saved_tensors)),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x, w = torch.ones(4, 8, requires_grad=True), torch.ones(8, 8, requires_grad=True)
    counted = counted_of(lambda: op(x, w).sum().backward())
    by_phase = {
        counted_ops.PHASES[phase]: op.costed.cost.model_flops
        for op, phase in zip(counted.ops, counted.phase, strict=True)
        if op.costed.cost.model_flops
    }
    assert by_phase == {"forward": 2 * 4 * 8 * 8, "backward": 2 * 2 * 4 * 8 * 8}


def test_what_numpy_computes_stays_unknown():
    """It may call PyTorch for a copy: what made its result nobody saw."""

    def sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.clone().numpy()))

    op = custom_op(sine)
    x = torch.ones(64)
    counted = counted_of(lambda: op(x))
    found = only(counted).costed
    assert (found.cost.quality, found.cost.flops, found.kind) == ("unknown", None, CALLBACK)


def test_what_numpy_does_behind_a_product_is_known_in_part():
    """The product of 8^3 counts, and no floor is made of it."""

    def product_and_sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin((x @ x).numpy()))

    op = custom_op(product_and_sine)
    x = torch.ones(8, 8)
    counted = counted_of(lambda: op(x))
    cost = only(counted).costed.cost
    assert (cost.model_flops, cost.flops, cost.vector_flops, cost.bytes) == (2 * 8**3, 2 * 8**3, None, None)
    assert cost.quality == "unknown"
    assert cost.is_partly_known
    assert counted.unknown == {f"{NAMESPACE}::product_and_sine": "known in part, without what it does itself"}

    def around_it(x: torch.Tensor) -> torch.Tensor:
        return op(x).relu()

    outer = custom_op(around_it)
    counted = counted_of(lambda: outer(x))
    assert only(counted).costed.cost.flops == 2 * 8**3
    assert counted.unknown == {f"{NAMESPACE}::around_it": "known in part, without what it does itself"}


def test_a_result_that_is_only_filled_is_not_made_yet():
    """As a kernel of a library's own does that writes into zeros."""

    def filled(x: torch.Tensor) -> torch.Tensor:
        made = torch.zeros_like(x)
        np.add(made.numpy(), np.maximum(x.numpy(), 0), out=made.numpy())
        return made

    op = custom_op(filled)
    x = torch.ones(64)
    counted = counted_of(lambda: op(x))
    assert only(counted).costed.cost.quality == "unknown"


def test_what_it_writes_itself_between_its_calls_is_not_theirs():
    """As the layers of 8 bit numbers do: a kernel of their own between an allocation and a sum."""

    def doubled_sine(x: torch.Tensor) -> torch.Tensor:
        made = torch.empty_like(x)
        np.sin(x.numpy(), out=made.numpy())
        return made + made

    op = custom_op(doubled_sine)
    x = torch.ones(64)
    assert only(counted_of(lambda: op(x))).costed.cost.quality == "unknown"


def test_memory_that_its_calls_fill_first_is_theirs():
    """A product of 8^3 into memory that was asked for, and a sum of that."""

    def doubled(x: torch.Tensor) -> torch.Tensor:
        made = torch.empty_like(x)
        torch.mm(x, x, out=made)
        return made + made

    op = custom_op(doubled)
    x = torch.ones(8, 8)
    cost = only(counted_of(lambda: op(x))).costed.cost
    assert (cost.quality, cost.flops, cost.vector_flops) == ("assumed", 2 * 8**3, 8 * 8)


def test_one_that_changes_its_argument_by_itself_is_known_in_part():
    """The product of 8^3 that it makes beside that is nobody's result."""

    def change_by_numpy(x: torch.Tensor) -> None:
        np.add(x.numpy(), (x @ x).numpy(), out=x.numpy())

    op = custom_op(change_by_numpy, ("x",))
    x = torch.ones(8, 8)
    cost = only(counted_of(lambda: op(x))).costed.cost
    assert (cost.model_flops, cost.is_partly_known) == (2 * 8**3, True)


def test_no_product_is_made_of_calls_that_do_not_multiply():
    """As of a sparse one of unknown numbers, whose kernel calls PyTorch for all but the product."""
    sparse = Tensor((8, 8), None, "float", stored=UNKNOWN)
    dense = Tensor((8, 8), (8, 1), "float", 1)
    product, engine = Call("aten::mm", "", (sparse, dense)), Engine()
    inside = [counted_ops.CountedOp(1, engine.cost(Call("aten::relu", "", (dense,))), (1,), (2,))]
    assert opening.opened(product, engine.cost(product), inside) is None


def test_the_calls_inside_keep_their_scopes():
    def scoped(x: torch.Tensor) -> torch.Tensor:
        with scope("up"):
            y = x @ x
        with scope("down"):
            return y @ x

    op = custom_op(scoped)
    x = torch.ones(8, 8)
    counted = counted_of(lambda: op(x))
    assert [counted.scopes[place] for place, _ in only(counted).places] == ["up", "down"]


def test_one_with_an_unknown_call_inside_is_known_in_part():
    """Singular values take rounds; the product of 8^3 before them does not."""

    def spectrum(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x @ x)

    op = custom_op(spectrum)
    x = torch.eye(8)
    counted = counted_of(lambda: op(x))
    cost = only(counted).costed.cost
    assert (cost.model_flops, cost.is_partly_known) == (2 * 8**3, True)
    assert "_linalg_svd" in cost.note


# Beside a GPU


class OnGpu:
    """Calls that were recorded on a CPU, said to be of a GPU: there kernels tell which call inside they are of."""

    def __init__(self, nodes):
        self._nodes = nodes

    def __getattr__(self, name):
        return getattr(self._nodes, name)

    def __len__(self):
        return len(self._nodes)

    def call(self, index):
        def moved(value):
            if isinstance(value, tuple):
                return tuple(map(moved, value))
            return replace(value, device="cuda:0") if isinstance(value, Tensor) else value

        call = self._nodes.call(index)
        return replace(call, inputs=moved(call.inputs), outputs=moved(call.outputs))


def counted_on_gpu(run):
    return count.count(OnGpu(torch_counting.record(Step(run=run))), ENGINE)


def test_beside_a_gpu_the_calls_inside_are_ops_by_themselves():
    """As in a trace recorded elsewhere. One of them, in turn, is an op of the user's."""

    def square(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    inner = custom_op(square)

    def squares(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(inner(x)) + x

    op = custom_op(squares)
    x = torch.ones(8, 8)
    counted = counted_on_gpu(lambda: op(x))
    assert counted.names_of_ops == ("aten::mm", "aten::relu", "aten::add")
    assert products(counted) == 2 * 8**3
    assert not counted.unknown
    # the calls inside belong to the new ops, and the two around to none
    of = {name: int(number) for name, number in zip(counted.names, counted.op_of, strict=True) if "::" in name}
    assert (of["aten::mm"], of["aten::relu"], of["aten::add"]) == (0, 1, 2)
    assert of[f"{NAMESPACE}::square"] == of[f"{NAMESPACE}::squares"] == -1


def test_beside_a_gpu_a_call_inside_an_op_that_does_more_is_part_of_it():
    """The outer op makes its result by itself, of what the one inside makes in calls that do all that it does."""

    def activated_square(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ x)

    inner = custom_op(activated_square)

    def doubled_by_numpy(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(inner(x).numpy() * 2)

    op = custom_op(doubled_by_numpy)
    x = torch.ones(8, 8)
    for counted in (
        counted_on_gpu(lambda: op(x)),
        count.count(torch_counting.record(Step(run=lambda: op(x))), ENGINE),
    ):
        assert counted.names_of_ops == (f"{NAMESPACE}::doubled_by_numpy",)
        assert products(counted) == 2 * 8**3
        assert [part.kind for part in counted.ops[0].costed.parts] == ["matmul", "relu"]
        assert list(counted.unknown) == [f"{NAMESPACE}::doubled_by_numpy"]


def test_beside_a_gpu_a_call_of_unknown_work_is_one_of_them():
    def spectrum_of(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x @ x)

    op = custom_op(spectrum_of)
    x = torch.eye(8)
    counted = counted_on_gpu(lambda: op(x))
    assert counted.names_of_ops[:2] == ("aten::mm", "aten::_linalg_svd")
    assert list(counted.unknown) == ["aten::_linalg_svd"]


def test_beside_a_gpu_a_call_of_unknown_work_may_make_the_result():
    def own_sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy()))

    inner = custom_op(own_sine)

    def product_and_sine_of_it(x: torch.Tensor) -> torch.Tensor:
        return inner(x @ x)

    op = custom_op(product_and_sine_of_it)
    x = torch.ones(8, 8)
    assert counted_on_gpu(lambda: op(x)).names_of_ops == ("aten::mm", f"{NAMESPACE}::own_sine")


def test_beside_a_gpu_an_op_that_makes_its_results_by_itself_stays_whole():
    def product_and_own_sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin((x @ x).numpy()))

    op = custom_op(product_and_own_sine)
    x = torch.ones(8, 8)
    counted = counted_on_gpu(lambda: op(x))
    assert counted.names_of_ops == (f"{NAMESPACE}::product_and_own_sine",)
    assert only(counted).costed.cost.is_partly_known


def test_beside_a_gpu_an_opened_op_may_still_write_over_what_it_takes():
    """Eight rows, of which padding added three: the op may have filled them, so that all are asked for."""

    def activated_by_own_op(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    op = custom_op(activated_by_own_op)
    x, w = torch.ones(5, 8), torch.ones(8, 4)

    def run(opened):
        padded = torch.nn.functional.pad(x, (0, 0, 0, 3))
        return (op if opened else torch.relu)(padded), (padded @ w)[:5] + 1

    def asked(opened):
        return products(counted_on_gpu(step_of(lambda: run(opened)[1])))

    assert (asked(False), asked(True)) == (2 * 5 * 8 * 4, 2 * 8 * 8 * 4)


# Traces recorded elsewhere


def imported(make_kineto, *calls):
    made = make_kineto.Trace()
    made.annotation("ProfilerStep#0", 0, 100)
    for name, start, end, *tensors in calls:
        made.op(name, start, end, *tensors)
    return cpu.read(reader.read(made.write()), Costs())


def rows(found):
    """(name, quality, FLOPs, own time [us]) of each op."""
    own = found.timed.own.mean(axis=1) * 1e6
    return [
        (name, op.costed.cost.quality, op.costed.cost.flops, round(float(time), 6))
        for name, op, time in zip(found.counted.names_of_ops, found.counted.ops, own, strict=True)
    ]


def test_an_import_opens_equal_ops_alike_and_keeps_their_time(make_kineto):
    """One of the two spends half its time between the calls inside it, the other a tenth."""
    x, wt, b = make_kineto.X, make_kineto.WT, make_kineto.B
    calls = []
    for start, end in ((0, 45), (45, 70)):
        calls += [("mylib::layer", start, end, x), ("aten::addmm", start + 1, start + 23, b, x, wt, "1", "1")]
    flops = 2.0 * 32 * 256 * 512
    assert rows(imported(make_kineto, *calls)) == [
        ("mylib::layer", "assumed", flops, 45),
        ("mylib::layer", "assumed", flops, 25),
    ]


def test_an_import_of_a_recorded_fast_path(tmp_path):
    """Six equal layers, all of them known, as in a live run."""
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 6).eval()
    x = torch.ones(2, 6, 16)
    step = step_of(lambda: stack(x))
    step()
    with torch.profiler.profile(record_shapes=True, activities=[torch.profiler.ProfilerActivity.CPU]) as watched:
        for _ in range(2):
            with torch.profiler.record_function("ProfilerStep#1"):
                step()
    path = Path(tmp_path) / "trace.json"
    watched.export_chrome_trace(str(path))
    found = cpu.read(reader.read(path), Costs())
    assert products(found.counted) == 6 * 2 * 12 * (4 * 16 * 16 + 2 * 16 * 32 + 2 * 6 * 16)
    assert [op.costed.cost.quality for op in found.counted.ops] == ["assumed"] * 6
