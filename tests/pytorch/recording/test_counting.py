"""Which channel of torch's tells the calls of a step."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.costs.calls import UNKNOWN
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting, event_tree, shapes
from roofline.recording.backend import NeedsData


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_compressed_tensors_are_recorded_by_the_profiler():
    """The recorder of ops ends the process at some of them."""
    x = torch.eye(4)
    coordinates = x.to_sparse_coo()
    assert not isinstance(counting.record(Step(run=lambda: coordinates @ x)), event_tree.Nodes)
    rows = x.to_sparse_csr()
    layer = torch.nn.Linear(4, 4)
    nodes = counting.record(Step(run=lambda: (rows @ x, coordinates @ x, layer(x))))
    assert isinstance(nodes, event_tree.Nodes)
    products = [nodes.call(number) for number, name in enumerate(nodes.names) if name == "aten::mm"]
    assert [call.inputs[0].stored for call in products] == [4, 4]
    assert "roofline:scope:" in nodes.names
    assert (nodes.parent < range(len(nodes))).all()


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to_sparse_csr(),
        lambda x: x.to_sparse(layout=torch.sparse_csr),
        lambda x: torch.sparse_csr_tensor(torch.arange(5), torch.arange(4), x.diagonal(), (4, 4)),
    ],
)
def test_a_compressed_tensor_that_the_step_makes(make):
    """The recorder of ops would end the process in the backward pass. 4 numbers meet 3 columns, forward and back."""
    x, w = torch.eye(4), torch.ones(4, 3, requires_grad=True)

    def run():
        w.grad = None
        (make(x * 2) @ torch.tanh(w)).sum().backward()

    nodes = counting.record(Step(run=run))
    assert isinstance(nodes, event_tree.Nodes)
    products = [op.costed.cost for op in count.count(nodes, Engine()).ops if op.costed.cost.flops]
    assert [cost.model_flops for cost in products] == [2 * 4 * 3, 2 * 4 * 3]
    assert torch.Tensor.to_sparse_csr is torch._C.TensorBase.to_sparse_csr


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("make", [lambda x: x.to_sparse_csr(), lambda x: x.to_sparse()])
def test_a_step_without_data_that_makes_a_sparse_tensor_needs_its_numbers(make):
    with shapes.without_data():
        x, w = torch.ones(4, 4), torch.ones(4, 3)
        with pytest.raises(NeedsData, match="how many numbers a sparse tensor holds"):
            counting.record(Step(run=lambda: make(x) @ w))
    assert torch.Tensor.to_sparse_csr is torch._C.TensorBase.to_sparse_csr


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_what_is_made_of_sparse_tensors_holds_what_all_of_its_sizes_do():
    """A transposed one has its own address; beside one of other numbers and equal sizes it is not known."""
    x, rows = torch.ones(4, 4), torch.eye(4).to_sparse_csr()

    def stored(run):
        nodes = counting.record(Step(run=run))
        return [nodes.call(number).inputs[0].stored for number, name in enumerate(nodes.names) if name == "aten::mm"]

    assert stored(lambda: rows.t() @ x) == [4]
    other = (torch.eye(4)[:2].T @ torch.eye(4)[:2]).to_sparse_csr()
    assert stored(lambda: (rows.t() @ x, other @ x)) == [UNKNOWN, 2]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    ("make", "flops"),
    [
        (lambda rows: rows.t(), 2 * 16 * 16),
        (lambda rows: rows * 2, 2 * 16 * 16),
        (lambda rows: rows.clone().t(), 2 * 16 * 16),
        # Three numbers a row, which no event tells.
        (lambda rows: rows @ rows, None),
        (lambda rows: (rows @ rows).t(), None),
    ],
)
def test_a_sparse_result_of_other_places_holds_nobody_knows_how_many_numbers(make, flops):
    """8 x 8 with two numbers a row, by 16 columns."""
    rows = (torch.eye(8) + torch.eye(8).roll(1, 0)).to_sparse_csr()
    right = torch.randn(8, 16)
    counted = count.count(counting.record(Step(run=lambda: make(rows) @ right)), Engine())
    assert [op.costed.cost.flops for op in counted.ops if op.costed.kind == "matmul"][-1] == flops


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_what_a_checkpoint_repeats_is_marked_beside_compressed_tensors_as_well():
    rows, x = torch.eye(4).to_sparse_csr(), torch.ones(4, 4, requires_grad=True)

    def run():
        y = torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(x @ x), x, use_reentrant=False)
        (rows @ y.detach()).sum()
        y.sum().backward()

    nodes = counting.record(Step(run=run))
    assert isinstance(nodes, event_tree.Nodes)
    counted = count.count(nodes, Engine())
    costs = [op.costed.cost for op in counted.ops if op.costed.cost.flops]
    # The product, the sparse one, the product again, and its two gradients.
    assert [cost.model_flops for cost in costs] == [128, 32, 0, 128, 128]


#: Releases memory from before the step, as an optimizer does with the gradients of the last one, and dies.
_DIES = """
import os, torch
from roofline.core.step import Step
from roofline.pytorch.recording import counting

held = [torch.empty(8) for _ in range(998)]

def step():
    held.clear()
    os.system("echo a child >&2")
    os.write(2, b"last words")
    os._exit(3)

counting.record(Step(run=step))
"""


def test_a_step_that_dies_says_why_and_torch_says_nothing_of_memory_from_before_it():
    """Of a thousand such releases torch warns at one: the recorder's own is the first, 998 are the step's."""
    ended = subprocess.run([sys.executable, "-c", _DIES], stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (3, b"a child\nlast words")
