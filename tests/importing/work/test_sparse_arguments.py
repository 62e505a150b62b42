"""Sparse tensors in traces that torch's profiler wrote: how many numbers they hold, where the trace tells.

A matrix of 12 x 9 holds 17 numbers, or 3 blocks of 3 x 3; it is multiplied with 9 x 5.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from roofline.core.cost import Cost
from roofline.importing import cpu
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader

DENSE = torch.rand(9, 5)


def matrix():
    numbers = torch.zeros(12 * 9)
    numbers[::7], numbers[-1] = 1.5, 2.5  # places 0, 7, ... 105, and the last
    return numbers.view(12, 9)


def blocks():
    numbers = torch.zeros(12, 9)
    numbers[:3, :3] = numbers[3:6, 3:6] = numbers[9:, :3] = 1.0
    return numbers


def sparse(layout):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse tensors are in a beta state
        return getattr(matrix(), f"to_sparse_{layout}")() if layout else matrix().to_sparse()


def imported(run, tmp_path) -> list[tuple[str, Cost]]:
    """(name, work) of the ops that a trace of the second call of `run` shows."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    counted = cpu.read(reader.read(path.read_bytes()), Costs()).counted
    return [(name, op.costed.cost) for name, op in zip(counted.names_of_ops, counted.ops, strict=True)]


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_a_compressed_matrix_says_how_many_numbers_it_holds(layout, tmp_path):
    held = sparse(layout)
    ((_, cost),) = imported(lambda: held @ DENSE, tmp_path)
    assert cost.flops == cost.model_flops == 2 * 17 * 5
    # The numbers with two indices of 8 bytes each, and all that is multiplied.
    assert cost.bytes_read == 17 * (4 + 2 * 8) + 4 * 9 * 5


def test_numbers_of_blocks_share_their_indices(tmp_path):
    held = blocks().to_sparse_bsr((3, 3))
    ((_, cost),) = imported(lambda: held @ DENSE, tmp_path)
    assert cost.flops == 2 * 3 * 9 * 5
    assert cost.bytes_read == 3 * (4 * 9 + 2 * 8) + 4 * 9 * 5


def test_a_transposed_matrix_holds_as_many(tmp_path):
    held, other = sparse("csr"), torch.rand(12, 5)
    ((_, cost),) = imported(lambda: held.t() @ other, tmp_path)
    assert cost.flops == 2 * 17 * 5


def test_results_at_the_places_of_a_matrix(tmp_path):
    """12 x 6 times 6 x 9, at 17 places."""
    held, rows, columns = sparse("csr"), torch.rand(12, 6), torch.rand(6, 9)
    ((name, cost),) = imported(lambda: torch.sparse.sampled_addmm(held, rows, columns, beta=0.0), tmp_path)
    assert (name, cost.flops) == ("aten::sparse_sampled_addmm", 2 * 17 * 6)


def test_how_many_numbers_lie_at_coordinates_is_unknown(tmp_path):
    """A dense product of these sizes is known: its strides were recorded."""
    held = sparse("")
    products = [cost for name, cost in imported(lambda: (held @ DENSE, DENSE.t() @ DENSE), tmp_path)]
    assert [(cost.quality, cost.flops) for cost in products] == [("unknown", None), ("exact", 2 * 5 * 9 * 5)]


def test_two_matrices_of_one_size_in_an_op_are_not_told_apart(tmp_path):
    first, second = sparse("csr"), blocks().to_sparse_csr()
    ((_, cost),) = imported(lambda: first + second, tmp_path)
    assert cost.quality == "unknown"
