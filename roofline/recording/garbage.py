"""Control Python's garbage collector while steps are timed: it runs between steps, and inside long steps only.

A collection inside a short step would count as the step's own time. Without collections, the cycles that a step leaves
stay: a BERT of Keras on PyTorch leaves three of its activations so, and its steps would fill the memory with them, each
in fresh pages. A long step fills the memory by itself (Stable Diffusion: 13 GB), and a collection is little of it.

A step that asks for a collection itself (`gc.collect()`) gets a full one, as it would without us: with a framework
loaded that takes a tenth of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: The collector stays on in steps of this length [s] or more. By choice: a step's objects are searched in milliseconds.
_LONG = 1.0
#: Not empty while `collect_if_due` collects.
_ours: list[bool] = []


@contextmanager
def kept_out(step: float) -> Iterator[None]:
    """Keep the collector out, except for `collect_if_due`; it skips the objects that existed before.

    step: the length of a step [s]; in long steps Python collects as always.
    """
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.collect()
    if not frozen:
        gc.freeze()
        gc.callbacks.append(_include_all)
    if step < _LONG:
        gc.disable()
    try:
        yield
    finally:
        if not frozen:
            gc.callbacks.remove(_include_all)
            gc.unfreeze()
        if collecting:
            gc.enable()


def _include_all(phase: str, about: dict[str, int]) -> None:
    """Let a full collection that the step asks for include the objects that existed before."""
    if about["generation"] < 2 or _ours:
        return
    if phase == "start":
        gc.unfreeze()
    else:
        gc.freeze()


def collect_if_due() -> None:
    """Collect the steps' garbage, if Python would: it made more objects than it dropped, by its own threshold.

    For between two steps. Does nothing where the program switched its collector off by a threshold of 0.
    """
    threshold = gc.get_threshold()[0]
    if threshold and gc.get_count()[0] > threshold:
        _ours.append(True)
        try:
            gc.collect()
        finally:
            _ours.clear()
