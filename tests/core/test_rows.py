"""Columns of a profile's ops, and what is made of a profile once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from msgspec.structs import replace

from roofline.core.rows import per_profile, rows
from tests import handmade


def test_columns_hold_what_the_ops_do() -> None:
    profile = handmade.profile()
    of = rows(profile)
    assert of.signature.tolist() == [op.signature for op in profile.ops]
    assert of.own.tolist() == [time for op in profile.ops for time in op.own_ns]
    assert of.buffers.tolist() == [buffer for op in profile.ops for buffer in (*op.reads, *op.writes)]
    assert of.reads.tolist() == [len(op.reads) for op in profile.ops]
    assert rows(replace(profile, ops=())).buffers.tolist() == []
    with pytest.raises(ValueError, match="read-only"):
        of.own[0] = 1


def test_a_number_of_more_than_64_bits_fits_no_column() -> None:
    profile = handmade.profile()
    with pytest.raises(OverflowError):
        rows(replace(profile, ops=(replace(profile.ops[0], start_ns=2**64),)))


def test_made_once_of_each_profile_and_no_longer_than_it_lives() -> None:
    calls = []

    @per_profile
    def made(profile: object, size: float) -> np.ndarray:
        calls.append(size)
        return np.zeros(int(size))

    one, other = handmade.profile(), handmade.profile()
    assert made(one, 2.0) is made(one, 2.0)
    assert len(made(one, 3.0)) == 3
    made(other, 2.0)
    assert calls == [2.0, 3.0, 2.0]
    held = weakref.ref(made(one, 2.0))
    del one
    gc.collect()
    assert held() is None
