"""What is said before torch's recorder of ops is started."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.pytorch.recording import counting


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_layouts_that_the_recorder_may_die_of_are_named(capsys):
    x = torch.eye(4)
    coordinates = x.to_sparse_coo()
    counting.record(Step(run=lambda: coordinates @ x))
    assert "layout" not in capsys.readouterr().err
    rows = x.to_sparse_csr()
    counting.record(Step(run=lambda: x + x))
    told = capsys.readouterr().err
    assert "sparse_csr" in told
    assert ".to_sparse_coo()" in told
    assert rows.layout == torch.sparse_csr
