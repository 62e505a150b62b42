"""Small programs that came out wrong, as far as PyTorch runs them: the FLOPs that stand in their heads."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from shared_cases import case

from roofline.core.step import Step
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting

#: Of each file the model FLOPs.
FLOPS = {
    "18_sparse_mm": 2 * 8192,
    "20_int8_linear": 2 * 131072,
    "23_grouped_mm": 393216,
    "25_encoder_fastpath": 353280,
    "25b_mha_fastpath": 189440,
    "40_custom_op": 16384,
    "42_weight_only": 3 * 131072,
}


@pytest.mark.filterwarnings("ignore:.*quantiz.*", "ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("name", FLOPS)
def test_a_program_asks_for_what_its_head_says(name: str) -> None:
    counted = count(counting.record(Step(run=case(f"{name}.py", "make_step"))), Engine())
    assert counted.unknown == {}
    assert sum(op.costed.cost.model_flops for op in counted.ops) == FLOPS[name]
