"""See when a program starts and stops a profiler of its own: two cannot run at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from roofline.running.boundary import Watcher


def watch(watcher: Watcher, profiler: str, owners: Iterable[Any], start: str, stop: str) -> None:
    """Have the functions that start and stop a profiler report.

    profiler: its name for people. owners: modules or classes, each of which has a name of its own for both functions.
    """
    for owner in owners:
        watcher.wrap(owner, start, partial(_starting, watcher, profiler))
        watcher.wrap(owner, stop, partial(_stopping, watcher))


def _starting(watcher: Watcher, profiler: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def start(*args: Any, **kwargs: Any) -> Any:
        watcher.blocked(profiler)
        return original(*args, **kwargs)

    return start


def _stopping(watcher: Watcher, original: Callable[..., Any]) -> Callable[..., Any]:
    def stop(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        watcher.blocked(None)
        return result

    return stop
