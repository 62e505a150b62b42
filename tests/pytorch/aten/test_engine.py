"""The cost engine on single calls: FLOPs and bytes by hand, by brute force, by torch's own counter, by another tool."""

from __future__ import annotations

import ast
import csv
import itertools
from dataclasses import replace
from math import prod
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from roofline.core.cost import Cost
from roofline.costs import custom
from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.dtypes import DTYPES, Unsaid
from roofline.errors import InputError
from roofline.importing.work import arguments
from roofline.pytorch.aten import schema
from roofline.pytorch.aten.engine import Costed, Engine

ENGINE = Engine()
NEXT = itertools.count(1)


def contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def tensor(*shape, dtype="float", stride=None, storage=None):
    """A recorded tensor, contiguous and of a storage of its own unless said otherwise."""
    stride = contiguous(shape) if stride is None else stride
    return Tensor(tuple(shape), stride, dtype, next(NEXT) if storage is None else storage)


def costed(name: str, *inputs: Any, overload: str | None = "", outputs=None) -> Costed:
    return ENGINE.cost(Call(f"aten::{name}", overload, inputs, outputs))


def work(name: str, *inputs: Any, overload: str | None = "", outputs=None) -> Cost:
    cost = costed(name, *inputs, overload=overload, outputs=outputs).cost
    assert cost.quality == "exact", cost.note
    return cost


def bytes_of(name, *inputs, overload="", outputs=None):
    cost = work(name, *inputs, overload=overload, outputs=outputs)
    return cost.bytes_read, cost.bytes_written


# Contractions: (FLOP, vector FLOP, bytes read, bytes written). 3x5 times 5x7 is 2*3*5*7 = 210 FLOP; fp32 is 4 bytes.
A, B = (3, 5), (5, 7)


@pytest.mark.parametrize(
    ("name", "shapes", "flops", "vector", "read", "written"),
    [
        ("mm", (A, B), 210, 0, 4 * (15 + 35), 4 * 21),
        # The bias is added once to each of the 3*7 results, and is itself 7 numbers.
        ("addmm", ((7,), A, B), 210, 21, 4 * (7 + 15 + 35), 4 * 21),
        ("bmm", ((2, *A), (2, *B)), 2 * 210, 0, 2 * 4 * (15 + 35), 2 * 4 * 21),
        ("baddbmm", ((2, 3, 7), (2, *A), (2, *B)), 2 * 210, 42, 2 * 4 * (21 + 15 + 35), 2 * 4 * 21),
        # Two products summed into one result: the sum over the batch is part of the 2*210.
        ("addbmm", ((3, 7), (2, *A), (2, *B)), 2 * 210, 21, 4 * 21 + 2 * 4 * (15 + 35), 4 * 21),
        ("mv", (A, (5,)), 2 * 15, 0, 4 * (15 + 5), 4 * 3),
        ("addmv", ((3,), A, (5,)), 2 * 15, 3, 4 * (3 + 15 + 5), 4 * 3),
        ("dot", ((5,), (5,)), 2 * 5, 0, 4 * 10, 4),
        ("vdot", ((5,), (5,)), 2 * 5, 0, 4 * 10, 4),
        ("addr", ((3, 4), (3,), (4,)), 2 * 12, 12, 4 * (12 + 3 + 4), 4 * 12),
        # x [2, 3, 5], weight [7, 5]: six rows.
        ("linear", ((2, *A), (7, 5), (7,)), 2 * 6 * 7 * 5, 42, 4 * (30 + 35 + 7), 4 * 42),
        ("linear", ((2, *A), (7, 5)), 2 * 6 * 7 * 5, 0, 4 * (30 + 35), 4 * 42),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_products(name, shapes, flops, vector, read, written):
    found = costed(name, *[tensor(*shape) for shape in shapes])
    cost = found.cost
    assert (cost.model_flops, cost.flops, cost.useful_flops) == (flops, flops, flops)
    assert (cost.vector_flops, cost.bytes_read, cost.bytes_written) == (vector, read, written)
    assert (found.op_class, found.dtype, found.cost.quality) == ("contraction", "fp32", "exact")
    assert found.kind == "matmul"


def test_a_bias_that_is_scaled_to_nothing_is_neither_added_nor_read():
    cost = work("addmm", tensor(7), tensor(*A), tensor(*B), 0, 1)
    assert (cost.flops, cost.vector_flops, cost.bytes_read) == (210, 0, 4 * (15 + 35))


def test_an_activation_in_the_epilogue():
    relu = work("_addmm_activation", tensor(7), tensor(*A), tensor(*B), 1, 1, False)
    gelu = work("_addmm_activation", tensor(7), tensor(*A), tensor(*B), 1, 1, True)
    assert (relu.flops, relu.vector_flops) == (210, 21 + 21)
    assert (gelu.flops, gelu.vector_flops, gelu.functions) == (210, 21 + 4 * 21, {"erf": 21})


def test_an_integer_product_is_matrix_work():
    int8 = [tensor(32, 32, dtype="signed char") for _ in range(2)]
    found = costed("_int_mm", *int8)
    # 2*32^3 multiply-adds; 2 * 1024 bytes in, 1024 int32 out.
    assert (found.cost.flops, found.cost.bytes_read, found.cost.bytes_written) == (65536, 2048, 4096)
    assert found.dtype == "int8"


def test_two_products_that_inductor_adds_in_one_op():
    inputs = tensor(*A), tensor(*B), tensor(*A), tensor(*B), tensor(3, 7)
    found = ENGINE.cost(Call("inductor::_mm_plus_mm", "", inputs, None))
    # 2*3*5*7 = 210 FLOP each, and one addition per result.
    assert (found.cost.flops, found.cost.vector_flops, found.op_class) == (2 * 210, 21, "contraction")


def test_types_of_inputs_and_output():
    half = [tensor(*shape, dtype="c10::Half") for shape in (A, B)]
    found = costed("mm", *half, outputs=(tensor(3, 7, dtype="c10::Half"),))
    assert (found.dtype, found.output) == ("fp16", "fp16")
    assert found.cost.bytes_read == 2 * (15 + 35)


# Convolutions, against every pair of output position and kernel tap tried out.


def brute_force(size, kernel, stride, padding, dilation, outputs):
    """Pairs (output position, tap) inside the input, in all dimensions together."""
    pairs = 0
    for position in itertools.product(*map(range, outputs)):
        for tap in itertools.product(*map(range, kernel)):
            at = [o * s - p + t * d for o, s, p, t, d in zip(position, stride, padding, tap, dilation, strict=True)]
            pairs += all(0 <= a < n for a, n in zip(at, size, strict=True))
    return pairs


def convolution_call(x, weight, bias, stride, padding, dilation, transposed, groups, name="convolution"):
    rest = (stride, padding, dilation, transposed, (0,) * len(stride), groups)
    return costed(name, tensor(*x), tensor(*weight), bias, *rest)


def convolved(size, kernel, stride, padding, dilation):
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


SPATIAL = [
    ((16, 16), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((9, 7), (3, 2), (2, 1), (1, 0), (1, 2)),
    ((8, 8), (5, 5), (3, 3), (4, 4), (2, 2)),
    ((7,), (3,), (1,), (2,), (1,)),
    ((5, 4, 6), (2, 3, 1), (1, 2, 1), (1, 1, 0), (2, 1, 1)),
]


@pytest.mark.parametrize("spatial", SPATIAL)
@pytest.mark.parametrize(("channels_in", "channels_out", "groups"), [(4, 6, 1), (4, 6, 2), (4, 4, 4), (4, 8, 4)])
def test_convolution(spatial, channels_in, channels_out, groups):
    size, kernel, stride, padding, dilation = spatial
    outputs = convolved(*spatial)
    pairs = brute_force(*spatial, outputs)
    found = convolution_call(
        (2, channels_in, *size),
        (channels_out, channels_in // groups, *kernel),
        None,
        stride,
        padding,
        dilation,
        False,
        groups,
    )
    assert found.cost.flops == 2 * 2 * channels_out * (channels_in // groups) * pairs
    assert found.cost.bytes_written == 4 * 2 * channels_out * prod(outputs)
    assert (found.kind, found.op_class, found.cost.quality) == ("convolution", "contraction", "exact")


@pytest.mark.parametrize("spatial", SPATIAL)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(spatial, groups):
    """Each input position reaches the output positions of its taps: the pairs of the convolution that goes back."""
    small, kernel, stride, padding, dilation = spatial
    large = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, k, s, p, d in zip(small, kernel, stride, padding, dilation, strict=True)
    )
    if min(large) < 1:
        pytest.skip("no such output")
    pairs = brute_force(large, kernel, stride, padding, dilation, small)
    found = convolution_call((2, 4, *small), (4, 6 // groups, *kernel), None, stride, padding, dilation, True, groups)
    assert found.cost.flops == 2 * 2 * 4 * (6 // groups) * pairs
    assert found.cost.bytes_written == 4 * 2 * 6 * prod(large)


def test_the_convolution_of_the_design():
    # 3x3, pad 1, 16x16: in one dimension 16*3 - 2 = 46 of 48 taps are inside. 2 * 8*8 * 46^2 = 270,848 (padded ones
    # counted: 2 * 8*8 * 48^2 = 294,912). The bias is added to 8*16*16 results.
    found = convolution_call((1, 8, 16, 16), (8, 8, 3, 3), tensor(8), (1, 1), (1, 1), (1, 1), False, 1).cost
    assert (found.flops, found.vector_flops) == (270_848, 8 * 256)
    assert found.bytes_read == 4 * (8 * 256 + 8 * 8 * 9 + 8)


@pytest.mark.parametrize(
    ("mask", "products", "summed", "read", "written"),
    [
        # gradient 1024, input 1024, weight 144 numbers; the bias gradient sums 256 positions into each of 4 channels.
        ((True, True, True), 2, 1024 - 4, 1024 + 1024 + 144, 1024 + 144 + 4),
        ((True, True, False), 2, 0, 1024 + 1024 + 144, 1024 + 144),
        ((True, False, False), 1, 0, 1024 + 144, 1024),
        ((False, True, False), 1, 0, 1024 + 1024, 144),
        ((False, False, True), 0, 1024 - 4, 1024, 4),
    ],
)
def test_convolution_backward_does_what_its_mask_says(mask, products, summed, read, written):
    given = (tensor(1, 4, 16, 16), tensor(1, 4, 16, 16), tensor(4, 4, 3, 3), (4,), (1, 1), (1, 1), (1, 1), False)
    found = costed("convolution_backward", *given, (0, 0), 1, mask)
    # Either gradient pairs what the forward pass pairs: 2 * 4*4 * 46^2.
    assert found.cost.flops == products * 2 * 16 * 46**2
    assert found.cost.vector_flops == summed
    assert (found.cost.bytes_read, found.cost.bytes_written) == (4 * read, 4 * written)
    assert found.kind == "convolution_backward"


# Attention. Batch 2, 4 heads, 6 queries, 9 keys, width 8: one product is 2 * 2*4 * 6*9 * 8 = 6,912 FLOP.
PRODUCT = 2 * 2 * 4 * 6 * 9 * 8
SCORES = 2 * 4 * 6 * 9
Q, KV = (2, 4, 6, 8), (2, 4, 9, 8)
# Query i sees keys 0..i: 1 + 2 + ... + 6 = 21 of 54. Flash-attention's mask ends at the lower right corner: the last
# query sees all keys, query i keys 0..i+3: 4 + 5 + ... + 9 = 39.
CAUSAL = 21
LOWER_RIGHT = 39
LOWER_RIGHT_OPS = ("_scaled_dot_product_flash_attention", "_flash_attention_forward")


def qkv(dtype="float", swap=False):
    shapes = [(b, n, h, w) if swap else (b, h, n, w) for b, h, n, w in (Q, KV, KV)]
    return [tensor(*shape, dtype=dtype) for shape in shapes]


FORWARDS = {
    "_scaled_dot_product_flash_attention_for_cpu": lambda causal: (*qkv(), 0.0, causal, None, None),
    "_scaled_dot_product_flash_attention": lambda causal: (*qkv("c10::Half"), 0.0, causal, False, None),
    "_scaled_dot_product_efficient_attention": lambda causal: (*qkv(), None, True, 0.0, causal, None),
    "_scaled_dot_product_cudnn_attention": lambda causal: (*qkv("c10::Half"), None, True, 0.0, causal, False, None),
    "_scaled_dot_product_fused_attention_overrideable": lambda causal: (*qkv("c10::Half"), None, 0.0, causal),
    "_flash_attention_forward": lambda causal: (*qkv("c10::Half", True), None, None, 6, 9, 0.0, causal, False),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", FORWARDS)
def test_fused_attention(name, causal):
    found = costed(name, *FORWARDS[name](causal))
    cost = found.cost
    assert (cost.model_flops, cost.flops) == (2 * PRODUCT, 2 * PRODUCT)
    pairs = (LOWER_RIGHT if name in LOWER_RIGHT_OPS else CAUSAL) if causal else 54
    assert cost.useful_flops == 2 * PRODUCT * pairs / 54
    assert cost.functions == {"exp": 8 * pairs}
    assert (found.op_class, found.kind) == ("attention", "attention")


def test_attention_moves_its_tensors_and_no_scores():
    cost = work("_scaled_dot_product_flash_attention_for_cpu", *qkv(), 0.0, False, None, None)
    q, kv = 4 * prod(Q), 4 * prod(KV)
    assert cost.bytes_read == q + 2 * kv
    assert cost.bytes_written == q + 4 * 2 * 4 * 6  # and the logsumexp of each query


def test_an_additive_mask_is_one_addition_per_score_and_is_read():
    name = "_scaled_dot_product_efficient_attention"
    plain = work(name, *qkv(), None, True, 0.0, False, None)
    masked = work(name, *qkv(), tensor(2, 4, 6, 9), True, 0.0, False, None)
    assert masked.vector_flops == plain.vector_flops + SCORES
    assert masked.bytes_read == plain.bytes_read + 4 * SCORES


BACKWARDS = {
    "_scaled_dot_product_flash_attention_for_cpu_backward": lambda causal: (
        *(tensor(*Q), *qkv(), tensor(*Q), tensor(2, 4, 6), 0.0, causal, None, None),
    ),
    "_scaled_dot_product_flash_attention_backward": lambda causal: (
        *(tensor(*Q, dtype="c10::Half"), *qkv("c10::Half"), tensor(*Q, dtype="c10::Half"), tensor(2, 4, 6)),
        *(None, None, 6, 9, 0.0, causal, tensor(dtype="long"), tensor(dtype="long"), None),
    ),
    "_scaled_dot_product_efficient_attention_backward": lambda causal: (
        *(tensor(*Q), *qkv(), None, tensor(*Q), tensor(2, 4, 32), tensor(dtype="long"), tensor(dtype="long")),
        *(0.0, (True, True, True, False), causal, None),
    ),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", BACKWARDS)
def test_fused_attention_backward(name, causal):
    """Four products are asked for; the scores are computed again, which is the fifth."""
    found = costed(name, *BACKWARDS[name](causal))
    assert (found.cost.model_flops, found.cost.flops) == (4 * PRODUCT, 5 * PRODUCT)
    pairs = (LOWER_RIGHT if name == "_scaled_dot_product_flash_attention_backward" else CAUSAL) if causal else 54
    assert found.cost.useful_flops == 5 * PRODUCT * pairs / 54
    # An undefined tensor, such as cum_seq_q, is a fact and no assumption.
    assert (found.cost.quality, found.op_class, found.kind) == ("exact", "attention", "attention_backward")


@pytest.mark.parametrize(("kind", "pairs"), [(0, 54), (1, CAUSAL), (2, LOWER_RIGHT)])
def test_memory_efficient_attention_has_two_causal_masks(kind, pairs):
    found = work("_efficient_attention_forward", *qkv(swap=True), *[None] * 5, 0.0, kind, True, None, None, None)
    assert (found.flops, found.useful_flops) == (2 * PRODUCT, 2 * PRODUCT * pairs / 54)


def test_packed_sequences_attend_within_each():
    """Two sequences of 6 queries and 9 keys laid end to end: the pairs of a batch of two, not of 12 and 18."""
    q, k, v = [tensor(2 * n, 4, 8, dtype="c10::Half") for n in (6, 9, 9)]
    sums = tensor(3, dtype="int"), tensor(3, dtype="int")
    found = costed("_flash_attention_forward", q, k, v, *sums, 6, 9, 0.0, True, False).cost
    assert (found.flops, found.useful_flops, found.quality) == (2 * PRODUCT, 2 * PRODUCT * LOWER_RIGHT / 54, "exact")
    # Longer than the mean of six: their lengths differ, and no trace says by how much.
    found = costed("_flash_attention_forward", q, k, v, *sums, 7, 9, 0.0, False, False).cost
    assert (found.flops, found.quality, found.note) == (2 * PRODUCT, "assumed", "sequences of equal length")


def test_grouped_queries_multiply_as_many_scores_as_there_are_query_heads():
    q, k, v = tensor(2, 4, 6, 8, dtype="c10::Half"), *[tensor(2, 2, 9, 8, dtype="c10::Half") for _ in range(2)]
    cost = work("_scaled_dot_product_flash_attention", q, k, v, 0.0, False, False, None)
    assert cost.flops == 2 * PRODUCT


# Vector work per element, of 32 rows of 64: n = 2048 elements. (FLOP, functions).
N = 32 * 64
ROW = (32, 64)


def x(dtype="float"):
    return tensor(*ROW, dtype=dtype)


VECTOR = {
    # 0.5 x (1 + erf(x / sqrt 2)): multiply, multiply, add, multiply.
    "gelu": ((x(), "none"), "", 4 * N, {"erf": N}),
    # 0.5 x (1 + tanh(b (x + k x^3))): x^2, x^3, k*, +, b*, 1 +, 0.5 x, *.
    "gelu, tanh": ((x(), "tanh"), "", 8 * N, {"tanh": N}),
    "gelu_backward": ((x(), x(), "none"), "", 9 * N, {"erf": N, "exp": N}),
    # maximum and sum reduce 64 to 1 per row; subtract; divide.
    "_softmax": ((x(), -1, False), "", 2 * (N - 32) + 2 * N, {"exp": N}),
    # y * (g - sum(g * y)): multiply, reduce, and multiply-subtract as two.
    "_softmax_backward_data": ((x(), x(), -1, 6), "", 3 * N + (N - 32), {}),
    # maximum, subtract, sum, subtract the log of it.
    "_log_softmax": ((x(), -1, False), "", 2 * (N - 32) + 2 * N, {"exp": N, "log": 32}),
    "_log_softmax_backward_data": ((x(), x(), -1, 6), "", (N - 32) + 2 * N, {"exp": N}),
    # Mean (N), variance (2N + N), add eps, subtract, multiply, scale, shift; one rsqrt per row.
    "native_layer_norm": ((x(), (64,), tensor(64), tensor(64), 1e-5), "", 8 * N + 32, {"rsqrt": 32}),
    "native_layer_norm, plain": ((x(), (64,), None, None, 1e-5), "", 6 * N + 32, {"rsqrt": 32}),
    "native_dropout": ((x(), 0.1, True), "", 2 * N, {"random": N}),
    "native_dropout, off": ((x(), 0.1, False), "", 0, {}),
    "native_dropout_backward": ((x(), x("bool"), 1.1), "", 2 * N, {}),
    "bernoulli_": ((x(), 0.9, None), "float", 0, {"random": N}),
    "tanh": ((x(),), "", 0, {"tanh": N}),
    "tanh_backward": ((x(), x()), "", 3 * N, {}),  # g * (1 - y * y)
    "silu": ((x(),), "", N, {"sigmoid": N}),
    "relu": ((x(),), "", N, {}),  # a maximum
    "threshold_backward": ((x(), x(), 0), "", 0, {}),  # a selection
    "sum": ((x(), (0,), False, None), "dim_IntList", N - 64, {}),
    "mean": ((x(), (-1,), True, None), "dim", N - 32 + 32, {}),
    "amax": ((x(), (1,), False), "", N - 32, {}),
    "argmax": ((x(), None, False), "", 0, {}),
    "cumsum": ((x(), 1, None), "", N - 32, {}),
    "linalg_vector_norm": ((x(), 2, None, False, None), "", N + N - 1, {"sqrt": 1}),
    "mse_loss": ((x(), x(), 1), "", 3 * N, {}),  # subtract, square, N - 1 additions, one division
    "add": ((x(), x(), 1), "Tensor", N, {}),
    "add, alpha": ((x(), x(), 2), "Tensor", 2 * N, {}),
    "addcmul": ((x(), x(), x(), 1), "", 2 * N, {}),
    "addcdiv_": ((x(), x(), x(), -0.1), "", 3 * N, {}),  # and by a factor that is not 1
    "lerp_": ((x(), x(), 0.1), "Scalar", 3 * N, {}),
    "clamp": ((x(), 0, 1), "", 2 * N, {}),
    "clamp, below": ((x(), 0, None), "", N, {}),
    "clamp_, above": ((x(), None, 1), "", N, {}),
    "clamp, by numbers": ((x(), x(), None), "Tensor", N, {}),
    "celu": ((x(), 1.0), "", 3 * N, {"expm1": N}),  # as elu: times 1 / alpha, alpha and 1
    "celu_": ((x(), 0.5), "", 3 * N, {"expm1": N}),
    "elu": ((x(), 1, 1, 1), "", 3 * N, {"expm1": N}),
    "where": ((x("bool"), x(), x()), "self", 0, {}),
    "eq": ((x(), 0), "Scalar", 0, {}),
    "copy_": ((x(), x(), False), "", 0, {}),
    "exp": ((x(),), "", 0, {"exp": N}),
    # Constant exponents that ATen turns into what they are.
    "pow, 2": ((x(), 2), "Tensor_Scalar", N, {}),
    "pow, 3": ((x(), 3), "Tensor_Scalar", 2 * N, {}),
    "pow, 1": ((x(), 1), "Tensor_Scalar", 0, {}),
    "pow, -1": ((x(), -1), "Tensor_Scalar", N, {}),
    "pow, 0.5": ((x(), 0.5), "Tensor_Scalar", 0, {"sqrt": N}),
    "pow, -0.5": ((x(), -0.5), "Tensor_Scalar", 0, {"rsqrt": N}),
    "pow, 2.5": ((x(), 2.5), "Tensor_Scalar", 0, {"pow": N}),
    "pow, tensor": ((x(), x()), "Tensor_Tensor", 0, {"pow": N}),
    "pow_, 2": ((x(), 2), "Scalar", N, {}),
    "std": ((x(), (1,), 1, False), "correction", 4 * N, {"sqrt": 32}),
    # Windows of 2x2 into 8x8 of 16x16: 3 comparisons, or 3 additions and a division.
    "max_pool2d_with_indices": ((tensor(1, 1, 16, 16), (2, 2), (2, 2), (0, 0), (1, 1), False), "", 3 * 64, {}),
    "avg_pool2d": ((tensor(1, 1, 16, 16), (2, 2), (2, 2), (0, 0), False, True, None), "", 4 * 64, {}),
    "avg_pool2d_backward": (
        (tensor(1, 1, 8, 8), tensor(1, 1, 16, 16), (2, 2), (2, 2), (0, 0), False, True, None),
        *("", (1 + 4) * 64, {}),
    ),
}


@pytest.mark.parametrize("label", VECTOR)
def test_vector_work(label):
    inputs, overload, flops, functions = VECTOR[label]
    found = costed(label.partition(",")[0], *inputs, overload=overload)
    assert found.cost.quality == "exact"
    assert (found.cost.vector_flops, dict(found.cost.functions)) == (flops, functions)
    assert (found.cost.flops, found.cost.int_ops) == (0, 0)


def test_gradients_of_norms_read_neither_the_bias_nor_running_statistics():
    mean, deviation = tensor(32, 1), tensor(32, 1)
    given = x(), x(), (64,), mean, deviation, tensor(64), tensor(64), (True,) * 3
    found = costed("native_layer_norm_backward", *given)
    assert found.cost.bytes_read == 4 * (2 * N + 2 * 32 + 64)
    found = costed("miopen_batch_norm_backward", x(), x(), *[tensor(64) for _ in range(5)], 1e-5)
    assert found.cost.bytes_read == 4 * (2 * N + 3 * 64)


def test_batch_norm_takes_as_much_as_layer_norm():
    n, channels = 2 * 4 * 25, 4
    given = tensor(2, 4, 5, 5), tensor(4), tensor(4), tensor(4), tensor(4)
    cost = work("native_batch_norm", *given, True, 0.1, 1e-5)
    # 8 per element as above, and per channel: add eps, and the two running averages (3 + 4 with the unbiased one).
    assert 8 * n <= cost.vector_flops <= 8 * n + 10 * channels
    assert cost.functions == {"rsqrt": 4}
    assert work("cudnn_batch_norm", *given, True, 0.1, 1e-5).vector_flops == 8 * n


@pytest.mark.parametrize(
    ("name", "inputs", "overload", "operations"),
    [
        ("add", (x("long"), x("long"), 1), "Tensor", N),
        ("sum", (x("long"), None), "", N - 1),
        ("bitwise_and", (x("long"), x("long")), "Tensor", N),
        ("bitwise_right_shift", (x("long"), 4), "Tensor_Scalar", N),
        ("__lshift__", (x("long"), 4), "Scalar", N),
        ("logical_and", (x("bool"), x("bool")), "", N),
        ("eq", (x("long"), 0), "Scalar", 0),
        ("index_add_", (x("long"), 0, tensor(5, dtype="long"), tensor(5, 64, dtype="long"), 1), "", 5 * 64),
    ],
)
def test_integers_are_counted_apart(name, inputs, overload, operations):
    cost = work(name, *inputs, overload=overload)
    assert (cost.int_ops, cost.vector_flops) == (operations, 0)


# Bytes. S is the size of the 32x64 tensor.
S = 4 * N
LONG = 8


@pytest.mark.parametrize(
    ("name", "inputs", "overload", "read", "written", "inplace"),
    [
        ("add", (x(), x(), 1), "Tensor", 2 * S, S, False),
        ("add_", (x(), x(), 1), "Tensor", 2 * S, S, True),
        ("mul_", (x(), 2.0), "Scalar", S, S, True),
        ("mul", (x(), tensor()), "Tensor", S + 4, S, False),
        # A row that is broadcast is read once, expanded or not.
        ("add", (x(), tensor(64), 1), "Tensor", S + 4 * 64, S, False),
        ("add", (x(), tensor(32, 64, stride=(0, 1)), 1), "Tensor", S + 4 * 64, S, False),
        ("copy_", (x(), tensor(32, 64, stride=(0, 1)), False), "", 4 * 64, S, False),
        # Destinations that are only written.
        ("mm", (tensor(*A), tensor(*B), tensor(3, 7)), "out", 4 * 50, 4 * 21, False),
        ("add", (x(), x(), 1, x()), "out", 2 * S, S, False),
        ("copy_", (x(), x(), False), "", S, S, False),
        ("fill_", (x(), 0), "Scalar", 0, S, False),
        ("zero_", (x(),), "", 0, S, False),
        ("normal_", (x(), 0.0, 1.0, None), "", 0, S, False),
        ("zeros_like", (x(), None, None, None, None, None), "", 0, S, False),
        ("full", ((3, 4), 1.0, None, None, None, None), "", 0, 4 * 12, False),
        # Types change sizes.
        ("_to_copy", (x(), 5, None, None, None, False, None), "", S, S // 2, False),
        ("eq", (x(), 0), "Scalar", S, N, False),
        ("cat", ((x(), x()), 0), "", 2 * S, 2 * S, False),
        # A slice of 10 columns is 320 elements of its storage, wherever they lie.
        ("sum", (tensor(32, 10, stride=(64, 1)), None), "", 4 * 320, 4, False),
        ("slice_backward", (tensor(2, 64), (32, 64), 0, 0, 2, 1), "", 4 * 128, S, False),
        # Rows of tables: 20 of 1000 rows of 16; no more than there are.
        ("embedding", (tensor(1000, 16), tensor(4, 5, dtype="long"), -1, False, False), "", 20 * 72, 20 * 64, False),
        ("embedding", (tensor(3, 16), tensor(4, 5, dtype="long"), -1, False, False), "", 192 + 160, 20 * 64, False),
        ("index_select", (x(), 0, tensor(5, dtype="long")), "", 5 * (256 + 8), 5 * 256, False),
        ("index", (x(), (tensor(5, dtype="long"),)), "Tensor", 5 * (256 + 8), 5 * 256, False),
        ("index", (x(), (None, tensor(5, dtype="long"))), "Tensor", 5 * (128 + 8), 5 * 128, False),
        ("gather", (x(), 1, tensor(32, 2, dtype="long"), False), "", 64 * (4 + 8), 64 * 4, False),
        # The gradient of a table is dense: written once whole.
        (
            *("embedding_dense_backward", (tensor(4, 5, 16), tensor(4, 5, dtype="long"), 1000, -1, False), ""),
            *(20 * (64 + 8), 1000 * 64, False),
        ),
        # Scatters touch their rows, and read them where they add.
        ("index_put_", (x(), (tensor(5, dtype="long"),), tensor(5, 64), False), "", 5 * 264, 5 * 256, False),
        ("index_put_", (x(), (tensor(5, dtype="long"),), tensor(), False), "", 5 * 8 + 4, 5 * 256, False),
        ("index_put_", (x(), (tensor(5, dtype="long"),), tensor(5, 64), True), "", 5 * 520, 5 * 256, True),
        ("index_put_", (x(), (None, tensor(5, dtype="long")), tensor(), False), "", 5 * 8 + 4, 5 * 128, False),
        ("index_copy_", (x(), 0, tensor(5, dtype="long"), tensor(5, 64)), "", 5 * 264, 5 * 256, False),
        ("index_add_", (x(), 0, tensor(5, dtype="long"), tensor(5, 64), 1), "", 5 * 520, 5 * 256, True),
        ("index_fill_", (x(), 1, tensor(2, dtype="long"), 0.0), "int_Scalar", 16, 2 * 128, False),
        ("scatter_", (x(), 1, tensor(32, 2, dtype="long"), tensor(32, 2)), "src", 64 * 12, 256, False),
        ("scatter_", (x(), 1, tensor(32, 2, dtype="long"), tensor(32, 9)), "src", 64 * 12, 256, False),
        ("scatter_", (x(), 1, tensor(32, 2, dtype="long"), 1.0), "value", 64 * 8, 256, False),
        ("scatter_add_", (x(), 1, tensor(32, 2, dtype="long"), tensor(32, 2)), "", 64 * 16, 256, True),
        # Out of place the whole target is copied.
        ("scatter_add", (x(), 1, tensor(32, 2, dtype="long"), tensor(32, 2)), "", S + 64 * 12, S, False),
        # One logit per row is picked; its gradient is written whole. Both know the total weight.
        ("nll_loss_forward", (tensor(32, 10), tensor(32, dtype="long"), None, 1, -100), "", 32 * 12, 8, False),
        (
            *("nll_loss_backward", (tensor(), tensor(32, 10), tensor(32, dtype="long"), None, 1, -100, tensor()), ""),
            *(4 + 32 * 8 + 4, 4 * 320, False),
        ),
        # Only the shape of the input matters here.
        (
            "avg_pool2d_backward",
            (tensor(1, 1, 8, 8), tensor(1, 1, 16, 16), (2, 2), (2, 2), (0, 0), False, True, None),
            *("", 4 * 64, 4 * 256, False),
        ),
        ("_foreach_add_", ((x(), tensor(5)), (x(), tensor(5)), 1), "List", 2 * (S + 20), S + 20, True),
        ("_foreach_mul_", ((x(), tensor(5)), 0.9), "Scalar", S + 20, S + 20, True),
        ("_foreach_zero_", ((x(), tensor(5)),), "", 0, S + 20, False),
        ("_foreach_copy_", ((x(),), (x(),), False), "", S, S, False),
        ("_foreach_norm", ((x(), tensor(5)), 2, None), "Scalar", S + 20, 8, False),
    ],
)
def test_bytes(name, inputs, overload, read, written, inplace):
    found = costed(name, *inputs, overload=overload)
    assert found.cost.quality == "exact", found.cost.note
    assert (found.cost.bytes_read, found.cost.bytes_written) == (read, written)
    assert found.inplace == inplace
    assert sum(size for _, _, size in found.reads) == read
    assert sum(size for _, _, size in found.writes) == written


def test_an_argument_given_twice_is_read_once():
    one = x()
    assert bytes_of("add", one, one, 1, overload="Tensor") == (S, S)
    assert bytes_of("cat", (one, one), 0) == (S, 2 * S)
    assert bytes_of("add_", one, one, 1, overload="Tensor") == (S, S)
    # Two tensors of unknown identity are two.
    two = Tensor(ROW, (64, 1), "float"), Tensor(ROW, (64, 1), "float")
    assert bytes_of("add", *two, 1, overload="Tensor") == (2 * S, S)


@pytest.mark.parametrize(
    ("name", "inputs", "overload"),
    [
        ("view", (x(), (64, 32)), ""),
        ("_unsafe_view", (x(), (64, 32)), ""),
        ("_reshape_alias", (x(), (64, 32), (32, 1)), ""),
        ("t", (x(),), ""),
        ("transpose", (x(), 0, 1), "int"),
        ("expand", (tensor(1, 64), (32, 64), False), ""),
        ("slice", (x(), 0, 0, 10, 1), "Tensor"),
        ("as_strided", (tensor(2, 2, stride=(8, 1)), (100,), (1,), None), ""),  # beyond what is recorded of it
        ("split", (x(), 16, 0), "Tensor"),
        ("unbind", (tensor(2**39, 2), 0), "int"),  # would be 2^39 tensors
        ("detach", (x(),), ""),
        # In place, too: `torch.tensor(list)` ends with the first.
        ("detach_", (x(),), ""),
        ("t_", (x(),), ""),
        ("unsqueeze_", (x(), 0), ""),
        ("contiguous", (x(), 0), ""),
        ("empty_like", (x(), None, None, None, None, None), ""),
        ("set_", (x(), x()), "source_Tensor"),
        ("_fused_sdp_choice", (*qkv(), None, 0.0, False), ""),
    ],
)
def test_views_and_questions_cost_nothing(name, inputs, overload):
    found = costed(name, *inputs, overload=overload)
    assert found.view
    assert found.cost == Cost()


def test_what_looks_like_a_view_and_copies():
    turned = tensor(32, 64, stride=(1, 32))
    for name, inputs in (("contiguous", (turned, 0)), ("reshape", (turned, (N,)))):
        found = costed(name, *inputs)
        assert not found.view
        assert (found.cost.bytes_read, found.cost.bytes_written) == (S, S)


# Optimizers: 10 + 20 parameters.


def thirty():
    return tensor(10), tensor(20)


def test_fused_adamw_reads_and_writes_each_state_once():
    steps = tensor(), tensor()
    given = thirty(), thirty(), thirty(), thirty(), (), steps, 0.001, 0.9, 0.999, 0.01, 1e-8, False, False, None, None
    found = costed("_fused_adamw_", *given)
    # Read p, g, m, v and two steps; write p, m, v. (The steps were counted up by a `_foreach_add_` before.)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (4 * (4 * 30 + 2), 4 * 3 * 30)
    assert (found.cost.vector_flops, found.cost.functions) == (13 * 30, {"sqrt": 30})
    assert (found.op_class, found.inplace) == ("optimizer", True)


def test_fused_adamw_with_amsgrad_and_a_gradient_scale():
    steps = tensor(), tensor()
    settings = 0.001, 0.9, 0.999, 0.01, 1e-8
    amsgrad = bytes_of(
        "_fused_adamw_", *(thirty() for _ in range(4)), thirty(), steps, *settings, True, False, None, None
    )
    assert amsgrad == (4 * (5 * 30 + 2), 4 * 4 * 30)
    scaled = bytes_of(
        "_fused_adamw_", *(thirty() for _ in range(4)), (), steps, *settings, False, False, tensor(), None
    )
    assert scaled == (4 * (4 * 30 + 2 + 1), 4 * 4 * 30)  # the gradients are unscaled in place


def test_fused_adam_and_sgd():
    adam = (thirty(), thirty(), thirty(), thirty(), (), (tensor(), tensor()), 0.001, 0.9, 0.999)
    assert work("_fused_adam_", *adam, 0.0, 1e-8, False, False, None, None).vector_flops == 12 * 30
    # L2 decay: g = g + wd p.
    assert work("_fused_adam_", *adam, 0.1, 1e-8, False, False, None, None).vector_flops == 14 * 30
    sgd = work("_fused_sgd_", thirty(), thirty(), thirty(), 0.0, 0.9, 0.1, 0.0, False, False, False, None, None)
    assert (sgd.vector_flops, sgd.bytes_read, sgd.bytes_written) == (4 * 30, 4 * 90, 4 * 60)


def test_list_forms_are_their_element_forms_over_all_elements():
    many = (x(), tensor(5))
    assert work("_foreach_add_", many, (x(), tensor(5)), 1, overload="List").vector_flops == N + 5
    assert work("_foreach_add_", many, (x(), tensor(5)), 2, overload="List").vector_flops == 2 * (N + 5)
    assert work("_foreach_sqrt", many).functions == {"sqrt": N + 5}
    assert work("_foreach_addcdiv_", (x(),), (x(),), (x(),), (-0.1,), overload="ScalarList").vector_flops == 3 * N
    assert work("_foreach_addcmul_", (x(),), (x(),), (x(),), 1, overload="Scalar").vector_flops == 2 * N
    norms = costed("_foreach_norm", many, 2, None, overload="Scalar")
    # Squares and additions: 2n - 1 for each of the two.
    assert (norms.cost.vector_flops, norms.cost.functions) == (2 * (N + 5) - 2, {"sqrt": 2})
    assert norms.op_class == "reduction"
    unscale = costed("_amp_foreach_non_finite_check_and_unscale_", many, tensor(), tensor())
    assert (unscale.cost.vector_flops, unscale.op_class) == (N + 5, "optimizer")


def test_additions_of_scatters_are_counted():
    index = tensor(5, dtype="long")
    for name, inputs in {
        "index_add_": (x(), 0, index, tensor(5, 64), 1),
        "index_put_": (x(), (index,), tensor(5, 64), True),
        "index_put": (x(), (index,), tensor(5, 64), True),
        "scatter_add": (x(), 1, tensor(5, 64, dtype="long"), tensor(5, 64)),
        "embedding_dense_backward": (tensor(5, 64), index, 32, -1, False),
    }.items():
        assert work(name, *inputs).vector_flops == 5 * 64, name
    assert work("index_put_", x(), (index,), tensor(5, 64), False).vector_flops == 0
    assert work("index_add", x(), 0, index, tensor(5, 64), 0.5).vector_flops == 2 * 5 * 64  # times a factor, and added
    # A mean divides what was added up: each of the 32 x 64 numbers, also where nothing was added to it.
    places, values = tensor(5, 64, dtype="long"), tensor(5, 64)
    for name, middle, overload in (("scatter_reduce", places, "two"), ("index_reduce", index, "")):
        means, sums = (
            work(name, x(), 0, middle, values, reduce, True, overload=overload).vector_flops
            for reduce in ("mean", "prod")
        )
        assert (means, sums) == (5 * 64 + 32 * 64, 5 * 64)


BAG = (tensor(500, 32), tensor(30, dtype="long"), tensor(10, dtype="long"))
LOOKED_UP, REDUCED, PLACES = (
    30 * 32,
    10 * 32,
    8 * (30 + 10),
)  # elements of 30 rows of 32, of 10 bags, and bytes of both indices


@pytest.mark.parametrize(
    ("mode", "weights", "vector", "read", "written"),
    [
        (0, None, LOOKED_UP - REDUCED, 4 * LOOKED_UP + PLACES, 4 * REDUCED),
        (1, None, LOOKED_UP, 4 * LOOKED_UP + PLACES, 4 * REDUCED),  # a division per result
        (2, None, LOOKED_UP - REDUCED, 4 * LOOKED_UP + PLACES, (4 + 8) * REDUCED),  # and which row was the largest
        (0, tensor(30), 2 * LOOKED_UP - REDUCED, 4 * LOOKED_UP + PLACES + 4 * 30, 4 * REDUCED),
    ],
)
def test_bags_of_embeddings(mode, weights, vector, read, written):
    for name in ("_embedding_bag", "_embedding_bag_forward_only"):
        found = costed(name, *BAG, False, mode, False, weights, False, -1)
        cost = found.cost
        assert (cost.vector_flops, cost.bytes_read, cost.bytes_written) == (vector, read, written)
        assert (found.op_class, cost.quality, cost.model_flops) == ("embedding", "exact", 0)


@pytest.mark.parametrize(
    ("mode", "sparse", "weights", "vector", "read", "written"),
    [
        # All 500 rows are written once, and each of the 30 is added to one.
        (0, False, None, LOOKED_UP, 4 * REDUCED + PLACES, 4 * 500 * 32),
        (1, False, None, LOOKED_UP + REDUCED, 4 * REDUCED + PLACES, 4 * 500 * 32),
        (2, False, None, REDUCED, (4 + 8) * REDUCED, 4 * 500 * 32),  # of each bag and column one row gets all
        (0, False, tensor(30), 2 * LOOKED_UP, 4 * REDUCED + PLACES + 4 * 30, 4 * 500 * 32),
        # The rows side by side.
        (0, True, None, 0, 4 * REDUCED + PLACES, 4 * LOOKED_UP),
        (1, True, None, REDUCED, 4 * REDUCED + PLACES, 4 * LOOKED_UP),
    ],
)
def test_gradients_of_bags(mode, sparse, weights, vector, read, written):
    none = tensor(0, dtype="long")
    largest = tensor(10, 32, dtype="long") if mode == 2 else none
    inputs = (tensor(10, 32), *BAG[1:], none, none, largest, 500, False, mode, sparse, weights, -1)
    found = work("_embedding_bag_backward", *inputs)
    assert (found.vector_flops, found.bytes_read, found.bytes_written) == (vector, read, written)


def test_the_gradient_of_the_weights_in_bags_is_a_sum_of_products_per_row():
    none = tensor(0, dtype="long")
    found = work("_embedding_bag_per_sample_weights_backward", tensor(10, 32), *BAG, none, 0, -1)
    assert found.vector_flops == 30 * (32 + 31)
    assert (found.bytes_read, found.bytes_written) == (4 * REDUCED + 4 * LOOKED_UP + PLACES, 4 * 30)


def test_recurrent_layers_multiply_each_step_with_all_weights():
    # 7 steps of 3 sequences of width 8, 16 units with 4 gates each: 2 * 21 * 4*16 * (8 + 16) FLOP.
    inside, beside, biases = tensor(64, 8), tensor(64, 16), (tensor(64), tensor(64))
    state = (tensor(3, 16), tensor(3, 16))
    lstm = work(
        *("mkldnn_rnn_layer", tensor(7, 3, 8), inside, beside, *biases, *state),
        *(False, (), 2, 16, 1, True, False, False, False),
    )
    assert lstm.model_flops == lstm.flops == 2 * 21 * 64 * 24
    assert lstm.functions == {"sigmoid": 21 * 16 * 3, "tanh": 21 * 16 * 2}
    assert lstm.vector_flops == 21 * 16 * (8 + 8)
    assert lstm.bytes_read == 4 * (21 * 8 + 64 * 24 + 128 + 2 * 48)
    assert lstm.bytes_written == 4 * (21 * 16 + 2 * 48)
    # Packed, 11 steps of all sequences; two directions of a GRU (3 gates) without biases.
    weights = (tensor(48, 8), tensor(48, 16)) * 2
    gru = work(
        *("_cudnn_rnn", tensor(11, 8), weights, 2, None, tensor(2, 3, 16), None, 3, 16, 0, 1),
        *(False, 0.0, False, True, (3, 3, 2, 1, 1, 1), None),
    )
    assert (gru.model_flops, gru.vector_flops) == (2 * 11 * 2 * 48 * 24, 11 * 2 * 16 * 7)


def test_gradients_of_recurrent_layers_multiply_with_each_matrix_twice():
    """7 steps of 3 sequences of width 8 and 16 units of 4 gates: two products for each of the 2 of the forward pass."""
    inside, beside, biases = tensor(64, 8), tensor(64, 16), (tensor(64), tensor(64))
    state, made = tensor(3, 16), tensor(7, 3, 16)
    results = (tensor(7, 3, 8), inside, beside, *biases, state, state)
    given = (tensor(7, 3, 8), inside, beside, *biases, state, state, made, state, state, made, state, state)
    call = (*given, False, 2, 16, 1, True, True, False, (), False, tensor(1000, dtype="unsigned char"))
    lstm = work("mkldnn_rnn_layer_backward", *call, outputs=results)
    assert lstm.model_flops == lstm.flops == 2 * (2 * 21 * 64 * 24)
    # Per unit and step 23, and 4 of the biases' sums; tanh of the cell's state again.
    assert (lstm.vector_flops, lstm.functions) == (21 * 16 * 27, {"tanh": 21 * 16})
    # cuDNN, two directions of a GRU without biases: it takes the gradient of the input whether it is asked for or not.
    weights = (tensor(48, 8), tensor(48, 16)) * 2
    state, made = tensor(2, 3, 16), tensor(11, 32)
    sizes = (3, 16, 0, 1, False, 0.0, True, False, (3, 3, 2, 1, 1, 1), None, tensor(99, dtype="unsigned char"))
    given = (tensor(11, 8), weights, 2, tensor(2304), state, None, made, made, None, None)
    once = 2 * 11 * 2 * 48
    for mask, asked, executed in (
        ((True, True, False, True), 2 * once * 24, 2 * once * 24),
        ((False, False, False, True), 2 * once * 24 - once * 8, 2 * once * 24),
        ((True, True, False, False), once * 24, once * 24),
    ):
        results = (tensor(11, 8), state, None, weights if mask[3] else ())
        gru = work("_cudnn_rnn_backward", *given, *sizes, mask, outputs=results)
        assert (gru.model_flops, gru.flops) == (asked, executed), mask


def test_distances_by_a_product_ask_for_no_more_columns_than_there_are():
    found = work("_euclidean_dist", tensor(30, 8), tensor(40, 8))
    assert (found.model_flops, found.flops) == (2 * 30 * 40 * 8, 2 * 30 * 40 * 10)


def part(storage, offset, *shape):
    return replace(tensor(*shape, stride=contiguous((32, 64))[-len(shape) :], storage=storage), offset=offset)


def windows(storage, offset, shape, stride):
    return replace(tensor(*shape, stride=stride, storage=storage), offset=offset)


@pytest.mark.parametrize(
    ("views", "distinct"),
    [
        ((part(1, 0, 31, 64), part(1, 64, 31, 64)), 32 * 64),  # all rows but the last, all but the first
        ((part(2, 0, 32, 3), part(2, 2, 32, 3)), 32 * 5),  # columns 0 to 2 and 2 to 4
        ((part(3, 0, 32, 3), part(3, 3, 32, 3)), 32 * 6),
        ((part(4, 0, 16, 64), part(4, 16 * 64, 16, 64)), 32 * 64),
        ((part(5, 64, 30, 60), part(5, 1, 30, 60)), 2 * 30 * 60 - 29 * 59),  # moved by a row and back by a column
        ((part(6, 0, 32, 64), part(7, 0, 32, 64)), 2 * 32 * 64),
        ((part(8, 0, 4, 64), part(8, 128, 4, 64), part(8, 256, 4, 64)), 8 * 64),  # windows of 4 rows, by 2
        ((windows(9, 0, (10, 7), (1, 1)), windows(9, 1, (10, 7), (1, 1))), 16 + 1),  # 0 to 15, 1 to 16
        ((windows(10, 0, (9, 8), (3, 1)), windows(10, 6, (9, 8), (3, 1))), 31 + 7),  # 0 to 31, 6 to 37
    ],
)
def test_views_that_overlap_are_read_once(views, distinct):
    read = work("cat", views, 0).bytes_read if len(views) > 2 else work("mul", *views, overload="Tensor").bytes_read
    assert read == 4 * distinct
    reached = [
        one.offset + sum(i * stride for i, stride in zip(place, one.stride, strict=True)) + 10**6 * one.storage
        for one in views
        for place in itertools.product(*map(range, one.shape))
    ]
    assert len(set(reached)) == distinct


def test_histograms():
    # Subtract, multiply, add; where the range is sought, two reductions of 48 numbers.
    given_range = work("histc", tensor(48), 10, -1, 1)
    assert (given_range.vector_flops, given_range.bytes_read, given_range.bytes_written) == (3 * 48, 4 * 48, 4 * 10)
    assert work("histc", tensor(48), 10, 0, 0).vector_flops == 3 * 48 + 2 * 47
    # torch runs these on real tensors only: what was recorded says how large the results are.
    bins = costed("histogram", tensor(48), 10, None, None, False, overload="bin_ct", outputs=(tensor(10), tensor(11)))
    assert (bins.cost.vector_flops, bins.cost.bytes_written) == (3 * 48 + 2 * 47, 4 * 21)
    words = tensor(48, dtype="long")
    counts = costed("bincount", words, None, 0, outputs=(tensor(7, dtype="long"),)).cost
    assert (counts.int_ops, counts.vector_flops, counts.bytes_read, counts.bytes_written) == (48, 0, 8 * 48, 8 * 7)
    assert costed("bincount", words, tensor(48), 0, outputs=(tensor(7),)).cost.vector_flops == 48


def test_packing_sentences_moves_what_is_not_filled_up():
    # 9 of 3 x 5 places are words, of 8 numbers each; lengths, and how many sentences reach each place.
    results = (tensor(9, 8), tensor(5, dtype="long"))
    cost = costed("_pack_padded_sequence", tensor(3, 5, 8), tensor(3, dtype="long"), True, outputs=results).cost
    assert (cost.model_flops, cost.bytes_read, cost.bytes_written) == (0, 4 * 72 + 8 * 3, 4 * 72 + 8 * 5)


def test_gradients_of_enlarging():
    for name, scales, vector in (
        ("upsample_nearest2d_backward", (None, None), 128),
        ("_upsample_nearest_exact2d_backward", (None, None), 128),
        ("upsample_bilinear2d_backward", (False, None, None), 8 * 128),  # 2 x 2 points, each times a weight and added
        ("upsample_bicubic2d_backward", (False, None, None), 32 * 128),  # 4 x 4
    ):
        found = work(name, tensor(1, 2, 8, 8), (8, 8), (1, 2, 4, 4), *scales)
        assert (found.vector_flops, found.bytes_read, found.bytes_written) == (vector, 4 * 128, 4 * 32)


def test_a_sparse_tensor_is_made_of_tensors_that_stay():
    made = (1, 1, (500, 32), tensor(1, 30, dtype="long"), tensor(30, 32), 6, None, None, False, None)
    assert costed("_sparse_coo_tensor_with_dims_and_tensors", *made).view


# What depends on data, what is unknown, and what is not recorded.


def test_sizes_that_depend_on_data_come_from_the_recorded_result():
    found = costed("nonzero", x(), outputs=(tensor(7, 2, dtype="long"),)).cost
    assert (found.bytes_read, found.bytes_written, found.quality) == (S, 7 * 16, "assumed")
    mask = x("bool")
    picked = costed("index", x(), (mask,), overload="Tensor", outputs=(tensor(100),)).cost
    assert (picked.bytes_read, picked.bytes_written, picked.quality) == (N + 400, 400, "assumed")
    put = costed("index_put_", x(), (mask,), tensor(100), False).cost
    assert (put.bytes_read, put.bytes_written, put.quality) == (N + 400, 400, "assumed")
    assert costed("nonzero", x()).cost.quality == "unknown"


def test_reading_a_number_waits_beside_a_gpu_and_is_the_hosts_time_on_a_cpu():
    there = Tensor((), (), "float", 1, device="cuda:0")
    found = costed("_local_scalar_dense", there)
    assert (found.op_class, found.cost.bytes_read, found.reads) == ("transfer", 4, ((True, 0, 4.0),))
    assert costed("_local_scalar_dense", tensor()).view


def nothing_known(cost):
    figures = ("model_flops", "flops", "useful_flops", "vector_flops", "functions", "int_ops")
    return all(getattr(cost, name) is None for name in (*figures, "bytes_read", "bytes_written"))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Call("aten::_thnn_fused_gru_cell", "", (x(), x(), x())), "_thnn_fused_gru_cell"),
        (Call("aten::quantize_per_tensor", "", (x(), 0.1, 0, 12)), "results were not recorded"),
        (Call("mylib::rotary", None, (x(),)), "no such op"),
        (Call("aten::mm", "", (tensor(2, 2, dtype="c10::Float4"), tensor(2, 2))), "unknown type c10::Float4"),
        (Call("aten::cat", None, ((Tensor((2, 2), None, ""),), 0)), "type of a list"),
        (Call("aten::add", "Nonsense", (x(), x(), 1)), "no overload 'Nonsense'"),
        (Call("aten::index", None, (x(), None)), "indices was not recorded"),
        (Call("aten::convolution", None, (tensor(1, 1, 4, 4), tensor(1, 1, 3, 3), None)), "no overload"),
    ],
)
def test_an_unknown_op_says_why_and_is_never_zero(call, why):
    cost = ENGINE.cost(call).cost
    assert cost.quality == "unknown"
    assert why in cost.note
    assert nothing_known(cost)


def test_a_missing_stride_is_taken_for_contiguous_and_said_so():
    cost = costed("add", Tensor(ROW, None, "float"), Tensor(ROW, None, "float"), 1, overload="Tensor").cost
    assert (cost.bytes_read, cost.quality, cost.note) == (2 * S, "assumed", "contiguous")


HOSTILE = [
    *(None, True, -1, 0, 3, 2**39, 2**70, 10**400, 1.5, float("nan"), float("inf"), "", "text", "\ud800"),
    *((), (None,), (1, 2), (0, 0), (-1,), (2**70,), ((1,),), ("a",), [1, 2], {"a": 1}),
    *(x(), tensor(), tensor(0, 5), tensor(2**39), tensor(2, 2, dtype="long"), tensor(5, dtype="bool")),
    *(Tensor((2**39, 2**39), (0, 0), "float"), Tensor((2**70, 2), (2, 1), "float"), Tensor((-2, 2), (1, 1), "float")),
    *(Tensor((2, 2), (1,), "float"), Tensor((2, 2), (-1, 1), "float"), Tensor((2.5, 2), (1, 1), "float")),
    *((x(), None), (tensor(3, dtype="long"),), (tensor(dtype="nonsense"),), Tensor((2, 2), None, "")),
    *Unsaid,
]
NAMES = [
    *("mm", "addmm", "bmm", "convolution", "convolution_backward", "embedding", "_softmax", "native_layer_norm", "cat"),
    *("add", "pow", "sum", "index", "index_put_", "scatter_", "index_fill_", "gather", "nll_loss_forward", "copy_"),
    *("_fused_adamw_", "_foreach_add_", "max_pool2d_with_indices", "view", "_scaled_dot_product_flash_attention"),
    *("_local_scalar_dense", "full", "arange", "split", "native_dropout", "cumsum", "as_strided"),
]


@given(st.sampled_from(NAMES), st.lists(st.sampled_from(HOSTILE), max_size=12), st.sampled_from([None, "", "out"]))
def test_arguments_that_nobody_would_record_do_not_raise(name, inputs, overload):
    found = Engine().cost(Call(f"aten::{name}", overload, tuple(inputs)))
    assert found.cost.quality in ("exact", "assumed", "unknown")


@pytest.mark.parametrize(
    "name", ["", "::", "aten::", "add", "\ud800::\x00", "aten::__init__", "__class__::add", "a b::c"]
)
def test_names_that_are_no_ops_do_not_raise(name):
    assert ENGINE.cost(Call(name, None, (x(),))).cost.quality == "unknown"


def test_a_stride_of_nothing_in_a_convolution_does_not_raise():
    assert (
        convolution_call((2, 8, 9, 9), (8, 8, 3, 3), None, (0, 0), (1, 1), (1, 1), False, 1).cost.quality == "unknown"
    )


# Formulas of users.


@pytest.fixture
def rotary():
    @custom.formula("mylib::rotary", "pointwise")
    def formula(given: Tensor, table: Tensor, scale: float) -> Cost:
        return Cost(vector_flops=6.0 * given.numel, bytes_read=300.0, bytes_written=200.0)

    yield formula
    custom._FORMULAS.pop("mylib::rotary", None)


def test_a_formula_costs_an_op_that_torch_does_not_know(rotary):
    inputs = tensor(10, 5), tensor(25), 2.0
    found = Engine().cost(Call("mylib::rotary", None, inputs, (tensor(10, 5),)))
    assert (found.cost.vector_flops, found.op_class, found.cost.quality) == (300, "pointwise", "exact")
    # 300 bytes over 50 and 25 numbers; 200 on the one result.
    assert found.reads == ((True, 0, 200.0), (True, 1, 100.0))
    assert found.writes == ((False, 0, 200.0),)
    # A trace recorded elsewhere has no results: what is written is put on the first argument.
    assert Engine().cost(Call("mylib::rotary", None, inputs)).writes == ((True, 0, 200.0),)
    assert schema.computes("mylib::rotary", None, has_schema=False)


def test_two_formulas_of_one_op_are_refused(rotary):
    with pytest.raises(InputError, match="mylib::rotary has a formula already"):

        @custom.formula("mylib::rotary")
        def another(*inputs):
            return Cost()

    # The same one again, as when its module is imported again, is not.
    assert custom.formula("mylib::rotary", "pointwise")(rotary) is rotary


def test_formulas_need_a_full_name_and_a_class_that_exists():
    with pytest.raises(InputError, match="mylib::rotary"):
        custom.formula("rotary")
    with pytest.raises(InputError, match="no op class 'magic'"):
        custom.formula("mylib::rotary", "magic")


# Against torch: real tensors, recorded as a profiler records them.

_SCALAR_TYPES = {kind: number for number, kind in enumerate(schema._SCALAR_TYPES) if kind is not None}
_NAMES = {dtype: name for name, dtype in reversed(schema.DTYPE.items())}


class Recorder(TorchDispatchMode):
    """The calls that reach the dispatcher below autograd, with all arguments of their schemas."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        inputs = []
        for position, argument in enumerate(func._schema.arguments):
            default = argument.default_value if argument.has_default_value() else None
            value = args[position] if position < len(args) else kwargs.get(argument.name, default)
            inputs.append(recorded_value(value))
        overload = "" if func._overloadname == "default" else func._overloadname
        self.calls.append(Call(func._schema.name, overload, tuple(inputs)))
        return out


def recorded_value(value):
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()._cdata
        return Tensor(tuple(value.shape), value.stride(), _NAMES[value.dtype], storage, value.storage_offset())
    if isinstance(value, list | tuple):
        return tuple(map(recorded_value, value))
    if isinstance(value, torch.dtype):
        return _SCALAR_TYPES[value]
    if isinstance(value, torch.device | torch.layout | torch.memory_format | torch.Generator):
        return None
    return value


def record(run):
    with Recorder() as recorder:
        run()
    return recorder.calls


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def with_gradients(run):
    """The op and its gradients."""
    return lambda: run().sum().backward()


SHAPES = {"a": A, "b": B, "bias": (7,), "x": (2, 3, 5), "w": (7, 5)}
P = {name: leaf(*shape) for name, shape in SHAPES.items()}
IMAGE = leaf(2, 4, 9, 9)
ALSO_IN_TORCH = {
    "mm": lambda: P["a"] @ P["b"],
    "mm backward": with_gradients(lambda: P["a"] @ P["b"]),
    "addmm": lambda: torch.addmm(P["bias"], P["a"], P["b"]),
    "bmm": lambda: torch.bmm(P["x"], P["x"].transpose(1, 2)),
    "baddbmm": lambda: torch.baddbmm(torch.zeros(2, 3, 3), P["x"], P["x"].transpose(1, 2)),
    "einsum": lambda: torch.einsum("bij,kj->bik", P["x"], P["w"]),
    "linear": with_gradients(lambda: functional.linear(P["x"], P["w"], P["bias"])),
    "conv1d": with_gradients(lambda: functional.conv1d(leaf(2, 4, 9), leaf(6, 4, 3), leaf(6))),
    "conv2d": with_gradients(lambda: functional.conv2d(IMAGE, leaf(6, 4, 3, 3), stride=2)),
    "conv2d, dilated": with_gradients(lambda: functional.conv2d(IMAGE, leaf(6, 4, 3, 3), dilation=2)),
    "conv2d, groups": lambda: functional.conv2d(IMAGE, leaf(8, 2, 3, 3), groups=2),
    "conv2d, depthwise": lambda: functional.conv2d(IMAGE, leaf(4, 1, 3, 3), groups=4),
    "conv3d": with_gradients(lambda: functional.conv3d(leaf(1, 2, 5, 6, 7), leaf(3, 2, 2, 3, 2))),
    "conv_transpose2d": lambda: functional.conv_transpose2d(IMAGE, leaf(4, 6, 3, 3), stride=2),
}


@pytest.mark.parametrize("label", ALSO_IN_TORCH)
def test_matrix_flops_are_those_of_flop_counter_mode(label):
    """Unpadded convolutions only: FlopCounterMode also counts the positions that padding adds."""
    run = ALSO_IN_TORCH[label]
    with FlopCounterMode(display=False) as counter:
        run()
    found = [ENGINE.cost(call) for call in record(run)]
    assert all(one.cost.quality == "exact" for one in found)
    assert sum(one.cost.flops for one in found) == counter.get_total_flops() > 0


def test_padded_convolutions_are_counted_higher_by_flop_counter_mode():
    def run():
        functional.conv2d(torch.randn(1, 8, 16, 16), torch.randn(8, 8, 3, 3), padding=1)

    with FlopCounterMode(display=False) as counter:
        run()
    # 16*3 = 48 taps a dimension with the padded ones, 46 of them inside.
    assert counter.get_total_flops() == 2 * 64 * 48**2
    assert sum(ENGINE.cost(call).cost.flops for call in record(run)) == 2 * 64 * 46**2


@pytest.mark.parametrize("causal", [False, True])
def test_model_flops_of_fused_attention_are_those_of_attention_written_out(causal):
    q, k, v = leaf(2, 4, 6, 8), leaf(2, 4, 6, 8), leaf(2, 4, 6, 8)

    def run():
        functional.scaled_dot_product_attention(q, k, v, is_causal=causal).sum().backward()

    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        run()
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        calls = record(run)
    fused = [one for one in map(ENGINE.cost, calls) if one.op_class == "attention"]
    assert [one.kind for one in fused] == ["attention", "attention_backward"]
    # Two products forward, four backward.
    assert sum(one.cost.model_flops for one in fused) == counter.get_total_flops() == 6 * 2 * 2 * 4 * 6 * 6 * 8


# Overloads that were not recorded: Chrome traces name none.


def as_kineto(call):
    """The `args` of a Chrome trace's event for a call without lists of tensors."""
    args = {"Input Dims": [], "Input type": [], "Input Strides": [], "Concrete Inputs": []}

    def add(dims, kind, strides, value):
        for name, item in zip(args, (dims, kind, strides, value), strict=True):
            args[name].append(item)

    for value in call.inputs:
        if isinstance(value, Tensor):
            add(list(value.shape), value.dtype, list(value.stride), "")
        elif value is None or isinstance(value, str):
            add([], "", [], "")
        elif isinstance(value, tuple):
            add([], "ScalarList", [], str(list(value)))
        else:
            add([], "Scalar", [], str(value))
    return args


IMAGES = torch.randn(2, 4, 8, 8)
ROWS = torch.randn(32, 64)
WITHOUT_LISTS = {
    **ALSO_IN_TORCH,
    "attention": with_gradients(
        lambda: functional.scaled_dot_product_attention(leaf(2, 4, 6, 8), leaf(2, 4, 6, 8), leaf(2, 4, 6, 8))
    ),
    "pointwise": lambda: (
        ROWS + 1,
        ROWS * ROWS,
        ROWS - 2 * ROWS,
        ROWS / 3,
        ROWS**2,
        ROWS**0.5,
        2**ROWS,
        -ROWS,
        1 - ROWS,
    ),
    "comparisons": lambda: (ROWS > 0, ROWS == ROWS, torch.where(ROWS > 0, ROWS, ROWS), ROWS.masked_fill(ROWS > 0, 0.0)),
    "in place": lambda: ROWS.clone().add_(1).mul_(ROWS).clamp_(0, 1).fill_(2).zero_().copy_(ROWS),
    "functions": lambda: (ROWS.exp(), ROWS.tanh(), ROWS.sigmoid(), functional.gelu(ROWS), functional.silu(ROWS)),
    "reductions": lambda: (ROWS.sum(), ROWS.sum(1), ROWS.mean(0, keepdim=True), ROWS.max(), ROWS.max(1), ROWS.norm()),
    "statistics": lambda: (ROWS.var(1), ROWS.std(), ROWS.softmax(1), ROWS.log_softmax(0), ROWS.cumsum(1)),
    "norms": with_gradients(lambda: functional.layer_norm(leaf(32, 64), (64,), leaf(64), leaf(64))),
    "batch norm": lambda: functional.batch_norm(IMAGES, torch.zeros(4), torch.ones(4), training=True),
    "pools": lambda: (functional.max_pool2d(IMAGES, 2), functional.avg_pool2d(IMAGES, 2)),
    "rows": lambda: (functional.embedding(torch.arange(5), ROWS), ROWS.gather(1, torch.zeros(32, 2, dtype=torch.long))),
    "losses": with_gradients(lambda: functional.cross_entropy(leaf(8, 10), torch.arange(8))),
    "mse": with_gradients(lambda: functional.mse_loss(leaf(8, 10), torch.zeros(8, 10))),
    "casts": lambda: (ROWS.to(torch.bfloat16), ROWS.half(), ROWS.long(), ROWS.bool()),
    "makers": lambda: (torch.zeros(3, 4), torch.ones_like(ROWS), torch.arange(10), torch.full((2, 3), 7.0)),
    "shapes": lambda: (ROWS.t(), ROWS[:, :10], ROWS.view(64, 32), ROWS.expand(2, 32, 64), ROWS.split(16), ROWS.tril()),
    "dropout": lambda: functional.dropout(ROWS, 0.1),
    "sorting": lambda: (ROWS.sort(), ROWS.topk(3), ROWS.argmax(1)),
}


def comparable(found):
    """All but the identity of arguments, which a Chrome trace does not have."""
    return (found.cost, found.kind, found.op_class, found.dtype, found.inplace, found.view)


@pytest.mark.parametrize("label", WITHOUT_LISTS)
def test_an_unrecorded_overload_is_found_from_the_arguments(label):
    for call in record(WITHOUT_LISTS[label]):
        guessed = arguments.call(call.name, as_kineto(call))
        assert guessed.overload is None
        distinct = Call(call.name, call.overload, tuple(_anonymous(value) for value in call.inputs))
        assert comparable(ENGINE.cost(guessed)) == comparable(ENGINE.cost(distinct)), call


def _anonymous(value):
    if isinstance(value, Tensor):
        return Tensor(value.shape, value.stride, value.dtype, device=value.device)
    return tuple(map(_anonymous, value)) if isinstance(value, tuple) else value


def test_the_overload_with_as_many_arguments_as_were_recorded_comes_first():
    # A profiler writes down all of them, defaults too: sum(self, dtype), and not sum(self, dim, keepdim, dtype).
    found = schema.overloads(Call("aten::sum", None, (x(), None)))
    assert [one._overloadname for one in found][:2] == ["default", "dim_IntList"]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        (([], "Scalar", [], "True"), True),
        (([], "Scalar", [], "3"), 3),
        (([], "Scalar", [], "9.9999999999999998e-13"), 1e-12),
        (([], "ScalarList", [], "[1, 2]"), (1, 2)),
        (([], "ScalarList", [], "[]"), ()),
        (([], "ScalarList", [], "[True, False]"), (True, False)),
        (([], "", [], ""), None),
        (([], "TensorList", [], ""), None),  # a list whose sizes are not recorded is not an empty one
        (([], "", [], "none"), "none"),
        (([2, 3], "float", [3, 1], ""), Tensor((2, 3), (3, 1), "float", device="")),
        (([2, 3], "float", [], ""), Tensor((2, 3), None, "float", device="")),
        (([2, 3], "float", "damaged", ""), Tensor((2, 3), None, "float", device="")),
        (([2, 3], "c10::Float4", [3, 1], ""), Tensor((2, 3), None, "c10::Float4", device="")),
        (([2, 3], "c10::quint8", [3, 1], ""), Tensor((2, 3), (3, 1), "c10::quint8", device="")),
        (([-2, 3], "float", [3, 1], ""), None),
        (
            ([[1, 2], [3]], "TensorList", [], ""),
            (Tensor((1, 2), None, "", device=""), Tensor((3,), None, "", device="")),
        ),
        ((None, None, None, None), None),
        (({}, [], 5, {"a": 1}), None),
    ],
)
def test_recorded_arguments(argument, value):
    dims, kind, strides, concrete = argument
    args = {"Input Dims": [dims], "Input type": [kind], "Input Strides": [strides], "Concrete Inputs": [concrete]}
    assert arguments.call("aten::x", args).inputs == (value,)


@pytest.mark.parametrize(
    "args", [{}, {"Input Dims": []}, {"Input Dims": 5, "Input type": []}, {"Input type": ["float"]}]
)
def test_a_call_without_recorded_arguments_has_none(args):
    assert arguments.call("aten::x", args).inputs == ()


def test_types_are_the_same_in_both_tables():
    assert set(DTYPES) == set(schema.DTYPE)
    for name, dtype in schema.DTYPE.items():
        assert DTYPES[name][1] == dtype.itemsize


# Properties.

SIZES = st.integers(1, 6)


@st.composite
def operands(draw):
    """Two tensors that broadcast, of any strides, now and then the same storage."""
    shape = draw(st.lists(SIZES, min_size=1, max_size=3))
    storages = draw(st.lists(st.integers(1, 2), min_size=2, max_size=2))
    found = []
    for storage in storages:
        sizes = [draw(st.sampled_from([1, size])) for size in shape]
        strides = [draw(st.sampled_from([0, step])) for step in contiguous(sizes)]
        found.append(
            Tensor(tuple(sizes), tuple(strides), draw(st.sampled_from(["float", "c10::Half", "long"])), storage)
        )
    return found


def span(one):
    return one.distinct * DTYPES[one.dtype][1]


@given(operands(), st.sampled_from(["add", "mul", "maximum", "eq", "cat", "copy_"]))
def test_no_more_is_read_than_the_arguments_span(pair, name):
    inputs = {"add": (*pair, 1), "cat": (tuple(pair), 0), "copy_": (*pair, False)}.get(name, tuple(pair))
    overload = {"add": "Tensor", "mul": "Tensor", "eq": "Tensor"}.get(name, "")
    cost = Engine().cost(Call(f"aten::{name}", overload, inputs)).cost
    if cost.quality != "unknown":  # cat and copy_ do not broadcast every pair
        assert 0 <= cost.bytes_read <= sum(map(span, pair))
    else:
        assert name in ("cat", "copy_")


@given(operands(), st.permutations(range(1, 8)))
def test_costs_do_not_depend_on_how_storages_are_numbered(pair, numbers):
    call = Call("aten::add", "Tensor", (*pair, 1))
    other = Call("aten::add", "Tensor", (*[_renumbered(one, numbers) for one in pair], 1))
    assert Engine().cost(call) == Engine().cost(other)
    assert call.canonical() == other.canonical()
    assert call.canonical().canonical() == call.canonical()


def _renumbered(one, numbers):
    return Tensor(one.shape, one.stride, one.dtype, numbers[one.storage], one.offset, one.device)


def test_a_canonical_call_keeps_what_is_shared_and_what_is_unknown():
    a, b, c = tensor(2, storage=900), tensor(2, storage=800), Tensor((2,), (1,), "float")
    call = Call("aten::x", "", (a, (b, a), c, 3), (b,)).canonical()
    assert [one.storage for one in tensors(call.inputs)] == [0, 1, 0, -1]
    assert [one.storage for one in tensors(call.outputs)] == [1]


# Traces of 2022 and 2023: of what is no tensor they tell the kind and no value.

SCALAR, LIST, ANY = Unsaid


def unsaid(name, *inputs):
    """The cost of a call; tensors are of one dimension where nothing else is to be assumed."""
    return ENGINE.cost(Call(f"aten::{name}", None, inputs)).cost


def flat(number, dtype="float"):
    return Tensor((number,), None, dtype)


@pytest.mark.parametrize(
    ("name", "inputs", "lost"),
    [
        ("_to_copy", (flat(N), SCALAR, *[ANY] * 3, SCALAR, ANY), "dtype"),
        ("zeros_like", (flat(N, "long"), SCALAR, SCALAR, ANY, ANY, ANY), "dtype"),
        ("sum", (flat(N), ANY, SCALAR, SCALAR), "dtype"),
        ("arange", (SCALAR, ANY, ANY, ANY, ANY), "end"),
        ("arange", (SCALAR, SCALAR, SCALAR, ANY, ANY, ANY, ANY), "start"),
        ("zeros", (ANY, ANY, ANY, ANY, ANY), "size"),
        ("max_pool2d_with_indices", (tensor(2, 8, 16, 16), *[ANY] * 4, SCALAR), "kernel_size"),
        ("topk", (flat(N), *[SCALAR] * 4), "k"),
    ],
)
def test_a_value_on_which_the_cost_hangs_leaves_it_unknown(name, inputs, lost):
    found = unsaid(name, *inputs)
    assert (found.quality, found.note) == ("unknown", f"the value of {lost} was not recorded")


def test_what_was_not_given_is_not_assumed():
    """No type: zeros of the argument's own."""
    found = unsaid("zeros_like", flat(10, "long"), *[ANY] * 5)
    assert (found.bytes_written, found.quality) == (8 * 10, "exact")
    assert unsaid("sum", flat(10), ANY).quality == "exact"  # sum(self, dtype): the type is a number where it is given


@pytest.mark.parametrize(
    ("name", "inputs", "assumed"),
    [
        ("add", (flat(8), flat(8), SCALAR), "alpha"),
        ("sum", (flat(8), ANY, SCALAR, ANY), "dim"),  # of which lists are recorded as nothing
        ("sum", (flat(8), LIST, SCALAR, ANY), "dim"),
        ("gelu", (flat(8), ANY), "approximate"),
        ("native_dropout", (flat(8), SCALAR, SCALAR), "p, train"),
        ("clamp", (flat(8), SCALAR, ANY), "min"),
        ("clamp", (flat(8), SCALAR, SCALAR), "min, max"),
        ("mul", (flat(8), SCALAR), "other"),
        ("addmm", (flat(4), *[tensor(4, 4)] * 2, SCALAR, SCALAR), "beta, alpha"),
        ("argmax", (flat(8), SCALAR, SCALAR), "dim"),
    ],
)
def test_a_value_that_was_not_recorded_is_named(name, inputs, assumed):
    found = unsaid(name, *inputs)
    assert (found.quality, found.note) == ("assumed", assumed)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("copy_", (flat(8), flat(8), SCALAR)),
        ("fill_", (flat(8), SCALAR)),
        ("masked_fill_", (flat(8), flat(8, "bool"), SCALAR)),
        ("clone", (flat(8), SCALAR)),
        ("embedding", (Tensor((9, 4), (4, 1), "float"), flat(3, "long"), *[SCALAR] * 3)),
    ],
)
def test_a_value_on_which_no_cost_hangs_is_not(name, inputs):
    assert (unsaid(name, *inputs).quality, unsaid(name, *inputs).note) == ("exact", "")


def test_dropout_of_an_unknown_rate_writes_its_result_and_its_mask():
    # 512 floats and as many bytes of mask.
    found = unsaid("native_dropout", flat(512), SCALAR, SCALAR)
    assert (found.bytes_read, found.bytes_written) == (2048, 2048 + 512)
    assert (found.vector_flops, found.functions) == (2 * 512, {"random": 512})


def test_attention_under_an_unknown_mask_has_the_floor_of_a_causal_one():
    q = tensor(2, 8, 16, 64, dtype="c10::Half")
    full = 4 * 2 * 8 * 16 * 16 * 64
    found = unsaid("_scaled_dot_product_flash_attention", q, q, q, SCALAR, SCALAR, SCALAR, ANY)
    assert (found.flops, found.useful_flops) == (full, full * 17 / 32)  # n (n + 1) / 2 of n^2 pairs
    assert found.note == "is_causal, return_debug_mask"
    name = "_scaled_dot_product_efficient_attention"
    assert unsaid(name, q, q, q, ANY, SCALAR, SCALAR, SCALAR, ANY).useful_flops == full * 17 / 32
    # Beside a mask of one's own there is no causal one.
    bias = tensor(2, 8, 16, 16, dtype="c10::Half")
    assert unsaid(name, q, q, q, bias, SCALAR, SCALAR, SCALAR, ANY).useful_flops == full


def test_an_unknown_dimension_is_the_one_that_leaves_least():
    table, rows = Tensor((1000, 64), (64, 1), "float"), flat(10, "long")
    found = unsaid("index_select", table, SCALAR, rows)
    assert (found.bytes_written, found.note) == (4 * 10 * 64, "dim")
    assert unsaid("cumsum", table, SCALAR, ANY).vector_flops == 999 * 64


@pytest.mark.parametrize(
    "name", ["view", "expand", "t", "detach", "detach_", "t_", "as_strided", "empty", "empty_strided", "empty_like"]
)
def test_views_and_allocations_need_no_arguments(name):
    found = ENGINE.cost(Call(f"aten::{name}", None, ()))
    assert found.view
    assert found.cost.quality == "exact"


@pytest.mark.parametrize("name", ["relu", "relu_", "mm", "zeros", "contiguous", "copy_"])
def test_others_do(name):
    found = ENGINE.cost(Call(f"aten::{name}", None, ()))
    assert not found.view
    assert (found.cost.quality, found.cost.note) == ("unknown", "its arguments were not recorded")


@pytest.mark.parametrize(
    ("name", "inputs", "results"),
    [
        ("unbind_copy", (Tensor((10**6, 2), (2, 1), "float"), 0), 10**6),
        ("unbind_copy", (Tensor((2, 10**6), (10**6, 1), "float"), -1), 10**6),
        ("split_copy", (Tensor((10**6, 2), (2, 1), "float"), 1, 0), 10**6),
        ("split_copy", (Tensor((10**6, 2), (2, 1), "float"), 0, 0), 10**6),  # torch refuses a size of 0
        ("split_with_sizes_copy", (Tensor((10**6,), (1,), "float"), (1,) * 10_001, 0), 10_001),
        ("unsafe_chunk", (Tensor((10**7,), (1,), "float"), 10**7, 0), None),
        ("tensor_split", (Tensor((10**7,), (1,), "float"), 10**7, 0), None),
        ("vsplit", (Tensor((10**7, 1), (1, 1), "float"), 10**7), None),
    ],
)
def test_calls_of_endless_results_are_not_run(name, inputs, results):
    """Composite ones are bounded by the calls inside them. Ten million results would take minutes, and gigabytes."""
    found = unsaid(name, *inputs)
    assert found.quality == "unknown"
    told = f"it makes {results} tensors, and no more than 10000" if results else "it takes more than 20000 calls"
    assert told in found.note or "no more than 10000 are looked at" in found.note


def test_calls_of_as_many_results_as_there_are_rows_run():
    rows = Tensor((100, 2), (2, 1), "float")
    for name, inputs in (("unbind_copy", (rows, 0)), ("split_copy", (rows, 1, 0))):
        found = unsaid(name, *inputs)
        assert (found.bytes_read, found.bytes_written, found.quality) == (800, 800, "exact")
    big = Tensor((10**9, 2), (2, 1), "float")
    assert unsaid("split_copy", big, 10**8, 0).bytes_written == 8 * 10**9


# Another tool's figures for a real trace. Its "MB" are MiB.


def test_figures_of_another_tool_for_a_bert_on_h100(recorded):
    with recorded("expected/h100_bert_small_unified_perf_summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["GFLOPS"]]
    compared = set()
    for row in rows:
        names = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        args = {name: _listed(ast.literal_eval(row[name])) for name in names}
        call = arguments.call(row["name"], args)
        cost = ENGINE.cost(call).cost
        theirs = float(row["GFLOPS"]) * 1e9
        moved = float(row["Data Moved (MB)"]) * 2**20
        results = cost.bytes_written / 2  # bf16
        if row["name"] == "aten::addmm":
            # They add the bias, M*N, to 2*M*N*K; so do we, as vector work.
            assert (cost.flops, cost.vector_flops) == (pytest.approx(theirs - results), results)
            assert cost.bytes == pytest.approx(moved)
        elif row["name"] in ("aten::add", "aten::add_"):
            assert cost.vector_flops == pytest.approx(theirs)
            assert cost.bytes == pytest.approx(moved)
        elif "attention" in row["name"]:
            assert cost.flops == cost.model_flops == pytest.approx(theirs)
            # Besides Q, K, V and O there are the logsumexp, fp32 for 8 heads of 141, and the generator's state.
            assert 8 * 141 * 4 <= cost.bytes - moved <= 8 * 141 * 4 + 64
        else:
            continue
        compared.add(row["name"])
    assert compared == {"aten::addmm", "aten::add", "aten::add_", "aten::_scaled_dot_product_flash_attention"}


def _listed(value):
    return [_listed(item) for item in value] if isinstance(value, tuple) else value
