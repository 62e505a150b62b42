"""`tf.profiler.experimental.Trace(..., step_num=...)`, with which a program tells TensorFlow's profiler its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundary import Boundary, Watcher

#: What a program calls that profiles itself.
_PROFILER = "tf.profiler.experimental"


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

    def starting(original: Callable[..., Any]) -> Callable[..., Any]:
        def start(*args: Any, **kwargs: Any) -> Any:
            watcher.blocked(_PROFILER)
            return original(*args, **kwargs)

        return start

    def stopping(original: Callable[..., Any]) -> Callable[..., Any]:
        def stop(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            watcher.blocked(None)
            return result

        return stop

    import tensorflow as tf

    watcher.wrap(Trace, "__init__", making)
    watcher.wrap(Trace, "__exit__", leaving)
    for module in (profiler_v2, tf.profiler.experimental):  # each has a name of its own for both
        watcher.wrap(module, "start", starting)
        watcher.wrap(module, "stop", stopping)


BOUNDARY = Boundary(name="{label}", module="tensorflow", watch=watch, backend="tensorflow")
