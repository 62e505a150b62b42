"""What a builder of one framework gives, and the masks that all of them use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from net import Model
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A step of a model.

    results: runs it once, without roofline, and gives its output or loss and the squared norm of all gradients.
    model: PyTorch's module. parameters, trained: numbers of elements, as the framework has them.
    """

    run: Callable[[], object]
    results: Callable[[], tuple[Any, float]]
    parameters: int
    trained: int
    model: Any = None


def window(tokens: int, mask: str) -> NDArray[np.bool_]:
    """What a token may look at: those before it and itself ("causal"), or those up to two places away ("window")."""
    places = np.arange(tokens)
    apart = places[:, None] - places
    return apart >= 0 if mask == "causal" else np.abs(apart) <= 2


def build(model: Model, backend: str) -> Built:
    """The step of a model in the framework of a backend."""
    match backend:
        case "jax":
            import in_jax

            return in_jax.build(model)
        case "tensorflow" | "tensorflow-xla":
            import in_tensorflow

            return in_tensorflow.build(model, compiled=backend == "tensorflow-xla")
    import in_torch

    return in_torch.build(model)
