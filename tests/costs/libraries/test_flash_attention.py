"""flash-attention's own ops. Two sequences of 6 queries and 9 keys, 4 query heads, 2 of keys, width 8."""

from __future__ import annotations

import pytest

from roofline.costs import custom, formulas
from roofline.costs.calls import Call, Tensor

HALF = "c10::Half"
#: Causal to the lower right: query i sees keys 0..i+3, 4 + 5 + ... + 9 = 39 of 54.
PAIRS = {False: 54, True: 39}
WINDOWS = (-1, -1, 0.0)


def tensor(*shape, dtype=HALF):
    return Tensor(shape, None, dtype, device="")


def cost(name, *inputs):
    function, op_class = custom.registered(f"flash_attn::{name}")
    assert op_class == "attention"
    return custom.cost(Call(f"flash_attn::{name}", None, inputs), function, op_class).cost


PACKED = tensor(12, 4, 8), tensor(18, 2, 8), tensor(18, 2, 8)
FIXED = tensor(2, 6, 4, 8), tensor(2, 9, 2, 8), tensor(2, 9, 2, 8)
SUMS = tensor(3, dtype="int"), tensor(3, dtype="int")
LSE = tensor(4, 12, dtype="float")
Q, KV = 2 * 12 * 4 * 8, 2 * 18 * 2 * 8  # bytes


@pytest.mark.parametrize("causal", [False, True])
def test_forward(causal):
    packed = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, 6, 9, 0.0, 0.35, causal, *WINDOWS)
    fixed = cost("_flash_attn_forward", *FIXED, 0.0, 0.35, causal, *WINDOWS)
    written = formulas.attention(2, 4, 6, 9, 8, 8)
    for found in (packed, fixed):
        assert (found.model_flops, found.flops, found.quality) == (written.model_flops, written.flops, "exact")
        assert found.useful_flops == 2 * 2 * 8 * 2 * 4 * PAIRS[causal]
        assert found.bytes_written == Q + 4 * 12 * 4  # and a log-sum-exp per query and head
    assert fixed.bytes_read == Q + 2 * KV
    assert packed.bytes_read == Q + 2 * KV + 2 * 3 * 4


@pytest.mark.parametrize("causal", [False, True])
def test_backward(causal):
    grads = (tensor(12, 4, 8), *PACKED, tensor(12, 4, 8), LSE, *PACKED)
    packed = cost("_flash_attn_varlen_backward", *grads, *SUMS, 6, 9, 0.0, 0.35, causal, *WINDOWS)
    grads = (tensor(2, 6, 4, 8), *FIXED, tensor(2, 6, 4, 8), LSE, *FIXED)
    fixed = cost("_flash_attn_backward", *grads, 0.0, 0.35, causal, *WINDOWS)
    written = formulas.attention_backward(2, 4, 6, 9, 8, 8)
    for found in (packed, fixed):
        assert (found.model_flops, found.flops) == (written.model_flops, written.flops)
        assert found.useful_flops == written.flops * PAIRS[causal] / 54
        assert found.bytes_written == Q + 2 * KV
    # dout, q, k, v, out and the log-sum-exp are read.
    assert fixed.bytes_read == 3 * Q + 2 * KV + 4 * 4 * 12
    assert packed.bytes_read == fixed.bytes_read + 2 * 3 * 4


def test_windows():
    # Two keys before the own one (i + 3) and none after: 3 each, 6 queries.
    found = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, 6, 9, 0.0, 0.35, True, 2, 0, 0.0)
    assert found.useful_flops == 2 * 2 * 8 * 2 * 4 * 18
    # One after as well, but for the last query: 4 * 6 - 1.
    found = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, 6, 9, 0.0, 0.35, False, 2, 1, 0.0)
    assert found.useful_flops == 2 * 2 * 8 * 2 * 4 * 23


def test_what_was_not_recorded_is_said():
    found = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, None, None, None, None, None, None, None)
    assert found.quality == "assumed"
    assert "sequences of equal length" in found.note
    assert "causal and window not recorded" in found.note
    # Floors are lower bounds: the mask that leaves the least.
    assert (found.flops, found.useful_flops) == (2 * 2 * 8 * 2 * 4 * 54, 2 * 2 * 8 * 2 * 4 * 39)


@pytest.mark.parametrize("inputs", [(), (None,) * 12, (tensor(3),) * 12, (*PACKED, 3, 3), (*PACKED, *SUMS, "a", "b")])
@pytest.mark.parametrize("name", ["_flash_attn_varlen_forward", "_flash_attn_varlen_backward", "_flash_attn_forward"])
def test_other_arguments_leave_it_unknown_or_assumed(name, inputs):
    assert cost(name, *inputs).quality in ("unknown", "assumed")


def test_keys_in_pages_leave_the_work_unknown():
    """5 pages of 16 keys, or a table beside packed keys: the pages are of all sequences, and what is used is data."""
    pages = tensor(5, 16, 2, 8), tensor(5, 16, 2, 8)
    rest = (6, 9, 0.0, 0.35, True, *WINDOWS, None, False)
    whole = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, *rest, None)
    assert whole.quality == "exact"
    for found in (
        cost("_flash_attn_varlen_forward", PACKED[0], *pages, *SUMS, *rest, tensor(2, 4, dtype="int")),
        cost("_flash_attn_varlen_forward", PACKED[0], *pages, *SUMS, *rest),
        cost("_flash_attn_varlen_forward", *PACKED, *SUMS, *rest, tensor(2, 4, dtype="int")),
        cost("_flash_attn_varlen_forward", *PACKED, *SUMS, *rest, None, None, tensor(2, dtype="int")),
    ):
        assert (found.quality, found.flops, found.useful_flops, found.bytes) == ("unknown", None, None, None)
        assert "pages" in found.note
    # Slopes of ALiBi are no table.
    slopes = tensor(4, dtype="float")
    rest = (6, 9, 0.0, 0.35, True, *WINDOWS, slopes, False)
    assert cost("_flash_attn_varlen_forward", *PACKED, *SUMS, *rest, None).quality == "exact"


@pytest.mark.parametrize("longest", [(5, 9), (6, 8)])
def test_sequences_longer_than_the_longest_are_no_sequences(longest):
    found = cost("_flash_attn_varlen_forward", *PACKED, *SUMS, *longest, 0.0, 0.35, True, *WINDOWS)
    assert (found.quality, found.flops) == ("unknown", None)
    assert f"2 sequences of at most {min(longest, key=lambda n: n in (6, 9))}" in found.note
