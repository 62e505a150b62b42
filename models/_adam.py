"""Adam's arguments, which the models in every framework train with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam, or AdamW where `weight_decay` is not 0, with PyTorch's defaults; the decay falls on all parameters.

    Kingma and Ba 2015, arXiv 1412.6980, algorithm 1; Loshchilov and Hutter 2019, arXiv 1711.05101, algorithm 2.
    """

    lr: float = 1e-3
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    @property
    def name(self) -> str:
        """What PyTorch calls it."""
        return "AdamW" if self.weight_decay else "Adam"

    def switches(self) -> dict[str, str]:
        """Its name and arguments, by the names that PyTorch has for them."""
        return {
            "optimizer": self.name,
            "optimizer lr": str(self.lr),
            "optimizer betas": str(self.betas),
            "optimizer eps": str(self.eps),
            "optimizer weight_decay": f"{self.weight_decay:g}",
            "optimizer amsgrad": "False",
        }


ADAMW = Adam(weight_decay=1e-2)
