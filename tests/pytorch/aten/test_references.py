"""Costing ops must not load torch's compiler: it takes longer than all else that a first import does."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from roofline.pytorch.aten.references import _DONE, _decorated, without_dynamo

_COSTS = """
import sys
from roofline.pytorch.aten.engine import Engine
from roofline.costs.calls import Call, Tensor

x, y = (Tensor(shape=(4, 8), dtype="float", stride=(8, 1), storage=storage) for storage in (1, 2))
calls = (("aten::eq", "Tensor", (x, y)), ("aten::logical_not", "", (x,)), ("aten::_softmax", "", (x, -1, False)))
for name, overload, inputs in calls:
    cost = Engine().cost(Call(name, overload, inputs)).cost
    print(name, cost.bytes_read, cost.quality, cost.note)
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
def test_reference_implementations_run_without_the_compiler() -> None:
    ran = subprocess.run([sys.executable, "-c", _COSTS], capture_output=True, text=True, check=True)
    eq, logical_not, softmax, loaded = (line.strip() for line in ran.stdout.splitlines())
    # 4 * 8 elements of 4 bytes; eq reads two tensors
    assert eq == "aten::eq 256.0 exact"
    assert logical_not == "aten::logical_not 128.0 exact"
    assert softmax == "aten::_softmax 128.0 exact"
    assert loaded == "False"


def test_torch_is_left_as_it_was() -> None:
    told = _decorated(())
    before = [hasattr(function, _DONE) for function in told]
    with without_dynamo():
        assert torch.add(torch.ones(2, device="meta"), 1).shape == (2,)
    assert told
    assert [hasattr(function, _DONE) for function in told] == before
