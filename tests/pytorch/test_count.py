"""The counting run on small models recorded live: which op belongs to which layer and phase, and its work."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional

from roofline.core.step import Step, scope
from roofline.costs import counted as counted_ops
from roofline.costs.calls import Call, Tensor
from roofline.pytorch import count, time_cpu
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting as torch_counting
from roofline.pytorch.recording import profiler

BATCH, LENGTH, WIDTH, WORDS = 2, 5, 8, 11
#: Remembers what a call costs, for all tests.
ENGINE = Engine()
ROWS = BATCH * LENGTH


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        with scope("residual"):
            return x + self.ff(self.norm(x))


class Net(nn.Module):
    """Embedding, two blocks, a dropout made on the fly, and a head that shares the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(nn.Dropout(0.1)(x))


def training(clip=False):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    ids = torch.randint(0, WORDS, (BATCH, LENGTH))

    def run():
        optimizer.zero_grad(set_to_none=True)
        logits = net(ids)
        with scope("loss"):
            loss = functional.cross_entropy(logits.view(-1, WORDS), ids.view(-1))
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    run()  # the first step makes the optimizer's state
    return run


def counted_of(run):
    return count.count(torch_counting.record(Step(run=run)), ENGINE)


@dataclass(frozen=True)
class Found:
    """One counted op, for people."""

    name: str
    scope: str
    phase: str
    shapes: str
    op: counted_ops.CountedOp


def listed(counted):
    return [
        Found(name.removeprefix("aten::"), counted.scopes[scope], counted_ops.PHASES[phase], op.costed.shapes, op)
        for name, scope, phase, op in zip(counted.names_of_ops, counted.scope, counted.phase, counted.ops, strict=True)
    ]


@pytest.fixture(scope="module")
def step():
    return counted_of(training())


@pytest.fixture(scope="module")
def ops(step):
    return listed(step)


def scopes_of(ops, phase, name):
    return [op.scope for op in ops if (op.phase, op.name) == (phase, name)]


def test_scopes_follow_the_layers_and_lists_keep_their_number(ops):
    forward = [(op.name, op.scope) for op in ops if op.phase == "forward"]
    block = [
        ("native_layer_norm", "residual/norm"),
        ("addmm", "residual/ff/0"),
        ("gelu", "residual/ff/1"),
        ("addmm", "residual/ff/2"),
        ("add", "residual"),
    ]
    assert forward == [
        ("embedding", "words"),
        *[(name, f"layers.{number}/{path}") for number in range(2) for name, path in block],
        ("bernoulli_", "Dropout"),  # made on the fly: it has no name, so it goes by its class
        ("div_", "Dropout"),
        ("mul", "Dropout"),
        ("mm", "head"),
        ("_log_softmax", "loss"),
        ("nll_loss_forward", "loss"),
    ]


def test_backward_ops_have_the_scope_of_the_forward_op_whose_gradient_they_compute(ops):
    backward = [(op.name, op.scope) for op in ops if op.phase == "backward" and op.name != "ones_like"]
    block = [
        ("mm", "residual/ff/2"),
        ("mm", "residual/ff/2"),
        ("sum", "residual/ff/2"),  # of the bias
        ("gelu_backward", "residual/ff/1"),
        ("mm", "residual/ff/0"),
        ("mm", "residual/ff/0"),
        ("sum", "residual/ff/0"),
        ("native_layer_norm_backward", "residual/norm"),
    ]
    # Adding up the gradients of the two ways round a block is left to the engine, between two nodes.
    assert [one for one in backward if one[0] not in ("add", "add_")] == [
        ("nll_loss_backward", "loss"),
        ("_log_softmax_backward_data", "loss"),
        ("mm", "head"),
        ("mm", "head"),
        ("mul", "Dropout"),
        *[(name, f"layers.{number}/{path}") for number in (1, 0) for name, path in block],
        ("embedding_dense_backward", "words"),
    ]


def test_the_gradient_of_a_tied_weight_is_accumulated_in_a_layer_that_made_it(ops):
    tied = [op for op in ops if op.phase == "backward" and op.name in ("add", "add_") and str(WORDS) in op.shapes]
    assert len(tied) == 1
    assert tied[0].scope in ("words", "head")
    assert tied[0].op.costed.cost.vector_flops == WORDS * WIDTH


def test_the_optimizer_is_a_phase_and_a_scope(ops):
    assert {(op.name, op.scope) for op in ops if op.phase == "optimizer"} == {
        ("_foreach_add_", "optimizer"),
        ("_fused_adamw_", "optimizer"),
    }


def by_hand(*, log=False, average=False):
    """SGD without torch.optim; then a metric is kept up to date, or another forward pass made."""
    torch.manual_seed(0)
    net, ids, seen = Net(), torch.randint(0, WORDS, (BATCH, LENGTH)), torch.zeros(())

    def run(update=True):
        loss = functional.cross_entropy(net(ids).view(-1, WORDS), ids.view(-1))
        for parameter in net.parameters():
            parameter.grad = None
        loss.backward()
        with torch.no_grad():
            if update:
                for parameter in net.parameters():
                    parameter.sub_(0.1 * parameter.grad)
            if log:
                seen.add_(loss.detach() * 2)
            if average:
                net(ids)

    return run


def test_an_optimizer_written_by_hand_is_one():
    found = listed(counted_of(by_hand(log=True)))
    last = max(number for number, op in enumerate(found) if op.phase == "backward")
    after = [(op.name, op.phase) for op in found[last + 1 :]]
    parameters = len([*Net().parameters()])
    # one product with the rate and one subtraction for each parameter; the metric is read by neither pass
    assert after == [
        *(("mul", "optimizer"), ("sub_", "optimizer")) * parameters,
        ("mul", "forward"),
        ("add_", "forward"),
    ]


def test_an_optimizer_that_copies_into_the_weights_is_one():
    torch.manual_seed(0)
    weight, x = nn.Parameter(torch.randn(4, 4)), torch.randn(2, 4)

    def run():
        weight.grad = None
        (x @ weight).sum().backward()
        with torch.no_grad():
            weight.copy_(weight - 0.1 * weight.grad)

    found = listed(counted_of(run))
    assert [op.name for op in found if op.phase == "optimizer"] == ["mul", "sub", "copy_"]
    assert found[-1].name == "copy_"


def test_what_a_compiled_update_is_made_of_is_the_optimizers_too():
    costed = listed(counted_of(by_hand()))[-1].op.costed  # sub_, in place
    rows = [("aten::relu", -1, -1, 1), (ENGINE_NODE + "X", -1, -1, 1), ("aten::relu", 1, -1, 1), ("kernel", -1, -1, 1)]
    kernel = count.Generated("kernel", costed, reads=(7,), writes=(7,), scope=None, places=("a", "b"))
    counted = count.count(Nodes(*rows, storages={0: (7, 8)}), Engine(), {3: kernel})
    optimizer = counted_ops.PHASES.index("optimizer")
    assert counted.phase.tolist() == [0, 1, optimizer]
    assert [phase for _, phase in counted.ops[-1].places] == [optimizer, optimizer]


@pytest.mark.parametrize(("given", "update"), [({"log": True}, False), ({"average": True}, True)])
def test_what_is_no_update_or_stands_before_products_is_no_optimizer(given, update):
    run = by_hand(**given)
    assert {op.phase for op in listed(counted_of(lambda: run(update)))} == {"forward", "backward"}


def test_what_the_fused_optimizer_reads_for_itself_is_not_the_hosts(step):
    assert count.HOST_READ in step.names
    assert count.reads_of_host(step) == 0
    assert step.host_reads.tolist() == [0] * len(step.ops)


def test_the_work_of_the_step(ops):
    """10 rows through 8 -> 16 -> 8, twice, and 8 -> 11: forward one product each, backward two."""
    forward = 2 * (2 * 2 * ROWS * WIDTH * 2 * WIDTH) + 2 * ROWS * WIDTH * WORDS
    sums = Counter()
    for op in ops:
        assert op.op.costed.cost.quality == "exact", op
        sums[op.phase] += op.op.costed.cost.flops
    assert sums == {"forward": forward, "backward": 2 * forward, "optimizer": 0}


def test_views_are_not_counted_and_known_as_such(step):
    kinds = Counter()
    for name, op, view in zip(step.names, step.op_of, step.view_of, strict=True):
        kinds[name] += 1
        if name in ("aten::view", "aten::t", "aten::transpose", "aten::detach"):
            assert view or op >= 0, name  # a view by itself, or a part of an op
    assert kinds["aten::t"] > 0
    assert not {"aten::view", "aten::t", "aten::empty", "aten::detach"} & set(step.names_of_ops)


def test_calls_inside_an_op_are_part_of_it(step):
    inside = [row for row, name in enumerate(step.names) if name == "aten::index_select"]
    assert [step.names_of_ops[step.op_of[row]] for row in inside] == ["aten::embedding"]
    # Its parent is the embedding's own call, whose parent is no annotation of ours.
    parent = step.parent[inside[0]]
    assert (step.names[parent], step.parent[parent]) == ("aten::embedding", -1)
    assert not any(name.startswith("roofline:") for name in step.names)


def test_buffers_lead_from_writer_to_reader(ops):
    gelu = next(index for index, op in enumerate(ops) if op.name == "gelu")
    before, here, after = (ops[gelu + offset].op for offset in (-1, 0, 1))
    assert before.writes == here.reads
    assert here.writes[0] in after.reads


def test_names_are_those_of_the_profiled_stream():
    """Neither recorder changes the op stream: a plain profile has the same calls in the same order."""
    run = training()
    counted = counted_of(run)
    trace = profiler.read(profiler.profiled(run, "cpu", 1))
    [(low, high)] = time_cpu.windows(trace, profiler.STEP)
    step = time_cpu.step_events(trace, counted, low, high, profiler.STEP)
    assert [trace.names[code] for code in step.events.name] == list(counted.names)
    assert step.twin.tolist() == list(range(len(counted.names)))
    known, leaves = time_cpu.joined_time(step)
    assert known == leaves > 0


def test_clipping_belongs_to_the_optimizer():
    ops = listed(counted_of(training(clip=True)))
    names = {op.name for op in ops if op.phase == "optimizer"}
    assert {"_foreach_norm", "_foreach_mul_"} <= names
    assert {op.scope for op in ops if op.phase == "optimizer"} == {"optimizer"}


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.layers, self.reentrant = nn.ModuleList([nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())] * 2), reentrant

    def forward(self, x):
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_checkpointing_runs_again_is_executed_and_was_asked_for_once(reentrant):
    torch.manual_seed(0)
    net, x = Checkpointed(reentrant), torch.randn(ROWS, WIDTH, requires_grad=True)
    counted = counted_of(lambda: net(x).sum().backward())
    product = 2 * ROWS * WIDTH * WIDTH
    sums = {phase: [0.0, 0.0] for phase in counted_ops.PHASES}
    for op, phase in zip(counted.ops, counted.phase.tolist(), strict=True):
        sums[counted_ops.PHASES[phase]][0] += op.costed.cost.model_flops
        sums[counted_ops.PHASES[phase]][1] += op.costed.cost.flops
    assert sums["forward"] == [2 * product, 2 * product]
    # Two gradients per product, and each of the two products once more.
    assert sums["backward"] == [4 * product, 6 * product]


class Repeating(torch.autograd.Function):
    """A checkpoint of one's own: it runs its function again in the backward pass, and goes back through that."""

    @staticmethod
    def forward(context, function, x):
        context.function = function
        context.save_for_backward(x)
        with torch.no_grad():
            return function(x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            again = context.function(x)
        torch.autograd.backward(again, gradient)
        return None, x.grad


CHECKPOINTS = {
    "reentrant": lambda function, x: torch.utils.checkpoint.checkpoint(function, x, use_reentrant=True),
    "not reentrant": lambda function, x: torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False),
    "one's own": Repeating.apply,
}


@pytest.mark.parametrize("checkpoint", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_plain_function_that_is_run_again_was_asked_for_once(checkpoint):
    """Two products forward (the second of a module in the function), their four gradients, and the two once more."""
    torch.manual_seed(0)
    weight, layer = torch.randn(WIDTH, WIDTH, requires_grad=True), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(ROWS, WIDTH, requires_grad=True)

    def function(y):
        return torch.tanh(layer(torch.tanh(y @ weight)))

    counted = counted_of(lambda: checkpoint(function, x).sum().backward())
    product = 2 * ROWS * WIDTH * WIDTH
    assert sum(op.costed.cost.model_flops for op in counted.ops) == 6 * product
    assert sum(op.costed.cost.flops for op in counted.ops) == 8 * product


class Local(torch.autograd.Function):
    """Asks in its backward pass for a product that the forward pass has none of, and for the gradient of its input."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x * 2

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            result = (x @ weight).sum()
        return 2 * gradient + torch.autograd.grad(result, x)[0], None


@pytest.mark.parametrize("columns", [WIDTH, 2 * WIDTH])
def test_what_a_node_of_ones_own_asks_for_first_is_no_repetition(columns):
    """One product forward and its gradient; then another, of other columns or by another op, and its gradient."""
    x = torch.randn(ROWS, WIDTH, requires_grad=True)
    # Of as many columns the forward pass has an `addmm`, of others it has this `mm` with other arguments.
    same = columns == WIDTH
    weight, bias = torch.randn(WIDTH, WIDTH), torch.randn(WIDTH)
    other = torch.randn(WIDTH, columns)
    counted = counted_of(
        lambda: Local.apply(torch.addmm(bias, x, weight) if same else x @ weight, other).sum().backward()
    )
    first, second = 2 * ROWS * WIDTH * WIDTH, 2 * ROWS * WIDTH * columns
    assert sum(op.costed.cost.flops for op in counted.ops) == 2 * first + 2 * second
    assert sum(op.costed.cost.model_flops for op in counted.ops) == 2 * first + 2 * second


def test_a_checkpoint_that_ends_in_the_middle_of_an_op_leaves_the_calls_behind_it_where_they_are():
    """It raises where the last layer keeps its weight for the backward pass: that layer's product is not done again."""
    torch.manual_seed(0)
    net = nn.ModuleList([nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)) for _ in range(2)])
    x = torch.randn(ROWS, WIDTH, requires_grad=True)

    def run():
        y = x
        for layers in net:
            y = torch.utils.checkpoint.checkpoint(layers, y, use_reentrant=False)
        y.square().sum().backward()

    counted = counted_of(run)
    product = 2 * ROWS * WIDTH * WIDTH
    sums = np.zeros((2, 2))
    for op, phase in zip(counted.ops, counted.phase.tolist(), strict=True):
        sums[phase] += (op.costed.cost.model_flops, op.costed.cost.flops)
    # Four products, and two gradients of each; of each checkpoint the first product once more.
    assert sums.tolist() == [[4 * product, 4 * product], [8 * product, 10 * product]]
    # The engine's nodes lie in the pass that the engine runs, in nothing else.
    depths = np.zeros(len(counted.names), int)
    for call, parent in enumerate(counted.parent.tolist()):
        depths[call] = depths[parent] + 1 if parent >= 0 else 0
    engine = [number for number, name in enumerate(counted.names) if name.startswith("autograd::engine")]
    assert {int(depths[number]) for number in engine} == {0}


@pytest.mark.parametrize(("layers", "wants_input"), [(1, False), (1, True), (2, False)])
def test_the_backward_pass_of_an_lstm_on_a_cpu(layers, wants_input):
    """7 steps of 3 sequences, width 8, 12 units of 4 gates: 2 x 21 x 48 x (8 + 12) FLOP forward.

    Backward once more as much for the weights, 12/20 of it for the states, and 8/20 for the input where anybody reads
    its gradient: that of the first layer's is computed whether it is wanted or not.
    """
    torch.manual_seed(0)
    net, x = nn.LSTM(8, 12, layers), torch.randn(7, 3, 8, requires_grad=wants_input)

    def run():
        net.zero_grad(set_to_none=True)
        net(x)[0].sum().backward()

    counted = counted_of(run)
    assert not counted.unknown
    below = [2 * 21 * 48 * 8, *[2 * 21 * 48 * 12] * (layers - 1)]
    states = layers * 2 * 21 * 48 * 12
    sums = {what: [0.0, 0.0] for what in ("model_flops", "flops")}
    for op, phase in zip(counted.ops, counted.phase.tolist(), strict=True):
        for what in sums:
            sums[what][phase] += getattr(op.costed.cost, what)
    asked = sum(below) - (0 if wants_input else below[0])
    assert sums["model_flops"] == [sum(below) + states, sum(below) + states + states + asked]
    assert sums["flops"] == [sum(below) + states, 2 * (sum(below) + states)]


@pytest.mark.parametrize(
    ("frozen", "gradients"),
    [
        # The gradients of the states (12) and of the input (8), and of each matrix that is not frozen.
        (("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), 12 + 8),
        (("weight_ih_l0",), 12 + 8 + 12),
        (("weight_hh_l0",), 12 + 8 + 8),
    ],
)
def test_an_lstm_on_a_cpu_that_is_frozen_asks_for_no_gradients_of_its_weights(frozen, gradients):
    """7 steps of 3 sequences, width 8, 12 units of 4 gates: 2 x 21 x 48 FLOP per column; all 40 run."""
    net, x = nn.LSTM(8, 12), torch.randn(7, 3, 8, requires_grad=True)
    for name in frozen:
        getattr(net, name).requires_grad_(False)
    counted = counted_of(lambda: net(x)[0].sum().backward())
    cost = counted.ops[counted.names_of_ops.index("aten::mkldnn_rnn_layer_backward")].costed.cost
    assert (cost.model_flops, cost.flops) == (2 * 21 * 48 * gradients, 2 * 21 * 48 * 40)


def test_what_autograd_hands_out_is_asked_for():
    """As above. Nobody reads the gradients that `torch.autograd.grad` returns: somebody asked for them all the same."""
    net, x = nn.LSTM(8, 12), torch.randn(7, 3, 8)
    counted = counted_of(lambda: torch.autograd.grad(net(x)[0].sum(), list(net.parameters())) and None)
    assert "aten::detach" not in counted.names[counted.names.index("aten::mkldnn_rnn_layer_backward") :]
    assert sum(op.costed.cost.model_flops for op in counted.ops) == 2 * 21 * 48 * (20 + 12 + 20)


@pytest.mark.parametrize(
    ("function", "x", "flops"),
    [
        # Of windows of 3 the largest: 2 comparisons for each of the 2 x 4 x 10 results.
        (lambda x: functional.max_pool1d(x, 3), torch.ones(2, 4, 30), 2 * 80),
        (lambda x: functional.max_pool1d(x, 2, stride=1, padding=1), torch.ones(4, 9), 40),
        (lambda x: functional.max_pool1d(x, 3, dilation=2, stride=2), torch.ones(1, 2, 25), 2 * 22),
    ],
)
def test_a_wrapper_that_computes_by_itself_is_an_op(function, x, flops):
    with torch.no_grad():
        counted = counted_of(lambda: function(x))
    assert [name for name in counted.names_of_ops if "max_pool1d" in name] == ["aten::max_pool1d"]
    assert not counted.unknown
    (cost,) = [op.costed.cost for op in counted.ops]
    assert cost.vector_flops == flops
    assert cost.bytes_read == 4 * x.numel()


def test_a_gradient_of_a_gradient_is_no_repetition():
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), torch.randn(ROWS, WIDTH, requires_grad=True)

    def run():
        (gradient,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()

    products = [op.costed.cost for op in counted_of(run).ops if op.costed.cost.flops]
    assert all(cost.model_flops == cost.flops for cost in products)
    assert len(products) >= 4


def test_inference_has_one_phase():
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).eval()

    def run():
        with torch.no_grad():
            net(torch.ones(3, 4))

    ops = listed(counted_of(run))
    assert [(op.name, op.scope, op.phase) for op in ops] == [
        ("ones", "", "forward"),
        ("addmm", "0", "forward"),
        ("tanh", "1", "forward"),
    ]


def test_a_transformer_layer_of_torch():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)

    def run():
        layer(torch.ones(2, 6, 16)).sum().backward()

    counted = counted_of(run)
    ops = listed(counted)
    assert not counted.unknown
    # Per position: q, k, v and out are 4 * 16^2 products, the two layers 2 * 16 * 32; two products of attention are
    # 2 * 6 * 16 per position, of 12.
    products = 2 * 12 * (4 * 16 * 16 + 2 * 16 * 32 + 2 * 6 * 16)
    # Backward twice as many, but for the gradient of the input, which nobody wants: 12 positions by q, k and v.
    unwanted = 2 * 12 * 16 * 3 * 16
    model = {
        phase: sum(op.op.costed.cost.model_flops for op in ops if op.phase == phase) for phase in counted_ops.PHASES
    }
    assert {phase: flops for phase, flops in model.items() if flops} == {
        "forward": products,
        "backward": 2 * products - unwanted,
    }
    assert {op.scope.partition("/")[0] for op in ops if op.op.costed.cost.flops} == {"self_attn", "linear1", "linear2"}


def test_a_step_that_fails_leaves_no_hooks():
    net = nn.Linear(4, 4)

    def run():
        net(torch.ones(3, 5))

    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch_counting.record(Step(run=run))
    ops = listed(counted_of(lambda: net(torch.ones(3, 4))))
    assert [(op.name, op.scope) for op in ops] == [("ones", ""), ("addmm", "")]
    assert torch.autograd.backward.__module__.startswith("torch.autograd")


def test_a_layer_that_fails_and_is_caught_ends_its_scope():
    net, other = nn.Linear(4, 4), nn.Linear(4, 4)

    def run():
        with scope("before"), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            net(torch.ones(3, 5))
        with scope("after"):
            other(torch.ones(3, 4))

    ops = listed(counted_of(run))
    assert [(op.name, op.scope) for op in ops if op.name == "addmm"][-1] == ("addmm", "after/Linear")


# Nodes made by hand: what live recordings on this machine do not have.


class Nodes:
    """(name, parent, sequence, thread) of each call; aten names are ops that add two vectors of 4."""

    def __init__(self, *rows: tuple[str, int, int, int], storages: dict[int, tuple[int, int]] | None = None):
        self.names = tuple(row[0] for row in rows)
        self.parent, self.sequence, self.thread = (
            np.array([row[column] for row in rows], np.int64) for column in (1, 2, 3)
        )
        self.is_op = np.array([name.startswith(("aten::", "nccl")) for name in self.names])
        self._storages = storages or {}

    def __len__(self):
        return len(self.names)

    def call(self, index: int) -> Call:
        reads, writes = self._storages.get(index, (1000 + index, 2000 + index))
        vector: Any = [Tensor((4,), (1,), "float", storage) for storage in (reads, writes)]
        return Call(self.names[index], "", (vector[0], 0), (vector[1],))


ENGINE_NODE = "autograd::engine::evaluate_function: "


def phases_and_scopes(*rows, **given):
    counted = count.count(Nodes(*rows, **given), Engine())
    phases = [counted_ops.PHASES[phase] for phase in counted.phase]
    return list(zip(phases, [counted.scopes[scope] for scope in counted.scope], strict=True))


def test_backward_on_a_thread_of_its_own_beside_a_gpu():
    found = phases_and_scopes(
        ("roofline:scope:a", -1, -1, 1),
        ("aten::relu", 0, 5, 1),
        ("roofline:scope:b", -1, -1, 1),
        ("aten::relu", 2, 6, 1),
        (ENGINE_NODE + "B", -1, -1, 2),
        ("B", 4, 6, 2),
        ("aten::relu", 5, -1, 2),
        ("aten::relu", 4, -1, 2),  # by the engine, beside the node
        (ENGINE_NODE + "A", -1, -1, 2),
        ("A", 8, 5, 2),
        ("aten::relu", 9, -1, 2),
        ("aten::relu", -1, -1, 2),  # on the engine's thread, outside of any node, as a gradient's exchange is
    )
    assert found == [
        *(("forward", "a"), ("forward", "b"), ("backward", "b"), ("backward", "b"), ("backward", "a")),
        ("backward", ""),
    ]


def test_of_several_forward_calls_with_one_number_the_last_made_the_node():
    found = phases_and_scopes(
        ("roofline:scope:early", -1, -1, 1),
        ("aten::relu", 0, 5, 1),  # makes no node: the number is still free after it
        ("roofline:scope:late", -1, -1, 1),
        ("aten::relu", 2, 5, 1),
        (ENGINE_NODE + "X", -1, -1, 1),
        ("X", 4, 5, 1),
        ("aten::relu", 5, -1, 1),
    )
    assert found[-1] == ("backward", "late")


def test_a_node_without_a_number_gets_its_scope_from_the_data():
    # AccumulateGrad: number -1. It adds what layer `b` wrote last (storage 7) to what was there (storage 3).
    found = phases_and_scopes(
        ("roofline:scope:b", -1, -1, 1),
        ("aten::relu", 0, 5, 1),
        (ENGINE_NODE + "torch::autograd::AccumulateGrad", -1, -1, 1),
        ("aten::relu", 2, -1, 1),
        ("aten::relu", 2, -1, 1),
        storages={1: (1, 7), 3: (7, 3), 4: (99, 98)},
    )
    assert found == [("forward", "b"), ("backward", "b"), ("backward", "")]


def test_the_optimizer_begins_after_the_last_gradient():
    found = phases_and_scopes(
        ("aten::relu", -1, -1, 1),
        (ENGINE_NODE + "X", -1, -1, 1),
        ("aten::relu", 1, -1, 1),
        ("aten::relu", -1, -1, 1),  # clipped
        ("Optimizer.step#SGD.step", -1, -1, 1),
        ("aten::relu", 4, -1, 1),
        ("aten::relu", -1, -1, 1),  # logged
    )
    assert [phase for phase, _ in found] == ["forward", "backward", "optimizer", "optimizer", "forward"]


def test_results_that_the_host_reads_are_counted_before_the_next_op():
    def reads(*names: str) -> list[int]:
        counted = count.count(Nodes(*((name, -1, -1, 1) for name in names)), Engine())
        return counted.host_reads.tolist()

    read = count.HOST_READ
    assert reads("aten::relu", "aten::relu") == [0, 0]
    # two before the first op, one before the second; what is read after the last one is before none
    assert reads(read, read, "aten::relu", read, "aten::relu", read) == [2, 1]
    assert reads(read) == []
    # what an op reads for itself is before none
    nested = count.count(Nodes(("aten::relu", -1, -1, 1), (read, 0, -1, 1), ("aten::relu", -1, -1, 1)), Engine())
    assert nested.host_reads.tolist() == [0, 0]
    assert count.reads_of_host(nested) == 0


def test_what_a_loader_runs_in_the_step_is_the_loaders():
    """It draws the order, stacks the samples and reads a seed; what the step then computes of the batch is not its."""
    data = torch.utils.data.TensorDataset(torch.ones(8, 3))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)

    def run():
        (x,) = next(iter(loader))
        float((x * 2).sum())

    counted = counted_of(run)
    places = {name: counted.scopes[at] for name, at in zip(counted.names_of_ops, counted.scope, strict=True)}
    assert places["aten::stack"] == places["aten::randperm"] == "DataLoader"
    assert places["aten::mul"] == places["aten::sum"] == ""
    # The sampler reads a seed within the loader; what making an iterator reads, and the step at its end, is the step's.
    assert Counter(counted.names)[count.HOST_READ] == 3
    assert count.reads_of_host(counted) == 2
    assert counted.host_reads.sum() == 1


def test_a_scope_called_optimizer_is_one():
    found = phases_and_scopes(("roofline:scope:optimizer", -1, -1, 1), ("aten::relu", 0, -1, 1))
    assert found == [("optimizer", "optimizer")]


def test_gradients_without_an_optimizer_end_the_step():
    found = phases_and_scopes(
        ("roofline:phase:backward", -1, -1, 1),
        ("aten::relu", 0, -1, 1),
        ("aten::relu", -1, -1, 1),
    )
    assert [phase for phase, _ in found] == ["backward", "forward"]


def test_unknown_ops_are_named_with_their_reason():
    counted = count.count(Nodes(("nccl::sum", -1, -1, 1)), Engine())
    assert counted.unknown == {"nccl::sum": "this torch has no such op"}
    assert counted.ops[0].costed.op_class == "communication"


def test_complex_numbers_count_as_real_ones_and_that_is_said():
    """Of 2 x 8 x 8 x 8 FLOP of a product, which on real numbers is four and more, and of a sum, which is two."""
    a = torch.randn(8, 8, dtype=torch.complex64)
    product, total = (op.op.costed.cost for op in listed(counted_of(lambda: a @ a + a)))
    assert (product.flops, total.vector_flops) == (2 * 8**3, 8**2)
    assert product.quality == total.quality == "assumed"
    assert product.note == "an operation on complex numbers counts as one on real numbers"
    [view] = [op.op.costed.cost for op in listed(counted_of(lambda: a.clone()))]
    assert view.quality == "exact"  # a copy computes nothing


def test_results_that_were_not_recorded_are_buffers_of_unknown_identity():
    nodes = Nodes(("aten::relu", -1, -1, 1))
    nodes.call = lambda index: Call("aten::relu", "", (Tensor((4,), (1,), "float", 9),))
    [op] = count.count(nodes, Engine()).ops
    assert (op.reads, op.writes) == ((9,), (-1,))


@pytest.mark.parametrize(
    "name", ["silu", "mish", "gelu", "relu", "tanh", "sigmoid", "softplus", "hardswish", "elu", "leaky_relu", "glu"]
)
def test_the_backward_pass_of_an_activation_is_an_op(name):
    """Some are wrappers by one of their kernels (`silu_backward`) and compute in another."""
    x = torch.randn(8, 8, requires_grad=True)

    def run():
        x.grad = None
        getattr(torch.nn.functional, name)(x).sum().backward()

    run()
    ops = [op for op in listed(counted_of(run)) if op.phase == "backward" and op.name != "ones_like"]
    assert len(ops) == 1
    assert ops[0].name.endswith("_backward")
    assert (ops[0].op.costed.op_class, ops[0].op.costed.cost.quality) == ("pointwise", "exact")


def test_a_function_that_is_mapped_over_samples_is_counted_for_all_of_them():
    """Inside torch.func a call is recorded as one sample asks for it, and inside that as it runs for all."""
    samples, rows, columns = 3, 5, 7
    x, weight = torch.randn(samples, rows), torch.randn(columns, rows, requires_grad=True)

    def loss(weight, sample):
        return functional.linear(sample[None], weight).tanh().sum()

    mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
    ops = listed(counted_of(lambda: mapped(weight, x)))
    products = {
        phase: sum(op.op.costed.cost.flops for op in ops if op.phase == phase) for phase in ("forward", "backward")
    }
    # One product of all samples forward; a gradient of [columns, 1] x [1, rows] for each of them backward.
    assert products == {"forward": 2 * samples * rows * columns, "backward": 2 * samples * rows * columns}
    tanh = [op for op in ops if op.name == "tanh"]
    assert [op.op.costed.cost.functions for op in tanh] == [{"tanh": samples * columns}]
    assert all(-1 not in (*op.op.reads, *op.op.writes) for op in tanh)


@pytest.mark.parametrize("clears", ["first", "between", "never"])
def test_what_a_closure_computes_is_no_optimizer(clears):
    """`optimizer.step(closure)` runs forward and backward inside of itself; LBFGS does so several times.

    Lightning clears gradients between the two.
    """
    for make, calls in ((torch.optim.SGD, 1), (torch.optim.LBFGS, 2)):
        net, x = nn.Linear(WIDTH, WIDTH), torch.randn(BATCH, WIDTH)
        given = {"max_iter": 2, "max_eval": 2, "tolerance_grad": 0, "tolerance_change": 0} if calls == 2 else {}
        optimizer = make(net.parameters(), lr=1e-3, **given)

        def closure(optimizer=optimizer, net=net, x=x):
            if clears == "first":
                optimizer.zero_grad(set_to_none=False)
            loss = net(x).square().sum()
            if clears == "between":
                optimizer.zero_grad(set_to_none=False)
            loss.backward()
            return loss

        optimizer.step(closure)
        ops = listed(counted_of(lambda optimizer=optimizer, closure=closure: optimizer.step(closure)))
        phases = {(op.name, op.phase) for op in ops}
        assert {("addmm", "forward"), ("pow", "forward"), ("mm", "backward")} <= phases
        assert not {name for name, phase in phases if phase == "optimizer"} & {"addmm", "mm", "pow"}
        assert [op.name for op in ops if op.phase == "forward"].count("addmm") == calls
        updates = {name for name, phase in phases if phase == "optimizer"}
        assert updates & {"add_", "_foreach_add_", "mul", "dot"}


def test_an_update_under_autograd_behind_a_closure_is_the_optimizers():
    """An optimizer of one's own that does without `no_grad`: what follows the backward pass is its own."""

    class Plain(torch.optim.Optimizer):
        def step(self, closure):
            closure()
            for weight in self.param_groups[0]["params"]:
                weight.data.add_(weight.grad, alpha=-0.1)

    net, x = nn.Linear(WIDTH, WIDTH, bias=False), torch.randn(BATCH, WIDTH)
    optimizer = Plain(net.parameters(), {})
    ops = listed(counted_of(lambda: optimizer.step(lambda: net(x).sum().backward())))
    assert [op.phase for op in ops if op.name == "add_"] == ["optimizer"]
    assert [op.phase for op in ops if op.name == "mm"] == ["forward", "backward"]


def test_what_a_selective_checkpoint_keeps_is_not_run_again():
    """Three products that are kept; their tanh are run again. Then two gradients of each, but that of the input."""
    checkpointing = torch.utils.checkpoint
    keep, again = checkpointing.CheckpointPolicy.MUST_SAVE, checkpointing.CheckpointPolicy.PREFER_RECOMPUTE
    contexts = partial(
        checkpointing.create_selective_checkpoint_contexts,
        lambda _, op, *args, **kwargs: keep if op is torch.ops.aten.mm.default else again,
    )
    x, weights = torch.ones(4, 16), [torch.eye(16, requires_grad=True) for _ in range(3)]

    def layers(x):
        for weight in weights:
            x = torch.tanh(x @ weight)
        return x

    def run():
        checkpointing.checkpoint(layers, x, use_reentrant=False, context_fn=contexts).sum().backward()

    counted = counted_of(run)
    product = 2 * 4 * 16 * 16
    assert sum(op.costed.cost.model_flops for op in counted.ops) == (3 + 2 * 3 - 1) * product
    assert sum(op.costed.cost.flops for op in counted.ops) == (3 + 2 * 3 - 1) * product
    assert sum(op.costed.cost.functions.get("tanh", 0) for op in counted.ops) == 2 * 3 * 4 * 16
