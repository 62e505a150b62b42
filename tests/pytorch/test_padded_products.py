"""Products that an op, or the program, fills up with zeros and cuts again: what runs, and what was asked for."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from shared_cases import case
from torch.nn import functional

from roofline.core.step import Step
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting
from roofline.pytorch.recording.event_tree import Nodes

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

#: Two sequences; each product of all pairs within them is of 8^2 + 24^2 pairs, filled up of 2 x 24^2.
LENGTHS, LONGEST, WIDTH, OUT = (8, 24), 24, 32, 5
TOKENS, PAIRS = sum(LENGTHS), sum(length**2 for length in LENGTHS)


#: Remembers what a call costs, for all tests.
ENGINE = Engine()


def counted(run):
    """Model and executed FLOPs of a step."""
    costs = [op.costed.cost for op in count.count(counting.record(Step(run=run)), ENGINE).ops]
    return sum(cost.model_flops or 0 for cost in costs), sum(cost.flops or 0 for cost in costs)


def sequences(*shape, layout=torch.jagged):
    return torch.nested.nested_tensor([torch.randn(length, *shape) for length in LENGTHS], layout=layout)


def test_attention_of_nested_sequences():
    """Queries by keys, and these by values: each 2 x heads x 16 per pair."""
    assert counted(case("16_nested_sdpa.py", "make_step")) == (4 * 2 * 16 * PAIRS, 4 * 2 * 16 * 2 * LONGEST**2)


def test_attention_of_nested_sequences_to_others():
    """The keys of each sequence have a length of their own: 8 x 30 and 24 x 10 pairs, filled up 2 x 24 x 30."""
    keys = torch.nested.nested_tensor([torch.randn(length, 2, 16) for length in (30, 10)], layout=torch.jagged)
    queries = sequences(2, 16)

    def run():
        q, k = queries.transpose(1, 2), keys.transpose(1, 2)
        return functional.scaled_dot_product_attention(q, k, k)

    assert counted(run) == (4 * 2 * 16 * (8 * 30 + 24 * 10), 4 * 2 * 16 * 2 * 24 * 30)


@pytest.mark.parametrize("layer", [torch.nn.Softmax(-1), torch.nn.LayerNorm(WIDTH), torch.nn.ReLU()])
def test_nested_sequences_by_elements(layer):
    """The sequences one behind another: no op works on more of them, and none is unknown."""
    plain, nested = (
        count.count(counting.record(Step(run=lambda x=x: layer(x))), ENGINE)
        for x in (torch.ones(TOKENS, WIDTH), sequences(WIDTH))
    )
    assert nested.unknown == {}
    (op,) = plain.ops
    assert [one.costed.cost.vector_flops for one in nested.ops if one.costed.kind == op.costed.kind] == [
        op.costed.cost.vector_flops
    ]


def test_linear_of_nested_sequences():
    layer, x = torch.nn.Linear(WIDTH, OUT), sequences(WIDTH)
    assert counted(lambda: layer(x)) == (2 * TOKENS * WIDTH * OUT,) * 2
    # The gradient of the weight is as much again; nobody reads one of the input.
    assert counted(lambda: layer(x).values().sum().backward()) == (2 * 2 * TOKENS * WIDTH * OUT,) * 2


def test_rows_that_are_filled_up_and_cut_off():
    x, weight = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT)
    product = 2 * WIDTH * OUT

    def filled():
        return functional.pad(x, (0, 0, 0, 2))

    assert counted(lambda: (filled() @ weight)[:30] * 2) == (30 * product, 32 * product)
    # Somebody reads all of it, also who runs the step, or what is cut off was no filling.
    assert counted(lambda: (y := filled() @ weight, y[:30] * 2)) == (32 * product, 32 * product)
    assert counted(lambda: (filled() @ weight) * 2) == (32 * product, 32 * product)
    assert counted(lambda: (x @ weight)[:20] * 2) == (30 * product, 30 * product)
    assert counted(lambda: (functional.pad(x, (0, 0, 0, 2), value=1.0) @ weight)[:30] * 2) == (32 * product,) * 2


@pytest.mark.parametrize(("other", "rows"), [((OUT,), 30), ((), 30), ((32, OUT), 32)], ids=["bias", "number", "sum"])
def test_rows_that_are_cut_off_behind_a_bias(other, rows):
    """A sum takes all rows."""
    x, weight, bias = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT), torch.randn(other)
    product = 2 * WIDTH * OUT
    run = lambda: (functional.pad(x, (0, 0, 0, 2)) @ weight + bias)[:30] * 2  # noqa: E731
    assert counted(run) == (rows * product, 32 * product)


def test_what_numpy_puts_where_a_result_lay_is_not_that_result():
    """PyTorch's freed memory may become numpy's, whose arrays come back as tensors: those are read, not the result."""
    x, weight, memory = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT), np.zeros((32, OUT), np.float32)
    product = 2 * WIDTH * OUT

    def run():
        y = torch.mm(functional.pad(x, (0, 0, 0, 2)), weight, out=torch.from_numpy(memory))
        taken = y[:30] * 2
        memory.fill(1.0)
        return taken, torch.from_numpy(memory) * 2

    assert counted(run) == (30 * product, 32 * product)


def test_rows_that_are_filled_up_in_another_type():
    x, weight = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT)
    product = 2 * WIDTH * OUT

    def run():
        with torch.autocast("cpu", torch.bfloat16):
            return (functional.pad(x, (0, 0, 0, 2)) @ weight)[:30] * 2

    assert counted(run) == (30 * product, 32 * product)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: torch.add(y, 1, out=y),
        lambda y: y.add_(1),
        lambda y: y.copy_(torch.ones(())),
        lambda y: torch._foreach_add_([y], 1),
    ],
    ids=["out", "in place", "copied into", "of a list"],
)
def test_zeros_that_are_written_over(change):
    x, weight = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT)

    def run(change=change):
        left, right = functional.pad(x, (0, 2)), functional.pad(weight, (0, 0, 0, 2))
        change(left)
        change(right)
        return left @ right

    summed = 2 * 30 * OUT
    assert counted(run)[0] == summed * (WIDTH + 2)
    assert counted(lambda: run(lambda array: array))[0] == summed * WIDTH


def test_rows_that_are_filled_up_twice():
    x, weight = torch.randn(30, WIDTH), torch.randn(WIDTH, OUT)
    product = 2 * WIDTH * OUT

    def run():
        return (functional.pad(functional.pad(x, (0, 0, 1, 0)), (0, 0, 0, 2)) @ weight)[1:31] * 2

    assert counted(run) == (30 * product, 33 * product)


def test_gradients_of_rows_that_are_filled_up_and_cut_off():
    """Of the rows, where they were filled up and their gradient is cut, and of the weight, summed over both."""
    x, weight = torch.randn(30, WIDTH, requires_grad=True), torch.randn(WIDTH, OUT, requires_grad=True)
    run = counted(lambda: ((functional.pad(x, (0, 0, 0, 2)) @ weight)[:30] ** 2).sum().backward())
    assert run == (3 * 30 * 2 * WIDTH * OUT, 3 * 32 * 2 * WIDTH * OUT)


def test_sums_over_what_both_factors_are_filled_up_with():
    a, b = torch.randn(3, 4, 6), torch.randn(3, 6, 5)
    product = 2 * 3 * 4 * 5
    both = counted(lambda: functional.pad(a, (0, 2)) @ functional.pad(b, (0, 0, 0, 2)) * 2)
    assert both == (6 * product, 8 * product)
    # One factor has numbers of its own there.
    long = torch.randn(3, 8, 5)
    assert counted(lambda: functional.pad(a, (0, 2)) @ long * 2) == (8 * product, 8 * product)


def test_nested_tensors_without_a_layout_are_recorded_by_the_profiler():
    """The recorder of ops loses calls that take one, and ends the process at some."""
    layer, x = torch.nn.Linear(WIDTH, OUT), sequences(WIDTH, layout=torch.strided)

    def run():
        torch.nested.to_padded_tensor(layer(x), 0.0).sum().backward()

    assert isinstance(counting.record(Step(run=run)), Nodes)
    assert counted(run) == (2 * 2 * TOKENS * WIDTH * OUT,) * 2
