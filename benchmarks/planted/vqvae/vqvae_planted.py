"""The VQ-VAE with one thing done as one should not."""

import torch.nn.functional as F
from vqvae import CODES, FEW, Quantizer, step_of, train


class OneHot(Quantizer):
    """Codes by a product with one-hot rows, as the first implementation had it."""

    def looked_up(self, ids):
        rows = F.one_hot(ids, self.codes.num_embeddings).float()
        return rows @ self.codes.weight


def by_product():
    return step_of(quantizer=OneHot)


class Differences(Quantizer):
    """All differences of vectors and codes, squared and added up."""

    def distances(self, z):
        return (z.unsqueeze(1) - self.codes.weight.detach()).pow(2).sum(-1)


def differences():
    return train(quantizer=Differences, codes=FEW)


usage = {}


def count(ids):
    """How often each code was used, for a log."""
    for code in range(CODES):
        usage[code] = usage.get(code, 0) + (ids == code).sum().item()


def counted():
    return train(count)
