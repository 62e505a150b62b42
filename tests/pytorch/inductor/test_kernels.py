from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.pytorch.inductor import kernels


def test_a_tensor_of_onednn_has_no_address() -> None:
    """Asking for its storage is an error, and a packed weight is an input of a compiled graph."""
    assert kernels._identity(torch.ones(4, 2).to_mkldnn()) == (0, 32)
    plain = torch.ones(4, 2)
    assert kernels._identity(plain[2:]) == (plain.data_ptr(), 16)
