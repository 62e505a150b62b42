"""Where storages lie, held against what the tensors themselves say."""

from __future__ import annotations

from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.pytorch import compiled, count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.inductor import kernels
from roofline.pytorch.recording import counting, shapes


def counted_of(run):
    nodes = counting.record(Step(run=run))
    return count.count(nodes, Engine(), addresses=nodes.addresses)


def training(foreach):
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
    optimizer = torch.optim.AdamW(layers.parameters(), foreach=foreach)
    x = torch.randn(32, 64)

    def run():
        optimizer.zero_grad()
        layers(x).square().mean().backward()
        optimizer.step()

    run()  # the first step makes the optimizer's state
    return run, [*layers.parameters(), x]


def test_addresses_are_those_of_the_data():
    kept = [torch.ones(1000), torch.ones(50, 20)]
    made = {}

    def run():
        made["copy"] = kept[1][10:30].clone()
        made["sum"] = kept[0] + 1
        made["product"] = made["sum"] * kept[0]

    counted = counted_of(run)
    rows = dict(zip(counted.names_of_ops, counted.ops, strict=True))
    product, copy = rows["aten::mul"], rows["aten::clone"]
    assert [counted.addresses[number] for number in product.reads] == [made["sum"].data_ptr(), kept[0].data_ptr()]
    # Of a view the storage counts: it begins 10 rows of 20 floats before the data.
    begin = counted.addresses[copy.reads[0]]
    assert begin == kept[1].untyped_storage().data_ptr() == kept[1][10:].data_ptr() - 10 * 20 * 4
    # No call was given the last result, so nobody tells where it lies.
    assert product.writes[0] not in counted.addresses


@pytest.mark.parametrize("foreach", [False, True])
def test_no_two_buffers_of_an_op_overlap(foreach):
    run, held = training(foreach)
    counted = counted_of(run)
    assert {tensor.untyped_storage().data_ptr() for tensor in held} <= set(counted.addresses.values())
    for name, op in zip(counted.names_of_ops, counted.ops, strict=True):
        sizes = {}
        for number, size in op.touched():
            sizes[number] = max(sizes.get(number, 0.0), size)
        ranges = sorted(
            (counted.addresses[number], size) for number, size in sizes.items() if number in counted.addresses
        )
        assert len(ranges) >= len(sizes) - 1, name  # all, but for a result that is the last
        assert all(begin + size <= behind for (begin, size), (behind, _) in pairwise(ranges)), name


def test_a_block_that_is_given_again_is_one_buffer():
    x = torch.ones(100_000)
    pointers = []

    def run():
        for _ in range(2):
            y = x * 2
            pointers.append(y.data_ptr())
            y.add_(1)
            del y

    run()
    pointers.clear()
    counted = counted_of(run)
    products = [op for name, op in zip(counted.names_of_ops, counted.ops, strict=True) if name == "aten::mul"]
    first, second = (op.writes[0] for op in products)
    assert [counted.addresses[number] for number in (first, second)] == pointers
    assert (first == second) == (pointers[0] == pointers[1])


def test_arrays_without_data_lie_nowhere():
    with shapes.without_data():
        x = torch.ones(8)
        nodes = counting.record(Step(run=lambda: x + x))
    assert nodes.addresses == {}


def test_what_goes_into_a_compiled_graph_is_the_storage_at_its_address():
    """Of buffers within graphs only those have an address that a library's kernel was given."""
    storages = compiled._Storages({5: 4096})
    within, behind = ("buffer", 0, "buf1"), compiled.Storage(8192)
    assert storages(compiled.Storage(4096)) == 5
    numbers = [storages(buffer) for buffer in (within, behind, compiled.Storage(0), behind)]
    assert len(set(numbers)) == 3
    assert numbers[1] == numbers[3]
    assert storages.addresses == {numbers[1]: 8192}
    x = torch.ones(10)
    assert kernels._identity(x[5:]) == (x.data_ptr(), 20.0)
