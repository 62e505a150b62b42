"""Which way copies go, by names of real traces."""

from __future__ import annotations

import pytest

from roofline.core.copies import crossing


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "in"),
        ("CopyHostToDevice", "in"),
        ("[CUDA memcpy HtoD]", "in"),
        ("Memcpy DtoH (Device -> Pinned)", "out"),
        ("CopyDeviceToHost", "out"),
        ("MemcpyH2D", "in"),
        ("MemcpyD2H", "out"),
        ("Memcpy Unknown (Pageable -> Device)", "in"),
        ("Memcpy (Device -> Pinned)", "out"),
        ("Memcpy of a kind that nothing here knows (Host -> Device)", "in"),
        ("Memcpy Unknown (Device -> Device)", ""),
        ("MemcpyD2D", ""),
        ("Memset", ""),
        ("Memcpy DtoD (Device -> Device)", ""),
        ("CopyDeviceToDevice", ""),
        ("Memcpy PtoP (Device -> Device)", ""),
        ("void copy_kernel<float>", ""),
        ("", ""),
    ],
)
def test_which_way_a_copy_goes(name: str, expected: str) -> None:
    assert crossing(name) == expected
