"""The GPT, in smaller pieces, with scaled losses, with a loss of one's own, and writing without a cache."""

import torch
from gpt import SAMPLES, VOCABULARY, Plain, make_train, make_write
from torch.nn import functional as F


def two_at_a_time():
    """Small micro-batches, as the memory of another machine asked for them."""
    return make_train(parts=SAMPLES // 2)


class Scaled(Plain):
    """Losses are scaled as for float16, which nobody uses: gradients are scaled back, and asked if they are finite."""

    scale = 1024.0

    def zero(self):
        for p in self.parameters:
            if p.grad is not None:
                p.grad.zero_()

    def backward(self, loss):
        (loss * self.scale).backward()

    def ready(self):
        for p in self.parameters:
            p.grad = p.grad / self.scale
            if not torch.isfinite(p.grad).all().item():
                raise ArithmeticError("overflow")
        length = torch.stack([p.grad.norm() for p in self.parameters]).norm().item()
        for p in self.parameters:
            p.grad *= min(1.0, 1.0 / (length + 1e-6))


def scaled():
    return make_train(gradients=Scaled)


def smoothed(logits, targets):
    """Smoothed labels, one row of the vocabulary for each token, and the cross entropy from its definition."""
    labels = F.one_hot(targets, VOCABULARY).float() * 0.9 + 0.1 / VOCABULARY
    shares = torch.exp(logits - logits.amax(-1, keepdim=True))
    shares = shares / shares.sum(-1, keepdim=True)
    return -(labels * torch.log(shares + 1e-12)).sum(-1).mean()


def smoothing():
    return make_train(loss_of=smoothed)


def scaled_and_smoothing():
    return make_train(loss_of=smoothed, gradients=Scaled)


def from_the_start():
    """For each word the whole text is read again."""
    return make_write(cached=False)
