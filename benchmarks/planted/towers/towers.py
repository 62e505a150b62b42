"""A two-tower recommender: embedding tables, small networks, a product of both. Copies: `towers_planted.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

DIMENSION, HISTORY, SAMPLES = 32, 8, 256
USER_TABLES, ITEM_TABLES = (4000, 500, 50), (6000, 200)

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class Network(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(inputs, 128), nn.Linear(128, 64), nn.Linear(64, DIMENSION)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.first(x))
        return self.third(functional.relu(self.second(x)))


class Tower(nn.Module):
    """Looks up one row per table, and the mean of several of another one; then a network."""

    def __init__(self, tables: tuple[int, ...], bag: int, network: type[Network]) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, DIMENSION) for rows in tables)
        self.bag = nn.Embedding(bag, DIMENSION)
        self.network = network(DIMENSION * (len(tables) + 1))

    def forward(self, ids: Tensor, history: Tensor) -> Tensor:
        rows = [self.look_up(table, ids[:, place]) for place, table in enumerate(self.tables)]
        return self.network(torch.cat([*rows, self.bag(history).mean(1)], 1))

    def look_up(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        return table(ids)


class Towers(nn.Module):
    def __init__(self, tower: type[Tower], network: type[Network]) -> None:
        super().__init__()
        self.user, self.item = tower(USER_TABLES, 3000, network), tower(ITEM_TABLES, 1000, network)

    def forward(self, users: Tensor, seen: Tensor, items: Tensor, words: Tensor) -> Tensor:
        return (self.user(users, seen) * self.item(items, words)).sum(-1)


def fused_adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def forget(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Before the backward pass: gradients are dropped."""
    optimizer.zero_grad(set_to_none=True)


def nothing(model: nn.Module) -> None:
    """What happens between backward pass and optimizer."""


def step(
    mode: str,
    tower: type[Tower] = Tower,
    network: type[Network] = Network,
    optimizer: MakeOptimizer = fused_adam,
    reset: Callable[[torch.optim.Optimizer, nn.Module], None] = forget,
    between: Callable[[nn.Module], None] = nothing,
    batch: int | None = None,
) -> roofline.Step:
    """One forward pass, or one training step with Adam on dense gradients."""
    torch.manual_seed(0)
    batch = batch or SAMPLES
    model = Towers(tower, network).train(mode == "train")
    given = (
        torch.stack([torch.randint(rows, (batch,)) for rows in USER_TABLES], 1),
        torch.randint(3000, (batch, HISTORY)),
        torch.stack([torch.randint(rows, (batch,)) for rows in ITEM_TABLES], 1),
        torch.randint(1000, (batch, HISTORY)),
    )
    labels = torch.randint(2, (batch,)).float()
    made = optimizer(model.parameters())

    def infer() -> object:
        with torch.no_grad():
            return model(*given)

    def train() -> object:
        reset(made, model)
        loss = functional.binary_cross_entropy_with_logits(model(*given), labels)
        loss.backward()
        between(model)
        made.step()
        return loss

    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=infer if mode == "infer" else train,
        mode=mode,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=batch,
        batch=batch,
    )


def variant(mode: str = "infer", **changes: Any) -> Callable[..., roofline.Step]:
    """Return the function that makes a step with some arguments of `step` changed, for `roofline profile`."""

    def make_step(mode: str = mode, batch: int | None = None) -> roofline.Step:
        return step(mode, batch=batch, **changes)

    return make_step


make_step = variant()


# One wide tower, without a framework's modules

ROWS, LONG, WIDE, MANY = 4000, 64, 64, 2304


def wide_parts() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return (
        torch.randn(ROWS, WIDE),
        torch.randint(ROWS, (MANY * LONG,)),
        torch.rand(LONG, 1),
        torch.randn(WIDE, 512),
        torch.randn(512, WIDE),
    )


def buffered() -> Callable[[], object]:
    """Rows are looked up into, and weighed in, memory that is kept from step to step."""
    table, ids, weights, first, second = wide_parts()
    rows, weighed = torch.empty(MANY * LONG, WIDE), torch.empty(MANY, LONG, WIDE)

    def run() -> object:
        torch.index_select(table, 0, ids, out=rows)
        torch.mul(rows.view(MANY, LONG, WIDE), weights, out=weighed)
        return functional.relu(weighed.sum(1) @ first) @ second

    return run
