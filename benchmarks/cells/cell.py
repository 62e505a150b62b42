"""A cell: one model on one backend, in one mode and size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from roofline import models, plugins

ROOT = Path(__file__).resolve().parents[2]
#: Where profiles are kept between runs; git ignores it.
FOLDER = ROOT / "cells"
#: In the order of the table; others follow by name.
_FIRST = (
    *("torch", "torch-compile", "torchscript", "jax", "tensorflow", "tensorflow-xla"),
    *("keras-torch", "keras-jax", "keras-tensorflow", "keras2"),
)
BACKENDS = (*_FIRST, *(name for name in plugins.names("roofline.backends") if name not in _FIRST))
MODELS = plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True)
SIZES = ("tiny", "base", "one-layer")
#: Beyond the memory of a small machine, or minutes a step on two cores: tiny alone; docs/one-layer.md has a layer of
#: some of them in full width.
TOO_LARGE = ("ctrl", "gemma", "mistral", "segment-anything", "stable-diffusion", "xlm")
#: In full width with as few layers as there can be, on the backends that one can wait for.
ONE_LAYER = ("gemma", "mistral", "segment-anything", "stable-diffusion")
_WAITED_FOR = ("torch", "jax", "keras-torch", "keras-jax", "keras-tensorflow", "keras2")


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one backend, in one mode and size."""

    model: str
    backend: str
    mode: str
    size: str

    @property
    def profile(self) -> Path:
        """Where its profile is, if it ran."""
        return FOLDER / f"{self.size}-{self.model}-{self.mode}-{self.backend}.json"


def asked(sizes: Iterable[str], names: Iterable[str], backends: Iterable[str]) -> Iterator[Cell]:
    """The cells that could be, whether or not the model is built there."""
    backends, names = tuple(backends), tuple(names)
    for size in sizes:
        for name in names:
            if (size == "base" and name in TOO_LARGE) or (size == "one-layer" and name not in ONE_LAYER):
                continue
            for mode in models.geometry(name).modes:
                for backend in backends:
                    if size != "one-layer" or (mode != "generate" and backend in _WAITED_FOR):
                        yield Cell(name, backend, mode, size)
