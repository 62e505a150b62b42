"""What a version of Keras tells the builders; a module, `_step` of the version's folder, offers it."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

import numpy as np

from roofline.models._adam import Adam


class Version(Protocol):
    """Keras 3 or Keras 2."""

    @property
    def FOLDER(self) -> str:
        """The folder of its models, by which the geometry maps scopes to blocks."""

    @property
    def KERAS(self) -> ModuleType:
        """Keras itself. Both versions have `layers`, `losses`, `optimizers`, `activations`, `mixed_precision`."""

    def library(self) -> ModuleType:
        """The library of transformers. Raises MissingError where it is not installed."""

    def classifier(self, family: str, backbone: Any, classes: int, dropout: float, /) -> Any:
        """The published classifier on a backbone, such as that of "Bert"."""

    def language_model(self, family: str, backbone: Any, generates: bool = False, /) -> Any:
        """The published language model on a backbone, such as that of "GPT2"; generates: as one that can."""

    def attention(self, dropout: float, /) -> str:
        """How multi-head attention that was made with this rate computes."""

    def samples(self, model: Any, sampler: Any, /) -> None:
        """Gives a compiled language model its sampler."""

    def generated(self, model: Any, inputs: Any, /) -> Any:
        """One call of the model's `generate`, which nothing ends early."""

    def optimizer(self, adam: Adam, /) -> Any:
        """An optimizer with these arguments."""

    def compiled(self, model: Any, optimizer: Any, loss: Any, jit: bool | None, /) -> None:
        """Compiles the model in place; optimizer and loss are None in inference, jit is None for Keras's default."""

    def tensor(self, value: np.ndarray, dtype: str | None, /) -> Any:
        """An array as a tensor of the backend on the device; dtype None: as it is."""

    def switches(self) -> dict[str, str]:
        """What a step in this version says besides."""

    def optimizer_switches(self, optimizer: Any, /) -> dict[str, str]:
        """A compiled optimizer, its arguments and how it runs."""
