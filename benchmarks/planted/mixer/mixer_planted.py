"""Copies of the mixer with one cause planted, some with two; each function makes one.

All but the last one compute what the mixer computes, with the same contractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from mixer import Block, Mixer, Mixing, step
from torch import Tensor, nn
from torch.nn import functional

import roofline

# ---------------------------------------------------------------------------------------------------- the same work


class WrittenOutMixing(Mixing):
    def activate(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class WrittenOut(Block):
    mixing = WrittenOutMixing


def gelu_written(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """GELU from its formula with tanh, in eight ops."""
    return step(mode, size, WrittenOut, batch=batch)


def written_loss(logits: Tensor, words: Tensor) -> Tensor:
    exponents = torch.exp(logits - logits.detach().amax(-1, keepdim=True))
    chances = exponents / exponents.sum(-1, keepdim=True)
    wanted = functional.one_hot(words, logits.shape[-1]).float()
    return -(wanted * torch.log(chances)).sum(-1).mean()


def loss_written(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Cross entropy from exp, sum, div and log, times the targets as ones and zeros."""
    return step(mode, size, loss=written_loss, batch=batch)


class DoubleMixing(Mixing):
    def apply_linear(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return functional.linear(x, linear.weight.double().float(), linear.bias.double().float())


class Doubles(Block):
    mixing = DoubleMixing


def weights_float64(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Weights are made double and single again each time they are used."""
    return step(mode, size, Doubles, batch=batch)


class ContiguousMixing(Mixing):
    def apply_linear(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return linear(x.permute(2, 1, 0).contiguous().permute(2, 1, 0).contiguous())


class Contiguous(Block):
    mixing = ContiguousMixing


def contiguous(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """What goes into a linear layer is turned and made contiguous, and back."""
    return step(mode, size, Contiguous, batch=batch)


class LogsQuantiles(Mixer):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.quantiles = x[0].sort(-1).values[:, ::16].mean(0)
        return x


def quantiles(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """After each block the channels of one sample are sorted for a statistic that nobody reads."""
    return step(mode, size, mixer=LogsQuantiles, batch=batch)


# --------------------------------------------------------------------------------------------------------- training


class DecayingAdamW(torch.optim.AdamW):
    """The weights decay in a loop over them, in four ops each."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters, lr=1e-4, weight_decay=0.0, fused=True)

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        for parameter in self.param_groups[0]["params"]:
            decay = 1e-4 * (0.01 * parameter)
            parameter.copy_(parameter - decay)
        super().step()


def decay_in_loop(mode: str = "train", size: str = "wide", batch: int | None = None) -> roofline.Step:
    """AdamW without decay, and the decay by hand."""
    return step(mode, size, optimizer=DecayingAdamW, batch=batch)


class Averages:
    """A running average of the weights, in a loop over them."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            old = self.kept.get(name, parameter)
            self.kept[name] = 0.999 * old + 0.001 * parameter


def averages(mode: str = "train", size: str = "wide", batch: int | None = None) -> roofline.Step:
    """After each update a running average of all weights is kept."""
    return step(mode, size, after=Averages(), batch=batch)


# --------------------------------------------------------------------------------------------- the host is waited for

NOTES: list[str] = []


def _note(module: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
    """Nothing is read: names and shapes only."""
    NOTES.clear()
    for number in range(120):
        NOTES.append(f"{type(module).__name__} {number}: {tuple(given[0].shape)} to {tuple(result.shape)}")


def _hook(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_hook(_note)


def hooks(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """A hook at each norm writes lines about shapes."""
    return step(mode, size, prepare=_hook, batch=batch)


class BranchingMixing(Mixing):
    def activate(self, x: Tensor) -> Tensor:
        if x.abs().max() > 1e6:
            x = x.clamp(-1e6, 1e6)
        return super().activate(x)


class Branching(Block):
    mixing = BranchingMixing


def branches(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """Before each GELU it depends on the numbers what is done, which breaks the graph of a compiler."""
    return step(mode, size, Branching, batch=batch)


# -------------------------------------------------------------------------------------------------------- two at once


def gelu_and_hooks(mode: str = "infer", size: str = "base", batch: int | None = None) -> roofline.Step:
    """GELU in eight ops, and hooks."""
    return step(mode, size, WrittenOut, prepare=_hook, batch=batch)


# -------------------------------------------------------------------------------------------------- not the same model


class DroppingBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 0.1, self.training)


def dropout(mode: str = "train", size: str = "base", batch: int | None = None) -> roofline.Step:
    """A tenth of what a block returns is dropped."""
    return step(mode, size, DroppingBlock, batch=batch)
