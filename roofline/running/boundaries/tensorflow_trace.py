"""`tf.profiler.experimental.Trace(..., step_num=...)`, with which a program tells TensorFlow's profiler its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundaries import _own_profiler
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have an annotation with the number of a step report when it ends, and the profiler when the program runs it."""
    from tensorflow.python.profiler import profiler_v2
    from tensorflow.python.profiler.trace import Trace

    steps: dict[int, str] = {}

    def making(original: Callable[..., Any]) -> Callable[..., Any]:
        def make(self: Any, name: str, **kwargs: Any) -> None:
            original(self, name, **kwargs)
            if "step_num" in kwargs:
                steps[id(self)] = name

        return make

    def leaving(original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(self: Any, *error: Any) -> Any:
            result = original(self, *error)
            if (name := steps.pop(id(self), None)) is not None:
                watcher.ended(name, f"tf.profiler.experimental.Trace({name!r})")
            return result

        return leave

    import tensorflow as tf

    watcher.wrap(Trace, "__init__", making)
    watcher.wrap(Trace, "__exit__", leaving)
    owners = (profiler_v2, tf.profiler.experimental)
    _own_profiler.watch(watcher, "tf.profiler.experimental", owners, "start", "stop")


BOUNDARY = Boundary(name="{label}", module="tensorflow", watch=watch, backend="tensorflow")
