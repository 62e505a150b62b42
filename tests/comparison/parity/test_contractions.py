"""M, N, K from shapes as the frameworks write them, whatever is transposed."""

from __future__ import annotations

from collections import Counter

import handmade
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.analysis import Analysis, analyze
from roofline.comparison.parity.contractions import Product, differing, executed
from roofline.comparison.parity.known_work import model_flops
from roofline.core.cost import Cost
from roofline.core.schema import Op, Profile, Signature
from roofline.costs.linear_algebra import KIND

FLOAT = 4  # bytes of an fp32 element


def signature(shapes: str, flops: float, name: str = "aten::mm", **changes: object) -> Signature:
    plain = Signature(
        name=name,
        kind="matmul",
        op_class="contraction",
        shapes=shapes,
        dtype="fp32",
        cost=Cost(model_flops=flops, flops=flops, useful_flops=flops, bytes_written=None),
        precision=handmade.FP32,
    )
    return replace(plain, **changes)


def op(number: int, **changes: object) -> Op:
    plain = Op(number, 0, 0, 0, (1000, 1000, 1000), 0, 0, 1, (), ())
    return replace(plain, **changes)


def profile(*signatures: Signature, ops: tuple[Op, ...] = ()) -> Profile:
    return handmade.profile(signatures=signatures, ops=ops or tuple(op(n) for n in range(len(signatures))))


def products(analysis: Analysis) -> dict[str, dict[Product, int]]:
    """How often each product is executed, by phase."""
    return {
        phase: {product: times for product, (times, _) in some.items()} for phase, some in executed(analysis).items()
    }


def found(shapes: str, flops: float, name: str = "aten::mm", **changes: object) -> dict[Product, int]:
    return products(analyze(profile(signature(shapes, flops, name, **changes))))["forward"]


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        # 2 * 64 * 256 * 32 FLOP: torch, TensorFlow with a bias behind, XLA's gradients, Keras' batch of one
        ("[64,32] x [32,256]", "aten::mm"),
        ("[256] x [64,32] x [32,256]", "aten::addmm"),
        ("[64,256] x [64,32] x [32,256]", "aten::addmm"),
        ("[64,32] x [32,256] x [256]", "MatMul + BiasAdd"),
        ("[32,64] x [32,256]", "dot_general"),
        ("[256,32] x [64,32]", "dot"),
        ("[1,64,32] x [1,32,256]", "aten::bmm"),
        ("[2,32,32] x [32,4,64]", "Einsum"),
        ("[] x [64,32] x [32,256] +1", "ynn_fusion"),
        ("[64, 32] [32, 256]", "handmade"),
    ],
)
def test_one_product_however_it_is_written(shapes: str, name: str) -> None:
    flops = 2.0 * 64 * 256 * 32
    assert found(shapes, flops, name) == {Product("matmul", 1, 256, 64, 32, flops): 1}


def test_linear_algebra_is_no_work_that_frameworks_are_compared_by() -> None:
    """One inverts a matrix in 2 n^3, another one by its factors and the identity in 8/3 n^3."""
    plain = profile(signature("[64,32] x [32,256]", 1e6))
    inverse = signature("[64,64]", 2.0 * 64**3, "aten::linalg_inv_ex", kind=KIND, op_class="other")
    beside = profile(signature("[64,32] x [32,256]", 1e6), inverse)
    assert model_flops(analyze(beside)) == model_flops(analyze(plain)) == {"forward": 1e6}
    assert products(analyze(beside)) == products(analyze(plain))


@pytest.mark.parametrize(
    ("shapes", "written"),
    [
        ("[8,32,16] x [8,16,48]", None),
        ("[2,4,32,16] x [2,4,48,16]", None),
        # heads behind the length: what is written, 2 * 4 * 32 * 48 elements, says how many products there are
        ("[2,32,4,16] x [2,48,4,16]", 2 * 4 * 32 * 48 * FLOAT),
    ],
)
def test_batches(shapes: str, written: float | None) -> None:
    flops = 2.0 * 8 * 32 * 48 * 16
    cost = Cost(model_flops=flops, flops=flops, bytes_written=written)
    assert found(shapes, flops, cost=cost) == {Product("matmul", 8, 48, 32, 16, flops): 1}


def test_a_loop_is_one_op_with_the_work_of_all_rounds() -> None:
    flops = 12 * 2.0 * 64 * 256 * 32
    analysis = analyze(profile(signature("[64,32] x [32,256]", flops), ops=(op(0, launches=12),)))
    assert products(analysis)["forward"] == {Product("matmul", 1, 256, 64, 32, flops / 12): 12}


@pytest.mark.parametrize("shapes", ["", "[?,32] x [32,256]", "[64,32]", "[0,32] x [32,256]", "[7] x [11]", "[" * 999])
def test_what_is_not_understood_is_told_by_its_flops(shapes: str) -> None:
    assert found(shapes, 1e6) == {Product("matmul", None, None, None, None, 1e6): 1}


def test_convolutions_and_fused_attention_are_told_by_their_flops() -> None:
    convolution = signature("[1,8,16,16] x [8,8,3,3]", 270_848, kind="convolution_backward")
    attention = signature("[1,2,8,4] x [1,2,8,4]", 2048, op_class="attention", kind="attention")
    assert products(analyze(profile(convolution, attention)))["forward"] == {
        Product("convolution", None, None, None, None, 270_848): 1,
        Product("attention", None, None, None, None, 2048): 1,
    }


def test_the_product_inside_a_fused_kernel_is_in_its_own_phase() -> None:
    flops = 2.0 * 64 * 256 * 32
    fused = signature("[] x [64,32] x [32,256] +1", flops, "fusion", kind="fusion")
    part = signature("", flops, "matmul")
    ops = (op(0, constituents=(1, 2), places=((0, 1, 0), (0, 0, 0))),)
    analysis = analyze(profile(fused, part, handmade.SIGNATURES[2], ops=ops))
    assert products(analysis) == {"optimizer": {Product("matmul", 1, 256, 64, 32, flops): 1}}


@given(*[st.integers(1, 40)] * 4, st.sampled_from(["nn", "nt", "tn", "tt"]))
def test_any_product_comes_back(batch: int, m: int, n: int, k: int, transposed: str) -> None:
    left = (m, k) if transposed[0] == "n" else (k, m)
    right = (k, n) if transposed[1] == "n" else (n, k)
    flops = 2.0 * batch * m * n * k
    cost = Cost(model_flops=flops, flops=flops, bytes_written=float(FLOAT * batch * m * n))
    shapes = f"[{batch},{left[0]},{left[1]}] x [{batch},{right[0]},{right[1]}]"
    assert found(shapes, flops, cost=cost) == {Product("matmul", batch, max(m, n), min(m, n), k, flops): 1}


@given(st.text(alphabet="[]0123456789, x+?", max_size=60), st.floats(0, 1e300, allow_subnormal=False))
def test_no_text_breaks_it(shapes: str, flops: float) -> None:
    for product in found(shapes, flops or 2.0):
        assert product.m is None or product.flops == 2 * product.batch * product.m * product.n * product.k


def test_differences_are_what_one_executes_more_often() -> None:
    small, large = Product("matmul", 1, 4, 4, 4, 128.0), Product("matmul", 1, 8, 8, 8, 1024.0)
    apart = differing("backward", Counter({small: 5, large: 1}), Counter({small: 3, large: 2}))
    # 1 x 1024 FLOP weighs more than 2 x 128
    assert [(each.m, each.a, each.b) for each in apart] == [(8, 0, 1), (4, 2, 0)]
    assert differing("backward", Counter({small: 2}), Counter({small: 2})) == ()


def test_what_was_not_understood_stands_for_a_product_of_as_many_flops() -> None:
    known, dark = Product("matmul", 1, 8, 8, 8, 1024.0), Product("matmul", None, None, None, None, 1024.0)
    assert differing("backward", Counter({known: 2}), Counter({dark: 2})) == ()
    (left,) = differing("backward", Counter({known: 3}), Counter({dark: 2}))
    assert (left.m, left.a, left.b) == (8, 1, 0)
