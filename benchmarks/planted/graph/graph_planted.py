"""Copies of the graph network with one cause planted, some with two.

All but the last one compute what the graph network computes, with the same contractions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from graph import Graph, Round, step
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import roofline


class Chunks(Round):
    def receive(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        sums = torch.zeros_like(x)
        for some, there in zip(sources.split(160), targets.split(160), strict=True):
            sums = self.add_up(there, self.send(x, some), sums)
        return sums


def edges_in_chunks(mode: str = "infer") -> roofline.Step:
    """The edges are taken 160 at a time, in a loop."""
    return step(mode, Chunks)


class Masks(Round):
    def activate(self, x: Tensor) -> Tensor:
        negative = x < 0
        x[negative] = 0.01 * x[negative]
        return x


def leaky_by_mask(mode: str = "infer") -> roofline.Step:
    """At the nodes, leaky ReLU by a mask of booleans: negative numbers are taken out, scaled and put back."""
    return step(mode, Masks)


class DoubleSums(Round):
    def add_up(self, targets: Tensor, sent: Tensor, sums: Tensor) -> Tensor:
        return sums.double().index_add_(0, targets, sent.double()).float()


def sums_float64(mode: str = "infer") -> roofline.Step:
    """What is received is added up in double precision."""
    return step(mode, DoubleSums)


class Sorts(Round):
    def receive(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        order = (targets * x.shape[0] + sources).argsort()
        return super().receive(x, sources[order], targets[order])


def sorts_each_round(mode: str = "infer") -> roofline.Step:
    """The edges are sorted anew in each round."""
    return step(mode, Sorts)


class Lists(Graph):
    def through(self, one: nn.Module, x: Tensor, sources: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        x = one(x, sources, targets, shares)
        self.seen = x[:, :16].tolist()
        return x


def lists(mode: str = "infer") -> roofline.Step:
    """After each round a quarter of the states goes into lists of Python."""
    return step(mode, graph=Lists)


class Checkpointed(Graph):
    def through(self, one: nn.Module, x: Tensor, sources: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
        return checkpoint(one, x, sources, targets, shares, use_reentrant=False, preserve_rng_state=False)


def checkpoints(mode: str = "train") -> roofline.Step:
    """Each round is computed again in the backward pass."""
    return step(mode, graph=Checkpointed)


def _anomalies(run: Callable[[], object]) -> Callable[[], object]:
    def watched() -> object:
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            return run()

    return watched


def anomaly(mode: str = "train") -> roofline.Step:
    """Anomaly detection was left on: each op of the forward pass notes the stack of Python, and nothing is checked."""
    return step(mode, wrap=_anomalies)


def float64_and_lists(mode: str = "infer") -> roofline.Step:
    """Sums in double precision, and states in lists."""
    return step(mode, DoubleSums, Lists)


# -------------------------------------------------------------------------------------------------- not the same model


def _autocast(run: Callable[[], object]) -> Callable[[], object]:
    def cast() -> object:
        with torch.autocast("cpu", torch.bfloat16):
            return run()

    return cast


def autocast(mode: str = "infer") -> roofline.Step:
    """Products in bfloat16, by autocast."""
    return step(mode, wrap=_autocast)
