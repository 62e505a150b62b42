"""The field of colours, with the optimizer that the first tutorial had."""

import torch
from hashgrid import make_train


class Adam:
    """From the paper, one parameter after the other."""

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.99), eps=1e-8):
        self.parameters, self.lr, self.betas, self.eps, self.t = parameters, lr, betas, eps, 0
        self.m = [torch.zeros_like(p) for p in parameters]
        self.v = [torch.zeros_like(p) for p in parameters]

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        b1, b2 = self.betas
        for i, p in enumerate(self.parameters):
            self.m[i] = b1 * self.m[i] + (1 - b1) * p.grad
            self.v[i] = b2 * self.v[i] + (1 - b2) * p.grad**2
            m_hat = self.m[i] / (1 - b1**self.t)
            v_hat = self.v[i] / (1 - b2**self.t)
            p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)


def by_hand():
    return make_train(Adam)
