"""Copies of the recommender with one cause planted; all compute the same function."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from towers import LONG, MANY, WIDE, Network, Tower, variant, wide_parts


class OneByOne(Tower):
    def look_up(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        if table.num_embeddings < 1000:
            return table(ids)
        return torch.cat([table(one) for one in ids.split(1)])


class PerSample(Network):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([super(PerSample, self).forward(one) for one in x.split(1)])


def looping_adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3, foreach=False)


def multiply_by_zero(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.mul_(0.0)


def clip_by_hand(model: nn.Module) -> None:
    gradients = [parameter.grad for parameter in model.parameters()]
    norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients))
    factor = torch.clamp(1e6 / (norm + 1e-6), max=1.0)
    for gradient in gradients:
        gradient.copy_(gradient * factor)


class HandAdam:
    """Adam in ten ops per parameter, as a plain function: no optimizer of the framework."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.first = [torch.zeros_like(each) for each in self.parameters]
        self.second = [torch.zeros_like(each) for each in self.parameters]
        self.number = 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self.number += 1
        for place, parameter in enumerate(self.parameters):
            gradient = parameter.grad
            self.first[place] = 0.9 * self.first[place] + 0.1 * gradient
            self.second[place] = 0.999 * self.second[place] + 0.001 * gradient * gradient
            first = self.first[place] / (1 - 0.9**self.number)
            second = self.second[place] / (1 - 0.999**self.number)
            parameter -= 1e-3 * first / (second.sqrt() + 1e-8)


def fresh() -> Callable[[], object]:
    """Rows are looked up into, and weighed in, fresh memory."""
    table, ids, weights, first, second = wide_parts()

    def run() -> object:
        rows = torch.index_select(table, 0, ids)
        weighed = torch.mul(rows.view(MANY, LONG, WIDE), weights)
        return functional.relu(weighed.sum(1) @ first) @ second

    return run


# --------------------------------------------------------------------------------------------------------- the copies

#: Rows of the two large tables are looked up one at a time.
lookup_one_by_one = variant(tower=OneByOne)
#: The networks take the samples one by one.
linear_per_sample = variant(network=PerSample)
#: Adam that takes the parameters one by one, in a dozen ops each.
adam_loop = variant(mode="train", optimizer=looping_adam)
#: Gradients are kept and multiplied by zero.
zero_by_product = variant(mode="train", reset=multiply_by_zero)
#: Gradients are clipped by hand, at a norm that none has.
clipping = variant(mode="train", between=clip_by_hand)
#: Adam by hand, outside of any optimizer class.
adam_as_function = variant(mode="train", optimizer=HandAdam)
