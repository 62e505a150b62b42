"""What a framework cannot express of the models, found out by running them without roofline.

No kind is dropped for it: a model that holds such a layer is counted as absent on that backend, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable

from net import Model, Place, places

#: Backends, the reason, and whether a layer of a model is one that they cannot express.
ABSENT: tuple[tuple[tuple[str, ...], str, Callable[[Place, Model], bool]], ...] = (
    (
        ("torchscript",),
        "torch.jit.trace cannot trace a reentrant checkpoint",
        lambda place, model: place.layer.kind == "checkpoint" and place.layer["form"] == "reentrant",
    ),
)


def absent(model: Model, backend: str) -> str | None:
    """Why the model is not built on that backend; None where it is."""
    for place in places(model):
        for backends, reason, holds in ABSENT:
            if backend in backends and holds(place, model):
                return reason
    return None
