"""A checkpoint: `torch.save`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have `torch.save` report."""
    import torch

    def saving(original: Callable[..., Any]) -> Callable[..., Any]:
        def save(*args: Any, **kwargs: Any) -> Any:
            watcher.met("a checkpoint")
            return original(*args, **kwargs)

        return save

    watcher.wrap(torch, "save", saving)


BOUNDARY = Boundary(name="", module="torch", watch=watch)
