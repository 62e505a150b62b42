"""`jax.profiler.StepTraceAnnotation`, with which a program tells JAX's profiler where its steps are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundaries._jitted import last_results
from roofline.running.boundary import Boundary, Watcher

#: What a program calls that profiles itself.
_PROFILER = "jax.profiler"


def watch(watcher: Watcher) -> None:
    """Have the annotation report when a step has ended, and JAX's profiler when the program runs it."""
    import jax

    def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self: Any, *error: Any) -> Any:
            result = original(self, *error)
            watcher.ended("step", "jax.profiler.StepTraceAnnotation", results=last_results())
            return result

        return leave

    def starting(original: Callable[..., Any]) -> Callable[..., Any]:
        def start_trace(*args: Any, **kwargs: Any) -> Any:
            watcher.blocked(_PROFILER)
            return original(*args, **kwargs)

        return start_trace

    def stopping(original: Callable[..., Any]) -> Callable[..., Any]:
        def stop_trace() -> Any:
            result = original()
            watcher.blocked(None)
            return result

        return stop_trace

    from jax._src import profiler

    watcher.wrap(jax.profiler.StepTraceAnnotation, "__exit__", leaving)
    for module in (profiler, jax.profiler):  # each has a name of its own for both
        watcher.wrap(module, "start_trace", starting)
        watcher.wrap(module, "stop_trace", stopping)


BOUNDARY = Boundary(name="jax.profiler.StepTraceAnnotation", module="jax", watch=watch, backend="jax")
