"""The U-Net with one thing done as one should not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from diffusion import Average, Noise, Residual, UNet, denoise, train
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class CopiedAverage(Average):
    """Takes the state of both models apart and puts it together anew, name by name."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.model = model
        self.state = {name: value.clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self) -> None:
        current = {name: value.clone() for name, value in self.model.state_dict().items()}
        for name, value in current.items():
            old = self.state[name]
            self.state[name] = (0.999 * old.double() + 0.001 * value.double()).to(old.dtype)


def copied_average() -> Callable[[], Tensor]:
    return train(UNet(), average=CopiedAverage)


class AllNoise(Noise):
    """The noise of two hundred times, of which one is taken: so that each time has noise of its own."""

    def drawn(self, images: Tensor, times: Tensor) -> Tensor:
        return torch.randn(200, *images.shape)[int(times[0]) % 200]


def all_noise() -> Callable[[], Tensor]:
    return train(UNet(), noise=AllNoise())


class Checkpointed(UNet):
    """Keeps nothing of its blocks for the backward pass, though there is memory enough."""

    def run(self, block: nn.Module, x: Tensor, time: Tensor) -> Tensor:
        return checkpoint(block, x, time, use_reentrant=False)


def checkpointed() -> Callable[[], Tensor]:
    return train(Checkpointed())


# Nothing was changed, or so much that there is nothing to compare


class Product(Residual):
    """SiLU by the module's own class, made once."""

    def __init__(self, width: int, out: int, norm: Callable[[int, int], nn.Module]) -> None:
        super().__init__(width, out, norm)
        self.silu = nn.SiLU()

    def activate(self, x: Tensor) -> Tensor:
        return self.silu(x)


def by_module() -> Callable[[], Tensor]:
    return denoise(UNet(residual=Product))


class Dropping(Residual):
    """Drops a tenth."""

    def activate(self, x: Tensor) -> Tensor:
        return torch.dropout(super().activate(x), 0.1, True)


def dropping() -> Callable[[], Tensor]:
    return train(UNet(residual=Dropping))
