"""Copies of the recurrent cell with one cause planted; all compute the same function."""

from __future__ import annotations

import gc

import torch
from cell import WIDTH, Cell, Recurrent, variant
from torch import Tensor


class GrowingRecurrent(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        given = self.inputs(x)
        h = x.new_zeros(x.shape[0], WIDTH)
        states = x.new_zeros(x.shape[0], 0, WIDTH)
        for place in range(x.shape[1]):
            h = self.cell(given[:, place], h)
            states = torch.cat([states, h[:, None]], 1)
        return self.head(states)


class SlicedCell(Cell):
    def update(self, given: Tensor, own: Tensor, h: Tensor) -> Tensor:
        given, own, h = given.unflatten(-1, (3, -1)), own.unflatten(-1, (3, -1)), h
        width, parts = WIDTH // 8, []
        for start in range(0, WIDTH, width):
            here = slice(start, start + width)
            parts.append(super().update(given[..., here].flatten(-2), own[..., here].flatten(-2), h[:, here]))
        return torch.cat(parts, -1)


class StepwiseInputs(Recurrent):
    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], WIDTH)
        outputs = []
        for place in range(x.shape[1]):
            h = self.cell(self.inputs(x[:, place]), h)
            outputs.append(self.head(h))
        return torch.stack(outputs, 1)


HELD: list[list[int]] = []


def _collect() -> None:
    if not HELD:
        # What the libraries made is left alone: collecting past it takes a hundred times as long as the step.
        gc.freeze()
        HELD.extend([number] for number in range(20_000))
    gc.collect()


class CheckingCell(Cell):
    def forward(self, given: Tensor, h: Tensor) -> Tensor:
        if bool((h.abs() > 1.5).any()):
            raise ValueError("a state is out of bounds")
        return super().forward(given, h)


# --------------------------------------------------------------------------------------------------------- the copies

#: The states are joined anew after each token.
growing_cat = variant(net=GrowingRecurrent)
#: The cell takes its units eight at a time: ten times as many ops.
sliced_cell = variant(cell=SlicedCell)
#: What could be one product before and one after the loop is done token by token.
stepwise_inputs = variant(net=StepwiseInputs)
#: Garbage is collected before each step, past 20,000 lists that are in use.
collecting = variant(before=_collect)
#: Before each token it is asked whether a state is out of bounds.
bound_checks = variant(cell=CheckingCell)
