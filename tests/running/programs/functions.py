"""Inference by a function that calls another one. Arguments: script or compile, which makes both; number of calls."""

import sys

import torch

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
    import torch._dynamo

    stats = torch._dynamo.utils.counters["stats"]
    assert (stats["unique_graphs"], stats["calls_captured"]) == (1, 3), stats
