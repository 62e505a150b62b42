"""What an op takes the host around itself, measured here; how long that is is not these tests' matter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.core.executor import OP_ALONE, OP_COLD, OP_IN_LAYERS
from roofline.pytorch.recording import host_cost


@pytest.mark.xdist_group("timing")
def test_an_op_costs_no_less_inside_layers_and_without_caches() -> None:
    found = host_cost.conditions(host_cost.modules(), calls=5, rounds=2, cold=2)
    assert 0 <= found[OP_ALONE] <= found[OP_IN_LAYERS] <= found[OP_COLD]


def test_the_layers_stand_in_each_other_around_one_op() -> None:
    module, depth = host_cost.modules(), 0
    while module.inner is not None:
        module, depth = module.inner, depth + 1
    assert depth == 3
    assert host_cost.modules()(torch.ones(1)).tolist() == [2.0]
