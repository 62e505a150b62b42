"""Products with packed weights, of 8 or 4 bits, and products of groups: recorded from torch, by stated arithmetic."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from roofline.core.step import Step
from roofline.costs.calls import Call, Tensor
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting

ENGINE = Engine()


def only(run):
    """The work of the one op of a step that multiplies."""
    counted = count(counting.record(Step(run=run)), Engine())
    assert not counted.unknown, counted.unknown
    (op,) = [op for op in counted.ops if op.costed.cost.flops]
    return op.costed


def tensor(*shape, dtype="float", storage=1):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return Tensor(tuple(shape), tuple(reversed(strides)), dtype, storage)


BF16 = "c10::BFloat16"


@pytest.mark.parametrize("offsets", [(16, 64, 96), (0, 0, 96), (32, 64, 96)])
def test_groups_of_rows_meet_one_matrix_each(offsets):
    """96 rows of 64 meet 64 x 32, whichever group they are in."""
    grouped = getattr(nn.functional, "grouped_mm", None) or torch._grouped_mm
    x, w = torch.randn(96, 64).bfloat16(), torch.randn(3, 64, 32).bfloat16()
    ends = torch.tensor(offsets, dtype=torch.int32)
    found = only(lambda: grouped(x, w, offs=ends))
    assert found.cost.flops == found.cost.model_flops == 2 * 96 * 64 * 32
    assert found.cost.quality == "assumed"  # a last group that ends before them would leave rows out
    assert (found.kind, found.op_class, found.dtype) == ("matmul", "contraction", "bf16")
    assert found.cost.bytes_read == 2 * (96 * 64 + 3 * 64 * 32) + 4 * 3


@pytest.mark.parametrize(
    ("a", "b", "out", "flops"),
    [
        ((96, 64), (3, 64, 32), (96, 32), 2 * 96 * 64 * 32),  # groups of rows
        ((3, 64, 32), (32, 96), (64, 96), 2 * 64 * 32 * 96),  # of columns
        ((64, 96), (96, 32), (3, 64, 32), 2 * 64 * 96 * 32),  # of what is summed
        ((3, 16, 64), (3, 64, 32), (3, 16, 32), 2 * 3 * 16 * 64 * 32),  # none
    ],
)
def test_what_groups_are_of(a, b, out, flops):
    offsets = None if len(a) == len(b) == 3 else tensor(3, dtype="int", storage=4)
    inputs = (tensor(*a, dtype=BF16), tensor(*b, dtype=BF16, storage=2), offsets, None, None)
    found = ENGINE.cost(Call("aten::_grouped_mm", "", inputs, (tensor(*out, dtype=BF16, storage=3),)))
    assert found.cost.flops == flops
    assert found.cost.quality == ("exact" if offsets is None else "assumed")


def test_weights_of_eight_bits():
    """16 x 64 x 48; a scale for each result; the weights are a byte each."""
    x, w = torch.randn(16, 64).bfloat16(), torch.randint(-9, 9, (48, 64), dtype=torch.int8)
    scales = torch.ones(48).bfloat16()
    found = only(lambda: torch._weight_int8pack_mm(x, w, scales))
    assert (found.cost.flops, found.cost.vector_flops) == (2 * 16 * 64 * 48, 16 * 48)
    assert found.cost.bytes_read == 2 * 16 * 64 + 48 * 64 + 2 * 48
    assert (found.kind, found.dtype) == ("matmul", "bf16")


def test_weights_of_four_bits():
    """16 x 64 x 64; each weight less its group's zero point and times its scale; half a byte each."""
    pack, multiply = torch.ops.aten._convert_weight_to_int4pack_for_cpu, torch.ops.aten._weight_int4pack_mm_for_cpu
    weight = pack(torch.randint(0, 15, (64, 64), dtype=torch.int32), 2)
    x, scales = torch.randn(16, 64).bfloat16(), torch.ones(2, 64, 2).bfloat16()
    found = only(lambda: multiply(x, weight, 32, scales))
    assert (found.cost.flops, found.cost.vector_flops) == (2 * 16 * 64 * 64, 2 * 64 * 64)
    assert found.cost.bytes_read == 2 * 16 * 64 + 64 * 64 / 2 + 2 * 2 * 64 * 2


def test_products_of_eight_bit_floats():
    a = torch.randn(16, 64).to(torch.float8_e4m3fn)
    b = torch.randn(64, 64).to(torch.float8_e4m3fn).t()
    one = torch.tensor(1.0)
    found = only(lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16))
    assert (found.cost.flops, found.dtype) == (2 * 16 * 64 * 64, "fp8")


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.parametrize(("dtype", "multiplies", "size"), [("qint8", "int8", 1), ("float16", "fp32", 2)])
def test_linear_layers_that_quantise_what_they_get(dtype, multiplies, size):
    """8 x 64 x 128. Of the input the range (2) and 8 bits (4), of the results back (2) and a bias, or a bias alone."""
    plain = nn.Sequential(nn.Linear(64, 128)).eval()
    model = torch.ao.quantization.quantize_dynamic(plain, {nn.Linear}, dtype=getattr(torch, dtype))
    x = torch.randn(8, 64)
    found = only(lambda: model(x))
    assert found.cost.flops == found.cost.model_flops == 2 * 8 * 64 * 128
    assert found.cost.vector_flops == (6 * 8 * 64 + 3 * 8 * 128 if dtype == "qint8" else 8 * 128)
    assert found.cost.bytes_read == 4 * 8 * 64 + size * 64 * 128
    assert found.cost.bytes_written == 4 * 8 * 128
    assert (found.kind, found.op_class, found.dtype) == ("matmul", "contraction", multiplies)


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
def test_a_linear_layer_and_a_sum_of_eight_bit_numbers():
    """4 x 16 x 8, each result with a bias to 8 bits; a sum of two numbers back from 8 bits."""
    x = torch.quantize_per_tensor(torch.randn(4, 16), 0.1, 0, torch.quint8)
    layer = torch.ao.nn.quantized.Linear(16, 8)
    sums = torch.ao.nn.quantized.QFunctional()
    counted = count(counting.record(Step(run=lambda: sums.add(layer(x), layer(x)))), Engine())
    assert not counted.unknown, counted.unknown
    first, second, added = [op.costed for op in counted.ops if op.costed.cost.vector_flops]
    assert first.cost.flops == second.cost.flops == 2 * 4 * 16 * 8
    assert (first.cost.vector_flops, first.dtype) == (5 * 4 * 8, "int8")
    assert (added.cost.vector_flops, added.cost.flops) == (9 * 4 * 8, 0)


def test_a_sparse_matrix_multiplies_what_it_holds():
    """128 numbers of 64 x 64 meet 32 columns; as many rows of the dense one as there are are read, each number and two
    indices; and the sum with a dense matrix is an addition per result."""
    dense = torch.zeros(64, 64)
    dense.view(-1)[torch.arange(128) * 31] = 1.5
    sparse, right = dense.to_sparse_coo(), torch.randn(64, 32)
    found = only(lambda: torch.sparse.mm(sparse, right))
    assert found.cost.flops == found.cost.model_flops == 2 * 128 * 32
    assert (found.kind, found.op_class, found.cost.vector_flops) == ("matmul", "contraction", 0)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (128 * (4 + 16) + 64 * 32 * 4, 64 * 32 * 4)
    for beta, sums in ((1, 64 * 32), (0, 0)):
        added = only(lambda beta=beta: torch.sparse.addmm(right, sparse, right, beta=beta, alpha=2))
        assert (added.cost.flops, added.cost.vector_flops) == (2 * 128 * 32, sums)


def test_a_compressed_matrix_multiplies_what_it_holds():
    """The recorder of ops ends the process at one; the profiler does not."""
    dense = torch.zeros(64, 64)
    dense.view(-1)[torch.arange(128) * 31] = 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = dense.to_sparse_csr()
    right = torch.randn(64, 32)
    found = only(lambda: torch.tanh(sparse @ right))
    assert found.cost.flops == found.cost.model_flops == 2 * 128 * 32
    assert (found.kind, found.op_class) == ("matmul", "contraction")


def sparse(*shape, stored, places=None, storage=-1):
    return Tensor(shape, None, "float", storage, stored=stored, places=places)


@pytest.mark.parametrize(
    ("name", "inputs", "flops", "read"),
    [
        # 128 numbers meet 32 columns, or 32 rows; each with two indices of 8 bytes
        ("mm", (sparse(64, 64, stored=128), tensor(64, 32)), 2 * 128 * 32, 128 * 20 + 4 * 64 * 32),
        ("mm", (tensor(32, 64), sparse(64, 64, stored=128)), 2 * 128 * 32, 128 * 20 + 4 * 64 * 32),
        ("mv", (sparse(64, 64, stored=128), tensor(64)), 2 * 128, 128 * 20 + 4 * 64),
        # two of eight numbers a batch
        ("bmm", (sparse(3, 8, 8, stored=6), tensor(3, 8, 5)), 2 * 6 * 5, 6 * 20 + 4 * 6 * 5),
        # blocks of 16 x 16 have two indices together
        ("mm", (sparse(64, 64, stored=1024, places=4), tensor(64, 32)), 2 * 1024 * 32, 1024 * 4 + 64 + 4 * 64 * 32),
        # 128 results of 16 products each
        (
            "sparse_sampled_addmm",
            (sparse(64, 64, stored=128), tensor(64, 16, storage=2), tensor(16, 64, storage=3)),
            2 * 128 * 16,
            128 * 20 + 2 * 4 * 64 * 16,
        ),
    ],
)
def test_products_with_a_sparse_factor(name, inputs, flops, read):
    found = ENGINE.cost(Call(f"aten::{name}", "", inputs))
    assert (found.cost.flops, found.cost.bytes_read, found.kind, found.op_class) == (
        flops,
        read,
        "matmul",
        "contraction",
    )


@pytest.mark.parametrize(
    ("beta", "alpha", "added", "read"),
    [(1, 1, 128, 128 * 20), (0.5, 1, 128, 128 * 20), (1, 0, 128, 128 * 20), (0, 1, 0, 128 * 16)],
)
def test_sampled_products_with_beta_0_read_only_the_places(beta, alpha, added, read):
    """Else each of the 128 results has one addition, and its former value of 4 bytes is read with two indices."""
    factors = tensor(64, 16, storage=2), tensor(16, 64, storage=3)
    call = Call("aten::sparse_sampled_addmm", "", (sparse(64, 64, stored=128), *factors, beta, alpha))
    cost = ENGINE.cost(call).cost
    assert (cost.flops, cost.vector_flops) == (2 * 128 * 16, added)
    assert (cost.bytes_read, cost.bytes_written) == (read + 2 * 4 * 64 * 16, 128 * 4)


#: Of a matrix of 64 x 64 that holds 128 numbers, each of 4 bytes with two indices of 8: additions, bytes read, written.
OF_COORDINATES = {
    "clone": (lambda sparse, dense: sparse.clone(), 0, 128 * 20, 128 * 20),
    "copied": (lambda sparse, dense: sparse.copy_(sparse), 0, 128 * 20, 128 * 20),
    "half": (lambda sparse, dense: sparse.mul_(torch.tensor(0.5)), 128, 128 * 4 + 4, 128 * 4),
    "added": (lambda sparse, dense: dense + sparse, 128, 64 * 64 * 4 + 128 * 4, 64 * 64 * 4),
    "added in place": (lambda sparse, dense: dense.add_(sparse), 128, 128 * 8, 128 * 4),
}


@pytest.mark.parametrize(("function", "flops", "read", "written"), OF_COORDINATES.values(), ids=OF_COORDINATES)
def test_an_op_on_a_sparse_matrix_that_asks_nobody_for_its_numbers(function, flops, read, written):
    dense = torch.zeros(64, 64)
    dense.view(-1)[torch.arange(128) * 31] = 1.5
    sparse = dense.to_sparse_coo()
    counted = count(counting.record(Step(run=lambda: function(sparse, dense))), Engine())
    (cost,) = [op.costed.cost for op in counted.ops]
    assert (cost.vector_flops, cost.bytes_read, cost.bytes_written) == (flops, read, written)


def test_the_sparse_gradient_of_a_table_is_rows_of_numbers():
    """SGD takes 5 rows of 8, times the rate, off a table of 100: 2 FLOP for each of 40 numbers."""
    table = torch.nn.Embedding(100, 8, sparse=True)
    optimizer = torch.optim.SGD(table.parameters(), 0.1)
    table(torch.arange(5)).sum().backward()
    counted = count(counting.record(Step(run=optimizer.step)), Engine())
    (update,) = [op.costed.cost for op in counted.ops if op.costed.cost.vector_flops]
    assert (update.vector_flops, update.bytes_read, update.bytes_written) == (2 * 40, 2 * 40 * 4, 40 * 4)


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.mul])
def test_how_often_the_numbers_of_two_sparse_matrices_meet_is_not_known(function):
    sparse, other = torch.eye(8).to_sparse_coo(), torch.ones(8, 8).to_sparse_coo()
    counted = count(counting.record(Step(run=lambda: function(sparse, other))), Engine())
    assert [op.costed.cost.vector_flops for op in counted.ops] == [None]


@pytest.mark.parametrize(("function", "flops"), [(torch.neg, 1), (lambda x: x.pow(3), 2)])
def test_an_op_on_the_elements_of_a_sparse_matrix_works_on_the_numbers_that_it_holds(function, flops):
    """128 of 64 x 64, each of 4 bytes; the third power is two products."""
    dense = torch.zeros(64, 64)
    dense.view(-1)[torch.arange(128) * 31] = 1.5
    numbers = dense.to_sparse_coo().coalesce()
    (op,) = count(counting.record(Step(run=lambda: function(numbers))), Engine()).ops
    cost = op.costed.cost
    assert (cost.vector_flops, cost.bytes_read, cost.bytes_written) == (128 * flops, 128 * 4, 128 * 4)
    assert cost.quality == "assumed"


def test_how_two_sparse_factors_meet_is_data():
    found = ENGINE.cost(Call("aten::mm", "", (sparse(8, 8, stored=9), sparse(8, 8, stored=9))))
    assert (found.cost.quality, found.cost.flops) == ("unknown", None)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_what_a_matrix_of_blocks_holds_is_the_numbers_of_its_blocks():
    """4 blocks of 16 x 16 on a diagonal meet 32 columns."""
    blocks = torch.block_diag(*torch.ones(4, 16, 16)).to_sparse_bsr((16, 16))
    right = torch.randn(64, 32)
    assert only(lambda: blocks @ right).cost.flops == 2 * 4 * 256 * 32
