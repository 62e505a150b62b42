"""Inference by a function that calls another one. Arguments: script or compile, which makes both; number of calls."""

import sys
from collections import Counter

import torch


def compiled() -> Counter[str]:
    """Count what Dynamo compiled in this process, also for others, once somebody has imported it."""
    dynamo = sys.modules.get("torch._dynamo")
    return Counter(dynamo.utils.counters["stats"]) if dynamo else Counter()


before = compiled()
weight = torch.randn(8, 8)


def inner(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ weight)


if sys.argv[1] == "script":
    inner = torch.jit.script(inner)

    @torch.jit.script
    def outer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return inner(x, weight) * 2
else:
    inner = torch.compile(inner, backend="eager")

    @torch.compile(backend="eager")
    def outer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return inner(x, weight) * 2


for _ in range(int(sys.argv[2])):
    outer(torch.randn(4, 8), weight)
if sys.argv[1] == "compile":
    assert compiled() - before == {"unique_graphs": 1, "calls_captured": 3}
