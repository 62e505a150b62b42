"""A new pass over the data of a DataLoader: the step around it also starts workers or shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have a DataLoader report that it begins again."""
    from torch.utils.data import DataLoader

    def beginning(original: Callable[..., Any]) -> Callable[..., Any]:
        def begin(self: Any) -> Any:
            watcher.met("a new pass over the data")
            return original(self)

        return begin

    watcher.wrap(DataLoader, "__iter__", beginning)


BOUNDARY = Boundary(name="", module="torch", watch=watch)
