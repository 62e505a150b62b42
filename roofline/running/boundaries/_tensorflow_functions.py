"""See the calls of TensorFlow's functions (`tf.function`), and the gradients that are taken while they are traced."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from roofline.running.boundaries._functions import CompiledFunctions, name_of, source_of
from roofline.running.boundary import Watcher

FUNCTIONS = CompiledFunctions()


def watch(watcher: Watcher) -> None:
    """Have all functions and those of saved models report, and gradient tapes where one is asked."""
    from tensorflow.python.eager.backprop import GradientTape
    from tensorflow.python.eager.context import executing_eagerly
    from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

    sources: WeakKeyDictionary[Any, Hashable] = WeakKeyDictionary()

    def source(function: Any, watcher: Watcher) -> Hashable:
        """Return what tells it apart, as of before its first call, which wraps its Python function once more."""
        if function not in sources:
            sources[function] = source_of(function.python_function, watcher)
        return sources[function]

    def calling(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not executing_eagerly():  # part of another function, which is traced
                return original(self, *args, **kwargs)
            return FUNCTIONS.call(partial(source, self), name_of(self.python_function), original, (self, *args), kwargs)

        return call

    def calling_concrete(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return FUNCTIONS.call(partial(source_of, self), "concrete function", original, (self, *args), kwargs)

        return call

    def differentiating(original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
            FUNCTIONS.takes_gradients()
            return original(self, *args, **kwargs)

        return gradient

    watcher.wrap(Function, "__call__", calling)
    watcher.wrap(ConcreteFunction, "__call__", calling_concrete)
    watcher.wrap(GradientTape, "gradient", differentiating)
