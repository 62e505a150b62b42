"""`roofline.step()`, with which a program says itself where its steps end."""

from __future__ import annotations

from roofline.core.step import _StepHook
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have `roofline.step` report."""

    def ended(results: tuple[object, ...]) -> None:
        watcher.ended("step", "roofline.step()", results=results)

    def remove() -> None:
        _StepHook.end = None

    _StepHook.end = ended
    watcher.remove_by(remove)


BOUNDARY = Boundary(name="roofline.step()", module="", watch=watch)
