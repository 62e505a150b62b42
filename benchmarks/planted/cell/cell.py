"""A gated recurrent cell written by hand, over a sequence: many small ops. Copies of it are in `cell_planted.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

INPUTS, WIDTH, LABELS, SAMPLES, TOKENS = 32, 64, 8, 16, 40


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, given: Tensor, h: Tensor) -> Tensor:
        return self.update(given, self.hidden(h), h)

    def update(self, given: Tensor, own: Tensor, h: Tensor) -> Tensor:
        given_reset, given_keep, given_new = given.chunk(3, -1)
        own_reset, own_keep, own_new = own.chunk(3, -1)
        reset = torch.sigmoid(given_reset + own_reset)
        keep = torch.sigmoid(given_keep + own_keep)
        new = torch.tanh(given_new + reset * own_new)
        return new + keep * (h - new)


class Recurrent(nn.Module):
    def __init__(self, cell: type[Cell]) -> None:
        super().__init__()
        self.inputs = nn.Linear(INPUTS, 3 * WIDTH)
        self.cell = cell()
        self.head = nn.Linear(WIDTH, LABELS)

    def forward(self, x: Tensor) -> Tensor:
        given = self.inputs(x)
        h = x.new_zeros(x.shape[0], WIDTH)
        states = []
        for place in range(x.shape[1]):
            h = self.cell(given[:, place], h)
            states.append(h)
        return self.head(torch.stack(states, 1))


def fused_adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, fused=True)


def nothing() -> None:
    """What happens before a step."""


def step(
    mode: str,
    cell: type[Cell] = Cell,
    net: type[Recurrent] = Recurrent,
    before: Callable[[], None] = nothing,
    batch: int | None = None,
    seq: int | None = None,
) -> roofline.Step:
    """One forward pass, or one training step with Adam."""
    torch.manual_seed(0)
    batch, seq = batch or SAMPLES, seq or TOKENS
    model = net(cell).train(mode == "train")
    x, labels = torch.randn(batch, seq, INPUTS), torch.randint(LABELS, (batch * seq,))
    optimizer = fused_adam(model.parameters())

    def infer() -> object:
        before()
        with torch.no_grad():
            return model(x)

    def train() -> object:
        before()
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).flatten(0, 1), labels)
        loss.backward()
        optimizer.step()
        return loss

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=infer if mode == "infer" else train,
        mode=mode,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=batch,
        tokens=batch * seq,
        batch=batch,
        seq=seq,
    )


def variant(mode: str = "infer", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(mode: str = mode, batch: int | None = None, seq: int | None = None) -> roofline.Step:
        return step(mode, batch=batch, seq=seq, **changes)

    return make_step


make_step = variant()
