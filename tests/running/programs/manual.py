"""A training whose updates are written by hand, with a loss that is a module; an evaluation after every 20 of 80."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.relu(self.inner(x)))


net, loss = Net(), nn.MSELoss()
for step in range(1, 81):
    x = torch.randn(4, 8)
    net.zero_grad()
    loss(net(x), x).backward()
    with torch.no_grad():
        for weight in net.parameters():
            weight -= 0.01 * weight.grad
    if step % 20 == 0:
        net.eval()
        with torch.no_grad():
            for _ in range(3):
                loss(net(x), x)
        net.train()
