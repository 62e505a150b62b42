"""Time how long torch.compile compiles while steps run, whoever called it, and mark what it runs to compile.

PyTorch tells when it begins and ends through `torch._dynamo.callback`, a private module that is imported with Dynamo:
a step that never compiles is not made to import it. Tried with PyTorch 2.13.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.pytorch.recording import shapes
from roofline.traces import nesting

_MODULE = "torch._dynamo.callback"
#: What PyTorch calls when it begins to compile, and when it has ended.
_HOOKS = ("run_start_callbacks", "run_end_callbacks")

#: The annotation around what is run for compiling or tracing alone: it is no op of a step.
MARK = "roofline:compiling"


def anything_compiled() -> bool:
    """Tell whether torch.compile has compiled a frame in this process; imports nothing."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    return utils is not None and bool(utils.counters["frames"]["ok"])


@contextmanager
def marked() -> Iterator[None]:
    """While active, put what runs while torch.compile compiles into an annotation.

    These are traced calls, whose tensors hold nothing, and small programs that try things out.
    """
    handler = _handler()
    if handler is None:
        yield
        return
    open_marks: list[Any] = []

    def begin(*args: Any, **kwargs: Any) -> None:
        starts(*args, **kwargs)
        open_marks.append(shapes.mark(MARK))
        open_marks[-1].__enter__()

    def end(*args: Any, **kwargs: Any) -> None:
        if open_marks:
            open_marks.pop().__exit__(None, None, None)
        ends(*args, **kwargs)

    own_attributes = {name: vars(handler)[name] for name in _HOOKS if name in vars(handler)}
    starts, ends = (getattr(handler, name) for name in _HOOKS)
    handler.run_start_callbacks, handler.run_end_callbacks = begin, end
    try:
        yield
    finally:
        for name in _HOOKS:
            delattr(handler, name)
        vars(handler).update(own_attributes)


def _handler() -> Any:
    """Return what PyTorch tells that it compiles; None where Dynamo is not imported, or tells it otherwise."""
    handler: Any = getattr(sys.modules.get(_MODULE), "callback_handler", None)
    return handler if all(hasattr(handler, name) for name in _HOOKS) else None


def has_compiled(names: Sequence[str]) -> bool:
    """Tell by the names of recorded calls whether torch.compile compiled among them."""
    return MARK in names


def is_compiling(names: Sequence[str], parent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which calls, by their names and the call around each, ran for compiling or tracing alone."""
    marks = np.asarray([name == MARK for name in names], bool)
    return nesting.nearest(parent, marks) >= 0


class CompileTime:
    """See the module docstring."""

    def __init__(self) -> None:
        """Nothing is watched yet."""
        self._handler: Any = None
        self._seconds = 0.0
        self._begin: float | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Leave PyTorch as it was at the end of the block."""
        try:
            yield
        finally:
            if self._handler is not None:
                for name in _HOOKS:
                    delattr(self._handler, name)
                self._handler = None

    def seconds(self) -> float | None:
        """Return the time since the first call in which something was compiled [s]; None without Dynamo."""
        if self._handler is None:
            handler = _handler()
            if handler is None:
                return None
            # Not as callbacks among others: `torch.compiler.reset`, which a step may call, forgets these.
            handler.run_start_callbacks = self._noted(handler.run_start_callbacks, self._started)
            handler.run_end_callbacks = self._noted(handler.run_end_callbacks, self._ended)
            self._handler = handler
        return self._seconds

    def _noted(self, run: Callable[..., None], note: Callable[[], None]) -> Callable[..., None]:
        def noted(*args: Any, **kwargs: Any) -> None:
            note()
            run(*args, **kwargs)

        return noted

    def _started(self) -> None:
        self._begin = time.perf_counter()

    def _ended(self) -> None:
        if self._begin is not None:  # else it began before anybody watched
            self._seconds += time.perf_counter() - self._begin
            self._begin = None
