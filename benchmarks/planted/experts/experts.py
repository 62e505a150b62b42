"""A feed-forward layer of experts: each token goes to the two that the router likes best."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HIDDEN, EXPERTS, CHOSEN, TOKENS, LAYERS = 128, 512, 8, 2, 128, 2


class Expert(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Mixture(nn.Module):
    """Sorts the tokens by expert, so that each expert runs once."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        # How the layer was initialised decides who goes where: the same in all runs.
        nn.init.normal_(self.router.weight, generator=torch.Generator().manual_seed(0))
        self.experts = nn.ModuleList(Expert() for _ in range(EXPERTS))

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = torch.topk(torch.softmax(self.router(x), -1), CHOSEN)
        return weights / weights.sum(-1, keepdim=True), chosen

    def mix(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        order = torch.argsort(chosen.flatten())
        counts = torch.bincount(chosen.flatten(), minlength=EXPERTS).tolist()
        tokens = order // CHOSEN
        parts = x[tokens].split(counts)
        results = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        return torch.zeros_like(x).index_add(0, tokens, results * weights.flatten()[order, None])

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norm(x)
        return x + self.mix(normal, *self.route(normal))


def inputs() -> Tensor:
    return torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(1))


def infer(layer: type[Mixture]) -> Callable[[], Tensor]:
    model, x = nn.Sequential(*(layer() for _ in range(LAYERS))).eval(), inputs()

    def step() -> Tensor:
        with torch.no_grad():
            return model(x)

    return step


def make_step() -> Callable[[], Tensor]:
    return infer(Mixture)
