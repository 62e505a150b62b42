"""The public functions of a framework, by the names that its own modules have for them, and every k-th of these."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence

#: The modules whose functions take and give arrays, and how many functions of each framework are swept.
MODULES = {
    "torch": "torch torch.fft torch.linalg torch.nested torch.nn.functional torch.signal.windows torch.sparse "
    "torch.special",
    "jax": "jax.lax jax.lax.linalg jax.nn jax.nn.initializers jax.numpy jax.numpy.fft jax.numpy.linalg "
    "jax.scipy.cluster.vq jax.scipy.fft jax.scipy.integrate jax.scipy.linalg jax.scipy.ndimage jax.scipy.optimize "
    "jax.scipy.signal jax.scipy.sparse.linalg jax.scipy.special jax.scipy.stats",
    "tensorflow": "tensorflow tensorflow.audio tensorflow.bitwise tensorflow.image tensorflow.linalg tensorflow.math "
    "tensorflow.nn tensorflow.quantization tensorflow.ragged tensorflow.random tensorflow.sets tensorflow.signal "
    "tensorflow.sparse tensorflow.strings",
}
SWEPT = {"torch": 300, "jax": 190, "tensorflow": 200}


def index(framework: str) -> list[str]:
    """List all callables of its modules that are no classes, in order of the alphabet.

    What has several names is listed by the first of the shortest ones only.
    """
    names: dict[int, str] = {}
    for path in MODULES[framework].split():
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", None) or dir(module):
            function = getattr(module, name, None)
            if name.startswith("_") or not callable(function) or inspect.isclass(function):
                continue
            names[id(function)] = min(names.get(id(function), ""), f"{path}.{name}", key=_rank)
    return sorted(names.values())


def _rank(name: str) -> tuple[bool, int, str]:
    return not name, len(name), name


def every_kth(names: Sequence[str], many: int) -> list[str]:
    """Take `many` names at equal distances, from the first one on."""
    return [names[number * len(names) // many] for number in range(many)]
