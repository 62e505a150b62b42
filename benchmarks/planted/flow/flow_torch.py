"""The flow of `flow.py` in PyTorch: the same weights, the same points, the same density."""

from __future__ import annotations

from collections.abc import Callable

import flow
import torch
from torch import Tensor


def density(all_: list[dict[str, Tensor]], x: Tensor) -> Tensor:
    total = torch.zeros(len(x))
    for one in all_:
        kept, moved = x[:, : flow.HALF], x[:, flow.HALF :]
        hidden = torch.tanh(torch.addmm(one["b1"], kept, one["w1"]))
        hidden = torch.tanh(torch.addmm(one["b2"], hidden, one["w2"]))
        scale, shift = torch.addmm(one["b3"], hidden, one["w3"]).chunk(2, dim=1)
        scale = torch.tanh(scale)
        x, total = torch.cat((moved * torch.exp(scale) + shift, kept), dim=1), total + scale.sum(1)
    return total - 0.5 * (x**2).sum(1) - 0.5 * flow.SIZE * 1.8378770664093453


def _step(batch: int, after: Callable[[Tensor], None]) -> Callable[[], Tensor]:
    all_ = [{name: torch.from_numpy(value) for name, value in one.items()} for one in flow.weights()]
    x = torch.from_numpy(flow.points(batch))

    def step() -> Tensor:
        with torch.no_grad():
            result = density(all_, x)
        after(result)
        return result

    return step


def make_step(batch: int = flow.BATCH) -> Callable[[], Tensor]:
    return _step(batch, lambda result: None)


def written_down(batch: int = flow.BATCH) -> Callable[[], Tensor]:
    """Each density becomes a line of text, in Python, and all that was seen before with it."""

    def after(result: Tensor) -> None:
        for _ in range(128):
            lines = [f"{index}: {value:.6f}" for index, value in enumerate(result.tolist())]
            assert len(lines) == len(result)

    return _step(batch, after)
