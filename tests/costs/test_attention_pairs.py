"""Which pairs masks leave, against masks written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline.core.batch import Sequences
from roofline.costs import attention_pairs, formulas
from roofline.costs.attention_pairs import Lengths, Mask, backward, forward, pairs, varlen

limits = st.one_of(st.none(), st.integers(0, 40))


@given(st.integers(0, 30), st.integers(0, 30), limits, limits, st.booleans())
def test_pairs_are_those_of_the_mask_written_out(queries, keys, left, right, bottom_right):
    query, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
    at = query + (keys - queries if bottom_right else 0)
    seen = np.ones((queries, keys), bool)
    if left is not None:
        seen &= key >= at - left
    if right is not None:
        seen &= key <= at + right
    assert pairs(queries, keys, Mask(left, right, bottom_right)) == seen.sum()


def test_lengths_of_millions_take_no_time():
    # Causal: n (n + 1) / 2.
    assert pairs(2**40, 2**40, Mask(right=0)) == 2**39 * (2**40 + 1)


@pytest.mark.parametrize("causal", [False, True])
def test_equal_lengths_cost_what_core_says(causal):
    given_ = (2, 4, 6, 9, 8, 5)  # batch, heads, queries, keys, widths
    mask = Mask(right=0 if causal else None)
    assert forward(Lengths(2, 6, 9), 4, 8, 5, mask) == formulas.attention(*given_, causal=causal)
    assert backward(Lengths(2, 6, 9), 4, 8, 5, mask) == formulas.attention_backward(*given_, causal=causal)


def test_packed_sequences_of_the_longest_length_are_exact():
    # 3 sequences of 100: 3 * 100^2 pairs, each 2 * 2 * 64 FLOP, 8 heads; causal 3 * 5050.
    lengths = varlen(300, 300, 3, 100, 100)
    cost = forward(lengths, 8, 64, 64, Mask(right=0, bottom_right=True))
    assert cost.flops == 3 * 100**2 * 4 * 64 * 8
    assert cost.useful_flops == 3 * 5050 * 4 * 64 * 8
    assert cost.quality == "exact"
    # One sequence needs no longest.
    assert varlen(70, 90, 1, None, None) == Lengths(1, 70, 90)


def test_packed_sequences_of_other_lengths_are_assumed_equal():
    # 300 queries in 4 sequences, the longest 120: 75 each, 4 * 75^2 pairs.
    cost = forward(varlen(300, 300, 4, 120, 120), 1, 1, 1, Mask())
    assert (cost.flops, cost.quality, cost.note) == (4 * 75**2 * 4, "assumed", "sequences of equal length")
    # Mean lengths that are not whole: 2 of 2.5, masked as if of 2, whose share is 3 of 4.
    cost = forward(varlen(5, 5, 2, 3, 3), 1, 1, 1, Mask(right=0))
    assert (cost.flops, cost.useful_flops) == (2 * 2.5**2 * 4, 2 * 2.5**2 * 4 * 3 / 4)
    assert forward(varlen(0, 0, 0, 0, 0), 1, 1, 1, Mask(right=0)).flops == 0


def test_sums_of_a_batch_give_the_pairs_of_each_sequence():
    lengths = [(3, 7), (1, 4), (5, 5)]
    exact = sum(attention_pairs.pairs(q, k, attention_pairs.Mask(right=0, bottom_right=True)) for q, k in lengths)
    part = Sequences(
        3,
        sum(q for q, _ in lengths),
        sum(k for _, k in lengths),
        sum(q * q for q, _ in lengths),
        sum(q * k for q, k in lengths),
    )
    found = attention_pairs.of_batch((part,), 2, 8, 8)
    assert found.useful_flops == 2 * exact * 2 * 16
    assert (found.flops, found.functions) == (2 * (21 + 4 + 25) * 32, {"exp": 2 * exact})
    assert attention_pairs.keys_read((part,)) == 16


def test_a_window_leaves_the_last_keys():
    # One query and 10 keys, of which a window leaves the query's own and 2 before it.
    part = Sequences(1, 1, 10, 1, 10)
    found = attention_pairs.of_batch((part,), 2, 8, 8, left=2)
    assert (found.useful_flops, found.quality) == (2 * 3 * 32, "exact")
    assert attention_pairs.keys_read((part,), left=2) == 3
    # 3 sequences of 4 queries and no other keys: of each 1 + 2 + 3 + 3 pairs, and every key is seen.
    part = Sequences(3, 12, 12, 48, 48)
    found = attention_pairs.of_batch((part,), 2, 8, 8, left=2)
    assert (found.useful_flops, found.quality) == (2 * 3 * 9 * 32, "exact")
    assert attention_pairs.keys_read((part,), left=2) == 12
    assert attention_pairs.of_batch((Sequences(1, 1),), 2, 8, 8).quality == "unknown"
    # Two sequences of 9 keys together: one may have 8, and a window of 7 cuts it.
    with pytest.raises(ValueError, match="not in the trace"):
        attention_pairs.keys_read((Sequences(2, 3, 9),), left=6)


def test_a_window_over_sequences_whose_lengths_sums_do_not_tell():
    lengths = [(5, 50), (7, 20), (3, 3)]
    exact = sum(attention_pairs.pairs(q, k, attention_pairs.Mask(right=0, bottom_right=True)) for q, k in lengths)
    part = Sequences(3, 15, 73, 25 + 49 + 9, 250 + 140 + 9)
    # One that holds all keys changes nothing. None has more than 73 - 15 and the most queries, 9 as 9^2 + 1 + 1 = 83.
    for left in (66, 1000):
        found = attention_pairs.of_batch((part,), 1, 8, 8, left=left)
        assert (found.useful_flops, found.quality) == (exact * 32, "exact")
        assert attention_pairs.keys_read((part,), left=left) == 73
    for left in (0, 4, 65):
        assert attention_pairs.of_batch((part,), 1, 8, 8, left=left).quality == "unknown"
        with pytest.raises(ValueError, match="window"):
            attention_pairs.keys_read((part,), left=left)
