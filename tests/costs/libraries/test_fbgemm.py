"""Table-batched embeddings: 3 tables of width 4, 10 rows each, 5 samples, 12 indices."""

from __future__ import annotations

import pytest

from roofline.costs import custom
from roofline.costs.calls import Call, Tensor

LOOKUP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
UPDATE = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


def tensor(*shape, dtype="float"):
    return Tensor(shape, None, dtype, device="")


def lookup(total=12, indices=12, weights=None, state=30, rows=120):
    return (
        *(tensor(0), tensor(rows), tensor(0), tensor(0, 0), tensor(3, dtype="int"), tensor(3, dtype="long")),
        *(tensor(4, dtype="int"), total, None, tensor(4, dtype="long"), None),
        *(tensor(indices, dtype="long"), tensor(3 * 5 + 1, dtype="long"), None, weights, None, tensor(0, dtype="int")),
        *(None, None, None, tensor(state), tensor(0)),
    )


def cost(name, *inputs):
    return custom.cost(Call(name, None, inputs), *custom.registered(name))


def test_a_lookup_gathers_rows_and_adds_them_up():
    found = cost(LOOKUP, *lookup())
    # 12 rows of 4 fp32 numbers, 12 indices and 16 offsets of 8 bytes; 5 results of 12 numbers.
    assert found.cost.bytes_read == 12 * 4 * 4 + 12 * 8 + 16 * 8
    assert found.cost.bytes_written == 5 * 12 * 4
    assert found.cost.vector_flops == 0  # 48 numbers in, 60 out: most bags are empty
    assert (found.op_class, found.cost.quality) == ("embedding", "assumed")
    # 40 rows picked of 30: no more than there are is read; 160 - 60 additions.
    found = cost(LOOKUP, *lookup(indices=40))
    assert found.cost.bytes_read == 120 * 4 + 40 * 8 + 16 * 8
    assert found.cost.vector_flops == 100
    # Weights are read, and multiply every number.
    found = cost(LOOKUP, *lookup(indices=40, weights=tensor(40)))
    assert found.cost.bytes_read == 120 * 4 + 40 * 8 + 16 * 8 + 40 * 4
    assert found.cost.vector_flops == 100 + 160


def test_without_its_width_a_lookup_takes_the_mean_width_of_the_rows():
    # 120 numbers in 30 rows: 4 each.
    assert cost(LOOKUP, *lookup(total=None)).cost == cost(LOOKUP, *lookup()).cost
    assert cost(LOOKUP, *lookup(total=None, state=0)).cost.quality == "unknown"
    assert cost(LOOKUP, *lookup(total=None, state=120)).cost.quality == "unknown"  # no rows are that narrow


def test_the_update_reads_and_writes_rows_and_their_state():
    assert custom.entry(UPDATE).forward == LOOKUP
    found = cost(UPDATE, tensor(5, 12), *lookup(total=None))
    moved = 12 * 4 * 4 + 12 * 4  # 12 rows of 4 numbers, a number of state each
    assert found.cost.bytes_read == 5 * 12 * 4 + 12 * 8 + 16 * 8 + moved
    assert found.cost.bytes_written == moved
    assert (found.cost.vector_flops, found.cost.functions) == (4 * 48, {"sqrt": 12})
    # 40 indices for 30 rows: 160 numbers are added up to 120.
    found = cost(UPDATE, tensor(5, 12), *lookup(indices=40))
    assert found.cost.vector_flops == 40 + 4 * 120


def test_other_optimizers():
    name = "torch::autograd::CppNode<SplitLookupFunction_{}_Op>"
    sgd = cost(name.format("sgd"), tensor(5, 12), *lookup()).cost
    assert (sgd.vector_flops, sgd.functions, sgd.bytes_written) == (2 * 48, {}, 12 * 4 * 4)
    adagrad = cost(name.format("adagrad"), tensor(5, 12), *lookup()).cost
    assert (adagrad.functions, adagrad.bytes_written) == ({"sqrt": 48}, 2 * 12 * 4 * 4)


def test_the_ops_around_it():
    found = cost("fbgemm::permute_pooled_embs_auto_grad", tensor(6, 10), tensor(4, dtype="long"))
    assert (found.cost.bytes_read, found.cost.bytes_written, found.op_class) == (240 + 32, 240, "movement")
    found = cost(
        "fbgemm::bounds_check_indices", tensor(3, dtype="long"), tensor(9, dtype="long"), tensor(4, dtype="int")
    )
    assert (found.cost.bytes_read, found.cost.bytes_written) == (24 + 72 + 16, 0)
    # Two of four bags, weights beside the indices: half of everything is read and written.
    bags = tensor(2, dtype="int"), tensor(4, 5, dtype="int"), tensor(80, dtype="int"), tensor(80)
    found = cost("fbgemm::permute_sparse_features", *bags)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (8 + 40 + 320, 40 + 320)
    # Each of four bags twice: read once, written twice.
    found = cost("fbgemm::permute_sparse_features", tensor(8, dtype="int"), *bags[1:3], None)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (32 + 80 + 320, 2 * (80 + 320))
    assert cost("fbgemm::asynchronous_complete_cumsum", tensor(7, dtype="int")).cost.int_ops == 7


@pytest.mark.parametrize("inputs", [(), (None,) * 30, (3,) * 30, (tensor(2),) * 30])
@pytest.mark.parametrize("name", [LOOKUP, UPDATE, "fbgemm::permute_sparse_features", "fbgemm::bounds_check_indices"])
def test_other_arguments_do_not_raise(name, inputs):
    assert cost(name, *inputs).cost.quality in ("assumed", "unknown")
