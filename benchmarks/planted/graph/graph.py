"""Message passing on a fixed random graph: rows go along edges and are added up. Copies: `graph_planted.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

import roofline

NODES, EDGES, WIDTH, LABELS, ROUNDS = 1000, 8000, 64, 16, 3


class Round(nn.Module):
    """One linear layer along each edge, one at each node."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        received = self.receive(x, sources, targets) * shares
        return self.norm(x + self.activate(self.update(received)))

    def receive(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        return self.add_up(targets, self.send(x, sources), torch.zeros_like(x))

    def send(self, x: Tensor, sources: Tensor) -> Tensor:
        return functional.leaky_relu(self.message(x.index_select(0, sources)))

    def add_up(self, targets: Tensor, sent: Tensor, sums: Tensor) -> Tensor:
        return sums.index_add_(0, targets, sent)

    def activate(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(x)


class Graph(nn.Module):
    def __init__(self, round_class: type[Round]) -> None:
        super().__init__()
        self.stem = nn.Linear(LABELS, WIDTH)
        self.rounds = nn.ModuleList(round_class() for _ in range(ROUNDS))
        self.head = nn.Linear(WIDTH, LABELS)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        x = self.stem(x)
        for one in self.rounds:
            x = self.through(one, x, sources, targets, shares)
        return self.head(x)

    def through(self, one: nn.Module, x: Tensor, sources: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        return one(x, sources, targets, shares)


def step(
    mode: str,
    round_class: type[Round] = Round,
    graph: type[Graph] = Graph,
    wrap: Callable[[Callable[[], object]], Callable[[], object]] | None = None,
) -> roofline.Step:
    """One forward pass, or one training step (cross entropy at each node, SGD with momentum)."""
    torch.manual_seed(0)
    model = graph(round_class).train(mode == "train")
    sources, targets = torch.randint(NODES, (EDGES,)), torch.randint(NODES, (EDGES,))
    shares = 1.0 / torch.bincount(targets, minlength=NODES).clamp(min=1).float()[:, None]
    x, labels = torch.randn(NODES, LABELS), torch.randint(LABELS, (NODES,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, fused=True)

    def infer() -> object:
        with torch.no_grad():
            return model(x, sources, targets, shares)

    def train() -> object:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x, sources, targets, shares), labels)
        loss.backward()
        optimizer.step()
        return loss

    run = infer if mode == "infer" else train
    parameters = sum(p.numel() for p in model.parameters())
    return roofline.Step(
        run=run if wrap is None else wrap(run),
        mode=mode,
        model=model,
        parameters=parameters,
        trainable=parameters,
        samples=1,
    )


def make_step(mode: str = "infer") -> roofline.Step:
    return step(mode)
