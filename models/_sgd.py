"""Stochastic gradient descent's arguments, which DLRM trains with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sgd:
    """Gradient descent without momentum."""

    lr: float

    @property
    def name(self) -> str:
        """What PyTorch calls it."""
        return "SGD"

    def switches(self) -> dict[str, str]:
        """Its name and arguments, by the names that PyTorch has for them."""
        return {"optimizer": self.name, "optimizer lr": str(self.lr), "optimizer weight_decay": "0"}
