"""vLLM's attention: 3 sequences of one query each and 20 keys together, 4 query heads, 2 of keys, width 8."""

from __future__ import annotations

import pytest

from roofline.core.batch import Batch, Sequences
from roofline.costs import custom
from roofline.costs.calls import Call, Tensor
from roofline.costs.context import Context, Kernel

NOBODY = Sequences(0, 0, 0, 0, 0)
DECODE = Batch(NOBODY, Sequences(3, 3, 20, 3, 20))


def tensor(*shape, dtype="c10::BFloat16"):
    return Tensor(shape, None, dtype, device="")


Q, K = tensor(3, 4, 8), tensor(3, 2, 8)
CACHE = Call("aten::unbind", None, (tensor(2, 50, 16, 2, 8, dtype="unsigned char"), 0))


SPLIT = "kernel_unified_attention_3d", "reduce_segments"


def unified(*kernels, batch=DECODE, alike=False, calls=(CACHE,)):
    context = Context((*calls, *map(Kernel, kernels)), batch, alike)
    return custom.entry("vllm::unified_attention_with_output").function(context, Q, K, K, Q, None, None)


def test_a_layer_attends_to_all_keys_of_the_batch():
    found = unified(*SPLIT)
    assert (found.flops, found.useful_flops) == (4 * 20 * 32, 4 * 20 * 32)
    # The cache holds a byte per number: 20 keys and values of 2 heads.
    assert (found.bytes_read, found.bytes_written) == (2 * 3 * 4 * 8 + 20 * 2 * 16, 2 * 3 * 4 * 8)
    assert found.quality == "exact"


def test_without_a_view_of_the_cache_it_holds_the_type_of_the_keys():
    found = unified(*SPLIT, calls=())
    assert (found.bytes_read, found.quality) == (2 * 3 * 4 * 8 + 2 * 20 * 2 * 16, "assumed")


def test_layers_that_may_have_a_window_stay_unknown():
    assert unified("kernel_unified_attention_2d").bytes is None
    # Where all layers run the same, each may have one: vLLM's own kernels split keys of windows, too.
    assert unified(*SPLIT, alike=True).bytes is None


@pytest.mark.parametrize(
    ("kernel", "batch"),
    [
        ("kernel_unified_attention_3d", None),
        ("elementwise", DECODE),
        ("kernel_unified_attention_3d", Batch(NOBODY, Sequences(3, 3))),  # without sums
        ("kernel_unified_attention_3d", Batch(NOBODY, Sequences(9, 9, 20, 9, 20))),  # of another step
    ],
)
def test_what_is_not_told_stays_unknown(kernel, batch):
    assert unified(kernel, batch=batch).quality == "unknown"


def test_decoding_with_pages():
    keys, values = tensor(50, 2, 4, 16, 2), tensor(50, 2, 8, 16)
    for name, workspaces in (("_C::paged_attention_v1", 0), ("_rocm_C::paged_attention", 3)):
        context = Context((), DECODE)
        given = (Q, *[tensor(1)] * workspaces, Q, keys, values, 2, 0.35)
        found = custom.entry(name).function(context, *given)
        assert (found.flops, found.bytes_read) == (4 * 20 * 32, 2 * 3 * 4 * 8 + 2 * 20 * 2 * 16)
        assert custom.entry(name).function(Context(), *given).quality == "unknown"


@pytest.mark.parametrize("left", [-1, 2])
def test_flash_attention_with_pages(left):
    pages = tensor(50, 16, 2, 8)
    sums = tensor(4, dtype="int")
    second = Q, pages, pages, Q, sums, sums, sums, None, tensor(3, 9, dtype="int"), None, 1, 9, 0.0, 0.35, False, True
    third = (Q, pages, pages, None, None, None, Q, sums, None, None, None, sums, 1, 9, tensor(3, 9, dtype="int"))
    third += (*[None] * 8, 0.35, True)
    # A window leaves a lone query its own key and 2 before it; how many of 21 keys each of 3 sequences has is not told.
    several = Batch(NOBODY, Sequences(3, 3, 21, 3, 21))
    batch, number, pairs = (several, 3, 21) if left < 0 else (Batch(NOBODY, Sequences(1, 1, 7, 1, 7)), 1, 3)
    for name, given in (("_vllm_fa2_C::varlen_fwd", second), ("_vllm_fa3_C::fwd", third)):
        found = custom.entry(name).function(Context((), batch), *given, left, 0 if left >= 0 else -1, 0.0, False)
        assert found.useful_flops == pytest.approx(4 * pairs * 32)
        assert found.bytes_read == pytest.approx(2 * (number * 4 * 8 + 2 * pairs * 2 * 8))
        assert found.quality == "exact"
        cut = custom.entry(name).function(Context((), several), *given, 2, 0, 0.0, False)
        assert (cut.quality, cut.bytes) == ("unknown", None)
        assert custom.entry(name).function(Context(), *given, -1, -1, 0.0, False).quality == "unknown"
