"""`jax.profiler.StepTraceAnnotation`, with which a program tells JAX's profiler where its steps are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundaries import _own_profiler
from roofline.running.boundaries._jitted import last_results
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have the annotation report when a step has ended, and JAX's profiler when the program runs it."""
    import jax

    def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self: Any, *error: Any) -> Any:
            result = original(self, *error)
            watcher.ended("step", "jax.profiler.StepTraceAnnotation", results=last_results())
            return result

        return leave

    from jax._src import profiler

    watcher.wrap(jax.profiler.StepTraceAnnotation, "__exit__", leaving)
    _own_profiler.watch(watcher, "jax.profiler", (profiler, jax.profiler), "start_trace", "stop_trace")


BOUNDARY = Boundary(name="jax.profiler.StepTraceAnnotation", module="jax", watch=watch, backend="jax")
