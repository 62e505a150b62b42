"""Learning to rank: scores of the documents of a query, and a logistic loss of all pairs in the wrong order."""

import torch
import torch.nn.functional as F
from torch import nn

QUERIES, DOCUMENTS, FEATURES, WIDTH = 10, 96, 64, 96


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(
            nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def logistic(difference):
    return F.softplus(-difference)


def pairwise(scores, grades, logistic=logistic):
    """scores, grades (query, document)"""
    better = (grades[:, :, None] > grades[:, None, :]).float()
    return (logistic(scores[:, :, None] - scores[:, None, :]) * better).sum() / better.sum()


def make_train(loss_of=pairwise):
    model = Scorer()
    g = torch.Generator().manual_seed(1)
    x = torch.randn(QUERIES, DOCUMENTS, FEATURES, generator=g)
    grades = torch.randint(5, (QUERIES, DOCUMENTS), generator=g)
    rule = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        rule.zero_grad(set_to_none=True)
        scores = model(x)
        loss = loss_of(scores, grades)
        loss.backward()
        rule.step()
        return loss.detach()

    return step
