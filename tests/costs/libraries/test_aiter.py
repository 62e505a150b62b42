"""aiter's kernels: 10 tokens of 6 bf16 numbers; 4 query heads and 2 of keys, of width 8."""

from __future__ import annotations

import pytest

from roofline.core.batch import Batch, Sequences
from roofline.costs import custom
from roofline.costs.calls import Call, Tensor
from roofline.costs.context import Context, Kernel


def tensor(*shape, dtype="c10::BFloat16"):
    return Tensor(shape, None, dtype, device="")


def cost(name, *inputs, context=None):
    formula = custom.entry(f"aiter::{name}")
    inputs = inputs if context is None else (context, *inputs)
    if context is None:
        return custom.cost(Call(name, None, inputs), *custom.registered(f"aiter::{name}")).cost
    return formula.function(*inputs)


X, W = tensor(10, 6), tensor(6)
NOBODY = Sequences(0, 0, 0, 0, 0)
OPTIONS = (0.0, 0.35, 0.0, False, True, -1, -1, 0, False, False)


def test_norms():
    plain = cost("rmsnorm", X, X, W, 1e-6)
    assert (plain.bytes_read, plain.bytes_written, plain.vector_flops) == (120 + 12, 120, 4 * 60 + 10)
    assert (plain.functions, plain.quality) == ({"rsqrt": 10}, "exact")
    assert cost("rms_norm", X, W, 1e-6, 0) == plain
    for name in ("add_rmsnorm", "rmsnorm2d_fwd_with_add_ck"):
        added = cost(name, X, X, X, X, W, 1e-6)
        assert (added.bytes_read, added.bytes_written, added.vector_flops) == (240 + 12, 240, 5 * 60 + 10)


def test_group_norm_in_both_orders_of_its_arguments():
    x, weight = tensor(2, 6, 5), tensor(6)
    found = cost("_groupnorm_run", x, 3, weight, weight, 1e-6)
    assert found == cost("_groupnorm_run", x, tensor(9, dtype="float"), x, 3, weight, weight, 1e-6)
    assert (found.bytes_read, found.bytes_written, found.functions) == (120 + 24, 120, {"rsqrt": 6})


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_equal_lengths(causal):
    q, k = tensor(2, 6, 4, 8), tensor(2, 9, 2, 8)
    found = cost("fmha_v3_fwd", q, k, k, 0.0, 0.35, causal, -1, -1, True, False, 2)
    # Causal to the lower right: 4 + 5 + ... + 9 = 39 of 54 pairs.
    assert found.flops == 2 * 4 * 54 * 2 * (8 + 8)
    assert found.useful_flops == 2 * 4 * (39 if causal else 54) * 2 * (8 + 8)
    assert found.bytes_read == 2 * (2 * 6 * 4 * 8 + 2 * 2 * 9 * 2 * 8)
    assert found.bytes_written == 2 * 2 * 6 * 4 * 8 + 4 * 2 * 6 * 4  # and a log-sum-exp per query and head
    assert found.quality == "exact"
    # An older version records no values: a causal mask leaves the least work.
    assert cost("_flash_attn_forward", q, k, k).useful_flops == 2 * 4 * 39 * 2 * 16
    assert cost("_flash_attn_forward", q, k, k).quality == "assumed"


def test_attention_of_packed_lengths():
    q, k, sums = tensor(12, 4, 8), tensor(18, 2, 8), tensor(3, dtype="int")
    found = cost("mha_varlen_fwd", q, k, k, sums, sums, 6, 9, 0, 0.0, 0.35, 0.0, False, True, -1, -1)
    assert (found.flops, found.useful_flops) == (2 * 4 * 54 * 32, 2 * 4 * 39 * 32)
    assert found.bytes_read == 2 * (12 * 4 * 8 + 2 * 18 * 2 * 8) + 12
    # Two sequences of at most 5 queries are not 12 long together.
    assert cost("mha_varlen_fwd", q, k, k, sums, sums, 5, 9, 0, 0.0, 0.35, 0.0, False, True).quality == "unknown"


def test_prefill_from_pages_by_shapes_alone():
    # Two sequences of at most 3 queries and 3 keys, and 6 queries together: each has 3 of both. The pool holds 50.
    q, pool, sums = tensor(6, 4, 8), tensor(50, 2, 8), tensor(3, dtype="int")
    found = cost("mha_batch_prefill", q, pool, pool, sums, sums, tensor(9, dtype="int"), 3, 3, *OPTIONS)
    assert (found.flops, found.useful_flops) == (2 * 4 * 9 * 32, 2 * 4 * 6 * 32)
    assert (found.bytes_read, found.bytes_written) == (2 * (6 * 4 * 8 + 2 * 6 * 2 * 8), 2 * 6 * 4 * 8)
    assert found.quality == "exact"
    # With more keys than queries nothing but the engine tells how many each has.
    found = cost("mha_batch_prefill", q, pool, pool, sums, sums, tensor(9, dtype="int"), 3, 5, *OPTIONS)
    assert found.quality == "unknown"


def test_prefill_from_pages_by_the_batch():
    # 2 queries that see 3 and 4 keys, and 4 that see 1 to 4: 7 + 10 pairs of 8 + 16.
    prefill = Sequences(2, 6, 8, 4 + 16, 8 + 16)
    q, pool, sums = tensor(6, 4, 8), tensor(50, 2, 8), tensor(3, dtype="int")
    arguments = q, pool, pool, sums, sums, tensor(9, dtype="int"), 4, 4, *OPTIONS
    found = cost("mha_batch_prefill", *arguments, context=Context(batch=Batch(prefill, NOBODY)))
    assert (found.flops, found.useful_flops) == (4 * 24 * 32, 4 * 17 * 32)
    assert found.bytes_read == 2 * (6 * 4 * 8 + 2 * 8 * 2 * 8)
    other = Context(batch=Batch(Sequences(2, 7, 8, 25, 28), NOBODY))
    assert cost("mha_batch_prefill", *arguments, context=other).quality == "unknown"


def test_decoding_with_pages():
    # 3 sequences of 20 keys together, one query each; the cache is of one byte per number.
    batch = Batch(NOBODY, Sequences(3, 3, 20, 3, 20))
    q, cache, sums = tensor(3, 4, 8), tensor(50, 1, 2, 8, dtype="c10::Float8_e4m3fnuz"), tensor(4, dtype="int")
    arguments = q, tensor(99, dtype="unsigned char"), q, cache, cache, 0.35, sums, sums, sums, 1, 4, None, "fp8", "NHD"
    found = cost("paged_attention_ragged", *arguments, context=Context(batch=batch))
    assert (found.flops, found.useful_flops) == (4 * 20 * 32, 4 * 20 * 32)
    assert (found.bytes_read, found.bytes_written) == (2 * 3 * 4 * 8 + 2 * 20 * 2 * 8, 2 * 3 * 4 * 8)
    assert cost("paged_attention_ragged", *arguments).quality == "unknown"


def test_products_of_one_byte():
    x, weight = tensor(10, 6, dtype="c10::Float8_e4m3fnuz"), tensor(4, 6, dtype="c10::Float8_e4m3fnuz")
    scales = tensor(10, 1, dtype="float"), tensor(1, 4, dtype="float")
    call = Call("aiter::gemm_a8w8_ck", None, (x, weight, *scales, tensor(10, 4), None, 0))
    found = custom.cost(call, *custom.registered(call.name))
    assert (found.cost.flops, found.dtype) == (2 * 10 * 6 * 4, "fp8")
    assert (found.cost.bytes_read, found.cost.bytes_written) == (60 + 24 + 40 + 16, 80)


def test_the_number_of_a_wrapper_is_no_part_of_a_name():
    assert custom.entry("sglang_profiler::attention_paged_attention_ragged_51") is custom.entry(
        "sglang_profiler::attention_paged_attention_ragged"
    )
    assert custom.entry("sglang_profiler::attention_paged_attention_raggedy_51") is None


def test_products_that_the_op_launches_itself():
    context = Context((Kernel("Cijk_Alik_Bljk"),))
    found = cost("gemm_a16w16", tensor(10, 6), tensor(4, 6), None, 15, context=context)
    assert (found.flops, found.bytes_read, found.bytes_written) == (2 * 10 * 6 * 4, 2 * (60 + 24), 2 * 40)
    assert cost("gemm_a16w16", tensor(10, 6), tensor(4, 6), context=Context((Kernel("fill"),))).quality == "unknown"
