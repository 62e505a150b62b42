"""vLLM's small kernels: 10 tokens of 6 bf16 numbers."""

from __future__ import annotations

from roofline.costs import custom
from roofline.costs.calls import Call, Tensor


def tensor(*shape, dtype="c10::BFloat16", stride=None):
    return Tensor(shape, stride, dtype, device="")


def cost(name, *inputs):
    return custom.cost(Call(name, None, inputs), *custom.registered(name)).cost


X = tensor(10, 6)


def test_norms():
    plain = cost("_C::rms_norm", X, X, tensor(6), 1e-5)
    assert (plain.bytes_read, plain.bytes_written, plain.vector_flops) == (120 + 12, 120, 4 * 60 + 10)
    assert (plain.functions, plain.quality) == ({"rsqrt": 10}, "exact")
    fused = cost("_C::fused_add_rms_norm", X, X, tensor(6), 1e-5)
    assert (fused.bytes_read, fused.bytes_written, fused.vector_flops) == (240 + 12, 240, 5 * 60 + 10)


def test_silu_and_mul():
    found = cost("_C::silu_and_mul", tensor(10, 3), X)
    assert (found.bytes_read, found.bytes_written) == (120, 60)
    assert (found.vector_flops, found.functions) == (60, {"sigmoid": 30})


def test_rotary_embedding():
    # 10 positions, two heads of queries and one of keys of 8 numbers, of which 4 are rotated; a table of 100 rows.
    given = tensor(10, dtype="long int"), tensor(10, 16), tensor(10, 8), 8, tensor(100, 4), True
    found = cost("_C::rotary_embedding", *given)
    turned = 10 * (16 + 8) // 2
    assert (found.vector_flops, found.bytes_written) == (3 * turned, 2 * turned)
    assert found.bytes_read == 2 * turned + 80 + 10 * 4 * 2
    assert found.quality == "exact"
    # Without keys, and without the size of a head.
    found = cost("_C::rotary_embedding", given[0], given[1], None, None, given[4])
    assert (found.vector_flops, found.quality) == (3 * 160, "assumed")


def test_cast_to_fp8():
    found = cost("_C::static_scaled_fp8_quant", tensor(10, 6, dtype="c10::Float8_e4m3fn"), X, tensor(dtype="float"))
    assert (found.bytes_read, found.bytes_written, found.vector_flops) == (124, 60, 180)


def test_writing_into_the_cache():
    key, pages, slots = tensor(10, 2, 3), tensor(50, 4, 2, 3, dtype="unsigned char"), tensor(8, dtype="long int")
    found = cost("_C_cache_ops::reshape_and_cache_flash", key, key, pages, pages, slots, "fp8")
    # Of 10 tokens 8 have a slot: 48 numbers of keys and of values, written as one byte each.
    assert (found.bytes_read, found.bytes_written, found.vector_flops) == (2 * 96 + 64, 96, 3 * 96)
    pages = tensor(50, 4, 2, 3)
    found = cost("_C_cache_ops::reshape_and_cache_flash", key, key, pages, pages, slots, "auto")
    assert (found.bytes_written, found.vector_flops) == (192, 0)


def test_skinny_products():
    found = cost("_rocm_C::wvSplitK", tensor(4, 6), tensor(2, 6), None, 304)
    assert (found.flops, found.bytes_read, found.bytes_written) == (2 * 2 * 6 * 4, 2 * (24 + 12), 2 * 8)
