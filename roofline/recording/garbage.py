"""Python's garbage collector while steps are timed: between steps as often as it would run, and within long ones only.

A collection in one step would be taken for the step's own time. Without any, what a step leaves in cycles stays: a
BERT of Keras on PyTorch leaves three of its activations so, and its steps would fill the memory with them, each with
pages that are fresh. A long step would do so by itself (Stable Diffusion: 13 GB), and hardly notices a collection.

A step that asks for a collection itself (`gc.collect()`) gets one of all there is, as it would without us: with a
framework loaded that takes a tenth of a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: From so long a step on, the collector stays on [s]. By choice: what a step made is looked through in milliseconds.
_LONG = 1.0
#: Not empty while `collect_if_due` collects.
_ours: list[bool] = []


@contextmanager
def kept_out(step: float) -> Iterator[None]:
    """Nothing is collected inside but by `collect_if_due`; what was there before is not looked at again.

    step: how long one takes [s]; in long ones Python collects as always.
    """
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.collect()
    if not frozen:
        gc.freeze()
        gc.callbacks.append(_look_at_all)
    if step < _LONG:
        gc.disable()
    try:
        yield
    finally:
        if not frozen:
            gc.callbacks.remove(_look_at_all)
            gc.unfreeze()
        if collecting:
            gc.enable()


def _look_at_all(phase: str, about: dict[str, int]) -> None:
    """Let a full collection that the step asks for look at what was there before, too."""
    if about["generation"] < 2 or _ours:
        return
    if phase == "start":
        gc.unfreeze()
    else:
        gc.freeze()


def collect_if_due() -> None:
    """Collect what steps have left, where Python would: it made so many objects more than it dropped.

    For between two steps. Nothing where the program had its collector switched off by a threshold of 0.
    """
    threshold = gc.get_threshold()[0]
    if threshold and gc.get_count()[0] > threshold:
        _ours.append(True)
        try:
            gc.collect()
        finally:
            _ours.clear()
