"""The outermost call of a layer or model of Keras: the step of a program that only infers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries._shapes import of_arguments
from roofline.running.boundary import Boundary, Watcher

#: Modules of Keras 3 and Keras 2, and their class of layers.
_CLASSES = (("keras.src.layers.layer", "Layer"), ("tf_keras.src.engine.base_layer", "Layer"))


def watch(watcher: Watcher) -> None:
    """Have the outermost calls of layers report."""

    def calling(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if OUTERMOST.inside or not watcher.wanted:
                return original(self, *args, **kwargs)
            OUTERMOST.inside = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                OUTERMOST.inside = False
            source, detail = watcher.source(self, partial(kind_of, self, "weights")), of_arguments(args, kwargs)
            watcher.ended(source, type(self).__name__, results=(result,), model=self, detail=detail)
            return result

        return call

    def wrap(module: str, name: str) -> None:
        watcher.wrap(getattr(sys.modules[module], name), "__call__", calling)

    for place in _CLASSES:
        watcher.when_imported(place[0], partial(wrap, *place))


def kind_of(thing: Any, weights: str) -> Hashable:
    """Tell a layer or an optimizer by its class, and by how many numbers are in a list of variables that it has."""
    name = type(thing).__name__
    try:
        return name, sum(math.prod(weight.shape) for weight in getattr(thing, weights))
    except Exception:  # of a class of the program's, or of a variable without a shape
        return name, None


BOUNDARY = Boundary(name="call of {label}", module="", watch=watch, backend="keras", mode="infer")
