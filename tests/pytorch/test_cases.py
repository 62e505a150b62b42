"""Small programs that came out wrong, as far as PyTorch runs them: the FLOPs that stand in their heads.

They lie beside the checkout, in shared/cases, and are left out where it is alone.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

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


def case(name: str) -> Path:
    """Where a program lies; the test is skipped where it does not."""
    for folder in Path(__file__).parents:
        path = folder / "shared" / "cases" / f"{name}.py"
        if path.exists():
            return path
    pytest.skip(f"the program {name}.py is not at hand: there is no folder shared/cases above the checkout")


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.parametrize("name", FLOPS)
def test_a_program_asks_for_what_its_head_says(name: str) -> None:
    spec = importlib.util.spec_from_file_location(f"case_{name}", case(name))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counted = count(counting.record(Step(run=module.make_step())), Engine())
    assert counted.unknown == {}
    assert sum(op.costed.cost.model_flops for op in counted.ops) == FLOPS[name]
