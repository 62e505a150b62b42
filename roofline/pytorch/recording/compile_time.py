"""Time how long torch.compile compiles while steps run, whoever called it.

PyTorch tells when it begins and ends through `torch._dynamo.callback`, a private module that is imported with Dynamo:
a step that never compiles is not made to import it. Tried with PyTorch 2.13.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_MODULE = "torch._dynamo.callback"


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
                for name in ("run_start_callbacks", "run_end_callbacks"):
                    delattr(self._handler, name)
                self._handler = None

    def seconds(self) -> float | None:
        """Return the time since the first call in which something was compiled [s]; None without Dynamo."""
        if self._handler is None:
            handler: Any = getattr(sys.modules.get(_MODULE), "callback_handler", None)
            if not hasattr(handler, "run_start_callbacks") or not hasattr(handler, "run_end_callbacks"):
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
