"""Copies of the mixer with one cause planted, some with two; they are listed at the end.

All but the last one compute what the mixer computes, with the same contractions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from mixer import Block, Mixer, Mixing, variant
from torch import Tensor, nn
from torch.nn import functional

# ---------------------------------------------------------------------------------------------------- the same work


class WrittenOutMixing(Mixing):
    def activate(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def written_loss(logits: Tensor, words: Tensor) -> Tensor:
    exponents = torch.exp(logits - logits.detach().amax(-1, keepdim=True))
    chances = exponents / exponents.sum(-1, keepdim=True)
    wanted = functional.one_hot(words, logits.shape[-1]).float()
    return -(wanted * torch.log(chances)).sum(-1).mean()


class DoubleMixing(Mixing):
    def apply_linear(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return functional.linear(x, linear.weight.double().float(), linear.bias.double().float())


class ContiguousMixing(Mixing):
    def apply_linear(self, linear: nn.Linear, x: Tensor) -> Tensor:
        return linear(x.permute(2, 1, 0).contiguous().permute(2, 1, 0).contiguous())


class LogsQuantiles(Mixer):
    def through(self, block: nn.Module, x: Tensor) -> Tensor:
        x = block(x)
        self.quantiles = x[0].sort(-1).values[:, ::16].mean(0)
        return x


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


class Averages:
    """A running average of the weights, in a loop over them."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            old = self.kept.get(name, parameter)
            self.kept[name] = 0.999 * old + 0.001 * parameter


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


class BranchingMixing(Mixing):
    def activate(self, x: Tensor) -> Tensor:
        if x.abs().max() > 1e6:
            x = x.clamp(-1e6, 1e6)
        return super().activate(x)


# -------------------------------------------------------------------------------------------------- not the same model


class DroppingBlock(Block):
    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(super().forward(x), 0.1, self.training)


# --------------------------------------------------------------------------------------------------------- the copies

#: GELU from its formula with tanh, in eight ops.
gelu_written = variant(mixing=WrittenOutMixing)
#: Cross entropy from exp, sum, div and log, times the targets as ones and zeros.
loss_written = variant(mode="train", loss=written_loss)
#: Weights are made double and single again each time they are used.
weights_float64 = variant(mixing=DoubleMixing)
#: What goes into a linear layer is turned and made contiguous, and back.
contiguous = variant(mixing=ContiguousMixing)
#: After each block the channels of one sample are sorted for a statistic that nobody reads.
quantiles = variant(mixer=LogsQuantiles)
#: AdamW without decay, and the decay by hand.
decay_in_loop = variant(mode="train", size="wide", optimizer=DecayingAdamW)
#: After each update a running average of all weights is kept.
averages = variant(mode="train", size="wide", after=Averages())
#: A hook at each norm writes lines about shapes.
hooks = variant(prepare=_hook)
#: Before each GELU it depends on the numbers what is done, which breaks the graph of a compiler.
branches = variant(mixing=BranchingMixing)
#: GELU in eight ops, and hooks.
gelu_and_hooks = variant(mixing=WrittenOutMixing, prepare=_hook)
#: A tenth of what a block returns is dropped.
dropout = variant(mode="train", block=DroppingBlock)
