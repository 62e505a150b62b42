"""The cross network, with a norm that the compiler cannot look into, and with rows that are picked."""

import torch
from cross import Cross, normed, run


@torch.library.custom_op("cross::normed", mutates_args=())
def foreign(x: torch.Tensor) -> torch.Tensor:
    """Where a kernel for another device will be, and until then the same as ever."""
    return normed(x)


@foreign.register_fake
def _(x):
    return torch.empty_like(x)


def foreign_norm():
    return run(Cross(foreign))


class Picked(Cross):
    """Only rows that have a weight are computed, and all of them have."""

    def crossed(self, w, first, x, weight):
        rows = weight > 0
        out = x.clone()
        out[rows] = super().crossed(w, first[rows], x[rows], weight)
        return out


def picked():
    return run(Picked())
