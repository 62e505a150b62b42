"""The ranker with a loss from its definition."""

import torch
from ranker import make_train, pairwise


def written(difference):
    """Minus the logarithm of a sigmoid, so that nothing overflows."""
    return torch.clamp(-difference, min=0) + torch.log(1 + torch.exp(-torch.abs(difference)))


def loss_written():
    return make_train(lambda scores, grades: pairwise(scores, grades, written))
