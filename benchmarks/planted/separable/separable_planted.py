"""The classifier with one thing done as one should not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops
from separable import infer, network, train


def written(x: Any) -> Any:
    """GELU from its formula."""
    cubed = ops.power(x, 3)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * cubed)
    return 0.5 * x * (1.0 + ops.tanh(inner))


def written_activation() -> Callable[[], Any]:
    return infer(network(written))


def rotated(images: np.ndarray) -> np.ndarray:
    """Augments each image by itself, pixel row by pixel row; the angle happens to be two full turns."""
    turned = []
    for image in images:
        for _ in range(8):
            image = np.array([[image[j, -1 - i] for j in range(len(image))] for i in range(len(image))])
        turned.append(image)
    return np.stack(turned)


def augmented() -> Callable[[], Any]:
    return train(network(), rotated)
