"""`torch.profiler.profile.step()`, with which a program tells PyTorch's profiler where its steps end.

While that profiler runs, ours cannot: two of them end the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundaries import _own_profiler
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have `step` of PyTorch's profiler report, and all its profilers when they begin and end."""
    from torch.autograd import profiler as autograd
    from torch.profiler import profile

    def stepping(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any) -> None:
            # Before its annotation of the next step begins, which then lies in that step.
            watcher.ended("step", "torch.profiler.profile.step()")
            original(self)

        return step

    watcher.wrap(profile, "step", stepping)
    _own_profiler.watch(watcher, "torch.profiler", (autograd.profile,), "_prepare_trace", "__exit__")


BOUNDARY = Boundary(name="torch.profiler.profile.step()", module="torch", watch=watch, backend="torch", may_cease=True)
