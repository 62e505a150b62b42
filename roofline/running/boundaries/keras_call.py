"""The outermost call of a layer or model of Keras: the step of a program that only infers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.boundary import Boundary, Watcher
from roofline.running.identities import kind_of

#: Modules of Keras 3 and Keras 2, and their class of layers.
_CLASSES = (("keras.src.layers.layer", "Layer"), ("tf_keras.src.engine.base_layer", "Layer"))


def watch(watcher: Watcher) -> None:
    """Have the outermost calls of layers report."""
    kind = partial(kind_of, partial(numbers_in, "weights"))

    def calling(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = OUTERMOST.own
            if outermost.inside or not watcher.wanted:
                return original(self, *args, **kwargs)
            outermost.inside = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                outermost.inside = False
            name, detail = type(self).__name__, shapes_of(args, kwargs)
            source = watcher.source(self, kind)
            watcher.ended(source, name, results=(result,), model=self, detail=detail)
            return result

        return call

    def wrap(module: str, name: str) -> None:
        watcher.wrap(getattr(sys.modules[module], name), "__call__", calling)

    for place in _CLASSES:
        watcher.when_imported(place[0], partial(wrap, *place))


def numbers_in(variables: str, thing: Any) -> Iterator[int]:
    """Yield how many numbers each variable has of a list that a layer or an optimizer has."""
    return (math.prod(variable.shape) for variable in getattr(thing, variables))


BOUNDARY = Boundary(name="call of {label}", module="", watch=watch, backend="keras", mode="infer")
