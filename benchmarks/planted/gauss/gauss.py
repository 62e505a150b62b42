"""A Gaussian process: what its hyperparameters are, by gradients of the marginal likelihood."""

import math

import torch

N, D = 256, 4


class GP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.zeros(D))
        self.log_height = torch.nn.Parameter(torch.zeros(()))
        self.log_noise = torch.nn.Parameter(torch.tensor(-1.0))

    def kernel(self, x):
        x = x / self.log_scale.exp()
        square = x.pow(2).sum(1)
        distance = (square[:, None] + square[None] - 2 * x @ x.T).clamp_min(0)
        return self.log_height.exp() * torch.exp(-0.5 * distance)

    def factor(self, covariance):
        return torch.linalg.cholesky(covariance)

    def forward(self, x, y):
        covariance = self.kernel(x) + self.log_noise.exp() * torch.eye(N)
        lower = self.factor(covariance)
        alpha = torch.cholesky_solve(y[:, None], lower)[:, 0]
        return 0.5 * y @ alpha + lower.diagonal().log().sum() + 0.5 * N * math.log(2 * math.pi)


def fit(gp):
    g = torch.Generator().manual_seed(0)
    x = torch.rand(N, D, generator=g)
    y = torch.sin(3 * x.sum(1)) + 0.1 * torch.randn(N, generator=g)
    optimizer = torch.optim.Adam(gp.parameters(), lr=1e-3)

    def closure():
        optimizer.zero_grad()
        loss = gp(x, y)
        loss.backward()
        return loss

    return lambda: optimizer.step(closure).detach()


def train():
    return fit(GP())
