"""Which channel of torch's tells the calls of a step."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.costs.calls import UNKNOWN
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting, event_tree


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


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_what_a_sparse_tensor_of_the_step_holds_is_not_known():
    x = torch.eye(4)
    rows = x.to_sparse_csr()
    nodes = counting.record(Step(run=lambda: (x * 2).to_sparse_csr() @ rows.to_dense()))
    (product,) = [nodes.call(number) for number, name in enumerate(nodes.names) if name == "aten::mm"]
    assert product.inputs[0].stored == UNKNOWN
    assert Engine().cost(product).cost.quality == "unknown"


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
