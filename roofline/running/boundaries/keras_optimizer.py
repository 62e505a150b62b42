"""The update of a Keras optimizer in a loop of the program's own, as after `tape.gradient`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries.keras_call import numbers_in
from roofline.running.boundary import Boundary, Watcher
from roofline.running.identities import kind_of

#: Modules of Keras 3 and Keras 2, their class of optimizers, and the method in which all its ways to update end.
_CLASSES = (
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer", "apply"),
    ("tf_keras.src.optimizers.optimizer", "Optimizer", "apply_gradients"),
)


def watch(watcher: Watcher) -> None:
    """Have updates report that are in no compiled function."""
    kind = partial(kind_of, partial(numbers_in, "variables"))

    def updating(original: Callable[..., Any]) -> Callable[..., Any]:
        def update(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if not OUTERMOST.own.inside:
                watcher.ended(watcher.source(self, kind), type(self).__name__)
            return result

        return update

    def wrap(module: str, name: str, method: str) -> None:
        watcher.wrap(getattr(sys.modules[module], name), method, updating)

    for place in _CLASSES:
        watcher.when_imported(place[0], partial(wrap, *place))


BOUNDARY = Boundary(name="update of {label}", module="", watch=watch, backend="keras")
