"""Measures what an op takes the host around its event, in this process: Python, the binding, and its layers.

Measured with an op on one element: in a function; as the only op of a layer that stands in `_DEPTH` others; and the
same right after an op that has emptied the caches, as large ops of a step do. Less the op's own event, which a profile
takes for the time of the op.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch.autograd.profiler import profile

from roofline.core.executor import OP_ALONE, OP_COLD, OP_IN_LAYERS
from roofline.standard_error import quiet

#: So many layers stand around the one with the op. By choice: as in `encoder.layer.0.output.dense`, without the lists.
_DEPTH = 3
#: What is written to empty the caches [byte]: more than any core has to itself, and than most have together.
_EMPTIES = 32 << 20

Call = Callable[[], object]
Layer = Callable[[torch.Tensor], object]


class Module(torch.nn.Module):
    """A layer of one op with a parameter, or around another layer."""

    def __init__(self, inner: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the inner one, or of the op."""
        if self.inner is None:
            return x + self.weight
        result: torch.Tensor = self.inner(x)
        return result


def modules() -> Layer:
    """Modules of PyTorch around one op."""
    module = Module()
    for _ in range(_DEPTH):
        module = Module(module)
    return module


def conditions(layer: Layer, calls: int = 100, rounds: int = 9, cold: int = 30) -> dict[str, float]:
    """The three times, as conditions of a profile [s]. layer: around one op; calls: of a round; cold: without caches.

    Medians of rounds, and the same events as in them: an estimate of what is usual, not of the least.
    """
    x, y, emptying = torch.ones(1), torch.ones(1), torch.ones(_EMPTIES // 4)
    with torch.no_grad():
        by_itself = _around(lambda: x + y, calls, rounds)
        inside = _around(lambda: layer(x), calls, rounds)
        without = _around(lambda: layer(x), 1, cold, lambda: emptying.add_(1))
    # Each can do no more than the one before it, but for noise.
    return {OP_ALONE: by_itself, OP_IN_LAYERS: max(by_itself, inside), OP_COLD: max(by_itself, inside, without)}


def _around(run: Call, calls: int, rounds: int, before: Call = lambda: None) -> float:
    """Measure what a call takes of a core besides the op's event [s]; before: what goes before each round."""
    times = []
    for _ in range(rounds):
        before()
        begin = time.thread_time()  # without what other programs take of the core
        for _ in range(calls):
            run()
        times.append((time.thread_time() - begin) / calls)
    return max(0.0, median(times) - _own(run, calls, rounds, before))


def _own(run: Call, calls: int, rounds: int, before: Call) -> float:
    """The median duration of the op's event [s]."""
    profiler = profile(use_kineto=True)
    with quiet():
        profiler.__enter__()
    for _ in range(rounds):
        before()
        for _ in range(calls):
            run()
    with quiet():
        profiler.__exit__(None, None, None)
    recorded = profiler.kineto_results
    assert recorded is not None  # once it has stopped
    return median(event.duration_ns() * 1e-9 for event in recorded.events() if event.name() == "aten::add")
