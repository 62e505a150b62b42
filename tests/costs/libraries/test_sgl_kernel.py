"""SGLang's kernels: 10 tokens of 6 bf16 numbers."""

from __future__ import annotations

from roofline.costs import custom
from roofline.costs.calls import Call, Tensor


def tensor(*shape, dtype="c10::BFloat16"):
    return Tensor(shape, None, dtype, device="")


def cost(name, *inputs):
    return custom.cost(Call(name, None, inputs), *custom.registered(name)).cost


X, W = tensor(10, 6), tensor(6)


def test_norms():
    plain, added = cost("sgl_kernel::rmsnorm", X, X, W, 1e-6), cost("sgl_kernel::fused_add_rmsnorm", X, X, W, 1e-6)
    assert (plain.bytes_read, plain.bytes_written, plain.vector_flops) == (132, 120, 4 * 60 + 10)
    assert (added.bytes_read, added.bytes_written, added.vector_flops) == (252, 240, 5 * 60 + 10)
    assert cost("sgl_kernel::gemma_rmsnorm", X, X, W, 1e-6).vector_flops == 5 * 60 + 10


def test_gates():
    found = cost("sgl_kernel::silu_and_mul", tensor(10, 3), X)
    assert (found.bytes_read, found.bytes_written, found.vector_flops) == (120, 60, 60)
    assert found.functions == {"sigmoid": 30}
    found = cost("sgl_kernel::gelu_tanh_and_mul", tensor(10, 3), X, False)
    assert (found.vector_flops, found.functions) == (270, {"tanh": 30})


def test_storing_into_the_cache():
    key, places, slots = tensor(10, 6), tensor(50, 6), tensor(10, dtype="long int")
    found = cost("sglang::store_cache", key, key, places, places, slots, 12, 0)
    assert (found.bytes_read, found.bytes_written, found.vector_flops) == (240 + 80, 240, 0)


def test_casts_and_scaled_products():
    scales = tensor(10, 1, dtype="float")
    found = cost("sgl_kernel::sgl_per_token_quant_fp8", X, tensor(10, 6, dtype="c10::Float8_e4m3fn"), scales)
    assert (found.bytes_read, found.bytes_written) == (120, 60 + 40)
    assert found.vector_flops == (1 + 1 + 3) * 60  # abs and max of each; the product with the scale, min, max
    a, b = tensor(10, 6, dtype="c10::Float8_e4m3fn"), tensor(6, 4, dtype="c10::Float8_e4m3fn")
    found = cost("sgl_kernel::fp8_scaled_mm", a, b, scales, tensor(4, dtype="float"), None, None)
    assert (found.flops, found.bytes_read, found.bytes_written) == (2 * 10 * 6 * 4, 60 + 24 + 40 + 16, 80)
